"""The server's tasks for phones in each round, made for many phones at a time.

Each function makes the tasks of some phones, ascending, from a sum's crowd; those of the third
round also from its mail, of which one block holds all of these phones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from earshot_protocol.errors import WrongStateError
from earshot_protocol.secure_sum import messages
from earshot_protocol.secure_sum.mail import Mail
from earshot_protocol.secure_sum.neighbourhoods import Members, Phones
from earshot_protocol.secure_sum.state import Crowd

Tasks = Iterator[messages.SumTask]
NumberedTasks = Iterator[tuple[int, messages.SumTask]]
Maker = Callable[[Crowd, Phones, Mail | None], Tasks]

_MADE_TOGETHER = 1024


def in_blocks(make: Maker, crowd: Crowd, asked: Members, mail: Mail | None) -> NumberedTasks:
    """Yield the tasks of all phones asked, with their numbers, and free the mail in them."""
    for block in mail.leaving() if mail else (range(len(asked)),):
        for first in range(block.start, block.stop, _MADE_TOGETHER):
            last = min(first + _MADE_TOGETHER, block.stop)
            phones = first + np.flatnonzero(asked[first:last])
            yield from zip(phones.tolist(), make(crowd, phones, mail), strict=True)


def advertise_keys(crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Yield the tasks of round 0."""
    for phone in phones.tolist():
        yield messages.AdvertiseKeys(sum_id=crowd.sum_id, index=phone, parameters=crowd.parameters)


def share_keys(crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Yield the tasks of round 1: the neighbours that advertised, and their keys."""
    for others in crowd.neighbourhoods.rows(phones, crowd.advertised):
        yield messages.ShareKeys(
            sum_id=crowd.sum_id,
            neighbours=tuple(others.tolist()),
            public_keys=crowd.keys[others].tobytes(),
        )


def mask_input(crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Yield the tasks of round 2: the neighbours that shared their keys, and what they sealed.

    Raises:
        WrongStateError: The mail has been handed over.
    """
    if mail is None:
        raise WrongStateError("the ciphertexts of this sum were handed over with its tasks")
    rows = crowd.neighbourhoods.rows(phones, crowd.sealed)
    for others, ciphertexts in zip(rows, mail.to(phones, crowd.sealed), strict=True):
        yield messages.MaskInput(
            sum_id=crowd.sum_id, senders=tuple(others.tolist()), ciphertexts=ciphertexts
        )


def unmask(crowd: Crowd, phones: Phones, mail: Mail | None) -> Tasks:
    """Yield the tasks of round 3: the neighbours that shared their keys, split by who stayed."""
    for others in crowd.neighbourhoods.rows(phones, crowd.sealed):
        stayed = crowd.masked[others]
        yield messages.Unmask(
            sum_id=crowd.sum_id,
            survivors=tuple(others[stayed].tolist()),
            dropped=tuple(others[~stayed].tolist()),
        )
