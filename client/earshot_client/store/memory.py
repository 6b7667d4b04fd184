"""A store that lasts as long as its object: for simulations and tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_client.store.interface import (
    EMBEDDING_DIMENSIONS,
    DamagedStoreError,
    as_float32,
    check_outside,
    checked_embedding,
    checked_name,
    no_recording,
)
from earshot_protocol.errors import InvalidInputError, WrongStateError


class _Content(NamedTuple):
    """All that a `MemoryStore` holds. It is replaced, never changed, so a copy costs nothing."""

    embeddings: NDArray[np.float32]
    numbers: tuple[int, ...]
    choices: tuple[str | None, ...]
    next_number: int
    values: dict[str, bytes]
    ledger: tuple[bytes, ...]


class _Saved(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    values: dict[str, bytes]
    ledger: tuple[bytes, ...]


class MemoryStore:
    """A `Store` that lasts as long as its object: for simulations and tests.

    Args:
        embeddings: finite floats (recordings, dimensions); a float32 array is neither copied nor
            written to, and may be shared by many stores.
        choices: per recording the user's choice or None; by default there are none.

    Raises:
        InvalidInputError: the embeddings are no finite matrix, or the choices do not fit them.
    """

    def __init__(
        self,
        embeddings: NDArray[np.floating] | None = None,
        choices: Iterable[str | None] | None = None,
    ) -> None:
        if embeddings is None:
            embeddings = np.empty((0, EMBEDDING_DIMENSIONS), dtype=np.float32)
        kept = _read_only(embeddings)
        total = len(kept)
        chosen = (None,) * total if choices is None else tuple(choices)
        if len(chosen) != total:
            raise InvalidInputError(f"{len(chosen)} choices for {total} recordings")
        for choice in set(chosen):
            if choice is not None:
                checked_name("choice", choice)
        self._held: _Content | None = _Content(
            kept, tuple(range(1, total + 1)), chosen, total + 1, {}, ()
        )
        self._depth = 0

    @property
    def _content(self) -> _Content:
        if self._held is None:
            raise WrongStateError("the store is closed")
        return self._held

    def add(self, embedding: NDArray[np.floating]) -> int:
        """See `Store.add`."""
        held = self._content
        row = checked_embedding(embedding, held.embeddings.shape[1])
        self._held = held._replace(
            embeddings=_read_only(np.concatenate((held.embeddings, row[None]))),
            numbers=(*held.numbers, held.next_number),
            choices=(*held.choices, None),
            next_number=held.next_number + 1,
        )
        return held.next_number

    def label(self, recording: int, choice: str) -> None:
        """See `Store.label`."""
        held = self._content
        place = self._place(recording)
        chosen = list(held.choices)
        chosen[place] = checked_name("choice", choice)
        self._held = held._replace(choices=tuple(chosen))

    def recordings(self) -> tuple[NDArray[np.float32], tuple[str | None, ...]]:
        """See `Store.recordings`; the array is read-only."""
        return self._content.embeddings, self._content.choices

    def forget(self, recording: int) -> None:
        """See `Store.forget`."""
        held = self._content
        place = self._place(recording)
        self._held = held._replace(
            embeddings=_read_only(np.delete(held.embeddings, place, axis=0)),
            numbers=held.numbers[:place] + held.numbers[place + 1 :],
            choices=held.choices[:place] + held.choices[place + 1 :],
        )

    def forget_all(self) -> None:
        """See `Store.forget_all`."""
        held = self._content
        self._held = held._replace(embeddings=held.embeddings[:0], numbers=(), choices=())

    def get(self, name: str) -> bytes | None:
        """See `Store.get`."""
        return self._content.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        """See `Store.put`."""
        held = self._content
        values = {**held.values, checked_name("name", name): bytes(value)}
        self._held = held._replace(values=values)

    def delete(self, name: str) -> None:
        """See `Store.delete`."""
        held = self._content
        values = {kept: value for kept, value in held.values.items() if kept != name}
        self._held = held._replace(values=values)

    def ledger(self) -> tuple[bytes, ...]:
        """See `Store.ledger`."""
        return self._content.ledger

    def append_ledger(self, entry: bytes) -> None:
        """See `Store.append_ledger`."""
        self._held = self._content._replace(ledger=(*self._content.ledger, bytes(entry)))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`."""
        before = self._content
        self._depth += 1
        try:
            yield
        except BaseException:
            self._held = before
            raise
        finally:
            self._depth -= 1

    def close(self) -> None:
        """See `Store.close`."""
        check_outside(self._depth > 0)
        self._held = None

    def to_bytes(self) -> bytes:
        """The named values and the ledger; the recordings stay with who made the store."""
        held = self._content
        return msgspec.msgpack.encode(_Saved(held.values, held.ledger))

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        embeddings: NDArray[np.floating] | None = None,
        choices: Iterable[str | None] | None = None,
    ) -> MemoryStore:
        """A store with the values and ledger that `to_bytes` saved, and the given recordings.

        Raises:
            DamagedStoreError: the data are not what `to_bytes` made.
            InvalidInputError: as when a store is made.
        """
        try:
            saved = msgspec.msgpack.decode(data, type=_Saved)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise DamagedStoreError(f"not a saved store: {error}") from error
        store = cls(embeddings, choices)
        store._held = store._content._replace(values=saved.values, ledger=saved.ledger)
        return store

    def _place(self, recording: int) -> int:
        try:
            return self._content.numbers.index(recording)
        except ValueError:
            raise no_recording(recording) from None


def _read_only(embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
    kept = as_float32(embeddings).view()
    if kept.ndim != 2 or not kept.shape[1] or not np.isfinite(kept).all():
        raise InvalidInputError(
            f"embeddings of shape {kept.shape}: a finite matrix (recordings, dimensions) is needed"
        )
    kept.setflags(write=False)
    return kept
