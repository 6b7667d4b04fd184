"""Whole learning phases over simulated phones: `simulate(Settings(…))` returns a `Run`.

docs/simulating.md shows how. Nothing here prints; `simulate` tells whoever asks how far it is.
"""

from __future__ import annotations

from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.learning.files import write
from earshot_simulations.learning.run import Run, result
from earshot_simulations.learning.settings import Agreement, Discovery, Settings, Summation
from earshot_simulations.learning.simulation import simulate
from earshot_simulations.populations import Heterogeneity

__all__ = [
    "Adversary",
    "Agreement",
    "Discovery",
    "Heterogeneity",
    "Run",
    "Settings",
    "Summation",
    "result",
    "simulate",
    "write",
]
