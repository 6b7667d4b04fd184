"""Interface of a phone's store, and its errors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, LocalError, WrongStateError
from earshot_protocol.privacy.ledger import DamagedLedgerError

EMBEDDING_DIMENSIONS = 128
LARGEST_NAME = 64
"""Most characters in a choice or in a value's name."""

ENCODER = "encoder"
"""Name of the stored value with the name of the recordings' encoder."""

HEARD = "heard"
"""Name of the stored value with the seconds that the phone has heard from its sources."""


class WrongKeyError(LocalError):
    """A store that was made with another key; nothing was changed."""


class DamagedStoreError(LocalError):
    """A damaged store, or a damaged row of it."""


class LostLedgerError(DamagedStoreError, DamagedLedgerError):
    """A store whose ledger, or whose file, is damaged.

    A phone without its ledger releases nothing.
    """

    def __init__(self, damage: str) -> None:
        super().__init__(
            f"{damage}. Without its ledger this phone releases nothing; `earshot ledger --data "
            "FOLDER --recover`, or `recover_ledger` in an app, keeps what can still be read and "
            "counts the rest as infinite cost"
        )


class NewerStoreError(LocalError):
    """A store that a newer version of this software wrote; nothing was changed."""


class StoreUnavailableError(LocalError):
    """A store that cannot be read or written now: in use, no permission, or the disk is full."""


@dataclass(frozen=True)
class Recording:
    """A recording, without its embedding.

    Attributes:
        number: Number of the recording, never used again.
        day: Day on which it was made, in UTC; None if it is unknown. Nothing finer is kept:
            exposure windows have days, and statistics need no more.
        choice: Choice of the user in a poll; None without a label.
        counted: Whether a histogram of contacts that left this phone has counted it.
    """

    number: int
    day: date | None
    choice: str | None
    counted: bool

    @property
    def labelled(self) -> bool:
        """Whether the recording has a label."""
        return self.choice is not None


class Store(Protocol):
    """Store of a phone's data, for one thread at a time.

    Every change is all or nothing and durable when its method returns. A method that reads damaged
    data raises DamagedStoreError; after `close` every method raises WrongStateError.
    """

    def add(self, embedding: NDArray[np.floating], day: date | None = None) -> int:
        """Keep the embedding of a recording.

        Args:
            embedding: Finite floats (dimensions,), kept as float32.
            day: Day on which it was made, in UTC.

        Returns:
            The recording's number, which is never used again.

        Raises:
            InvalidInputError: The embedding has another shape, or an entry that is not finite.
        """

    def label(self, recording: int, choice: str) -> None:
        """Keep the user's choice in a poll; a later choice replaces an earlier one.

        Raises:
            InvalidInputError: There is no such recording, or the choice is empty or longer than 64
                characters.
        """

    def recordings(self) -> tuple[NDArray[np.float32], tuple[str | None, ...]]:
        """Return all recordings, oldest first.

        Returns:
            float32 (recordings, dimensions), and the choice of each recording or None.
        """

    def count(self) -> int:
        """Count the recordings."""

    def descriptions(self) -> tuple[Recording, ...]:
        """Return all recordings without their embeddings, in the same order."""

    def mark_counted(self, recordings: Iterable[int]) -> None:
        """Mark recordings as counted by a histogram; forgotten ones are ignored."""

    def forget(self, recording: int) -> None:
        """Remove a recording and its choice for good.

        Raises:
            InvalidInputError: There is no such recording.
        """

    def forget_all(self) -> None:
        """Remove every recording and its choice for good; their numbers are not used again."""

    def get(self, name: str) -> bytes | None:
        """Return a named value; None if there is none."""

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name; it replaces the one before.

        Raises:
            InvalidInputError: The name is empty or longer than 64 characters.
        """

    def delete(self, name: str) -> None:
        """Remove a named value; do nothing if there is none."""

    def ledger(self) -> tuple[bytes, ...]:
        """Return all ledger entries, oldest first."""

    def append_ledger(self, entry: bytes) -> None:
        """Add an entry to the ledger, from which nothing is ever removed."""

    def transaction(self) -> AbstractContextManager[None]:
        """Make all changes of a `with` block one change: at its end, or not at all if it raises.

        Blocks may be nested: an inner block that raises undoes its own changes.
        """

    def close(self) -> None:
        """Close the store; closing twice is harmless.

        Raises:
            WrongStateError: The store is within a transaction.
        """


def checked_embedding(embedding: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
    """Return one finite row of `dimensions` numbers as float32; refuse anything else."""
    row = as_float32(embedding)
    if row.shape != (dimensions,) or not np.isfinite(row).all():
        raise InvalidInputError(
            f"an embedding of shape {row.shape}: {dimensions} finite numbers are needed"
        )
    return row


def as_float32(array: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return real numbers as float32; numbers that are too large become infinite."""
    given = np.asarray(array)
    if given.dtype == np.float32:
        return given
    if given.dtype.kind not in "iuf":
        raise InvalidInputError("embeddings are arrays of real numbers")
    with np.errstate(over="ignore"):
        return given.astype(np.float32)


def checked_name(what: str, name: str) -> str:
    """Return a short printable name; refuse anything else."""
    if not (0 < len(name) <= LARGEST_NAME and name.isprintable()):
        raise InvalidInputError(
            f"{what} {name!r}: 1 to {LARGEST_NAME} printable characters are accepted"
        )
    return name


def no_recording(recording: int) -> InvalidInputError:
    """Return the error for a number that no recording has."""
    return InvalidInputError(f"there is no recording {recording}")


def check_outside(in_transaction: bool) -> None:
    """Refuse to close a store within a transaction."""
    if in_transaction:
        raise WrongStateError("a store cannot be closed within a transaction")
