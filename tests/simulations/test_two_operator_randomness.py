"""What phones and operators draw in sums by two operators: whole, once, and all of it used."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.operators import WINDOW, Operators, closed, opening, reported, request, terms

from earshot_protocol.keyed_randomness import KEY_BYTES
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeGaussian, WholeLaplace
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators.messages import SALT_BYTES
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.shares import unseal
from earshot_server.helper.helper import Helper, HelperPolicy
from earshot_simulations.auditing.streams import Noted, drawn_again, steered

PHONES = 4
SUMS = [
    pytest.param(noise, ones, id=f"{type(noise).__name__}, ones={ones}")
    for noise in (WholeLaplace.of(3.0), WholeGaussian.of(25.0))
    for ones in (None, 2)
]


def agreed(noise: NoiseOfOperators, ones: int | None) -> TwoOperatorParameters:
    changes: dict[str, Any] = {} if ones is None else {"bound": 1, "proof": Counts(1, ones, 40)}
    return terms(shape=(40,), phones=PHONES, least=2, noise=noise, **changes)


def ballot(phone: int) -> npt.NDArray[np.int64]:
    votes = np.zeros(40, dtype=np.int64)
    votes[phone], votes[-1] = 1, 1
    return votes


@pytest.mark.parametrize(("noise", "ones"), SUMS)
def test_a_total_has_all_that_operators_draw_for_this_sum_and_nothing_else(
    noise: NoiseOfOperators, ones: int | None
) -> None:
    """Entry by entry and with its sign, of words that lead into the tails."""
    parameters, operators = agreed(noise, ones), Operators()
    helpers, leaders = (Noted(steered(bytes(KEY_BYTES), who)) for who in ("helper", "leader"))
    keys = replace(operators.keys, random=leaders)
    policy = HelperPolicy(frozenset({keys.identity}), least_reports=2, least_noise=0.0)
    helper = Helper(operators.identity, operators.book, policy, lambda: operators.now, helpers)
    for _ in range(3):  # one leader and one helper for all of them
        leader = keys(os.urandom(16), parameters, os.urandom)
        leader.accept(HELPER, helper.answer(request(leader)))
        leader.advance()
        reports = [(phone, reported(leader, phone, ballot(phone))) for phone in range(PHONES)]
        for phone, report in reports:
            leader.accept(phone, report)
        leader.advance()
        operators.now += WINDOW + 1
        listed = leader.task_for(HELPER)
        assert listed is not None
        total = closed(leader, helper.answer(listed), reports)
        *words, salt = leaders.taken()
        assert len(salt) == SALT_BYTES
        drawn = [
            drawn_again(lambda random: noise.drawn(parameters.length, random), taken)
            for taken in (helpers.taken(), words)
        ]
        assert drawn[0] is not None, "the helper has drawn noise for this sum"
        assert drawn[1] is not None, "the leader has drawn noise for this sum"
        added = total - sum(ballot(phone) for phone in range(PHONES))
        if ones is None:  # words are as long as all noise but for 2^-80, and these lead beyond
            width = 2**parameters.modulus_bits
            np.testing.assert_array_equal((added - drawn[0] - drawn[1]) % width, 0)
        else:
            np.testing.assert_array_equal(added, drawn[0] + drawn[1])


@pytest.mark.parametrize("ones", [None, 2])
def test_the_secrets_of_a_report_are_whole_and_its_own(
    ones: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    operators = Operators()
    leader = operators.offered(agreed(WholeLaplace.of(3.0), ones))
    task = opening(leader)
    assert task.offer is not None
    offer = task.offer.offer
    secret = operators.book.secret(task.sum_id)
    assert secret is not None
    key = X25519PrivateKey.from_private_bytes(secret.key)
    used: list[bytes] = []
    for phone in range(PHONES):
        noted = Noted(os.urandom)
        with monkeypatch.context() as patched:
            patched.setattr(os, "urandom", noted)
            report = reported(leader, phone, ballot(phone))
        asked = noted.taken()
        seed = unseal(report.sealed, key, offer.digest(), report.report_id, report.public)
        assert seed is not None
        assert report.report_id in asked
        assert len(report.report_id) == 16
        used += [report.report_id, report.sealed[:32]]
        if ones is None:
            assert seed in asked
            assert len(seed) == 32
            used.append(seed)
            continue
        proof = proof_of(offer)
        (rand,) = (each for each in asked if len(each) == proof.rand_bytes)
        split = proof.shard(ballot(phone), report.report_id, rand)
        assert split == (report.public, report.share, seed)
        assert proof.rand_bytes >= 4 * 32
        used.append(rand)
    assert len(set(used)) == len(used) == 3 * PHONES
