"""Contenders: the thesis as printed, our local route, our secure sums, and no privacy."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from earshot_client.encoder import encoder_path
from earshot_protocol.checks import whole
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.progress import Progress, silent
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_simulations.phases.environments import heard_by_some
from earshot_simulations.phases.run import NOISELESS
from earshot_simulations.phases.settings import (
    BLOBS,
    Discovery,
    PolicyChoice,
    Settings,
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
    """Cluster recordings of some phones, one cluster per scene, and name clusters by majority.

    At most 200 phones are used, which suffices: k-means has no noise to average out.
    """
    from sklearn.cluster import KMeans

    with closing(open_population(settings)) as population:
        population.prepare()
        heard = heard_by_some(population, settings.seed)
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
"""First seed of the phases on which settings are chosen, and of those that are reported."""


@dataclass(frozen=True)
class ComparedEncoder:
    """A contender of a comparison.

    Attributes:
        name: Name in tables and pictures.
        measure: Measure of its phases.
        discovery: Route of its phases.
        colour: Colour of its curves.
        marker: Marker of its curves.
        printed: Whether it is the thesis's, which expects no corrupted phones (9.2.1) and clusters
            all dimensions of an embedding.
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
    """Return the total ε per recording of all steps in the local route's default budget."""
    usual = learning_budget.BUDGETS[geometry]
    selected = learning_budget.TOP_LOCAL_CENTROIDS * usual.selection
    return usual.clustering + selected + usual.centroid_vote + usual.label_vote


BUDGETS_DESCRIBED = (
    "Budgets are the defaults: for blobs steps add up to "
    f"ε = {added_up(Geometry.EUCLIDEAN):g} per\n"
    f"recording, for sound to {added_up(Geometry.SPHERICAL):g}; for secure-sum "
    f"ε = {discovery_budget.EPSILON:g} per phone."
)
DESCRIBED = f"""**As printed** is the thesis's Algorithm 1 with its mechanisms as published:
DPLloyd-Impr on all dimensions of an embedding, votes with Laplace shares of scale v/(ε n'), and the
label with the most votes, even if they are noise. The sum of such shares has a variance that is n'
times too small for the claimed ε, and v is not the change that one recording makes in a ballot:
with 900 phones, v = 1 and a claimed ε of 1, its true ε at δ = 10⁻⁶ is about 281. Its curves show a
system with almost no protection, and the ε below them is the claimed one. Settings that the thesis
leaves open (numbers of centroids and votes, OPTICS) are those of our local route.
**Local, corrected** is the same route with noise of the claimed law, by Pólya shares, names only
where the votes are clear of the noise, and candidates of one environment merged after the vote;
sound is clustered by direction in a public projection of {learning_budget.DIMENSIONS} dimensions,
with Gaussian noise. Its ε is per *recording*.
**Secure-sum** is the other route, which protects a *phone*: no phone publishes anything, and all
phones share the noise. For it, blobs are lifted to the sphere, (x, y) to the direction of
(x, y, 1).
The last column of the table is a sound bound on the cost of a whole phase; none is known for the
printed mechanisms."""
"""Description of the contenders, for notes."""


@dataclass(frozen=True)
class SimulationSize:
    """The size of a simulation.

    Attributes:
        phones: Number of phones in every phase; 0 if it varies between phases.
        recordings: Average number of recordings of a phone.
        seeds: Number of phases of every kind.

    Raises:
        InvalidParametersError: The number of seeds is not a whole number above 0, or is too large.
    """

    phones: int
    recordings: int
    seeds: int

    def __post_init__(self) -> None:
        whole("seeds", self.seeds, 1, _MOST_SEEDS)


@dataclass(frozen=True)
class ReproductionSetup:
    """The inputs of a reproduction: sizes, files and sound.

    Attributes:
        size: Size of its phases.
        file: File of finished phases.
        sound: Folder of sound, as `open_dataset` reads it; None for no sound.
        encoder: Encoder of the sound; None for the default.
        processes: Number of phases at a time.
        progress: Callback for progress.
        first_seed: First seed of its phases.

    Raises:
        InvalidInputError: The folder holds no sound that can be used.
        DamagedEncoderError: There is no such encoder, or it is damaged.
    """

    size: SimulationSize
    file: Path
    sound: Path | None = None
    encoder: str | None = None
    processes: int = 1
    progress: Progress = silent
    first_seed: int = REPORTED

    def __post_init__(self) -> None:
        self.labels  # noqa: B018 - refuses an unusable folder before any work

    @cached_property
    def labels(self) -> dict[str, int]:
        """Number of possible names, by the name of the data."""
        counts = {BLOBS: Settings().scenes}
        if self.sound is not None:
            encoder = None if self.encoder is None else encoder_path(self.encoder)
            folder = SoundFolder(self.sound, 1, 1, 0.0, 0, encoder=encoder)
            counts[folder.name] = len(folder.labels)
        return counts

    @property
    def data(self) -> tuple[str, ...]:
        """Data that phases are simulated on, as `Settings.data` names them."""
        return (BLOBS,) if self.sound is None else (BLOBS, str(self.sound))

    def arm(
        self,
        contender: ComparedEncoder,
        data: str,
        labels: dict[str, str | float],
        **changes: Any,
    ) -> Arm:
        """Return the arm of a contender on some data, with these labels and changes of settings."""
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
        """Description of the simulated phases, for a note."""
        return self.describe("three in ten labelled")

    def describe(self, labelled: str) -> str:
        """Return a description of the simulated phases, for a note.

        Args:
            labelled: Share of labelled recordings, as text.
        """
        crowd = f"{self.size.phones} phones" if self.size.phones else "phones"
        sizes = f"{crowd} of {self.size.recordings} recordings, {labelled}, {self.size.seeds} seeds"
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
            f"quarter of which no phone hears, embedded by `{encoder}`. Results are too good on "
            f"sound that the encoder was trained on{known}. In every phase: {sizes}."
        )


NO_NOISE_AT_ALL: dict[str, Any] = {"epsilon": NOISELESS}
"""Changes of settings for a route without privacy."""
