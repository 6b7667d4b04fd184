from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parameters import learning_parameters

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phase import NEXT, STATISTICS_STEPS, STEPS, Budget, PhaseParameters, Step

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


def test_every_step_leads_on_until_the_phase_is_over() -> None:
    walks = []
    for first in (Step.LOCAL_CENTROIDS, Step.HISTOGRAM_ADVERTISE):
        walk = [first]
        while walk[-1] in NEXT:
            walk.append(NEXT[walk[-1]])
        walks.append(tuple(walk))
    assert walks == [(*STEPS, Step.PUBLISHED), (*STATISTICS_STEPS, Step.PUBLISHED)]
    assert {*walks[0], *walks[1], Step.FAILED} == set(Step)


def test_good_parameters_pass_and_travel() -> None:
    GOOD.check()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(GOOD), type=PhaseParameters) == GOOD


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", Budget.__struct_fields__)
def test_a_budget_is_positive_and_finite(name: str, value: float) -> None:
    budget = msgspec.structs.replace(GOOD.budget, **{name: value})
    with pytest.raises(InvalidParametersError, match=f"{name.replace('_', '-')}={value}"):
        msgspec.structs.replace(GOOD, budget=budget).check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("phones", 2),
        ("phones", 10**8 + 1),
        ("recordings", 0),
        ("dimensions", 0),
        ("dimensions", 1025),
        ("labels", ()),
        ("labels", ("bus", "bus")),
        ("labels", tuple(map(str, range(257)))),
        ("local_centroids", 0),
        ("local_centroids", 257),
        ("top_local_centroids", 0),
        ("top_local_centroids", 7),
        ("top_global_centroids", 0),
        ("top_global_centroids", 4097),
        ("centroid_votes", 0),
        ("centroid_votes", 11),
        ("label_votes", 0),
        ("label_votes", 11),
        ("dropout", -0.1),
        ("dropout", 1.0),
        ("dropout", math.nan),
        ("corrupted", 1.0),
        ("corrupted", math.nan),
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", math.nan),
        ("step_seconds", 0.0),
        ("step_seconds", math.inf),
        ("step_seconds", math.nan),
    ],
)
def test_what_no_phase_can_run_under_is_named(name: str, value: object) -> None:
    with pytest.raises(InvalidParametersError, match=name):
        msgspec.structs.replace(GOOD, **{name: value}).check()
