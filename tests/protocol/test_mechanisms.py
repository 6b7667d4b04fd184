"""What mechanisms claim, against exact privacy losses computed another way."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from support.parameters import learning_parameters
from support.refusals import refused

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import CLUSTER
from earshot_protocol.privacy import noise
from earshot_protocol.privacy.conversions import (
    secure_sum_delta,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from earshot_protocol.privacy.events import BoundedRange, Pure
from earshot_protocol.privacy.local_mechanisms import (
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
    Selection,
    SelectionMethod,
)
from earshot_protocol.privacy.mechanisms import BallotSum, Cost, Mechanism, Unit, VectorSum
from earshot_protocol.privacy.noise import LARGEST_SHARED_SCALE
from earshot_protocol.voting.teacher_ballots import OneHot
from earshot_protocol.voting.vote_sums import VoteSum

EPSILONS = [0.05, 0.5, 1.0, 2.0, 4.0, 8.0, 30.0]


# ------------------------------------------------------------------------------------ ballot sum


def noise_law(mechanism: BallotSum, reach: int) -> np.ndarray:
    """Law of the honest survivors' summed shares on [−reach, reach], from share samples' law."""
    order = 1 / mechanism.honest_survivors
    alpha = math.exp(-1 / mechanism.scale)
    length = 40 * reach
    one = stats.nbinom.pmf(np.arange(length), order, 1 - alpha)
    # Through the Fourier transform: all shares' X minus all shares' Y.
    transform = np.fft.fft(one, 4 * length) ** mechanism.honest_survivors
    law = np.fft.ifft(transform * transform.conj()).real
    return np.concatenate([law[-reach:], law[: reach + 1]])


@pytest.mark.parametrize("survivors", [1, 3, 50])
@pytest.mark.parametrize(("epsilon", "votes"), [(1.0, 1), (2.0, 2), (0.7, 5)])
def test_ballot_sum_loses_what_it_claims(epsilon: float, votes: int, survivors: int) -> None:
    """The summed shares of the honest give exactly ε on the worst neighbours, in both units."""
    mechanism = BallotSum(epsilon, votes, survivors)
    law = noise_law(mechanism, reach=6)
    one_vote = np.abs(np.log(law[1:] / law[:-1])).max()
    swapped_winner = 2 * one_vote  # one entry loses a vote, another gains it
    assert swapped_winner == pytest.approx(mechanism.cost(Unit.RECORDING).epsilon, rel=1e-6)
    assert swapped_winner == pytest.approx(epsilon, rel=1e-6)
    whole_ballot = votes * one_vote
    assert whole_ballot == pytest.approx(mechanism.cost(Unit.PHONE).epsilon, rel=1e-6)


def test_ballot_sum_declares_both_sensitivities() -> None:
    mechanism = BallotSum(0.5, 7, 100)
    assert mechanism.scale == 4.0
    assert [mechanism.sensitivity(unit) for unit in Unit] == [2, 7, 14]
    assert mechanism.cost(Unit.PHONE).epsilon == 7 / 4.0
    assert BallotSum(0.5, 1, 100).cost(Unit.PHONE).epsilon == 0.25


def test_noise_shares_have_the_declared_variance_together() -> None:
    mechanism = BallotSum(1.0, 3, 30)
    random = np.random.default_rng(1).bytes
    total = sum(mechanism.noise_share((20_000,), random) for _ in range(30))
    alpha = math.exp(-1 / 2.0)
    assert np.var(total) == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.05)


def test_share_bound_leaves_room_for_the_votes() -> None:
    mechanism = BallotSum(1.0, 3, 30)
    bounds = [mechanism.share_bound(2.0**-bits) for bits in (10, 20, 60)]
    assert bounds == sorted(set(bounds))
    samples = np.abs(mechanism.noise_share(100_000, np.random.default_rng(2).bytes))
    assert np.mean(samples > mechanism.share_bound(2.0**-10) - 3) <= 2.0**-10


@given(st.floats(0.01, 20))
def test_secure_sum_delta(epsilon: float) -> None:
    by_hand = (1 + math.exp(epsilon)) * (2 * 2.0**-40 + 2.0**-128)
    assert secure_sum_delta(epsilon) == pytest.approx(by_hand, rel=1e-9)
    assert BallotSum(epsilon, 2, 9).cost(Unit.PHONE).delta == secure_sum_delta(epsilon)
    weak = secure_sum_delta(epsilon, statistical_security=10, computational_security=10)
    assert weak == pytest.approx(min(1.0, (1 + math.exp(epsilon)) * 3 * 2.0**-10), rel=1e-9)


def test_secure_sum_delta_is_never_more_than_one() -> None:
    assert secure_sum_delta(1e6) == 1.0
    assert BallotSum(1.0, 60, 9).cost(Unit.PHONE).delta == 1.0


# ------------------------------------------------------------------------------------------ zCDP


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Exact δ of the Gaussian mechanism that is ρ-zCDP (Balle and Wang, ICML 2018, Theorem 8)."""
    shift = math.sqrt(2 * rho)
    upper = stats.norm.cdf(shift / 2 - epsilon / shift)
    return float(upper - math.exp(epsilon) * stats.norm.cdf(-shift / 2 - epsilon / shift))


@pytest.mark.parametrize("rho", [0.001, 0.02, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, 10.0])
def test_zcdp_delta_is_the_best_order_and_holds_for_the_gaussian(
    rho: float, epsilon: float
) -> None:
    def log_delta(order: float) -> float:
        return (
            (order - 1) * (order * rho - epsilon)
            - math.log(order - 1)
            + order * math.log1p(-1 / order)
        )

    best = optimize.minimize_scalar(
        lambda t: log_delta(1 + math.exp(t)),
        bounds=(-25, 15),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert zcdp_delta(rho, epsilon) == pytest.approx(min(1.0, math.exp(best.fun)), rel=1e-6)
    assert zcdp_delta(rho, epsilon) >= gaussian_delta(rho, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_zcdp_rho_is_valid_tight_and_better_than_bun_and_steinke(
    epsilon: float, delta: float
) -> None:
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_delta(rho, epsilon) <= delta < zcdp_delta(1.0001 * rho, epsilon)
    assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-6)
    assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) > epsilon
    assert gaussian_delta(rho, epsilon) <= delta


test_zcdp_refuses_what_is_not_a_guarantee = refused(
    InvalidParametersError,
    *[
        (r"rho|epsilon|delta", function, *bad)
        for function in (zcdp_rho, zcdp_epsilon)
        for bad in ((0.0, 1e-6), (-1.0, 1e-6), (math.nan, 0.1), (1.0, 0.0), (1.0, 1.0))
    ],
)


# ------------------------------------------------------------------------- clustering, selection


def test_laplace_lloyd_costs_epsilon_per_recording_and_the_group_per_phone() -> None:
    mechanism = LaplaceLloyd(1.5, 200)
    assert mechanism.cost(Unit.RECORDING) == Cost(1.5, 0.0)
    assert mechanism.cost(Unit.PHONE) == Cost(300.0, 0.0)


@pytest.mark.parametrize("recordings", [1, 2, 20])
def test_gaussian_lloyd_group_privacy_is_that_of_a_wider_gaussian(recordings: int) -> None:
    mechanism = GaussianLloyd(2.0, 1e-6, recordings)
    assert mechanism.cost(Unit.RECORDING) == Cost(2.0, 1e-6)
    phone = mechanism.cost(Unit.PHONE)
    assert phone.delta == 1e-6
    # Sensitivity times k is ρ times k²; the exact Gaussian curve must lie below, and close by.
    rho = recordings**2 * mechanism.rho
    assert gaussian_delta(rho, phone.epsilon) <= 1e-6
    assert gaussian_delta(rho, 0.85 * phone.epsilon) > 1e-6


def test_selection_costs_every_repeat() -> None:
    noisy, gumbel = Selection(0.25, 3, 200), Selection(0.25, 3, 200, SelectionMethod.GUMBEL)
    for mechanism in (noisy, gumbel):
        assert mechanism.cost(Unit.RECORDING) == Cost(0.75, 0.0)
        assert mechanism.cost(Unit.PHONE) == Cost(150.0, 0.0)
    assert noisy.event(Unit.PHONE) == Pure(50.0, times=3)
    assert gumbel.event(Unit.PHONE) == BoundedRange(50.0, times=3)
    assert noisy.name == "noisy-max, 3 times"  # on the wire, and in ledgers
    assert gumbel.name == "gumbel, 3 times"


ALL: list[Mechanism] = [
    BallotSum(1.0, 2, 9),
    LaplaceLloyd(1.0, 2),
    GaussianLloyd(1.0, 1e-6, 2),
    Selection(1.0, 2, 3),
    Selection(1.0, 2, 3, SelectionMethod.PERMUTE_AND_FLIP),
    BestLaplaceLloyd(1.0, 2, 3),
    BestGaussianLloyd(1.0, 1e-6, 2, 3),
    VectorSum(4.0, 9, 1e-6, 50),
    VoteSum(OneHot(3), 5, 4.0, 1e-6, 10),
]


POSITIVE = [0.0, -1.0, math.nan, math.inf]
BAD = {
    "epsilon": POSITIVE,
    "noise_multiplier": POSITIVE,
    "deviation": POSITIVE,
    "recording": [*POSITIVE, 8193.0],
    "delta": [0.0, 1.0, math.nan, -1e-9],
    "method": ["loudest"],
    "length": [0, -1, 1.5, 2**24 + 1],
    "ballot": [],
    "signed": [],
}

test_bad_settings_are_named = refused(
    InvalidParametersError,
    *[
        (
            f"{field.name}=.*{value}",
            functools.partial(dataclasses.replace, **{field.name: value}),
            mechanism,
        )
        for mechanism in ALL
        for field in dataclasses.fields(mechanism)
        for value in BAD.get(field.name, [0, -1, -3, 1.5, 2.5, math.nan])
    ],
    ("runs", BestLaplaceLloyd, 1.0, 2, 1),
    ("runs", BestGaussianLloyd, 1, 1e-6, 2, 1),
)


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("geometry", list(Geometry))
def test_a_phase_clusters_once_or_takes_the_best_of_several(geometry: Geometry, runs: int) -> None:
    parameters = learning_parameters(geometry=geometry, clustering_runs=runs)
    found = parameters.plan().mechanisms[CLUSTER]
    once = {Geometry.EUCLIDEAN: LaplaceLloyd, Geometry.SPHERICAL: GaussianLloyd}
    several = {Geometry.EUCLIDEAN: BestLaplaceLloyd, Geometry.SPHERICAL: BestGaussianLloyd}
    assert type(found) is (once if runs == 1 else several)[geometry]
    assert getattr(found, "runs", 1) == runs


def test_pure_clustering_costs_no_delta() -> None:
    for unit, epsilon in ((Unit.RECORDING, 1.5), (Unit.PHONE, 6.0), (Unit.REPLACED_PHONE, 12.0)):
        assert BestLaplaceLloyd(1.5, 4, 3).cost(unit) == Cost(epsilon, 0.0)
        assert LaplaceLloyd(1.5, 4).cost(unit) == Cost(epsilon, 0.0)
        assert Selection(0.75, 2, 4).cost(unit) == Cost(epsilon, 0.0)


@pytest.mark.slow
def test_the_largest_scale_that_can_be_shared_has_a_table() -> None:
    assert BallotSum(2 / LARGEST_SHARED_SCALE, 1, 9).share_bound(1e-6) > LARGEST_SHARED_SCALE


def test_noise_that_cannot_be_shared_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    table = noise._polya_table

    def smaller(scale: float, shares: int) -> Any:  # the largest takes seconds
        made.append(scale)
        return table(1.0, shares)

    monkeypatch.setattr(noise, "_polya_table", smaller)
    least = 2 / LARGEST_SHARED_SCALE
    BallotSum(least, 1, 9).share_bound(1e-6)
    assert made == [LARGEST_SHARED_SCALE]
    with pytest.raises(InvalidParametersError, match="cannot be shared"):
        BallotSum(least / 1.01, 1, 9).share_bound(1e-6)
    # Two operators add the whole noise: none is shared.
    assert BallotSum(least / 1.01, 1, None).share_bound(1e-6) == 1


def test_mechanisms_are_values_with_names() -> None:
    assert len({mechanism.name for mechanism in ALL}) == len(ALL)
    assert BallotSum(1.0, 2, 9) == ALL[0]
    assert hash(BallotSum(1.0, 2, 9)) == hash(ALL[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        ALL[0].epsilon = 2.0
