"""Whole phases over simulated phones: `simulate(Settings(…))` returns a `Run`.

`sweep` simulates many, and `simulate_campaign` a year of them. docs/simulating.md, docs/research.md
and docs/campaign-simulation.md show how. Nothing here prints; all report progress to a callback.
"""

from __future__ import annotations

from earshot_protocol import distribution

distribution.require("earshot_simulations", ("simulations",))

from earshot_client.encoder import Encoder
from earshot_protocol.progress import Progress
from earshot_server.campaigns.campaign_file import read_campaign
from earshot_server.discovery.interface import CentroidDiscovery, FoundCentroids
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.adversary.attack import Attack
from earshot_simulations.campaigns.findings import CampaignRun
from earshot_simulations.campaigns.settings import CampaignSettings, CampaignSummation
from earshot_simulations.campaigns.simulation import simulate_campaign
from earshot_simulations.engine.course import SimulatedStep
from earshot_simulations.own_code import OwnCodeError
from earshot_simulations.phases.environments import EnvironmentFindings
from earshot_simulations.phases.local import CentroidFindings
from earshot_simulations.phases.run import Run, result
from earshot_simulations.phases.secure_sum import CellFindings
from earshot_simulations.phases.settings import Discovery, PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.populations import Heterogeneity, Population, Recordings
from earshot_simulations.sweeps.results import sweep
from earshot_simulations.sweeps.table import SweepTable

__all__ = [
    "Adversary",
    "Attack",
    "CampaignRun",
    "CampaignSettings",
    "CampaignSummation",
    "CellFindings",
    "CentroidDiscovery",
    "CentroidFindings",
    "Discovery",
    "Encoder",
    "EnvironmentFindings",
    "FoundCentroids",
    "Heterogeneity",
    "OwnCodeError",
    "PolicyChoice",
    "Population",
    "Progress",
    "Recordings",
    "Run",
    "Settings",
    "SimulatedStep",
    "SummationChoice",
    "SweepTable",
    "read_campaign",
    "result",
    "simulate",
    "simulate_campaign",
    "sweep",
]
