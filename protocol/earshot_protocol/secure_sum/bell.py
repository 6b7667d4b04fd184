"""The summation of Bell et al. (CCS 2020) as a value, and the names of its rounds."""

from __future__ import annotations

import functools

import msgspec

from earshot_protocol.secure_sum import answers
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.interface import Asks, Summation, SummationName, SumRound
from earshot_protocol.secure_sum.messages import AdvertiseKeys, SumTask
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.wire import Answer


def _open(sum_id: bytes, parameters: SumParameters) -> AdvertiseKeys:
    return AdvertiseKeys(sum_id=sum_id, index=0, parameters=parameters)


def _check(task: SumTask, phone: int, answer: Answer, parameters: bytes) -> None:
    answers.check(task, phone, answer, _parameters(parameters))


# All phones of a step have the same parameters, which are decoded once.
@functools.lru_cache(maxsize=4)
def _parameters(encoded: bytes) -> SumParameters:
    return msgspec.msgpack.decode(encoded, type=SumParameters)


BELL = Summation(
    name=SummationName.BELL,
    rounds=(
        SumRound(Round.ADVERTISE_KEYS, Asks.EVERYONE),
        SumRound(Round.SHARE_KEYS, Asks.REMAINING),
        SumRound(Round.MASKED_INPUT, Asks.REMAINING, carries_input=True),
        SumRound(Round.UNMASK, Asks.REMAINING),
    ),
    participant=Participant,
    aggregator=Aggregator,
    open=_open,
    tasks=frozenset(answers.ANSWERS),
    check=_check,
)
