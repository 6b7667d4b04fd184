"""What a simulation is asked to do, checked before any work."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass, field

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.parameters import parse_budget
from earshot_simulations.populations import Population

BLOBS = "blobs"
SOUNDSCAPES = "soundscapes"

_POINTS_BUDGET = Budget(clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.5)
# Sound needs more: private clustering pays for every dimension, from one phone's recordings alone.
_SOUND_BUDGET = Budget(clustering=2.0, selection=0.5, centroid_vote=0.5, label_vote=0.5)


_NO_NOISE = 1e6
"""Far above any ε that promises anything; the reports say that it promises nothing."""


def default_budget(data: str) -> Budget:
    """The budget where none is given: total ε = 2.5 per recording for points."""
    return _POINTS_BUDGET if data == BLOBS else _SOUND_BUDGET


class Summation(enum.StrEnum):
    """How ballots are added up."""

    REAL = "real"
    IDEAL = "ideal"


class Discovery(enum.StrEnum):
    """How global centroids are found."""

    LOCAL = "local"


class Engine(enum.StrEnum):
    """Where the phones run."""

    LOCAL = "local"


@dataclass(frozen=True)
class Settings:
    """One simulated learning phase; the names are those of the command's options."""

    phones: int = 500
    recordings: int = 200
    scenes: int = 10
    data: str = BLOBS
    labelled: float = 0.3
    dropout: float = 0.0
    corrupted: float = 0.0
    budget: Budget = _POINTS_BUDGET
    discovery: Discovery = Discovery.LOCAL
    summation: Summation = Summation.REAL
    engine: Engine = Engine.LOCAL
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    seed: int = 0
    dimensions: int = 8
    local_centroids: int = 6
    top_local_centroids: int = 2
    top_global_centroids: int = 10
    centroid_votes: int = 3
    label_votes: int = 3

    def check(self) -> None:
        """Refuse what cannot be simulated, before any work.

        Raises:
            InvalidParametersError: says which setting is wrong and what would be accepted.
        """
        for name in ("recordings", "scenes", "jobs"):
            checks.whole(name, getattr(self, name))
        checks.share("labelled", self.labelled)
        checks.whole("seed", self.seed, 0)
        self._parameters("", Geometry.EUCLIDEAN, self.dimensions, ("any label",)).check_feasible()

    def parameters(self, population: Population) -> PhaseParameters:
        """The parameters of a phase over this population."""
        return self._parameters(
            population.name,
            population.geometry,
            population.dimensions,
            population.labels,
        )

    def _parameters(
        self, encoder: str, geometry: Geometry, dimensions: int, labels: tuple[str, ...]
    ) -> PhaseParameters:
        return PhaseParameters(
            phones=self.phones,
            recordings=self.recordings,
            dimensions=dimensions,
            geometry=geometry,
            encoder=encoder,
            labels=labels,
            local_centroids=self.local_centroids,
            top_local_centroids=self.top_local_centroids,
            top_global_centroids=self.top_global_centroids,
            centroid_votes=self.centroid_votes,
            label_votes=self.label_votes,
            dropout=self.dropout,
            corrupted=self.corrupted,
            budget=self.budget,
        )


def whole_budget(text: str) -> Budget:
    """Read `clustering=…,selection=…,centroid-vote=…,label-vote=…`, or `none`.

    `none` is an ε at which every mechanism's noise vanishes: what the system does without privacy.

    Raises:
        InvalidParametersError: a name that is unknown, missing or repeated, or not a number.
    """
    names = Budget.names()
    if text.strip() == "none":
        return Budget(*(_NO_NOISE for _ in names))
    values = parse_budget(text, names)
    if len(values) != len(names):
        expected = ",".join(f"{name}=ε" for name in names)
        raise InvalidParametersError(f"budget '{text}': give each once, as {expected}, or none")
    return Budget(*(values[name] for name in names))
