"""The audit of whole phones, crowds and published costs: what it sees, and how surely."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from earshot_client import phone as phones
from earshot_client.phone import Phone
from earshot_models.votes.costs import releases
from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.phases import discovery, learning, plan
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy import local_mechanisms
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, BallotSum, VectorSum
from earshot_simulations.auditing import (
    catalogue,
    faults,
    published_costs,
    sum_secrets,
    whole_phones,
)
from earshot_simulations.auditing.crowds import (
    audit_crowds,
    least_shares,
    noise_check,
    shares_of,
)
from earshot_simulations.auditing.findings import Check, Finding
from earshot_simulations.auditing.plans import PHASES
from earshot_simulations.auditing.watching import replaced
from earshot_simulations.auditing.whole_phones import play, small

LEARNING, DISCOVERY, LABELLING, STATISTICS = faults.KINDS
OPERATED = "secure-sum route, two operators"
KINDS = [LEARNING, pytest.param(DISCOVERY, marks=pytest.mark.slow), LABELLING, STATISTICS]


def sums_of(parameters: Parameters) -> list[str]:
    return [part.name for part in parameters.plan().parts if isinstance(part, SecureSum)]


@pytest.mark.parametrize(
    ("phones", "dropout", "corrupted", "counted"),
    [(1000, 0.05, 0.05, 900), (500, 0.05, 0.05, 450), (1001, 0.1, 0.07, 831), (10, 0.3, 0, 7)],
)
def test_phones_are_counted_exactly(
    phones: int, dropout: float, corrupted: float, counted: int
) -> None:
    assert least_shares(phones, dropout, corrupted) == counted


def test_no_more_phones_are_counted_on_than_a_noise_crowd() -> None:
    large = msgspec.structs.replace(PHASES[STATISTICS], phones=30_000, noise_crowd=2000)
    assert shares_of(large) == 2000


@pytest.mark.parametrize("name", KINDS)
def test_every_sum_of_every_kind_has_its_noise(name: str) -> None:
    for step in sums_of(PHASES[name]):
        assert audit_crowds(step, PHASES[name]).held


def test_a_share_too_few_is_seen() -> None:
    for mechanism in (BallotSum(0.5, 3, 901), VectorSum(0.5, 320, 1e-6, 901)):
        assert not noise_check("", {900: mechanism}).held
        assert noise_check("", {901: mechanism}).held


@pytest.mark.parametrize("name", KINDS)
def test_a_phase_that_counts_on_all_phones_is_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count that mechanisms get is the product's; the one that they are held against is not."""
    every = property(lambda self: self.phones)
    monkeypatch.setattr(type(PHASES[name]), "noise_survivors", every)
    for module in (learning, discovery):  # plans that are known already have the true count
        monkeypatch.setattr(module, "_plan", module._plan.__wrapped__)
    for step in sums_of(PHASES[name]):
        assert not audit_crowds(step, PHASES[name]).held


def test_planted_faults_of_phones_are_caught() -> None:
    found = list(faults.phone_faults())
    caught = [each.exceeds if isinstance(each, Finding) else not each.held for each in found]
    assert caught == [True] * len(found)
    assert len(found) == 24
    cases = " ".join(each.case for each in found)
    for name in faults.KINDS:
        for step in sums_of(PHASES[name]):
            assert step == "cells 2" or f"n for n': {step}" in cases
    (ledger,) = [each for each in found if isinstance(each, Finding)]
    assert ledger.measured.low > 1.5 * (ledger.proven or 0)


@pytest.mark.parametrize("name", [LABELLING, STATISTICS, OPERATED])
def test_whole_phones_hold(name: str) -> None:
    results = list(whole_phones.audit_whole_phones([name]))
    assert [each for each in results if not each.passed] == []
    assert {str(each.unit) for each in results if isinstance(each, Finding)} == set(LEDGER_UNITS)
    assert "none" not in {each.power for each in results if isinstance(each, Check)}


@pytest.mark.slow
def test_whole_phones_of_every_phase_hold() -> None:
    results = catalogue.audit("whole-phones")
    assert [each for each in results if not each.passed] == []


@pytest.mark.slow
def test_what_ledgers_count_for_the_recordings_held_is_tight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ledgers count for a public number of recordings: here, for as many as the phones hold."""
    monkeypatch.setattr(local_mechanisms, "COUNTED_RECORDINGS", 12)
    monkeypatch.setattr(plan, "held_by", local_mechanisms.held_by.__wrapped__)
    for name in PHASES:
        seen = play(small(PHASES[name]))
        assert seen.held == 12
        for each in whole_phones.ledger(name, seen):
            assert each.passed
            assert each.measured.low > 0.5 * (each.proven or 0), "nothing far from tight"


def same_stream(by: Callable[[Phone, Any], object]) -> Callable[..., Any]:
    """`Phone._begin_sum` whose noise is drawn from a stream that some of its state names."""
    before = Phone._begin_sum

    def begin(self: Phone, member: Any, *given: Any) -> Any:
        key = self.__dict__.setdefault("_key", os.urandom(KEY_BYTES))
        own, noisy = keyed(key, by(self, member)), phones.with_noise

        def again(values: Any, mechanism: Any, bound: int, random: Any) -> Any:
            return noisy(values, mechanism, bound, own)

        with replaced(phones, with_noise=again):
            return before(self, member, *given)

    return begin


@pytest.mark.parametrize("name", [LEARNING, DISCOVERY, LABELLING])
def test_a_phone_that_uses_the_noise_of_a_sum_again_in_the_phase_is_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Phone, "_begin_sum", same_stream(lambda phone, member: member.phase))
    assert not whole_phones.sums_apart("", play(small(PHASES[name]))).held


def test_a_phone_that_draws_all_noise_from_one_stream_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Phone, "_begin_sum", same_stream(lambda phone, member: "all"))
    assert not whole_phones.sums_apart("", play(small(PHASES[STATISTICS]))).held


def test_a_phone_without_noise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phones, "with_noise", lambda values, *given: values)
    seen = play(small(PHASES[STATISTICS]))
    (law,) = whole_phones.noise_laws("", seen)
    assert not law.held
    assert not whole_phones.sums_apart("", seen).held


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each == LEARNING else pytest.mark.slow)
        for each in PHASES
        if PHASES[each].kind == "learning"
    ],
)
def test_a_ledger_that_ignores_what_is_held_is_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expenses = learning.PhaseParameters.expenses
    monkeypatch.setattr(
        learning.PhaseParameters, "expenses", lambda self, weight, held=0: expenses(self, weight)
    )
    of_recording, of_phone = whole_phones.ledger(name, play(small(PHASES[name])))
    assert of_recording.passed
    assert not of_phone.passed


@pytest.mark.parametrize("case", published_costs.CASES)
def test_local_for_smooth_sensitivity_is_seen(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = published_costs.published_cost(case)
    assert sound.passed
    assert sound.measured.low > 0.3 * sound.claimed
    monkeypatch.setattr(releases, "smooth_sensitivity", lambda local, beta: float(local[0]))
    assert not published_costs.published_cost(case).passed


def test_half_the_noise_on_a_cost_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert published_costs.drawn(2000, 0).held
    published = releases.published

    def halved(mean: float, release: Any, *given: Any) -> float:
        return published(mean, release._replace(deviation=release.deviation / 2), *given)

    monkeypatch.setattr(releases, "published", halved)
    assert not published_costs.drawn(2000, 0).held


def test_divergences_of_normal_laws_are_those_of_their_densities() -> None:
    release = releases.CostRelease(4.0, 0.1, 2.0, 1.0, 0.0)
    one = published_costs.PublishedCost(0.3, release)
    other = published_costs.PublishedCost(1.1, release._replace(sensitivity=1.1))
    at = np.linspace(-60, 60, 2_000_001)
    logs = [
        -((at - each.mean) ** 2) / (2 * each.release.noise**2) - np.log(each.release.noise)
        for each in (one, other)
    ]
    moment = np.exp(4 * logs[0] - 3 * logs[1]).sum() * (at[1] - at[0]) / np.sqrt(2 * np.pi)
    assert published_costs.divergence(one, other, 4.0) == pytest.approx(np.log(moment) / 3)
    wide = replace(one, release=release._replace(sensitivity=2.0))
    assert published_costs.divergence(wide, other, 4.0) == np.inf


def test_secrets_of_the_sum_before_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    again = itertools.cycle([os.urandom(31) + b"\0" for _ in range(2 * sum_secrets.PHONES)])
    monkeypatch.setattr(sum_secrets.participant, "_fresh_secret", lambda: next(again))
    broken: Iterator[Check] = sum_secrets.audit_secrets()
    assert [each.held for each in broken][:2] == [False, False]
