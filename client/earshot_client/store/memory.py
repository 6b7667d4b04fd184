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
    days: tuple[date | None, ...]
    counted: frozenset[int]
    next_number: int
    values: dict[str, bytes]
    ledger: tuple[bytes, ...]


_Saved = tuple[dict[str, bytes], tuple[bytes, ...]]
"""The values and the ledger."""


class MemoryStore:
    """A `Store` that lasts as long as its object: for simulations and tests.

    Args:
        embeddings: finite floats (recordings, dimensions); a float32 array is neither copied nor
            written to, and may be shared by many stores.
        choices: per recording the user's choice or None; by default there are none.
        days: per recording the day on which it was made or None; by default none is known.

    Raises:
        InvalidInputError: the embeddings are no finite matrix, or choices or days do not fit them.
    """

    def __init__(
        self,
        embeddings: NDArray[np.floating] | None = None,
        choices: Iterable[str | None] | None = None,
        days: Iterable[date | None] | None = None,
    ) -> None:
        if embeddings is None:
            embeddings = np.empty((0, EMBEDDING_DIMENSIONS), dtype=np.float32)
        embeddings = _read_only(embeddings)
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
        self._open_content: _Content | None = _Content(
            embeddings,
            numbers,
            choices,
            days,
            counted=frozenset(),
            next_number=total + 1,
            values={},
            ledger=(),
        )
        self._depth = 0

    @property
    def _content(self) -> _Content:
        if self._open_content is None:
            raise WrongStateError("the store is closed")
        return self._open_content

    def _change(self, **changes: Any) -> None:
        self._open_content = self._content._replace(**changes)

    def add(self, embedding: NDArray[np.floating], day: date | None = None) -> int:
        """See `Store.add`."""
        content = self._content
        row = checked_embedding(embedding, content.embeddings.shape[1])
        self._change(
            embeddings=_read_only(np.concatenate((content.embeddings, row[None]))),
            numbers=(*content.numbers, content.next_number),
            choices=(*content.choices, None),
            days=(*content.days, day),
            next_number=content.next_number + 1,
        )
        return content.next_number

    def label(self, recording: int, choice: str) -> None:
        """See `Store.label`."""
        place = self._place(recording)
        choices = list(self._content.choices)
        choices[place] = checked_name("choice", choice)
        self._change(choices=tuple(choices))

    def recordings(self) -> tuple[NDArray[np.float32], tuple[str | None, ...]]:
        """See `Store.recordings`; the array is read-only."""
        return self._content.embeddings, self._content.choices

    def count(self) -> int:
        """See `Store.count`."""
        return len(self._content.numbers)

    def descriptions(self) -> tuple[Recording, ...]:
        """See `Store.descriptions`."""
        _, numbers, choices, days, counted, *_ = self._content
        return tuple(
            Recording(number, day, choice, number in counted)
            for number, choice, day in zip(numbers, choices, days, strict=True)
        )

    def mark_counted(self, recordings: Iterable[int]) -> None:
        """See `Store.mark_counted`."""
        content = self._content
        self._change(counted=content.counted.union(recordings).intersection(content.numbers))

    def forget(self, recording: int) -> None:
        """See `Store.forget`."""
        embeddings, numbers, choices, days, *_ = self._content
        place = self._place(recording)
        self._change(
            embeddings=_read_only(np.delete(embeddings, place, axis=0)),
            numbers=numbers[:place] + numbers[place + 1 :],
            choices=choices[:place] + choices[place + 1 :],
            days=days[:place] + days[place + 1 :],
        )

    def forget_all(self) -> None:
        """See `Store.forget_all`."""
        self._change(embeddings=self._content.embeddings[:0], numbers=(), choices=(), days=())

    def get(self, name: str) -> bytes | None:
        """See `Store.get`."""
        return self._content.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        """See `Store.put`."""
        self._change(values=self._content.values | {checked_name("name", name): bytes(value)})

    def delete(self, name: str) -> None:
        """See `Store.delete`."""
        values = self._content.values
        self._change(values={other: values[other] for other in values if other != name})

    def ledger(self) -> tuple[bytes, ...]:
        """See `Store.ledger`."""
        return self._content.ledger

    def append_ledger(self, entry: bytes) -> None:
        """See `Store.append_ledger`."""
        self._change(ledger=(*self._content.ledger, bytes(entry)))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`."""
        before = self._content
        self._depth += 1
        try:
            yield
        except BaseException:
            self._open_content = before
            raise
        finally:
            self._depth -= 1

    def close(self) -> None:
        """See `Store.close`."""
        check_outside(self._depth > 0)
        self._open_content = None

    def to_bytes(self) -> bytes:
        """The named values and the ledger; the recordings stay with who made the store."""
        return msgspec.msgpack.encode((self._content.values, self._content.ledger))

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
            values, ledger = msgspec.msgpack.decode(data, type=_Saved)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise DamagedStoreError(f"not a saved store: {error}") from error
        store = cls(embeddings, choices)
        store._change(values=values, ledger=ledger)
        return store

    def _place(self, recording: int) -> int:
        try:
            return self._content.numbers.index(recording)
        except ValueError:
            raise no_recording(recording) from None


def _read_only(embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
    rows = as_float32(embeddings).view()
    if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
        raise InvalidInputError(
            f"embeddings of shape {rows.shape}: a finite matrix (recordings, dimensions) is needed"
        )
    rows.setflags(write=False)
    return rows
