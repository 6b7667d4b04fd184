"""The phone in TypeScript and Python's say the same to phases and offers drawn at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from support import random_offers
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
