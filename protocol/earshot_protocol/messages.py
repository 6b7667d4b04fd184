"""Every message between phone and server: a `Task` down, an `Answer` up, nothing else.

Each message is a typed struct with size limits; an answer names its phase or sum and its sender,
its round is its type and its recipient is the server. `encode` and `decode_task`/`decode_answer`
are the wire format: MessagePack maps tagged by `type`.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from earshot_protocol.errors import InvalidInputError, MalformedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phase import (
    LARGEST_DIMENSIONS,
    LARGEST_GLOBAL_CENTROIDS,
    LARGEST_LABELS,
    LabelName,
    PhaseParameters,
    StatisticsParameters,
)
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.secure_sum.parameters import SumParameters

Identifier = Annotated[bytes, Meta(min_length=16, max_length=16)]
"""Of a phase or of a sum: 16 bytes."""

PublicKey = Annotated[bytes, Meta(min_length=32, max_length=32)]
PhoneIndex = Annotated[int, Meta(ge=0, lt=2**32)]
"""A phone's number within its phase."""

LARGEST_NEIGHBOURHOOD = 254
SEALED_SHARES_BYTES = 12 + 1 + 32 + 32 + 16
"""Nonce, share index, two shares, authentication tag."""
REVEALED_SHARE_BYTES = 1 + 32
"""Share index (0: this phone holds no share of that neighbour) and share."""

Neighbours = Annotated[tuple[PhoneIndex, ...], Meta(max_length=LARGEST_NEIGHBOURHOOD)]
KeyList = Annotated[bytes, Meta(max_length=32 * LARGEST_NEIGHBOURHOOD)]
Ciphertext = Annotated[bytes, Meta(min_length=SEALED_SHARES_BYTES, max_length=SEALED_SHARES_BYTES)]
Ciphertexts = Annotated[tuple[Ciphertext, ...], Meta(max_length=LARGEST_NEIGHBOURHOOD)]

PerCentroid = Meta(max_length=LARGEST_GLOBAL_CENTROIDS)
PerLabel = Meta(max_length=LARGEST_LABELS)
LARGEST_RELEASES = 4096

LARGEST_ROWS = 65_536
"""Of a matrix in a message."""
LARGEST_TASK_BYTES = 64 * 2**20
LARGEST_ANSWER_BYTES = 16 * 2**20


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A float32 matrix on the wire: little-endian, row by row."""

    rows: Annotated[int, Meta(ge=0, le=LARGEST_ROWS)]
    columns: Annotated[int, Meta(ge=1, le=LARGEST_DIMENSIONS)]
    data: Annotated[bytes, Meta(max_length=32 * 2**20)]

    @classmethod
    def of(cls, array: npt.NDArray[np.floating]) -> Matrix:
        """Pack an array of shape (rows, columns) whose entries are finite as float32.

        Raises:
            InvalidInputError: the array is no such matrix.
        """
        with np.errstate(over="ignore"):  # what overflows is not finite
            packed = array.astype("<f4")
        if packed.ndim != 2 or not np.isfinite(packed).all():
            raise InvalidInputError(f"not a finite matrix of float32: shape {array.shape}")
        if len(packed) > LARGEST_ROWS:
            raise InvalidInputError(f"{len(packed)} rows; a message takes {LARGEST_ROWS}")
        return cls(packed.shape[0], packed.shape[1], packed.tobytes())

    def array(self) -> npt.NDArray[np.float32]:
        """The array of shape (rows, columns), float32.

        Raises:
            MalformedMessageError: the data do not fill the shape, or are not finite.
        """
        if len(self.data) != 4 * self.rows * self.columns:
            raise MalformedMessageError(
                f"{len(self.data)} bytes do not hold a {self.rows} × {self.columns} matrix"
            )
        array = np.frombuffer(self.data, dtype="<f4").reshape(self.rows, self.columns)
        if not np.isfinite(array).all():
            raise MalformedMessageError("a matrix with entries that are not finite")
        return array.astype(np.float32)


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all messages share: they are immutable and name no unknown fields."""


# ------------------------------------------------------------------ server to phone: the sum


class AdvertiseKeys(_Message, frozen=True, kw_only=True, tag="advertise-keys"):
    """Round 0: make two key pairs for this sum and send their public halves."""

    sum_id: Identifier
    index: PhoneIndex
    parameters: SumParameters


class ShareKeys(_Message, frozen=True, kw_only=True, tag="share-keys"):
    """Round 1: here are your neighbours (ascending) and their public keys, 32 bytes each."""

    sum_id: Identifier
    neighbours: Neighbours
    cipher_keys: KeyList
    mask_keys: KeyList


class MaskInput(_Message, frozen=True, kw_only=True, tag="mask-input"):
    """Round 2: these neighbours shared their keys (A1); what they sealed for you is here."""

    sum_id: Identifier
    senders: Neighbours
    ciphertexts: Ciphertexts


class Unmask(_Message, frozen=True, kw_only=True, tag="unmask"):
    """Round 3: of your neighbours in A1, these sent their input (A2), these did not."""

    sum_id: Identifier
    survivors: Neighbours
    dropped: Neighbours


# ---------------------------------------------------------------- server to phone: the phase


class Cluster(_Message, frozen=True, kw_only=True, tag="cluster"):
    """Steps 3 to 5: cluster your points, select the top centroids, publish them."""

    phase: Identifier
    index: PhoneIndex
    parameters: PhaseParameters


class GlobalCentroids(_Message, frozen=True, kw_only=True, tag="global-centroids"):
    """Step 7: the candidates of the centroid vote; opens its secure sum."""

    phase: Identifier
    centroids: Matrix
    advertise: AdvertiseKeys


class TopCentroids(_Message, frozen=True, kw_only=True, tag="top-centroids"):
    """Step 11: the centroids that were kept, to be labelled; opens the second secure sum."""

    phase: Identifier
    centroids: Matrix
    advertise: AdvertiseKeys


class CountContacts(_Message, frozen=True, kw_only=True, tag="count-contacts"):
    """Thesis 7.2: count your contacts in each environment; opens the histogram's secure sum."""

    phase: Identifier
    parameters: StatisticsParameters
    advertise: AdvertiseKeys


class Wait(_Message, frozen=True, kw_only=True, tag="wait"):
    """Nothing to do now; ask again in so many seconds."""

    seconds: Annotated[float, Meta(ge=0, le=1e9)]


class Result(_Message, frozen=True, kw_only=True, tag="result"):
    """The labelled centroids and the privacy spent: the end of a phase.

    `labels` holds, per centroid, an index into the phase's label names; -1 where nobody voted.
    """

    phase: Identifier
    geometry: Geometry
    centroids: Matrix
    labels: Annotated[tuple[Annotated[int, Meta(ge=-1, lt=LARGEST_LABELS)], ...], PerCentroid]
    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    centroid_votes: Annotated[tuple[int, ...], PerCentroid]
    label_votes: Annotated[tuple[Annotated[tuple[int, ...], PerLabel], ...], PerCentroid]
    privacy: Annotated[tuple[Release, ...], Meta(max_length=LARGEST_RELEASES)]


class Statistics(_Message, frozen=True, kw_only=True, tag="statistics"):
    """The private histogram of contacts over environments, and the privacy spent."""

    phase: Identifier
    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    contacts: Annotated[tuple[int, ...], PerLabel]
    privacy: Annotated[tuple[Release, ...], Meta(max_length=LARGEST_RELEASES)]


class Failed(_Message, frozen=True, kw_only=True, tag="failed"):
    """The phase ended without a result."""

    phase: Identifier
    reason: Annotated[str, Meta(max_length=1024)]


# ------------------------------------------------------------------------- phone to server


class LocalCentroids(_Message, frozen=True, kw_only=True, tag="local-centroids"):
    """The k* noisy centroids of one phone."""

    phase: Identifier
    sender: PhoneIndex
    centroids: Matrix


class AdvertisedKeys(_Message, frozen=True, kw_only=True, tag="advertised-keys"):
    """Round 0: the public halves of the cipher pair and of the mask pair."""

    sum_id: Identifier
    sender: PhoneIndex
    cipher_key: PublicKey
    mask_key: PublicKey


class SharedKeys(_Message, frozen=True, kw_only=True, tag="shared-keys"):
    """Round 1: one ciphertext per neighbour, in their order, and a commitment to the seed."""

    sum_id: Identifier
    sender: PhoneIndex
    ciphertexts: Ciphertexts
    commitment: Annotated[bytes, Meta(min_length=32, max_length=32)]


class MaskedInput(_Message, frozen=True, kw_only=True, tag="masked-input"):
    """Round 2: the masked vector, `modulus_bits` bits an entry."""

    sum_id: Identifier
    sender: PhoneIndex
    vector: Annotated[bytes, Meta(max_length=LARGEST_ANSWER_BYTES)]


class Unmasked(_Message, frozen=True, kw_only=True, tag="unmasked"):
    """Round 3: one revealed share per survivor, then one per dropped neighbour, in their order."""

    sum_id: Identifier
    sender: PhoneIndex
    shares: Annotated[bytes, Meta(max_length=REVEALED_SHARE_BYTES * LARGEST_NEIGHBOURHOOD)]


SumTask = AdvertiseKeys | ShareKeys | MaskInput | Unmask
SumAnswer = AdvertisedKeys | SharedKeys | MaskedInput | Unmasked
Task = (
    Cluster
    | GlobalCentroids
    | TopCentroids
    | CountContacts
    | ShareKeys
    | MaskInput
    | Unmask
    | Wait
    | Result
    | Statistics
    | Failed
)
Answer = LocalCentroids | AdvertisedKeys | SharedKeys | MaskedInput | Unmasked

_encoder = msgspec.msgpack.Encoder()
_task_decoder: msgspec.msgpack.Decoder[Task] = msgspec.msgpack.Decoder(Task)
_answer_decoder: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)

_T = TypeVar("_T")


def encode(message: Task | Answer | SumTask) -> bytes:
    """The message as MessagePack."""
    return _encoder.encode(message)


def decode_task(data: bytes, limit: int = LARGEST_TASK_BYTES) -> Task:
    """Read a task.

    Raises:
        MalformedMessageError: more than `limit` bytes, or not a task.
    """
    return _decode(_task_decoder, data, limit)


def decode_answer(data: bytes, limit: int = LARGEST_ANSWER_BYTES) -> Answer:
    """Read an answer.

    Raises:
        MalformedMessageError: more than `limit` bytes, or not an answer.
    """
    return _decode(_answer_decoder, data, limit)


def _decode(decoder: msgspec.msgpack.Decoder[_T], data: bytes, limit: int) -> _T:
    if len(data) > limit:
        raise MalformedMessageError(f"a message of {len(data)} bytes; at most {limit} are taken")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"not a message: {error}") from error
