"""Refusal of maps with a repeated name: two readers might take different values of it.

Our decoder silently takes the last one, so repeated names are looked for afterwards.
"""

from __future__ import annotations

from typing import Any

import msgspec

from earshot_protocol.errors import MalformedMessageError

_encoder = msgspec.msgpack.Encoder()

_SIZES = {
    **{0xC4 + i: 1 << i for i in range(3)},  # bin
    **{0xD9 + i: 1 << i for i in range(3)},  # str
    **{0xDC + i: 2 << i for i in range(2)},  # array
    **{0xDE + i: 2 << i for i in range(2)},  # map
}
"""Bytes of the size behind a first byte that has one."""
_NUMBERS = {0xCA: 4, 0xCB: 8, **{first + i: 1 << i for first in (0xCC, 0xD0) for i in range(4)}}
"""Bytes of the number behind a first byte that has one."""


def check_names(data: bytes, message: Any) -> None:
    """Refuse a message with a map in which a name is repeated.

    Args:
        data: MessagePack without extension types, which a decoder has read.
        message: Message that it read. If encoding it gives the same data, as for most senders, no
            name is repeated; only other data are searched.

    Raises:
        MalformedMessageError: A map repeats a name.
    """
    if _encoder.encode(message) != data:
        _skip(data, 0)


def _skip(data: bytes, at: int) -> int:
    """Skip a value, check its maps, and return the position after it.

    The recursion is as deep as the decoder's, which refuses data with more levels than the type.
    """
    first = data[at]
    at += 1
    if first in _NUMBERS:
        return at + _NUMBERS[first]
    if width := _SIZES.get(first, 0):
        size = int.from_bytes(data[at : at + width])
        at += width
    elif first < 0xA0:
        size = first & 0x0F
    else:
        size = first & 0x1F
    if 0x80 <= first < 0x90 or first in (0xDE, 0xDF):
        return _skip_map(data, at, size)
    if 0x90 <= first < 0xA0 or first in (0xDC, 0xDD):
        for _ in range(size):
            at = _skip(data, at)
        return at
    return at + size if 0xA0 <= first < 0xC0 or width else at


def _skip_map(data: bytes, at: int, size: int) -> int:
    names = set()
    for _ in range(size):
        behind = _skip(data, at)
        # A name may be written with more than one header.
        names.add(msgspec.msgpack.decode(data[at:behind]))
        at = _skip(data, behind)
    if len(names) < size:
        raise MalformedMessageError("not a message: a map repeats a name")
    return at
