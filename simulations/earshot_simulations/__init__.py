"""Whole phases over simulated phones: `simulate(Settings(…))` returns a `Run`.

`sweep` simulates many. docs/simulating.md and docs/research.md show how. Nothing here prints; both
tell whoever asks how far they are.
"""

from __future__ import annotations

from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.learning.files import write
from earshot_simulations.learning.run import Run, result
from earshot_simulations.learning.settings import Agreement, Discovery, Settings, Summation
from earshot_simulations.learning.simulation import simulate
from earshot_simulations.populations import Heterogeneity
from earshot_simulations.sweeps.results import sweep

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
    "sweep",
    "write",
]
