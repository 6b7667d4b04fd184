"""Requests of a leader to its helper over HTTP: paths, and a long list in parts.

All are POSTs of MessagePack, signed as a phone's are (`earshot_protocol.signatures`), by the
leader's key, whose name is its 64 hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from earshot_protocol.two_operators.messages import LARGEST_LIST, AddUp
from earshot_protocol.wire import Identifier, Message

OFFER_PATH, PART_PATH, TOTAL_PATH = "/v1/offer", "/v1/list-part", "/v1/total"

LARGEST_PART = 3 * 2**20
"""Most bytes of a part, and of a list that travels whole."""
_PARTS = -(-LARGEST_LIST // LARGEST_PART)


class ListPart(Message, frozen=True, kw_only=True, tag="list-part"):
    """Part of a list of reports, which the leader's last request names by its digest.

    Attributes:
        sum_id: Identifier of the sum.
        number: Number of the part, from 0.
        entries: Bytes of the list; all parts but the last are full.
    """

    sum_id: Identifier
    number: Annotated[int, Meta(ge=0, lt=_PARTS)]
    entries: Annotated[bytes, Meta(min_length=1, max_length=LARGEST_PART)]


def parts_of(task: AddUp) -> Iterator[ListPart]:
    """Yield the parts of a list; none of a short one, which is sent whole."""
    if len(task.reports) <= LARGEST_PART:
        return
    for number, at in enumerate(range(0, len(task.reports), LARGEST_PART)):
        entries = task.reports[at : at + LARGEST_PART]
        yield ListPart(sum_id=task.sum_id, number=number, entries=entries)
