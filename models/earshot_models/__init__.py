"""Encoders and what they learn from; teachers and private votes of ensembles."""

from __future__ import annotations

from earshot_models.tensorflow_start import start_quietly

start_quietly()
