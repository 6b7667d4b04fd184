"""Answers of simulated phones to a step, on the disk until the server has read them."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from earshot_protocol.overriding import override
from earshot_simulations.engine.states import no_room


class AnswersOnDisk(MutableMapping[int, bytes]):
    """Answers by the phone's number, in a file without a name; memory holds where each lies.

    The proved reports of 100,000 phones take gigabytes, and a server reads them one by one.
    """

    def __init__(self) -> None:
        self._file, name = tempfile.mkstemp(prefix="earshot-answers-")
        Path(name).unlink()  # so that nothing is left, whatever ends this process
        weakref.finalize(self, os.close, self._file)
        self._folder = Path(name).parent
        self._places: dict[int, tuple[int, int]] = {}
        self._end = 0

    @override
    def __getitem__(self, phone: int) -> bytes:
        at, size = self._places[phone]
        return os.pread(self._file, size, at)

    @override
    def __setitem__(self, phone: int, answer: bytes) -> None:
        """Add an answer.

        Raises:
            NoRoomError: The disk is full.
        """
        with no_room(self._folder, "answers of simulated phones", self._end + len(answer)):
            written = 0
            while written < len(answer):
                written += os.pwrite(self._file, answer[written:], self._end + written)
        self._places[phone] = self._end, len(answer)
        self._end += len(answer)

    @override
    def __delitem__(self, phone: int) -> None:
        del self._places[phone]

    @override
    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    @override
    def __len__(self) -> int:
        return len(self._places)
