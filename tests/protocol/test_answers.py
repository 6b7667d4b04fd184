"""What is refused of an answer, by the front door that knows its task and by the aggregator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from support.driven_sum import PARAMETERS, make_sum

from earshot_protocol.errors import MalformedMessageError, RemoteError, UnexpectedMessageError
from earshot_protocol.phases.learning import LocalCentroids
from earshot_protocol.secure_sum import answers
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.wire import Matrix

PHONE = 3


def longer(value: Any) -> Any:
    return value + value[-1:]


def shorter(value: Any) -> Any:
    return value[:-1]


@pytest.mark.parametrize(
    ("at", "field", "change", "error", "said"),
    [
        (Round.ADVERTISE_KEYS, "public_key", lambda _: bytes(32), MalformedMessageError, "X25519"),
        (Round.SHARE_KEYS, "ciphertexts", longer, MalformedMessageError, "ciphertexts for"),
        (Round.SHARE_KEYS, "ciphertexts", shorter, MalformedMessageError, "ciphertexts for"),
        (Round.SHARE_KEYS, "masks", longer, MalformedMessageError, "list of masks"),
        (Round.SHARE_KEYS, "masks", shorter, MalformedMessageError, "list of masks"),
        (Round.MASKED_INPUT, "vector", longer, MalformedMessageError, "bytes"),
        (Round.MASKED_INPUT, "vector", shorter, MalformedMessageError, "bytes"),
        (Round.UNMASK, "shares", longer, MalformedMessageError, "bytes of shares"),
        (Round.UNMASK, "shares", shorter, MalformedMessageError, "bytes of shares"),
        (Round.UNMASK, "sum_id", lambda _: bytes(16), UnexpectedMessageError, "another sum"),
        (Round.UNMASK, "sender", lambda n: n + 1, UnexpectedMessageError, "in the name of"),
    ],
)
def test_what_contradicts_the_task_is_refused_at_both_doors(
    at: Round,
    field: str,
    change: Callable[[Any], Any],
    error: type[RemoteError],
    said: str,
) -> None:
    current = make_sum(PARAMETERS)
    current.until(at)
    task, honest = current.aggregator.task_for(PHONE), current.answer(PHONE)
    wrong = msgspec.structs.replace(honest, **{field: change(getattr(honest, field))})
    before = current.aggregator.save()
    with pytest.raises(error, match=said):
        answers.check(task, PHONE, wrong, PARAMETERS)
    with pytest.raises(error, match=said):
        current.aggregator.accept(PHONE, wrong)
    assert current.aggregator.save() == before
    answers.check(task, PHONE, honest, PARAMETERS)
    current.aggregator.accept(PHONE, honest)


def test_an_answer_of_another_round_or_of_no_sum_is_refused_at_both_doors() -> None:
    current = make_sum(PARAMETERS)
    early = current.answer(PHONE)
    current.until(Round.SHARE_KEYS)
    task = current.aggregator.task_for(PHONE)
    stranger = LocalCentroids(phase=bytes(16), sender=PHONE, centroids=Matrix.of(np.zeros((1, 1))))
    for wrong, said in ((early, "AdvertisedKeys"), (stranger, "does not belong to a secure sum")):
        with pytest.raises(UnexpectedMessageError, match=said):
            answers.check(task, PHONE, wrong, PARAMETERS)
        with pytest.raises(UnexpectedMessageError, match=said):
            current.aggregator.accept(PHONE, wrong)
