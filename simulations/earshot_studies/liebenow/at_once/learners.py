"""A learning phase vectorized over all phones, for studies of thousands of phases.

The server's side is the product's. The phones' publications and votes equal those that each phone
computes, except for the draws of the noise, as tests check. The noise of a phone's sums, thousands
of grid steps wide, is rounded normal or Laplace noise here. The noise of all shares of a vote is
drawn in one step from the distribution of their sum. Nothing is encrypted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client.clustering import (
    GRID,
    INERTIA,
    DPLloyd,
    SphericalDPLloyd,
    box_grid,
    box_packing,
    sphere_grid,
    sphere_packing,
)
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry, nearest, unit_rows
from earshot_protocol.phases.learning import (
    CLUSTER,
    LABEL_VOTE,
    LocalCentroids,
    PhaseParameters,
    Result,
)
from earshot_protocol.phases.plan import PUBLISHED, SecureSum
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_protocol.wire import Matrix
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_server.phases.learning import LearningPhase
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_studies.liebenow.at_once.heard import HeardByAll

_AT_ONCE = 20_000
"""Number of recordings whose phones' centroids are in memory together."""


def learn(
    parameters: PhaseParameters, heard: HeardByAll, seed: int, discovery: CentroidDiscovery
) -> Result:
    """Run a learning phase and return its publication.

    Args:
        parameters: Parameters of the phase, for as many phones as `heard` has.
        heard: Recordings of its phones.
        seed: Seed of the noise, and of the phones that vanish and when, as in `earshot simulate`.
        discovery: Method that finds global centroids.

    Raises:
        InvalidParametersError: The selection is not noisy max, or a phone clusters several times.
        NothingFoundError: The discovery finds no cluster.
    """
    usual = parameters.selection_method is SelectionMethod.NOISY_MAX
    if not usual or parameters.clustering_runs > 1:
        raise InvalidParametersError(
            f"selection={parameters.selection_method}, clustering_runs="
            f"{parameters.clustering_runs}: must be noisy-max and 1 to run all phones at once"
        )
    state = LearningPhase(phase=bytes(16), parameters=parameters, step="", deadline=0.0)
    vanishing = draw_dropouts(parameters, seed)
    generator = np.random.default_rng([seed, 0x1EA])
    present = np.ones(parameters.phones, dtype=np.bool_)
    for part in parameters.plan().parts:
        for step in part.steps:
            present[list(vanishing[step.name])] = False
            if step.releases:
                taking_part = np.flatnonzero(present)
        if isinstance(part, SecureSum):
            state.inputs |= {part.name: len(taking_part)}
            total = _ballots(state, part.name, heard)[taking_part].sum(axis=0)
            state.take_total(part.name, total + _drawn(state.noise(part.name), total, generator))
        else:
            published = local_centroids(parameters, heard, generator)
            answers = {
                int(phone): LocalCentroids(
                    phase=bytes(16), sender=int(phone), centroids=Matrix.of(published[phone])
                )
                for phone in taking_part
            }
            state.take_answers(part.name, answers, discovery)
    state.step = PUBLISHED
    return state.published()


def local_centroids(
    parameters: PhaseParameters, heard: HeardByAll, generator: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Cluster and select on every phone (steps 3 to 5), float32 (phones, k*, dimensions)."""
    spherical = parameters.geometry is Geometry.SPHERICAL
    clusters = (_spherical if spherical else _in_the_box)(parameters, heard, generator)
    centroids = clusters.astype(np.float32)
    own = _nearest(heard.points, heard.owners, centroids, parameters.geometry)
    phones, count = centroids.shape[:2]
    numbers = np.bincount(heard.owners * count + own, minlength=phones * count)
    left, rows = numbers.reshape(phones, count).astype(np.float64), np.arange(phones)
    chosen = []
    for _ in range(parameters.top_local_centroids):
        noise = _laplace(1 / parameters.budget.selection, left.shape, generator)
        chosen.append(np.argmax(left + noise, axis=1))
        left[rows, chosen[-1]] = -np.inf
    return np.stack([centroids[rows, winner] for winner in chosen], axis=1)


def _spherical(
    parameters: PhaseParameters, heard: HeardByAll, generator: np.random.Generator
) -> Numbers:
    """Cluster as `SphericalDPLloyd.cluster` does, phone by phone."""
    mechanism: Any = parameters.plan().mechanisms[CLUSTER]
    clustering = SphericalDPLloyd(parameters.local_centroids, mechanism)
    steps, phones = sphere_grid(heard.points), parameters.phones
    start = sphere_packing(clustering.local_centroids, steps.shape[1])
    centroids = np.broadcast_to(start, (phones, *start.shape))
    for rho in clustering.split():
        sigma = GRID / math.sqrt(2 * rho)
        own = _nearest(steps, heard.owners, centroids, Geometry.SPHERICAL)
        sums, _ = _sums(steps, heard.owners, own, centroids.shape)
        sums += np.rint(sigma * generator.standard_normal(sums.shape))
        moved = sums + INERTIA * sigma * math.sqrt(steps.shape[1]) * centroids
        centroids = unit_rows(moved.reshape(-1, steps.shape[1])).reshape(centroids.shape)
    return centroids


def _in_the_box(
    parameters: PhaseParameters, heard: HeardByAll, generator: np.random.Generator
) -> Numbers:
    """Cluster as `DPLloyd.cluster` does, phone by phone."""
    mechanism: Any = parameters.plan().mechanisms[CLUSTER]
    clustering = DPLloyd(parameters.local_centroids, mechanism)
    steps, phones = box_grid(heard.points), parameters.phones
    count_epsilon, sum_epsilon = clustering.split(steps.shape[1])
    start = GRID * box_packing(clustering.local_centroids, steps.shape[1])
    centroids = np.broadcast_to(start, (phones, *start.shape))
    for _ in range(clustering.iterations(steps.shape[1])):
        own = _nearest(steps, heard.owners, centroids, Geometry.EUCLIDEAN)
        sums, counts = _sums(steps, heard.owners, own, centroids.shape)
        sums += np.rint(generator.laplace(0, GRID / sum_epsilon, sums.shape))
        counts = counts + _laplace(1 / count_epsilon, counts.shape, generator)
        centroids = np.clip(sums / np.maximum(counts, 1)[..., None], -GRID, GRID)
    return centroids / GRID


def _nearest(
    points: npt.NDArray[np.floating],
    owners: Whole,
    centroids: npt.NDArray[np.floating],
    geometry: Geometry,
) -> Whole:
    """Find the nearest centroid of each point's own phone, as `geometry.nearest` does."""
    indices = np.empty(len(points), dtype=np.int64)
    spherical = geometry is Geometry.SPHERICAL
    for first in range(0, len(points), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        own, some = centroids[owners[rows]].astype(np.float64), points[rows].astype(np.float64)
        if spherical:
            # On the grid of `geometry.nearest`, so that inner products are exact in both.
            flat = np.rint(unit_rows(own.reshape(-1, own.shape[2])) * 2.0**24).reshape(own.shape)
            some = np.rint(unit_rows(some) * 2.0**24)
            distances = -np.matmul(flat, some[:, :, None])[:, :, 0]
        else:
            distances = np.square(own - some[:, None, :]).sum(axis=2)
        indices[rows] = np.argmin(distances, axis=1)
    return indices


def _sums(
    steps: Numbers, owners: Whole, own: Whole, shape: tuple[int, ...]
) -> tuple[Numbers, Whole]:
    """Return each cluster's sum of grid steps (phones, k, dimensions) and count (phones, k)."""
    from scipy.sparse import csr_array

    phones, count = shape[:2]
    places = owners * count + own
    member = csr_array(
        (np.ones(len(places)), places, np.arange(len(places) + 1)),
        shape=(len(places), phones * count),
    )
    counts = np.bincount(places, minlength=phones * count).reshape(phones, count)
    return (member.T @ steps).reshape(shape), counts


def _ballots(state: LearningPhase, part: str, heard: HeardByAll) -> Whole:
    """Return every phone's ballot of a vote as `voting.ballots` does, int64 (phones, ...)."""
    parameters, centroids = state.parameters, state.candidates().array()
    count, phones = len(centroids), parameters.phones
    own = nearest(heard.points, centroids, parameters.geometry)
    if part != LABEL_VOTE:
        places = heard.owners * count + own
        numbers = np.bincount(places, minlength=phones * count).reshape(phones, count)
        return _most(numbers, min(parameters.centroid_votes, count))
    labels, named = len(parameters.labels), heard.labels >= 0
    places = (heard.owners[named] * count + own[named]) * labels + heard.labels[named]
    table = np.bincount(places, minlength=phones * count * labels)
    table = table.reshape(phones, count, labels)
    chosen = _most(table.max(axis=2), min(parameters.label_votes, count))
    ballots = np.zeros_like(table)
    phone, place = np.nonzero(chosen)
    ballots[phone, place, table[phone, place].argmax(axis=1)] = 1
    return ballots


def _most(numbers: Whole, votes: int) -> Whole:
    """Return votes as `ballots.top_votes` does, row by row."""
    ballots, rows = np.zeros_like(numbers), np.arange(len(numbers))[:, None]
    chosen = np.argsort(-numbers, axis=1, kind="stable")[:, :votes]
    ballots[rows, chosen] = numbers[rows, chosen] > 0
    return ballots


def _laplace(scale: float, shape: tuple[int, ...], generator: np.random.Generator) -> Whole:
    """Draw discrete Laplace noise, the difference of two geometric variables."""
    stop = -math.expm1(-1 / scale)
    return generator.geometric(stop, shape) - generator.geometric(stop, shape)


def _drawn(law: Any, like: Whole, generator: np.random.Generator) -> Whole:
    """Draw the total noise of all shares of a vote from its exact distribution."""
    assert isinstance(law, DiscreteLaplaceNoise)  # noqa: S101 - votes have no other
    stop = -math.expm1(-1 / law.scale)
    one, other = (generator.negative_binomial(law.order, stop, like.shape) for _ in range(2))
    return one - other
