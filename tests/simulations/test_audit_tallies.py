"""The audit of federated tallies: what holds, and that it would see what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing import faults, tallies
from earshot_simulations.auditing.findings import SAMPLED, Check, Finding

QUERIES = 20_000


def test_nothing_that_was_measured_is_more_than_was_proven_and_the_fault_is_caught() -> None:
    results = list(tallies.audit_tallies(QUERIES, 0))
    assert [each.case for each in results if not each.passed] == []
    findings = [each for each in results if isinstance(each, Finding)]
    sampled = [each for each in findings if each.method.kind == SAMPLED]
    assert {each.unit for each in sampled} == {Unit.PHONE, Unit.REPLACED_PHONE}
    assert all(each.measured.low > 0.3 for each in sampled)
    exact = [each for each in findings if each.method.kind != SAMPLED]
    assert len(exact) == 4
    assert all(each.measured.low > 0.8 * (each.proven or 0) for each in exact)
    assert [each.held for each in faults.reused_noise_of_sums(QUERIES, 0)] == [False] * 2


def test_less_noise_than_is_claimed_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = VoteSum.noise_share

    def less(self: VoteSum, size: Any, random: Any) -> Any:
        share = drawn(self, size, random)
        return np.sign(share) * (np.abs(share) - (np.abs(share) > 1))

    key = bytes(32)
    laws = {}
    real = tallies._RealSums
    sums = tallies._tally(real.rule, real.classes, np.zeros((6, 1), np.int64), key)
    for kind in tallies.VoteKind:
        summed = sums.summed(tallies.Purchase(kind, 1), 1)
        laws[kind] = tallies.noise_law(summed, 5)
    monkeypatch.setattr(VoteSum, "noise_share", less)
    counts, agreeing = tallies._RealSums(0, QUERIES, key).noise(0)
    for kind, noise in ((tallies.VoteKind.VOTES, counts), (tallies.VoteKind.CHECK, agreeing)):
        found = tallies._fits("less noise", laws[kind], noise.ravel())
        assert isinstance(found, Check)
        assert not found.held
