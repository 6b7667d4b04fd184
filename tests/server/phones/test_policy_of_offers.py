"""Which sums by two operators a phone's policy lets it take part in."""

from __future__ import annotations

import pytest
from support.operators import NOW, TOLD, Operators, terms
from support.operators import opening as first_task
from support.parameters import learning_parameters

from earshot_client.policy import Policy
from earshot_protocol.errors import RefusedError
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.parameters import choose

PHASE = learning_parameters(phones=100, dropout=0.1, corrupted=0.05)
SUM = choose(100, (5,), 50, 0.1, 0.05)


def test_a_sum_by_two_operators_is_refused_where_the_phase_has_none() -> None:
    opening = first_task(Operators().offered())
    with pytest.raises(RefusedError, match="a phase that has none") as refused:
        Policy.per_recording().check_opening(PHASE, "votes", opening, SUM, b"", 0.0)
    assert refused.value.rule is Rule.SUM


def test_an_offer_is_taken_from_operators_that_the_policy_names_for_this_task() -> None:
    both = Operators()
    opening = first_task(both.offered())

    def check(helpers: tuple[bytes, ...], told: bytes) -> None:
        policy = Policy(leaders=(both.keys.identity,), helpers=helpers)
        policy.check_opening(PHASE, "votes", opening, terms(), told, NOW)

    check((both.keys.helper,), TOLD)
    with pytest.raises(RefusedError) as refused:
        check((both.keys.helper,), b"another task")
    assert refused.value.rule is Rule.WRONG_OFFER
    with pytest.raises(RefusedError) as refused:
        check((), TOLD)
    assert refused.value.rule is Rule.UNKNOWN_HELPER
