"""What the server asks of phones in each round: tasks for many of them at a time.

Each function makes the tasks of some phones, ascending, from a sum's state and crowd; those of the
third round from its mail, of whose blocks one holds all of these phones.
"""

from __future__ import annotations

from collections.abc import Iterator

from earshot_protocol.errors import WrongStateError
from earshot_protocol.secure_sum import messages
from earshot_protocol.secure_sum.mail import Mail
from earshot_protocol.secure_sum.neighbourhoods import Phones
from earshot_protocol.secure_sum.state import Crowd, State

Tasks = Iterator[messages.SumTask]


def opening(state: State, phone: int) -> messages.AdvertiseKeys:
    """The first task of a phone."""
    return messages.AdvertiseKeys(sum_id=state.sum_id, index=phone, parameters=state.parameters)


def advertise_keys(state: State, crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Round 0."""
    return (opening(state, phone) for phone in phones.tolist())


def share_keys(state: State, crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Round 1: the neighbours that advertised, and their keys."""
    for others in crowd.neighbourhoods.rows(phones, crowd.advertised):
        yield messages.ShareKeys(
            sum_id=state.sum_id,
            neighbours=tuple(others.tolist()),
            public_keys=crowd.keys[others].tobytes(),
        )


def mask_input(state: State, crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Round 2: the neighbours that shared their keys, and what they sealed.

    Raises:
        WrongStateError: the mail is gone.
    """
    if mail is None:
        raise WrongStateError("the ciphertexts of this sum were handed over with its tasks")
    rows = crowd.neighbourhoods.rows(phones, crowd.sealed)
    for others, ciphertexts in zip(rows, mail.to(phones, crowd.sealed), strict=True):
        yield messages.MaskInput(
            sum_id=state.sum_id, senders=tuple(others.tolist()), ciphertexts=ciphertexts
        )


def unmask(state: State, crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Round 3: of the neighbours that shared their keys, those that stayed and the others."""
    for others in crowd.neighbourhoods.rows(phones, crowd.sealed):
        stayed = crowd.masked[others]
        yield messages.Unmask(
            sum_id=state.sum_id,
            survivors=tuple(others[stayed].tolist()),
            dropped=tuple(others[~stayed].tolist()),
        )
