"""Whole phases over simulated phones: `simulate(Settings(…))` returns a `Run`.

`sweep` simulates many. docs/simulating.md and docs/research.md show how. Nothing here prints; both
report progress to a callback.
"""

from __future__ import annotations

from earshot_protocol import distribution

distribution.require("earshot_simulations", ("simulations",))

from earshot_client.encoder import Encoder
from earshot_server.discovery.interface import CentroidDiscovery, FoundCentroids
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.adversary.attack import Attack
from earshot_simulations.engine.course import SimulatedStep
from earshot_simulations.own_code import OwnCodeError
from earshot_simulations.phases.run import Run, result
from earshot_simulations.phases.settings import Discovery, PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.populations import Heterogeneity, Population, Recordings
from earshot_simulations.sweeps.results import sweep

__all__ = [
    "Adversary",
    "Attack",
    "CentroidDiscovery",
    "Discovery",
    "Encoder",
    "FoundCentroids",
    "Heterogeneity",
    "OwnCodeError",
    "PolicyChoice",
    "Population",
    "Recordings",
    "Run",
    "Settings",
    "SimulatedStep",
    "SummationChoice",
    "result",
    "simulate",
    "sweep",
]
