"""The conditions on a graph, against exact rational arithmetic and a second hypergeometric law."""

from __future__ import annotations

import functools
import math
import time
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.driven_sum import unchecked
from support.refusals import refused

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.secure_sum.parameters import LARGEST_DEGREE, SumParameters, choose


@cache
def tail(others: int, marked: int, drawn: int, least: int) -> Fraction:
    """Pr[at least `least` of `drawn` out of `others` are marked], by counting."""
    hits = sum(
        math.comb(marked, j) * math.comb(others - marked, drawn - j)
        for j in range(max(least, 0), drawn + 1)
    )
    return Fraction(hits, math.comb(others, drawn))


def admissible(
    phones: int, dropout: Fraction, corrupted: Fraction, degree: int, sigma: int, eta: int
) -> list[int]:
    """Thresholds above degree/2 that satisfy the three conditions, in exact arithmetic."""
    if degree < phones - 1:
        if degree % 2:
            return []
        if phones * (dropout + corrupted) ** (degree // 2) > Fraction(1, 2**sigma):
            return []
    bad = min(math.ceil(corrupted * phones), phones - 1)
    gone = min(math.ceil(dropout * phones), phones - 1)
    return [
        t
        for t in range(degree // 2 + 1, degree + 1)
        if phones * tail(phones - 1, bad, degree, t) <= Fraction(1, 2**sigma)
        and phones * tail(phones - 1, gone, degree, degree - t + 1) <= Fraction(1, 2**eta)
    ]


def parameters(**changes: object) -> SumParameters:
    return msgspec.structs.replace(choose(1000, (10, 10), 5, 0.05, 0.05), **changes)


def passes(candidate: SumParameters) -> bool:
    try:
        candidate.check()
    except InvalidParametersError:
        return False
    return True


@pytest.mark.parametrize(
    ("fraction", "degrees"),
    [(0.05, [34, 38, 40, 44]), (0.1, [52, 60, 64, 70]), (0.2, [112, 134, 146, 158])],
)
def test_degrees_of_the_published_table(fraction: float, degrees: list[int]) -> None:
    found = [choose(10**e, (100,), 3, fraction, fraction).neighbours for e in (3, 4, 5, 6)]
    assert found == degrees


@pytest.mark.parametrize(("phones", "fraction"), [(10**3, 0.05), (10**6, 0.2)])
def test_tails_against_mpmath(phones: int, fraction: float) -> None:
    """The chosen threshold is safe, and the one above could not be met after dropouts."""
    chosen = choose(phones, (1,), 1, fraction, fraction)
    marked = round(fraction * phones)
    k, t = chosen.neighbours, chosen.threshold
    with mpmath.workdps(50):

        def law(j: int) -> mpmath.mpf:
            ways = mpmath.binomial(marked, j) * mpmath.binomial(phones - 1 - marked, k - j)
            return ways / mpmath.binomial(phones - 1, k)

        def at_least(least: int) -> mpmath.mpf:
            return phones * mpmath.fsum(law(j) for j in range(least, k + 1))

        assert at_least(t) <= mpmath.mpf(2) ** -40
        assert at_least(k - t + 1) <= mpmath.mpf(2) ** -30 < at_least(k - t)
        assert 2 * t > k


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    phones=st.integers(3, 160),
    dropout=st.integers(0, 60),
    corrupted=st.integers(0, 60),
    sigma=st.integers(2, 40),
    eta=st.integers(2, 30),
)
def test_chosen_graph_is_the_smallest_that_exact_arithmetic_admits(
    phones: int, dropout: int, corrupted: int, sigma: int, eta: int
) -> None:
    exact = (Fraction(dropout, 100), Fraction(corrupted, 100))
    degrees = [*range(2, phones - 1, 2), phones - 1]
    options = ((k, admissible(phones, *exact, k, sigma, eta)) for k in degrees)
    expected = next(((k, ts[-1]) for k, ts in options if ts), None)
    try:
        chosen = choose(
            phones,
            (1,),
            1,
            dropout / 100,
            corrupted / 100,
            statistical_security=sigma,
            correctness=eta,
        )
    except InvalidParametersError:
        assert expected is None
    else:
        assert (chosen.neighbours, chosen.threshold) == expected
        if 2 < chosen.neighbours < phones - 1:
            assert not admissible(phones, *exact, chosen.neighbours - 2, sigma, eta)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    phones=st.integers(3, 120),
    dropout=st.integers(0, 50),
    corrupted=st.integers(0, 50),
    degree=st.integers(2, 119),
    threshold=st.integers(1, 119),
    sigma=st.integers(1, 20),
)
def test_check_agrees_with_exact_arithmetic(
    phones: int, dropout: int, corrupted: int, degree: int, threshold: int, sigma: int
) -> None:
    degree = min(degree, phones - 1)
    candidate = unchecked(
        phones=phones,
        dropout=dropout / 100,
        corrupted=corrupted / 100,
        neighbours=degree,
        threshold=threshold,
        statistical_security=sigma,
        correctness=10,
    )
    allowed = admissible(
        phones, Fraction(dropout, 100), Fraction(corrupted, 100), degree, sigma, 10
    )
    assert passes(candidate) == (threshold in allowed[-1:])


def test_of_the_thresholds_of_a_forced_degree_the_largest_alone_is_accepted() -> None:
    allowed = admissible(300, Fraction(1, 10), Fraction(1, 10), 100, 40, 30)
    forced = choose(300, (1,), 1, 0.1, 0.1, neighbours=100)
    passed = [t for t in range(1, 101) if passes(msgspec.structs.replace(forced, threshold=t))]
    assert passed == allowed[-1:]
    assert 51 == allowed[0] < allowed[-1] < 100


@pytest.mark.parametrize(("dropout", "corrupted"), [(0.1, 0.05), (0.2, 0.05), (0.25, 0.05)])
@pytest.mark.parametrize("phones", [100, 300, 500, 1000, 10_000])
def test_two_stories_about_a_phone_never_reach_the_threshold_both(
    phones: int, dropout: float, corrupted: float
) -> None:
    chosen = choose(phones, (1,), 1, dropout, corrupted)
    assert chosen.threshold + chosen.threshold > chosen.degree


@pytest.mark.parametrize(("dropout", "corrupted"), [(0, 0), (10, 0), (0, 10), (10, 10)])
@pytest.mark.parametrize("phones", range(4, 14))
def test_the_degree_is_the_smallest_that_is_safe(phones: int, dropout: int, corrupted: int) -> None:
    fractions = Fraction(dropout, 100), Fraction(corrupted, 100)
    safe = [
        degree
        for degree in [*range(2, phones - 1, 2), phones - 1]
        if admissible(phones, *fractions, degree, 1, 1)
    ]
    demand = {"statistical_security": 1, "correctness": 1}
    chosen = choose(phones, (1,), 1, dropout / 100, corrupted / 100, **demand)
    assert chosen.degree == safe[0]


def test_degree_grows_with_every_demand() -> None:
    def degree(phones: int = 10_000, **changes: float) -> int:
        demand = {"dropout": 0.1, "corrupted": 0.1, **changes}
        return choose(phones, (1,), 1, **demand).neighbours  # type: ignore[arg-type]

    for series in (
        [degree(phones=n) for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)],
        [degree(dropout=d / 100) for d in range(0, 30, 3)],
        [degree(corrupted=c / 100) for c in range(0, 30, 3)],
        [degree(statistical_security=s) for s in (10, 20, 40, 60, 80)],
        [degree(correctness=e) for e in (10, 30, 60, 90)],
    ):
        assert series == sorted(series)
        assert series[0] < series[-1]


@pytest.mark.parametrize(("dropout", "corrupted"), [(0.0, 0.2), (0.2, 0.0), (0.0, 0.0)])
def test_nobody_drops_or_nobody_is_corrupted(dropout: float, corrupted: float) -> None:
    chosen = choose(400, (1,), 1, dropout, corrupted)
    exact = (Fraction(str(dropout)), Fraction(str(corrupted)))
    allowed = admissible(400, *exact, chosen.neighbours, 40, 30)
    assert chosen.threshold == allowed[-1]
    smaller = range(2, chosen.neighbours, 2)
    assert not any(admissible(400, *exact, k, 40, 30) for k in smaller)


@pytest.mark.parametrize("phones", [3, 4, 5, 10, 29, 30, 41])
def test_few_phones_make_the_complete_graph(phones: int) -> None:
    chosen = choose(phones, (1,), 1, 0.0 if phones < 5 else 0.1, 0.1 if phones > 3 else 0.0)
    assert chosen.neighbours == chosen.degree == phones - 1
    bad = math.ceil(Fraction(str(chosen.corrupted)) * phones)
    gone = math.ceil(Fraction(str(chosen.dropout)) * phones)
    assert chosen.threshold == phones - 1 - gone
    assert chosen.threshold >= max((phones - 1) // 2 + 1, bad + 1)


def test_forced_neighbours_beyond_the_crowd_mean_everybody() -> None:
    chosen = choose(50, (1,), 1, 0.1, 0.1, neighbours=100)
    assert chosen.neighbours == 49
    told = msgspec.structs.replace(chosen, neighbours=100)
    told.check()
    assert told.degree == 49


def test_forced_numbers_are_kept_or_refused_with_what_would_do() -> None:
    forced = choose(300, (1,), 1, 0.1, 0.1, neighbours=100)
    assert (forced.neighbours, forced.threshold) == (100, 73)
    least = choose(300, (1,), 1, 0.1, 0.1).neighbours
    with pytest.raises(InvalidParametersError, match=f"smallest number that does is {least}"):
        choose(300, (1,), 1, 0.1, 0.1, neighbours=least - 2)
    with pytest.raises(InvalidParametersError, match="must be even, not 101"):
        choose(300, (1,), 1, 0.1, 0.1, neighbours=101)


@settings(max_examples=100, derandomize=True)
@given(phones=st.integers(3, 10**8), bound=st.integers(1, 2**63 - 1))
def test_modulus_is_the_smallest_that_holds_the_sum(phones: int, bound: int) -> None:
    candidate = parameters(phones=phones, bound=bound)
    if phones * bound > 2**63 - 1:
        with pytest.raises(InvalidParametersError, match="bound may be at most"):
            _ = candidate.modulus_bits
        return
    bits = candidate.modulus_bits
    assert phones * bound <= 2 ** (bits - 1) - 1
    assert phones * bound > 2 ** (bits - 2) - 1


def test_modulus_at_its_edge() -> None:
    largest = (2**63 - 1) // 1000
    assert choose(1000, (1,), largest, 0.05, 0.05).modulus_bits == 64
    with pytest.raises(InvalidParametersError, match=str(largest)):
        choose(1000, (1,), largest + 1, 0.05, 0.05)


@pytest.mark.parametrize("phones", [3, 30, 100, 1000, 10**8])
def test_dropouts_are_counted_as_the_decimal_is_written(phones: int) -> None:
    for hundredths in range(100):
        candidate = parameters(phones=phones, dropout=hundredths / 100)
        expected = phones * hundredths // 100
        assert candidate.largest_dropout_count == expected
        assert candidate.least_survivors == phones - expected


def test_a_third_of_thirty_is_ten() -> None:
    assert parameters(phones=30, dropout=1 / 3).largest_dropout_count == 10


def check(changes: dict[str, Any]) -> None:
    parameters(**changes).check()


def test_usual_parameters_pass() -> None:
    check({})


test_check_refuses_by_name = refused(
    InvalidParametersError,
    *[
        (message, check, changes)
        for changes, message in (
            ({"phones": 2}, "phones=2: must be a whole number, from 3"),
            ({"phones": 10**8 + 1}, "phones=100000001: .* to 100000000"),
            ({"length": 99}, "length must be the product"),
            ({"shape": (2**24, 2), "length": 2**25}, "length=33554432: must be a whole number"),
            ({"shape": (-10, -10)}, "dimension of shape=-10: must be"),
            ({"shape": (1,) * 33, "length": 1}, "at most 32 dimensions"),
            ({"bound": 0}, "bound=0: must be"),
            ({"bound": 2**62}, "does not fit a signed 64-bit sum"),
            ({"bound": 1.5}, "bound=1.5: must be a whole number"),
            ({"dropout": -0.1}, "dropout=-0.1: must be"),
            ({"dropout": math.nan}, "dropout=nan: must be"),
            ({"corrupted": 1.0}, "corrupted=1.0: must be"),
            ({"corrupted": math.inf}, "corrupted=inf: must be"),
            ({"dropout": 0.1}, "neighbours=34 admits no safe threshold"),
            ({"corrupted": 0.2}, "neighbours=34 admits no safe threshold"),
            ({"neighbours": 33}, "neighbours must be even"),
            ({"phones": 35, "neighbours": 33}, "neighbours must be even"),
            ({"neighbours": 32}, "smallest number that does is 34"),
            ({"neighbours": 256}, "neighbours=256: must be a whole number, from 2 to 254"),
            ({"threshold": 17}, "corrupted neighbours"),
            ({"threshold": 33}, "after dropouts"),
            ({"threshold": 0}, "threshold=0: must be"),
            ({"precision": -1}, "precision=-1: must be"),
            ({"precision": 19}, "precision=19: must be"),
            ({"statistical_security": 0}, "statistical_security=0: must be"),
            ({"statistical_security": 129}, "statistical_security=129: .* to 128"),
            ({"correctness": -30}, "correctness=-30: must be"),
            ({"correctness": 129}, "correctness=129: .* to 128"),
        )
    ],
    ("at most 254 neighbours", choose, 10**6, (1,), 1, 0.3, 0.3),
    ("at most 254 neighbours", functools.partial(choose, neighbours=254), 10**6, (1,), 1, 0.3, 0.3),
    (r"5 participants no safe graph.*dropout=0\.2", choose, 5, (1,), 1, 0.3, 0.3),
)


@pytest.mark.parametrize("asked", [(0.4, 0.4), (0.6, 0.2), (0.2, 0.6)])
def test_refusal_names_fractions_that_are_accepted_and_near_the_edge(
    asked: tuple[float, float],
) -> None:
    with pytest.raises(InvalidParametersError) as refusal:
        choose(1000, (1,), 1, *asked)
    stated = str(refusal.value).rsplit("dropout=", 1)[1]
    dropout, corrupted = (float(part.split(" ")[0]) for part in stated.split(" with corrupted="))
    assert dropout / corrupted == pytest.approx(asked[0] / asked[1], rel=0.02)
    assert choose(1000, (1,), 1, dropout, corrupted).neighbours <= LARGEST_DEGREE
    with pytest.raises(InvalidParametersError):
        choose(1000, (1,), 1, dropout + 0.002, corrupted + 0.002)


def test_255_phones_may_all_be_neighbours() -> None:
    parameters = choose(255, (1,), 1, 0.4, 0.4)
    assert (parameters.neighbours, parameters.threshold) == (254, 152)
    with pytest.raises(InvalidParametersError, match="at most 254 neighbours"):
        choose(256, (1,), 1, 0.4, 0.4)


@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5), [2, 3]])
def test_any_shape_is_flattened(shape: tuple[int, ...]) -> None:
    chosen = choose(100, shape, 1, 0.05, 0.05, precision=3)
    assert (chosen.shape, chosen.length) == (tuple(shape), math.prod(shape))
    assert chosen.precision == 3


def test_parameters_cross_the_wire_and_strangers_do_not() -> None:
    chosen = parameters()
    wire = msgspec.msgpack.encode(chosen)
    assert msgspec.msgpack.decode(wire, type=SumParameters) == chosen
    extended = msgspec.msgpack.encode({**msgspec.to_builtins(chosen), "backdoor": 1})
    with pytest.raises(msgspec.ValidationError, match="backdoor"):
        msgspec.msgpack.decode(extended, type=SumParameters)


def test_choosing_is_fast() -> None:
    """Every setting below is new to the caches; 50 ms each is a generous ceiling."""
    start = time.process_time()
    for phones in range(900_001, 900_011):
        choose(phones, (1,), 1, 0.2, 0.2)
    assert time.process_time() - start < 10 * 0.05
