"""Crowds of simulated phones and their recordings."""

from __future__ import annotations

from earshot_simulations.populations.blobs import Blobs, LiftedBlobs
from earshot_simulations.populations.heterogeneity import Heterogeneity
from earshot_simulations.populations.interface import (
    Population,
    Recordings,
    SimulatedPopulation,
    Skipped,
)
from earshot_simulations.populations.sound_folder import SoundFolder
from earshot_simulations.populations.soundscapes import PooledSoundscapes, Soundscapes

__all__ = [
    "Blobs",
    "Heterogeneity",
    "LiftedBlobs",
    "PooledSoundscapes",
    "Population",
    "Recordings",
    "SimulatedPopulation",
    "Skipped",
    "SoundFolder",
    "Soundscapes",
]
