"""Who is compared: the thesis as it is printed, our local route, our secure sums; no privacy."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from earshot_client.encoder import encoder_path
from earshot_protocol.checks import whole
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.progress import Progress
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_simulations.phases.environments import heard_by_some
from earshot_simulations.phases.routes import Settings
from earshot_simulations.phases.settings import (
    BLOBS,
    NO_NOISE,
    Discovery,
    PolicyChoice,
    SummationChoice,
)
from earshot_simulations.phases.simulation import open_population
from earshot_simulations.populations import SoundFolder
from earshot_simulations.sweeps.phase import SIMULATED
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Arm, Measure
from earshot_studies.liebenow.printed import AS_PRINTED, scored

_STARTS = 4


def pooled(settings: Settings) -> Figures:
    """Cluster what some phones heard, one cluster a scene, and name clusters by majority.

    Two hundred phones are taken, which is plenty: k-means has no noise to drown.
    """
    from sklearn.cluster import KMeans

    with closing(open_population(settings)) as population:
        population.prepare()
        heard = heard_by_some(settings, population)
        scenes = len(population.labels)
        means = KMeans(scenes, n_init=_STARTS, random_state=settings.seed).fit(heard.points)
        centroids = means.cluster_centers_.astype(np.float32)
        owner = nearest(heard.points, centroids, population.geometry)
        votes = np.zeros((scenes, scenes), dtype=np.int64)
        named = heard.labels >= 0
        np.add.at(votes, (owner[named], heard.labels[named]), 1)
        names = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
        return scored(centroids, names, population, heard, population.geometry)


POOLED = Measure("pooled k-means", pooled)


_MOST_SEEDS = 10_000
CHOSEN_ON, REPORTED = 0, 1000
"""The first seed of phases on which settings are chosen, and of those that are reported."""


@dataclass(frozen=True)
class ComparedEncoder:
    """One of those that are compared.

    Attributes:
        name: in tables and pictures.
        measure: of its phases.
        discovery: its route.
        colour: of its curves.
        marker: of its curves.
        printed: whether it is the thesis's own, whose phones expect no corrupted ones (9.2.1) and
            cluster all dimensions of an embedding.
    """

    name: str
    measure: Measure
    discovery: Discovery
    colour: str
    marker: str
    printed: bool = False


PRINTED = ComparedEncoder("as printed", AS_PRINTED, Discovery.LOCAL, "#e45756", "s", printed=True)
LOCAL = ComparedEncoder("local, corrected", SIMULATED, Discovery.LOCAL, "#4c78a8", "o")
SECURE_SUM = ComparedEncoder("secure-sum", SIMULATED, Discovery.SECURE_SUM, "#54a24b", "D")
WITHOUT = ComparedEncoder("k-means, no privacy", POOLED, Discovery.LOCAL, "#555555", "x")
CONTENDERS = (PRINTED, LOCAL, SECURE_SUM)


def added_up(geometry: Geometry) -> float:
    """ε per recording that the steps of the local route's default budget add up to."""
    usual = learning_budget.BUDGETS[geometry]
    selected = learning_budget.TOP_LOCAL_CENTROIDS * usual.selection
    return usual.clustering + selected + usual.centroid_vote + usual.label_vote


BUDGETS_DESCRIBED = (
    "Budgets are the defaults: for blobs steps add up to "
    f"ε = {added_up(Geometry.EUCLIDEAN):g} per\n"
    f"recording, for sound to {added_up(Geometry.SPHERICAL):g}; for secure-sum "
    f"ε = {discovery_budget.EPSILON:g} per phone."
)
DESCRIBED = f"""**As printed** is the thesis's Algorithm 1 with its mechanisms as they stand there:
DPLloyd-Impr on all dimensions of an embedding, votes with Laplace shares of scale v/(ε n'), and the
label with the most votes, be it noise. The sum of such shares has a variance that is n' times too
small for the ε that is claimed, and v is not what one recording changes of a ballot: with 900
phones, v = 1 and a claimed ε of 1 its true ε at δ = 10⁻⁶ is about 281. Its curves show what a
system would find that protects next to nothing, and the ε below them is the claimed one. What the
thesis leaves open (how many centroids and votes, how OPTICS is set) is as on our local route.
**Local, corrected** is the same route with noise that has the law claimed, by Pólya shares, names
only where the votes stand clear of the noise, and candidates of one environment merged after the
vote; sound is clustered by direction in a public projection of {learning_budget.DIMENSIONS}
dimensions, with Gaussian noise. Its ε is per *recording*.
**Secure-sum** is the other route, which protects a *phone*: no phone publishes anything, all noise
is shared. Blobs are lifted to the sphere for it, (x, y) to the direction of (x, y, 1).
The last column of the table is what a whole phase costs by a bound that holds; none is known for
what is printed."""
"""Both for the notes."""


@dataclass(frozen=True)
class SimulationSize:
    """How much is simulated.

    Attributes:
        phones: in every phase; 0 where phases differ in it.
        recordings: of a phone, on average.
        seeds: phases of every kind.

    Raises:
        InvalidParametersError: no whole number above 0.
    """

    phones: int
    recordings: int
    seeds: int

    def __post_init__(self) -> None:
        whole("seeds", self.seeds, 1, _MOST_SEEDS)


@dataclass(frozen=True)
class ReproductionSetup:
    """What a reproduction has to work with.

    Attributes:
        size: of its phases.
        file: keeps the phases that are done.
        sound: folder of class/*.wav|ogg|flac; None where there is none.
        encoder: of the sound; None for the default one.
        processes: phases at a time.
        progress: told how far the work is.
        first_seed: of its phases.

    Raises:
        InvalidInputError: the folder holds no sound that can be used.
        DamagedEncoderError: there is no such encoder, or it is damaged.
    """

    size: SimulationSize
    file: Path
    sound: Path | None = None
    encoder: str | None = None
    processes: int = 1
    progress: Progress = field(default=lambda what, done, total, line=None: None)
    first_seed: int = REPORTED

    def __post_init__(self) -> None:
        self.labels  # noqa: B018 - a folder that is of no use is refused before any work

    @cached_property
    def labels(self) -> dict[str, int]:
        """How many names there are to give, by the name of the data."""
        counts = {BLOBS: Settings().scenes}
        if self.sound is not None:
            encoder = None if self.encoder is None else encoder_path(self.encoder)
            folder = SoundFolder(self.sound, 1, 1, 0.0, 0, encoder=encoder)
            counts[folder.name] = len(folder.labels)
        return counts

    @property
    def data(self) -> tuple[str, ...]:
        """What is simulated on, as `Settings.data` names it."""
        return (BLOBS,) if self.sound is None else (BLOBS, str(self.sound))

    def arm(
        self,
        contender: ComparedEncoder,
        data: str,
        labels: dict[str, str | float],
        **changes: Any,
    ) -> Arm:
        """A contender on some data, with these labels, and settings that are not as usual."""
        name = BLOBS if data == BLOBS else Path(data).resolve().name
        base = self._settings(contender, data)
        phases = tuple(
            replace(base, seed=self.first_seed + seed, **changes) for seed in range(self.size.seeds)
        )
        for phase in phases[:1]:
            phase.check()
        return Arm({"data": name, "mechanism": contender.name, **labels}, contender.measure, phases)

    def _settings(self, contender: ComparedEncoder, data: str) -> Settings:
        on_sound = data != BLOBS
        return Settings(
            phones=self.size.phones,
            recordings=self.size.recordings,
            data=data,
            encoder=self.encoder if on_sound else None,
            corrupted=0.0 if contender.printed else 0.05,
            policy=PolicyChoice.ANYTHING,
            discovery=contender.discovery,
            summation=SummationChoice.IDEAL,
            jobs=1,
            dimensions=DIMENSIONS if contender.printed and on_sound else None,
        )

    @property
    def described(self) -> str:
        """What was simulated, for a note."""
        crowd = f"{self.size.phones} phones" if self.size.phones else "phones"
        sizes = (
            f"{crowd} of {self.size.recordings} recordings, three in ten labelled, "
            f"{self.size.seeds} seeds"
        )
        if self.sound is None:
            return f"Ten blobs in the plane; {sizes}. No sound was given (`--data`)."
        encoder = self.encoder or DEFAULT_ENCODER
        known = (
            "; the shipped encoders heard four folds of ESC-10 and other sound, without labels"
            if encoder in SHIPPED_ENCODERS
            else ""
        )
        return (
            f"Ten blobs in the plane, and {self.sound.resolve().name}: seconds of its clips, a "
            f"quarter of which no phone hears, embedded by `{encoder}`. An encoder flatters sound "
            f"that it was trained on{known}. In every phase: {sizes}."
        )


NO_NOISE_AT_ALL: dict[str, Any] = {"epsilon": NO_NOISE}
"""Changes of settings: what a route finds without privacy."""
