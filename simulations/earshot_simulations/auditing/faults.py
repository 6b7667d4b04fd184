"""Planted faults: each breaks a proof in a way that was made before, and the audit must see it.

None of them exists outside this file. What is caught here is caught in product code by the same
functions.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client import clustering
from earshot_client.clustering import GRID, DPLloyd, box_grid
from earshot_protocol.geometry import Geometry
from earshot_protocol.privacy.local_mechanisms import LaplaceLloyd
from earshot_protocol.privacy.mechanisms import BallotSum, Unit, VectorSum
from earshot_protocol.privacy.noise import discrete_laplace
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import masks, participant
from earshot_simulations.auditing.ballots import difference_loss, noise_law, vote_finding
from earshot_simulations.auditing.findings import (
    EXACT,
    FAULTS,
    Check,
    Finding,
    Method,
    Result,
    Role,
)
from earshot_simulations.auditing.lloyd import (
    Clustering,
    clustering_finding,
    clustering_loss,
    noisy_numbers,
    sampled_clustering,
)
from earshot_simulations.auditing.losses import discrete_laplace_loss
from earshot_simulations.auditing.phone_faults import phone_faults
from earshot_simulations.auditing.printed import laplace_shares_epsilon
from earshot_simulations.auditing.proofs import DELTA, finding
from earshot_simulations.auditing.sum_secrets import KEY_BYTES, PHONES, audit_secrets
from earshot_simulations.auditing.vectors import STEP
from earshot_simulations.auditing.vote_faults import audit_vote_faults
from earshot_simulations.auditing.watching import replaced

_BALLOT = BallotSum(0.5, 3, 900)
_VECTOR = VectorSum(1.5, 320, 1e-6, 900)


def audit_faults(trials: int, seed: int) -> Iterator[Result]:
    """Every planted fault.

    Args:
        trials: of the one that only real transcripts show.
        seed: of these.
    """
    yield too_long_vector()
    yield servers_recordings()
    yield few_shares()
    yield laplace_shares()
    yield one_vote()
    yield one_vote_too_many()
    yield half_the_noise(seed)
    yield half_the_sampled_noise(trials, seed)
    yield raw_counts(seed)
    yield from short_seeds()
    yield same_secrets()
    yield from phone_faults()
    yield from audit_vote_faults(5 * trials, seed)


def too_long_vector() -> Finding:
    """Two parts of norm one each, the sums and the counts, sold as a vector of norm one."""
    law = noise_law(_VECTOR, _VECTOR.honest_survivors)
    each = int(_VECTOR.sensitivity(Unit.PHONE))
    losses = difference_loss(law, np.array([each, each]), STEP)
    return vote_finding(
        _VECTOR, "a vector of norm √2 sold as 1", Unit.PHONE, losses, Role.FAULT, FAULTS
    )


def servers_recordings(held: int = 200) -> Finding:
    """The server says that phones hold one recording, and the cost per phone believes it."""
    mechanism = LaplaceLloyd(1.0, 1)
    audited = Clustering(
        FAULTS,
        f"the server says N = 1 to a phone that holds {held} recordings",
        DPLloyd(3, mechanism),
        mechanism,
        Geometry.EUCLIDEAN,
        2,
    )
    return clustering_finding(audited, Unit.PHONE, clustering_loss(audited, held, 0), Role.FAULT)


def few_shares() -> Finding:
    """Half of the phones that the noise counts on are gone."""
    survivors = _BALLOT.honest_survivors
    law = noise_law(_BALLOT, survivors // 2)
    losses = difference_loss(law, np.array([1, -1]))
    case = f"{survivors // 2} shares of noise where {survivors} are counted on"
    return vote_finding(_BALLOT, case, Unit.RECORDING, losses, Role.FAULT, FAULTS)


def laplace_shares() -> Finding:
    """Shares of Laplace noise that do not add up to Laplace noise, sold as if they did."""
    mechanism = BallotSum(2.0, 1, 900)
    return finding(
        FAULTS,
        "900 shares of Laplace noise sold as Laplace noise",
        Unit.PHONE,
        mechanism,
        laplace_shares_epsilon(1 / mechanism.scale, 900, DELTA),
        Method(EXACT, "exact from below: the closed form of the sum's density, put into cells"),
        Role.FAULT,
    )


def one_vote() -> Finding:
    """Noise for a ballot of v = 1 by the number of votes, where a recording moves two."""
    sold = BallotSum(2 * _BALLOT.epsilon, 1, 900)
    half = discrete_laplace_loss(1, sold.scale, 1e-6).times(2)
    return finding(
        FAULTS,
        "noise for v = 1 where a recording moves two votes",
        Unit.RECORDING,
        _BALLOT,
        half.epsilon(DELTA),
        Method(EXACT, "exact: the losses of both votes convolved"),
        Role.FAULT,
    )


def one_vote_too_many() -> Finding:
    """A phone that counts one more than the sensitivity knows of."""
    law = noise_law(_BALLOT, _BALLOT.honest_survivors)
    losses = difference_loss(law, np.ones(_BALLOT.votes + 1, dtype=np.int64))
    case = f"ballots of {_BALLOT.votes + 1} ones where {_BALLOT.votes} are allowed"
    return vote_finding(_BALLOT, case, Unit.PHONE, losses, Role.FAULT, FAULTS)


class _TwiceTheBudget(DPLloyd):
    """Spends twice what its mechanism says in every iteration: half the noise."""

    def split(self, dimensions: int) -> tuple[float, float]:
        """Twice as much of each."""
        counts, coordinates = super().split(dimensions)
        return 2 * counts, 2 * coordinates


def half_the_noise(seed: int) -> Finding:
    """In DPLloyd: nobody sees it in the last centroids, everybody in a transcript."""
    mechanism = LaplaceLloyd(1.0, 200)
    audited = Clustering(
        FAULTS,
        "half the noise in DPLloyd",
        _TwiceTheBudget(3, mechanism),
        mechanism,
        Geometry.EUCLIDEAN,
        2,
    )
    return clustering_finding(
        audited, Unit.RECORDING, clustering_loss(audited, 1, seed), Role.FAULT
    )


class _RawCounts(DPLloyd):
    """Divides by counts that nobody added noise to, which no draw shows."""

    def cluster(
        self, points: npt.ArrayLike, random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float32]:
        """Like DPLloyd's, one iteration, but for the noise on counts."""
        steps, centroids = box_grid(points), np.linspace(-GRID, GRID, self.local_centroids)
        places = np.tile(centroids[:, None], (1, steps.shape[1]))
        counts, sums = clustering.cluster_sums(steps, places, Geometry.EUCLIDEAN)
        sampler = vars(clustering)["discrete_laplace"]  # as DPLloyd finds it, watched or not
        sums += sampler(GRID / self.mechanism.epsilon, sums.shape, random)
        means: npt.NDArray[np.float32] = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
        return means


def raw_counts(seed: int) -> Check:
    """A release that no noise was drawn for."""
    mechanism = LaplaceLloyd(1.0, 200)
    raw, geometry = _RawCounts(3, mechanism), Geometry.EUCLIDEAN
    audited = Clustering(FAULTS, "no noise on the counts of DPLloyd", raw, mechanism, geometry, 2)
    return noisy_numbers(audited, seed, Role.FAULT)


def half_the_sampled_noise(trials: int, seed: int) -> Finding:
    """The sampler itself draws half of what it is asked for: only what it returns shows it."""
    with replaced(clustering, discrete_laplace=_half):
        return sampled_clustering(
            smallest_clustering(FAULTS, "a sampler of half the noise in DPLloyd"),
            trials,
            seed,
            Role.FAULT,
        )


def smallest_clustering(subject: str, case: str, epsilon: float = 2.0) -> Clustering:
    """One cluster on a line, in two iterations: four numbers, which few trials tell apart."""
    mechanism = LaplaceLloyd(epsilon, 2)
    return Clustering(
        subject, case, DPLloyd(1, mechanism), mechanism, Geometry.EUCLIDEAN, dimensions=1
    )


def short_seeds() -> Iterator[Result]:
    """Self-mask seeds and locks of 32 random bits, filled up with zeros; pairwise keys likewise."""
    agree = masks.agree
    with replaced(participant, _fresh_secret=lambda: os.urandom(4) + bytes(28)):
        yield from _broken("32-bit seeds and locks", slice(0, 3))

    def short(*given: Any) -> masks.PairKeys:
        return masks.PairKeys(*(key[:4] + bytes(28) for key in agree(*given)))

    with replaced(masks, agree=short):
        yield from _broken("a 32-bit pairwise key", slice(3, 4))


def same_secrets() -> Result:
    """Use the secrets of one sum again in the next: two totals under the same masks tell all."""
    drawn: list[bytes] = []
    count = itertools.count()

    def again() -> bytes:
        of_phones = 2 * PHONES  # a seed and a lock of each
        if len(drawn) < of_phones:
            drawn.append(os.urandom(KEY_BYTES))
        return drawn[next(count) % of_phones]

    with replaced(participant, _fresh_secret=again):
        (found,) = _broken("secrets of the sum before", slice(1))
    return found


def _broken(fault: str, which: slice) -> Iterator[Result]:
    for check in list(audit_secrets(Role.FAULT))[which]:
        yield replace(check, subject=FAULTS, case=f"{fault}: {check.case}")


def _half(scale: float, size: Any, random: Callable[[int], bytes]) -> Any:
    return discrete_laplace(scale / 2, size, random)
