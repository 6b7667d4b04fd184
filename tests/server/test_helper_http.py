"""A helper as its operator runs it: three requests over HTTP, and what is refused."""

from __future__ import annotations

import os

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.helper_server import HelperProcess, helper_running
from support.operators import TOLD, closed, inputs_of, listed, reported, request, terms, total_of

from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.two_operators.transport import OFFER_PATH, TOTAL_PATH
from earshot_protocol.wire import encode

KEY = Ed25519PrivateKey.generate()
IDENTITY = KEY.public_key().public_bytes_raw()


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory):
    with helper_running(tmp_path_factory.mktemp("helper") / "data", IDENTITY) as running:
        yield running


def test_a_sum_of_everybody_over_http(helper: HelperProcess) -> None:
    leader = LeaderKeys(KEY, helper.identity)(os.urandom(16), terms(), os.urandom, TOLD)
    heard = helper.post(KEY, OFFER_PATH, encode(request(leader)))
    assert heard.status == 200, heard.body
    leader.accept(HELPER, decode_helper_answer(heard.body))
    leader.advance()
    inputs = inputs_of(range(20))
    reports = {phone: reported(leader, phone, vector) for phone, vector in inputs.items()}
    for phone, report in reports.items():
        leader.accept(phone, report)
    leader.advance()
    heard = helper.post(KEY, TOTAL_PATH, encode(listed(leader)))
    assert heard.status == 200, heard.body
    total = closed(leader, total_of(decode_helper_answer(heard.body)), reports.items())
    np.testing.assert_array_equal(total, sum(inputs.values()))
