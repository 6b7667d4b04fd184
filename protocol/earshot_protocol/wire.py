"""Parts of every message: its base, its fields, and its encoding as bytes.

A message is a typed struct with size limits: a `Task` goes down to a phone, an `Answer` up to the
server. On the wire it is a MessagePack map tagged by `type`.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from earshot_protocol.errors import InvalidInputError, MalformedMessageError
from earshot_protocol.remembering import remembered
from earshot_protocol.repeated_names import check_names

Identifier = Annotated[bytes, Meta(min_length=16, max_length=16)]
"""Identifier of a phase or of a sum: 16 bytes."""

PublicKey = Annotated[bytes, Meta(min_length=32, max_length=32)]
PhoneIndex = Annotated[int, Meta(ge=0, lt=2**32)]
"""Number of a phone within its phase."""

LARGEST_DIMENSIONS = 1024
LARGEST_ROWS = 65_536
"""Most rows of a matrix in a message."""
LARGEST_TASK_BYTES = 64 * 2**20
LARGEST_ANSWER_BYTES = 16 * 2**20


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all messages: immutable, and without unknown fields."""


class Task(Message, frozen=True, kw_only=True):
    """Message that tells a phone what to do or what to know."""


class Answer(Message, frozen=True, kw_only=True):
    """Message that a phone sends; it names its phase or sum, and its sender."""


class Ending(Task, frozen=True, kw_only=True):
    """Message that tells a phone that a phase is over."""

    told_to_all: ClassVar[bool] = False
    """Whether every phone receives it, not only those that took part."""

    phase: Identifier


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A float32 matrix on the wire: little-endian, row by row."""

    rows: Annotated[int, Meta(ge=0, le=LARGEST_ROWS)]
    columns: Annotated[int, Meta(ge=1, le=LARGEST_DIMENSIONS)]
    data: Annotated[bytes, Meta(max_length=32 * 2**20)]

    @classmethod
    def of(cls, array: npt.NDArray[np.floating]) -> Matrix:
        """Pack an array of shape (rows, columns) whose entries are finite as float32.

        Raises:
            InvalidInputError: The array is not a finite matrix, or has too many rows.
        """
        with np.errstate(over="ignore"):  # an entry that overflows is not finite
            packed = array.astype("<f4")
        if packed.ndim != 2 or not np.isfinite(packed).all():
            raise InvalidInputError(f"not a finite matrix of float32: shape {array.shape}")
        if len(packed) > LARGEST_ROWS:
            raise InvalidInputError(f"{len(packed)} rows; a message takes {LARGEST_ROWS}")
        return cls(packed.shape[0], packed.shape[1], packed.tobytes())

    def array(self) -> npt.NDArray[np.float32]:
        """Return the array of shape (rows, columns), float32.

        Raises:
            MalformedMessageError: The data do not fill the shape, or an entry is not finite.
        """
        if len(self.data) != 4 * self.rows * self.columns:
            raise MalformedMessageError(
                f"{len(self.data)} bytes do not hold a {self.rows} × {self.columns} matrix"
            )
        array = np.frombuffer(self.data, dtype="<f4").reshape(self.rows, self.columns)
        if not np.isfinite(array).all():
            raise MalformedMessageError("a matrix with entries that are not finite")
        return array.astype(np.float32)


_encoder = msgspec.msgpack.Encoder()
_canonical_encoder = msgspec.msgpack.Encoder(order="sorted")
_T = TypeVar("_T")


def encode(message: Message) -> bytes:
    """Encode a message as MessagePack."""
    return _encoder.encode(message)


def lengthened(size: int, part: int) -> int:
    """Return the size of an encoded message in which an empty byte string becomes this long.

    Args:
        size: Size of the message with the empty string.
        part: Bytes of the string, below 2^32.
    """
    return size + part + (0 if part < 2**8 else 1 if part < 2**16 else 3)


@remembered(4)  # a sum has three: its phase, its first task, and the opening in it
def canonical(message: msgspec.Struct) -> bytes:
    """Return the canonical form of a message, for hashing: equal messages have equal bytes.

    It is MessagePack with the names of every map in ascending order, the shortest headers and
    integers, and without fields that have their default, so that older readers, which do not know
    a new field, get the same bytes.
    """
    return _canonical_encoder.encode(_plain(message))


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        fields = {
            written: _plain(entry)
            for name, written, default in _fields(type(value))
            if (entry := getattr(value, name)) != default
        }
        return fields | ({config.tag_field: config.tag} if config.tag_field else {})
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Return name, name on the wire, and default of each field."""
    fields = msgspec.structs.fields(kind)
    return tuple((field.name, field.encode_name, field.default) for field in fields)


def decode(decoder: msgspec.msgpack.Decoder[_T], data: bytes, limit: int) -> _T:
    """Read a message.

    Raises:
        MalformedMessageError: The data exceed `limit` bytes or are not a message that the decoder
            reads, or a map repeats a name.
    """
    if len(data) > limit:
        raise MalformedMessageError(f"a message of {len(data)} bytes; at most {limit} are accepted")
    try:
        message = decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"not a message: {error}") from error
    check_names(data, message)
    return message
