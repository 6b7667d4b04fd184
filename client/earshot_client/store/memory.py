"""A store that lasts as long as its object: for simulations and tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_client.store.interface import (
    EMBEDDING_DIMENSIONS,
    DamagedStoreError,
    Recording,
    Store,
    as_float32,
    check_outside,
    checked_embedding,
    checked_name,
    no_recording,
)
from earshot_protocol.errors import InvalidInputError, WrongStateError
from earshot_protocol.overriding import override


class _Heard(NamedTuple):
    """Recordings that a `MemoryStore` holds."""

    embeddings: NDArray[np.float32]
    numbers: tuple[int, ...]
    choices: tuple[str | None, ...]
    days: tuple[date | None, ...]
    counted: frozenset[int]
    next_number: int


class _Content(NamedTuple):
    """Content of a `MemoryStore`; it is replaced, never changed, so a copy costs nothing."""

    heard: _Heard
    values: dict[str, bytes]
    ledger: tuple[bytes, ...]


_Saved = tuple[dict[str, bytes], tuple[bytes, ...], tuple[int, ...]]
"""Type of a saved store: the values, the ledger, and the numbers of counted recordings."""


class MemoryStore(Store):
    """A `Store` that lasts as long as its object: for simulations and tests.

    Args:
        embeddings: Finite floats (recordings, dimensions); a float32 array is neither copied nor
            written to, and may be shared by many stores.
        choices: Choice of the user for each recording, or None; by default there are none.
        days: Day on which each recording was made, or None; by default none is known.

    Raises:
        InvalidInputError: The embeddings are not a finite matrix, or choices or days do not fit
            them.
    """

    def __init__(
        self,
        embeddings: NDArray[np.floating] | None = None,
        choices: Iterable[str | None] | None = None,
        days: Iterable[date | None] | None = None,
    ) -> None:
        nothing = embeddings is None and choices is None and days is None
        heard = _NOTHING if nothing else _heard(embeddings, choices, days)
        self._open_content: _Content | None = _Content(heard, {}, ())
        self._depth = 0

    @property
    def _content(self) -> _Content:
        if self._open_content is None:
            raise WrongStateError("the store is closed")
        return self._open_content

    def _hear(self, **changes: Any) -> None:
        heard, values, ledger = self._content
        self._open_content = _Content(heard._replace(**changes), values, ledger)

    def _keep(self, values: dict[str, bytes], ledger: tuple[bytes, ...]) -> None:
        self._open_content = _Content(self._content.heard, values, ledger)

    @override
    def add(self, embedding: NDArray[np.floating], day: date | None = None) -> int:
        heard = self._content.heard
        row = checked_embedding(embedding, heard.embeddings.shape[1])
        self._hear(
            embeddings=_read_only(np.concatenate((heard.embeddings, row[None]))),
            numbers=(*heard.numbers, heard.next_number),
            choices=(*heard.choices, None),
            days=(*heard.days, day),
            next_number=heard.next_number + 1,
        )
        return heard.next_number

    @override
    def label(self, recording: int, choice: str) -> None:
        place = self._place(recording)
        choices = list(self._content.heard.choices)
        choices[place] = checked_name("choice", choice)
        self._hear(choices=tuple(choices))

    @override
    def recordings(self) -> tuple[NDArray[np.float32], tuple[str | None, ...]]:
        """Return all recordings, oldest first; the array is read-only."""
        heard = self._content.heard
        return heard.embeddings, heard.choices

    @override
    def count(self) -> int:
        return len(self._content.heard.numbers)

    @override
    def descriptions(self) -> tuple[Recording, ...]:
        _, numbers, choices, days, counted, _ = self._content.heard
        return tuple(
            Recording(number, day, choice, number in counted)
            for number, choice, day in zip(numbers, choices, days, strict=True)
        )

    @override
    def mark_counted(self, recordings: Iterable[int]) -> None:
        heard = self._content.heard
        self._hear(counted=heard.counted.union(recordings).intersection(heard.numbers))

    @override
    def forget(self, recording: int) -> None:
        embeddings, numbers, choices, days, _, _ = self._content.heard
        place = self._place(recording)
        self._hear(
            embeddings=_read_only(np.delete(embeddings, place, axis=0)),
            numbers=numbers[:place] + numbers[place + 1 :],
            choices=choices[:place] + choices[place + 1 :],
            days=days[:place] + days[place + 1 :],
        )

    @override
    def forget_all(self) -> None:
        self._hear(embeddings=self._content.heard.embeddings[:0], numbers=(), choices=(), days=())

    @override
    def get(self, name: str) -> bytes | None:
        return self._content.values.get(name)

    @override
    def put(self, name: str, value: bytes) -> None:
        _, values, ledger = self._content
        self._keep(values | {checked_name("name", name): bytes(value)}, ledger)

    @override
    def delete(self, name: str) -> None:
        _, values, ledger = self._content
        self._keep({other: values[other] for other in values if other != name}, ledger)

    @override
    def ledger(self) -> tuple[bytes, ...]:
        return self._content.ledger

    @override
    def append_ledger(self, entry: bytes) -> None:
        _, values, ledger = self._content
        self._keep(values, (*ledger, bytes(entry)))

    @override
    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        before = self._content
        self._depth += 1
        try:
            yield
        except BaseException:
            self._open_content = before
            raise
        finally:
            self._depth -= 1

    @override
    def close(self) -> None:
        check_outside(self._depth > 0)
        self._open_content = None

    def to_bytes(self) -> bytes:
        """Encode the named values, the ledger and the marks, without the recordings."""
        heard, values, ledger = self._content
        return msgspec.msgpack.encode((values, ledger, sorted(heard.counted)))

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        embeddings: NDArray[np.floating] | None = None,
        choices: Iterable[str | None] | None = None,
        days: Iterable[date | None] | None = None,
        first: int = 1,
    ) -> MemoryStore:
        """Return a store with what `to_bytes` saved, and given recordings.

        Args:
            data: What `to_bytes` returned.
            embeddings: Embeddings of the recordings, as when a store is made.
            choices: Their choices.
            days: Their days.
            first: Number of the oldest recording.

        Raises:
            DamagedStoreError: The data are not what `to_bytes` made.
            InvalidInputError: The recordings are invalid, as when a store is made.
        """
        try:
            values, ledger, counted = msgspec.msgpack.decode(data, type=_Saved)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise DamagedStoreError(f"not a saved store: {error}") from error
        store = cls(embeddings, choices, days)
        total = store.count()
        numbers = tuple(range(first, first + total))
        store._hear(numbers=numbers, next_number=first + total, counted=frozenset(counted))
        store._keep(values, ledger)
        return store

    def _place(self, recording: int) -> int:
        try:
            return self._content.heard.numbers.index(recording)
        except ValueError:
            raise no_recording(recording) from None


def _heard(
    embeddings: NDArray[np.floating] | None,
    choices: Iterable[str | None] | None = None,
    days: Iterable[date | None] | None = None,
) -> _Heard:
    embeddings = _NO_EMBEDDINGS if embeddings is None else _read_only(embeddings)
    total = len(embeddings)
    choices = (None,) * total if choices is None else tuple(choices)
    days = (None,) * total if days is None else tuple(days)
    for what, given in (("choices", choices), ("days", days)):
        if len(given) != total:
            raise InvalidInputError(f"{len(given)} {what} for {total} recordings")
    for choice in set(choices):
        if choice is not None:
            checked_name("choice", choice)
    numbers = tuple(range(1, total + 1))
    return _Heard(embeddings, numbers, choices, days, frozenset(), next_number=total + 1)


def _read_only(embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
    rows = as_float32(embeddings).view()
    if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
        raise InvalidInputError(
            f"embeddings of shape {rows.shape}: a finite matrix (recordings, dimensions) is needed"
        )
    rows.setflags(write=False)
    return rows


_NO_EMBEDDINGS = _read_only(np.empty((0, EMBEDDING_DIMENSIONS), dtype=np.float32))
_NOTHING = _heard(None)
