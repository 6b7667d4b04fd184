"""The sum by two operators as a value, and the checks of answers."""

from __future__ import annotations

from earshot_protocol.errors import InvalidParametersError, UnexpectedMessageError
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.interface import (
    HELPER,
    Aggregator,
    Saved,
    Summation,
    SummationName,
)
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.two_operators.halves import check_report
from earshot_protocol.two_operators.messages import (
    AddUp,
    HelperTotal,
    MakeOffer,
    OfferMade,
    PhoneReport,
    SendReport,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.rounds import ROUNDS
from earshot_protocol.wire import Answer


class NoOperatorKeysError(InvalidParametersError):
    """Lack of an operator's keys in a process that must lead a sum by two operators."""


class _Unled:
    """Placeholder that makes no aggregators: `leader.LeaderKeys` makes them."""

    def __call__(
        self,
        sum_id: bytes,
        parameters: TwoOperatorParameters,
        random: RandomBytes,
        told: bytes = b"",
    ) -> Aggregator:
        raise _no_keys()

    def restore(self, saved: Saved) -> Aggregator:
        raise _no_keys()


def _no_keys() -> NoOperatorKeysError:
    return NoOperatorKeysError(
        "a sum by two operators needs a helper: give the server its address and its key"
    )


def _open(sum_id: bytes, parameters: TwoOperatorParameters) -> SendReport:
    return SendReport(sum_id=sum_id, index=0)


_ANSWERS: dict[type[SumTask], type[Answer]] = {
    MakeOffer: OfferMade,
    SendReport: PhoneReport,
    AddUp: HelperTotal,
}


def check(task: SumTask, party: int, answer: Answer, parameters: bytes) -> None:
    """Refuse an answer that does not fit its task, before it is kept.

    Args:
        task: Task of the party.
        party: Phone, or `HELPER`, as authenticated by the caller.
        answer: Answer of any type.
        parameters: Encoded parameters of the sum, which the offer has as well.

    Raises:
        UnexpectedMessageError: The answer is of another sum, round or sender.
        MalformedMessageError: Sizes contradict the task.
    """
    expected = _ANSWERS[type(task)]
    who = "the helper" if party == HELPER else f"phone {party}"
    if not isinstance(answer, expected):
        raise UnexpectedMessageError(
            f"{who}: {type(answer).__name__} where {expected.__name__} is expected"
        )
    if getattr(answer, "sum_id", b"") != task.sum_id:
        raise UnexpectedMessageError(f"{who}: an answer to another sum")
    if isinstance(answer, PhoneReport) and isinstance(task, SendReport) and task.offer is not None:
        if answer.sender != party:
            raise UnexpectedMessageError(f"phone {party}: an answer in the name of {answer.sender}")
        check_report(party, answer, task.offer.offer)


TWO_OPERATORS = Summation(
    name=SummationName.TWO_OPERATORS,
    rounds=ROUNDS,
    participant=ReportingParticipant,
    aggregator=_Unled(),
    open=_open,
    tasks=frozenset(_ANSWERS),
    check=check,
)
"""The summation without keys; a leader replaces `aggregator` by its `LeaderKeys`."""
