"""Hearing that survives restarts: each second of sound is heard once.

With another encoder it hears again what its sources still have.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_client.features import UnusableRecordingError
from earshot_client.phone import Phone
from earshot_client.store.interface import HEARD, Store
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.sound_reading import UnreadableFileError

_DIGEST_BYTES = 8


@dataclass(frozen=True)
class Second:
    """One second of sound.

    Attributes:
        name: Name of this second, unique among all that a phone will ever hear.
        label: Label that its source gives it.
    """

    name: str
    label: str | None = None


class Source(Protocol):
    """A source of sound."""

    def seconds(self) -> Sequence[Second]:
        """Return the seconds that there are to hear."""

    def read(self, second: Second) -> tuple[NDArray[np.float32], int]:
        """Return the sound of one second: float32 (samples, channels), and samples per second.

        Raises:
            UnreadableFileError: This second cannot be read; others may.
        """


@dataclass
class Hearing:
    """Hearing of a phone: records and labels seconds that it has not heard before.

    Attributes:
        phone: Phone that hears.
        store: Store of the phone, which remembers what was heard.
        most: Most recordings that the phone holds; None for no limit.
        labelled: Fraction of the recordings that get a label.
        seed: Seed for the choice of the seconds that are heard and labelled, and for nothing else;
            by default they differ from start to start.
        ask: Function that labels a second; by default its source's label is used.
        unreadable: Errors of seconds that could not be read, each once.

    Raises:
        InvalidInputError: `labelled` is not from 0 to 1, or `most` is negative.
    """

    phone: Phone
    store: Store
    _: KW_ONLY
    most: int | None = None
    labelled: float = 1.0
    seed: int | None = None
    ask: Callable[[Second], str | None] | None = None
    unreadable: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.labelled <= 1:
            raise InvalidInputError(f"labelled={self.labelled}: must be from 0 to 1")
        if self.most is not None and self.most < 0:
            raise InvalidInputError(f"{self.most} recordings: must be at least 0")
        self._draw = os.urandom(16) if self.seed is None else str(self.seed).encode()

    def hear(self, source: Source) -> Iterator[Second]:
        """Hear the source and yield each second that was kept, once it is durable.

        A second that cannot be used (silent, clipped) is left out for good, and another is drawn;
        one that cannot be read is left out until the next time.

        Raises:
            InvalidInputError: The source cannot be read.
        """
        digests = self.store.get(HEARD) or b""
        known = {digests[at : at + _DIGEST_BYTES] for at in range(0, len(digests), _DIGEST_BYTES)}
        room = math.inf if self.most is None else self.most - len(self.store.recordings()[1])
        for second in sorted(source.seconds(), key=lambda each: self._number("heard", each)):
            if room <= 0:
                return
            digest = hashlib.sha256(second.name.encode()).digest()[:_DIGEST_BYTES]
            if digest in known:
                continue
            try:
                samples, rate = source.read(second)
            except UnreadableFileError as error:
                if str(error) not in self.unreadable:
                    self.unreadable.append(str(error))
                continue
            digests += digest
            if self._keep(second, samples, rate, digests):
                room -= 1
                yield second

    def _keep(
        self, second: Second, samples: NDArray[np.float32], rate: int, digests: bytes
    ) -> bool:
        """Store the recording, its label and that it was heard, in one transaction."""
        with self.store.transaction():
            self.store.put(HEARD, digests)
            try:
                recording = self.phone.hear(samples, rate)
            except UnusableRecordingError:
                return False
            if self._number("labelled", second) < self.labelled * 2**64:
                label = second.label if self.ask is None else self.ask(second)
                if label is not None:
                    self.phone.label(recording, label)
        return True

    def _number(self, what: str, second: Second) -> int:
        """Derive a random number of 64 bits for this second, independent of the other seconds."""
        drawn = hashlib.sha256(self._draw + f"/{what}/{second.name}".encode()).digest()
        return int.from_bytes(drawn[:8])
