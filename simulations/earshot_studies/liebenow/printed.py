"""The thesis's learning phase with its mechanisms as printed, which are not private.

They serve only for comparison with ours; docs/privacy.md explains their faults. In Theorem 8.2
every phone adds Laplace noise of scale v / (ε n'), and the sum of n' such shares is claimed to be
Laplace noise of scale v/ε. It is not: its variance is 2 (v/ε)² / n', which is n' times too small.
Moreover, v is not the change that one recording makes in a ballot. The noise is continuous, drawn
in floating point, as in the thesis.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client import selection
from earshot_client.clustering import DPLloyd
from earshot_client.labels import label_counts
from earshot_protocol.geometry import Geometry, counts
from earshot_protocol.phases.learning import SELECT, PhaseParameters, Result
from earshot_protocol.privacy.local_mechanisms import LaplaceLloyd
from earshot_protocol.voting import ballots
from earshot_protocol.wire import Matrix
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_simulations.phases.environments import heard_by_some, score
from earshot_simulations.phases.settings import Settings
from earshot_simulations.phases.simulation import open_population
from earshot_simulations.populations import Recordings, SimulatedPopulation
from earshot_simulations.sweeps.phase import (
    ARI_TEST,
    ARI_TRAIN,
    CENTROID_NAMES,
    NAMES,
    NOTHING,
    centroid_accuracy,
)
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Measure


def scored(
    centroids: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    population: SimulatedPopulation,
    heard: Recordings,
    geometry: Geometry,
) -> Figures:
    """Score centroids and their labels by the figures of a simulated phase.

    Args:
        centroids: Centroids, float32 (centroids, dimensions).
        labels: Labels, int64 (centroids,); label i names scene i.
        population: Population whose held-out recordings count.
        heard: Recordings of some of its phones.
        geometry: Geometry of the points.
    """
    sure = (0.0,) * len(centroids)  # names are not tested against noise
    result = Result(
        phase=bytes(16),
        geometry=geometry,
        centroids=Matrix.of(centroids),
        labels=tuple(labels.tolist()),
        label_names=population.labels,
        centroid_votes=(),
        label_votes=(),
        centroid_p_values=(),
        name_p_values=sure,
        encoder="",
        privacy=(),
    )
    scores = score(result, heard, population.held_out())
    return {
        ARI_TRAIN: scores.ari_train,
        ARI_TEST: scores.ari_test,
        NAMES: scores.label_accuracy,
        CENTROID_NAMES: centroid_accuracy(centroids, labels, heard.points, heard.scenes),
        "centroids": len(centroids),
    }


_NOISE = 0xE
"""Number of the stream of the votes' noise within a seed."""


@dataclass(frozen=True)
class PrintedVote:
    """A vote of Theorem 8.2: the claimed ε, and the noise that phones actually add.

    Attributes:
        epsilon: Claimed ε.
        votes: Largest number of ones in a ballot (v), which is also the claimed sensitivity.
        honest_survivors: Number of honest phones that survive, n' = n (1 − ρ − γ).
    """

    epsilon: float
    votes: int
    honest_survivors: int

    @property
    def share_scale(self) -> float:
        """Scale of the Laplace noise that each phone adds to every entry."""
        return self.votes / (self.epsilon * self.honest_survivors)

    def noise(
        self, phones: int, shape: tuple[int, ...], generator: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """Draw the sum of this many phones' shares, for every entry of a sum of this shape."""
        total = np.zeros(shape)
        for _ in range(phones):
            total += generator.laplace(scale=self.share_scale, size=shape)
        return total


def as_printed(settings: Settings, scale: float = 1.0) -> Figures:
    """Run Algorithm 1 as printed in the thesis, and score its publication.

    It clusters by DPLloyd-Impr in any geometry, adds the noise of `PrintedVote` to votes, and takes
    the label with the most votes, even if they are noise. Ballots are added up in the clear, and no
    phone vanishes.

    Args:
        settings: Settings of the local route, without dropouts or adversary.
        scale: Factor of embeddings before they are clustered (thesis 10.1), as their entries are
            small compared with noise for [-1, 1].
    """
    with closing(open_population(settings)) as population:
        population.prepare()
        parameters: Any = settings.parameters(population)
        generator = np.random.default_rng([settings.seed, _NOISE])
        points = _published(settings, population, parameters, scale)
        try:
            found = Optics().discover(points, parameters.geometry).centroids
        except NothingFoundError:
            return NOTHING
        top = found[_kept(population, parameters, found, generator)]
        names = _names(population, parameters, top, generator)
        return scored(
            top, names, population, heard_by_some(population, settings.seed), parameters.geometry
        )


def _published(
    settings: Settings, population: SimulatedPopulation, parameters: PhaseParameters, scale: float
) -> npt.NDArray[np.float32]:
    """Run steps 3 to 6 and return the phones' publications, concatenated."""
    lloyd = LaplaceLloyd(parameters.budget.clustering, parameters.recordings)
    clustering = DPLloyd(parameters.local_centroids, lloyd)
    chosen: Any = parameters.plan().mechanisms[SELECT]
    published = []
    for phone in range(parameters.phones):
        # The stream of a simulated phone's first step, so that both contenders cluster equally.
        random = np.random.default_rng([settings.seed, 0xA, phone, 0]).bytes
        points = population.recordings(phone).points
        centroids = clustering.cluster(points * np.float32(scale), random) / np.float32(scale)
        numbers = counts(points, centroids, parameters.geometry)
        published.append(centroids[selection.top_centroids(numbers, chosen, random)])
    return np.concatenate(published)


def _kept(
    population: SimulatedPopulation,
    parameters: PhaseParameters,
    candidates: npt.NDArray[np.float32],
    generator: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Run steps 8 to 10 and return the indices of the centroids that the first vote keeps."""
    votes = min(parameters.centroid_votes, len(candidates))
    total = np.zeros(len(candidates))
    for phone in range(parameters.phones):
        points = population.recordings(phone).points
        total += ballots.top_votes(counts(points, candidates, parameters.geometry), votes)
    vote = PrintedVote(
        parameters.budget.centroid_vote, parameters.centroid_votes, parameters.honest_survivors
    )
    total += vote.noise(parameters.phones, total.shape, generator)
    return np.argsort(-total, kind="stable")[: parameters.top_global_centroids]


def _names(
    population: SimulatedPopulation,
    parameters: PhaseParameters,
    centroids: npt.NDArray[np.float32],
    generator: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Run steps 11 to 14 and return the label of each centroid that was kept."""
    names, votes = len(parameters.labels), min(parameters.label_votes, len(centroids))
    total = np.zeros((len(centroids), names))
    for phone in range(parameters.phones):
        heard = population.recordings(phone)
        table = label_counts(heard.points, heard.labels, centroids, names, parameters.geometry)
        total += ballots.label_votes(table, votes)
    vote = PrintedVote(
        parameters.budget.label_vote, parameters.label_votes, parameters.honest_survivors
    )
    total += vote.noise(parameters.phones, total.shape, generator)
    winning: npt.NDArray[np.int64] = np.argmax(total, axis=1)
    return winning


AS_PRINTED = Measure("as printed", as_printed)
