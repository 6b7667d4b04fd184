"""Papers redone: their tables and figures, from data that you have."""

from __future__ import annotations

import earshot_models  # noqa: F401 - it keeps TensorFlow quiet, which a study may import first
