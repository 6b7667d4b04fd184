from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parameters import learning_parameters, statistics_parameters
from support.refusals import refused
from support.steps import STATISTICS_STEPS, STEPS, Step

from earshot_protocol.errors import InvalidParametersError, UnexpectedMessageError
from earshot_protocol.phases.learning import (
    CENTROID_VOTE,
    CLUSTER,
    LABEL_VOTE,
    SELECT,
    Budget,
    Cluster,
    PhaseParameters,
)
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import HISTOGRAM
from earshot_protocol.secure_sum.interface import Asks

GOOD = learning_parameters(local_centroids=6, top_global_centroids=10)
percent = st.integers(0, 99)


@given(phones=st.integers(3, 10**8), dropout=percent, corrupted=percent)
def test_honest_survivors_are_counted_as_on_paper(
    phones: int, dropout: int, corrupted: int
) -> None:
    parameters = msgspec.structs.replace(
        GOOD, phones=phones, dropout=dropout / 100, corrupted=corrupted / 100
    )
    exact = (1 - Fraction(dropout, 100) - Fraction(corrupted, 100)) * phones
    assert parameters.honest_survivors == math.ceil(exact)


@given(
    phones=st.integers(3, 10**5), dropout=st.fractions(0, 1, max_denominator=1000), extra=percent
)
def test_honest_survivors_never_exceed_those_that_stay(
    phones: int, dropout: Fraction, extra: int
) -> None:
    """Noise that counts on a phone too many would be too small."""
    corrupted = (1 - dropout) * extra / 100
    parameters = msgspec.structs.replace(
        GOOD, phones=phones, dropout=float(dropout), corrupted=float(corrupted)
    )
    assert parameters.honest_survivors <= math.ceil((1 - dropout - corrupted) * phones)


def test_noise_is_counted_on_for_no_more_phones_than_the_phase_says() -> None:
    for phones, crowd, counted in (
        (500, 10_000, 425),
        (10**8, 10_000, 10_000),
        (10**8, 10**8, 85_000_000),
        (500, 100, 100),
    ):
        parameters = learning_parameters(
            phones=phones, dropout=0.1, corrupted=0.05, noise_crowd=crowd
        )
        assert parameters.noise_survivors == counted
        for name in (CENTROID_VOTE, LABEL_VOTE):
            part = parameters.plan().part(name)
            assert isinstance(part, SecureSum)
            assert part.mechanism.honest_survivors == counted


def check(changes: dict[str, Any]) -> None:
    msgspec.structs.replace(GOOD, **changes).check()


def plan(changes: dict[str, Any]) -> None:
    learning_parameters(**changes).plan()


def honest_survivors(changes: dict[str, Any]) -> int:
    return learning_parameters(**changes).honest_survivors


test_what_no_phase_can_run_under_is_named = refused(
    InvalidParametersError,
    *[
        (name, call, {name: wrong})
        for name in ("dropout", "corrupted")
        for call in (plan, honest_survivors)
        for wrong in (math.nan, math.inf, -math.inf, -1.0, 2.0)
    ],
    *[
        (
            f"{name.replace('_', '-')}={value}",
            check,
            {"budget": msgspec.structs.replace(GOOD.budget, **{name: value})},
        )
        for name in Budget.__struct_fields__
        for value in (0.0, -1.0, math.nan, math.inf)
    ],
    *[
        (name, check, {name: value})
        for name, values in {
            "phones": (2, 10**8 + 1),
            "recordings": (0,),
            "dimensions": (0, 1025),
            "labels": ((), ("bus", "bus"), tuple(map(str, range(257)))),
            "local_centroids": (0, 257),
            "top_local_centroids": (0, 7),
            "top_global_centroids": (0, 4097),
            "centroid_votes": (0, 11),
            "label_votes": (0, 11),
            "dropout": (-0.1, 1.0, math.nan),
            "corrupted": (1.0, math.nan),
            "delta": (0.0, 1.0, math.nan),
            "step_seconds": (0.0, math.inf, math.nan),
        }.items()
        for value in values
    ],
)


@pytest.mark.parametrize(
    ("parameters", "steps"), [(GOOD, STEPS), (statistics_parameters(), STATISTICS_STEPS)]
)
def test_every_step_leads_on_until_the_phase_is_over(
    parameters: Parameters, steps: tuple[Step, ...]
) -> None:
    plan = parameters.plan()
    walk = [plan.steps[0]]
    while (following := plan.after(walk[-1])) is not None:
        walk.append(following)
    assert tuple(step.name for step in walk) == steps
    assert plan.step("published") is plan.step("failed") is None


def test_a_plan_says_what_leaves_the_phone_in_which_step() -> None:
    released = {step.name: step.releases for step in GOOD.plan().steps if step.releases}
    assert released == {
        Step.LOCAL_CENTROIDS: (CLUSTER, SELECT),
        Step.CENTROID_VOTE_MASK: (CENTROID_VOTE,),
        Step.LABEL_VOTE_MASK: (LABEL_VOTE,),
    }
    counted = statistics_parameters().plan()
    step = counted.released_in(HISTOGRAM)
    assert step is not None
    assert step.name == Step.HISTOGRAM_MASK
    assert counted.released_in(CLUSTER) is None


def test_a_plan_says_whom_a_step_asks() -> None:
    everyone = {step.name for step in GOOD.plan().steps if step.asks is Asks.EVERYONE}
    assert everyone == {
        Step.LOCAL_CENTROIDS,
        Step.CENTROID_VOTE_ADVERTISE,
        Step.LABEL_VOTE_ADVERTISE,
    }


test_a_part_or_a_task_of_another_kind_is_named = refused(
    UnexpectedMessageError,
    ("no part 'histogram'", GOOD.plan().part, HISTOGRAM),
    (
        "Cluster in a phase that has no such part",
        statistics_parameters().plan().part_of,
        Cluster(phase=bytes(16), index=0, parameters=GOOD),
    ),
)


def test_good_parameters_pass_and_travel() -> None:
    GOOD.check()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(GOOD), type=PhaseParameters) == GOOD
