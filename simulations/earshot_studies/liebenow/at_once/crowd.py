"""A discovery phase vectorized over all phones, for studies of thousands of phases.

The server's side is the product's. The phones' inputs equal those that each phone computes, as
tests check. The noise of all shares is drawn in one step from the distribution of their sum.
Nothing is encrypted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_client.clustering import GRID, sphere_grid
from earshot_protocol.arrays import Whole
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.phases.discovery import LABELS, Discovered, DiscoveryParameters
from earshot_protocol.phases.plan import PUBLISHED, SecureSum
from earshot_protocol.voting.vectors import counted, unit_steps
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_studies.liebenow.at_once.heard import HeardByAll

_AT_ONCE = 2_000
"""Number of phones whose vectors are in memory together."""


def discover(parameters: DiscoveryParameters, heard: HeardByAll, seed: int) -> Discovered:
    """Run a discovery phase and return its publication.

    Args:
        parameters: Parameters of the phase, for as many phones as `heard` has.
        heard: Recordings of its phones.
        seed: Seed of the noise, and of the phones that vanish and when, as in `earshot simulate`.
    """
    heard = heard._replace(points=sphere_grid(heard.points))  # as on phones
    state = DiscoveryPhase(phase=bytes(16), parameters=parameters, step="", deadline=0.0)
    vanishing = draw_dropouts(parameters, seed)
    generator = np.random.default_rng([seed, 0xC])
    present = np.ones(parameters.phones, dtype=np.bool_)
    for part in parameters.plan().parts:
        if not isinstance(part, SecureSum):
            continue
        for step in part.steps:
            present[list(vanishing[step.name])] = False
            if step.releases:
                state.inputs |= {part.name: int(present.sum())}
                total = _total(state, part.name, heard, present)
        variance = state.noise(part.name).deviation ** 2
        noise, opposite = generator.poisson(variance / 2, (2, *total.shape))
        state.take_total(part.name, total + noise - opposite)
    state.step = PUBLISHED
    return state.published()


def _total(
    state: DiscoveryPhase, part: str, heard: HeardByAll, present: npt.NDArray[np.bool_]
) -> Whole:
    """Return the sum of the vectors of the present phones, without noise."""
    rows_of_all = nearest(heard.points, state.cells(), Geometry.SPHERICAL)
    if part == LABELS:
        kinds = state.parameters.kinds
        split = kinds * heard.labels + (np.array(state.kinds())[rows_of_all] if kinds > 1 else 0)
        rows_of_all = np.where(heard.labels >= 0, split, -1)
    total = np.zeros(state.shape(part), dtype=np.int64)
    for first in range(0, len(present), _AT_ONCE):
        last = min(first + _AT_ONCE, len(present))
        some = slice(heard.starts[first], heard.starts[last])
        owners = np.repeat(np.arange(last - first), np.diff(heard.starts[first : last + 1]))
        vectors = _vectors(heard.points[some], rows_of_all[some], owners, last - first, total)
        total += vectors[present[first:last]].sum(axis=0)
    return total


def _vectors(
    points: npt.NDArray[np.floating], rows: Whole, owners: Whole, phones: int, like: Whole
) -> Whole:
    """Return each phone's vector, int64 (phones, rows, entries); recordings of row -1 have none.

    Values are bounded and quantized as `voting.vectors.bounded` and `quantized` do, phone by phone.
    """
    from scipy.sparse import csr_array

    labelled = rows >= 0
    count, places = len(like), (owners * len(like) + rows)[labelled]
    member = csr_array(
        (np.ones(len(places)), places, np.arange(len(places) + 1)),
        shape=(len(places), phones * count),
    )
    sums = (member.T @ points[labelled]).reshape(phones, count, points.shape[1]) / GRID
    counts = np.bincount(places, minlength=phones * count).reshape(phones, count)
    if like.shape[1] > points.shape[1]:
        sums = counted(sums, counts)
    norms = np.sqrt(np.square(counts, dtype=np.float64).sum(axis=1))[:, None, None]
    shared = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)
    steps: Whole = np.rint(shared * unit_steps(sums[0].size)).astype(np.int64)
    return steps
