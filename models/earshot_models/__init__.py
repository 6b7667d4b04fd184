"""Audio data sets and the encoders that are fitted on them."""

from __future__ import annotations

from earshot_models.tensorflow_start import start_quietly

start_quietly()
