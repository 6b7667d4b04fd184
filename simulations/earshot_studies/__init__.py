"""Reproductions of papers' tables and figures."""

from __future__ import annotations

import earshot_models  # noqa: F401 - it keeps TensorFlow quiet, which a study may import first
