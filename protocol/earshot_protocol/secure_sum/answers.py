"""Checks of whether an answer fits its task, for both the aggregator and its front door."""

from __future__ import annotations

from earshot_protocol.errors import (
    MalformedMessageError,
    TooManyDropoutsError,
    UnexpectedMessageError,
)
from earshot_protocol.secure_sum import encoding, messages
from earshot_protocol.secure_sum.messages import REVEALED_SHARE_BYTES, TAG_BYTES, TRACE_BYTES
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.points import LOW_ORDER, points
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.wire import Answer

ANSWERS: dict[type[messages.SumTask], type[messages.SumAnswer]] = {
    messages.AdvertiseKeys: messages.AdvertisedKeys,
    messages.ShareKeys: messages.SharedKeys,
    messages.MaskInput: messages.MaskedInput,
    messages.Unmask: messages.Unmasked,
}
"""Task → the answer to it."""


def check(task: messages.SumTask, phone: int, answer: Answer, parameters: SumParameters) -> None:
    """Refuse an answer that does not fit its task.

    Args:
        task: Task of the phone.
        phone: Sender of the answer, as authenticated by the caller.
        answer: Answer of any type.
        parameters: Parameters of the sum.

    Raises:
        UnexpectedMessageError: The answer is of another sum or round, or in another's name.
        MalformedMessageError: Sizes or fields contradict the task.
    """
    check_address(phone, answer, task.sum_id)
    expected = ANSWERS[type(task)]
    if type(answer) is not expected:
        raise UnexpectedMessageError(
            f"phone {phone}: {type(answer).__name__} where {expected.__name__} is expected"
        )
    match answer:
        case messages.AdvertisedKeys():
            check_keys(phone, answer)
        case messages.SharedKeys() if isinstance(task, messages.ShareKeys):
            check_ciphertexts(phone, answer, len(task.neighbours))
        case messages.MaskedInput():
            encoding.check_packed(answer.vector, parameters)
        case messages.Unmasked() if isinstance(task, messages.Unmask):
            check_shares(phone, answer, len(task.survivors), len(task.dropped))


def check_attendance(answered: int, current: Round, parameters: SumParameters) -> None:
    """Refuse to close a round in which too few phones answered.

    Raises:
        TooManyDropoutsError: Fewer than (1 − ρ)n phones answered.
    """
    least = parameters.least_survivors
    if answered < least:
        raise TooManyDropoutsError(
            f"{answered} of {parameters.phones} phones answered the round '{current}'; at least "
            f"{least} are needed"
        )


def check_address(phone: int, answer: Answer, sum_id: bytes) -> None:
    """Refuse an answer to another sum, to no sum, or in another's name.

    Raises:
        UnexpectedMessageError: The answer is not one of this phone to this sum.
    """
    if not isinstance(answer, messages.SumAnswer):
        raise UnexpectedMessageError(
            f"phone {phone}: {type(answer).__name__} does not belong to a secure sum"
        )
    if answer.sum_id != sum_id:
        raise UnexpectedMessageError(f"phone {phone}: an answer to another sum")
    if answer.sender != phone:
        raise UnexpectedMessageError(f"phone {phone}: an answer in the name of {answer.sender}")


def check_keys(phone: int, answer: messages.AdvertisedKeys) -> None:
    """Refuse an unusable public key.

    Raises:
        MalformedMessageError: The key is of low order.
    """
    if not points((answer.public_key,)).isdisjoint(LOW_ORDER):
        raise MalformedMessageError(f"phone {phone}: not a usable X25519 key")


def check_ciphertexts(phone: int, answer: messages.SharedKeys, neighbours: int) -> None:
    """Refuse an answer without exactly one ciphertext and one sealed mask per neighbour.

    Raises:
        MalformedMessageError: There are more or fewer.
    """
    if len(answer.ciphertexts) != neighbours:
        raise MalformedMessageError(
            f"phone {phone}: {len(answer.ciphertexts)} ciphertexts for {neighbours} neighbours"
        )
    size = 32 * neighbours + TAG_BYTES
    if len(answer.masks) != size:
        raise MalformedMessageError(
            f"phone {phone}: a list of masks of {len(answer.masks)} bytes instead of {size}"
        )


def check_shares(phone: int, answer: messages.Unmasked, survivors: int, dropped: int) -> None:
    """Refuse an answer without exactly one share per neighbour and one trace per dropped neighbour.

    Raises:
        MalformedMessageError: There are more or fewer.
    """
    sizes = REVEALED_SHARE_BYTES * (survivors + dropped), TRACE_BYTES * dropped
    for what, given, size in zip(
        ("shares", "traces"), (answer.shares, answer.traces), sizes, strict=True
    ):
        if len(given) != size:
            raise MalformedMessageError(
                f"phone {phone}: {len(given)} bytes of {what} instead of {size}"
            )
