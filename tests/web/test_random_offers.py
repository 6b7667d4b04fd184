"""The phone in TypeScript and Python's say the same to phases, limits and offers at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from support import random_limits, random_offers
from support.web_phone import WebPhone


@pytest.fixture(scope="module")
def web() -> Iterator[WebPhone]:
    with WebPhone() as phone:
        yield phone


def alike(found: Any, wanted: Any) -> bool:
    """Whether both are the same, but for what engines round differently."""
    if isinstance(wanted, float):
        return bool(found == pytest.approx(wanted, rel=1e-9))
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            alike(found[name], wanted[name]) for name in wanted
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    return bool(found == wanted)


@pytest.mark.parametrize(
    ("seed", "count"), [(40, 100), pytest.param(41, 400, marks=pytest.mark.slow)]
)
def test_what_is_drawn_at_random_gets_the_same_answers(
    web: WebPhone, seed: int, count: int
) -> None:
    said: Counter[str] = Counter()
    for case in random_offers.cases(seed, count):
        found = web.ask("played", case)
        assert alike(found, case["outcomes"]), (case["case"], found, case["outcomes"])
        for outcome in case["outcomes"]:
            said[outcome.get("rule") or outcome.get("error") or "booked"] += 1
    # The cases are worth something: phones take part, and refuse by many rules.
    assert said["booked"] > 50, said
    assert len(said) > 8, said


ROUND = 50
"""Cases of one phone, which has one ledger."""


@pytest.mark.parametrize(
    ("seed", "count"), [(49, 300), pytest.param(50, 10_000, marks=pytest.mark.slow)]
)
def test_phases_are_judged_alike_whatever_the_ledger_and_the_limits(
    web: WebPhone, seed: int, count: int
) -> None:
    said: Counter[str] = Counter()
    for each in random_limits.rounds(seed, count // ROUND, ROUND):
        asked = [(case.parameters, case.limits) for case in each.cases]
        found = web.ask("judged", each.ledger, each.today.isoformat(), asked)
        for case, verdict in zip(each.cases, found, strict=True):
            assert verdict == case.verdict, (case, each)
            error = case.verdict.get("error", "accepted")
            said.update(case.verdict.get("rules") or [error])
    # No rule is left out, and phones take part under limits that hardly hold the phase.
    assert said["accepted"] > count / 6, said
    assert said["InvalidParametersError"] > count / 50, said
    for rule in (*random_limits.NAMES, "delta", "parameters"):
        assert said[rule] >= count / 100, (rule, said)
