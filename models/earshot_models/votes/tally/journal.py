"""The journal of a labelling: every outcome is on the disk before anybody sees it.

A file of lines, which are only ever added: first what is labelled and how, then each block of
queries. A line that a killed run left half written was seen by nobody, and is cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from earshot_models.votes.rules.rule import Kind
from earshot_models.votes.tally.interface import Answers, Purchase, Sight
from earshot_protocol.errors import InvalidInputError, LocalError
from earshot_protocol.files import OWNER_ONLY

FILE = "journal.jsonl"
"""Name of a journal in the output folder of a command."""

Identity = Mapping[str, str | int | float | bool | None]
"""Settings and fingerprints of inputs, which decide what a labelling asks and pays."""


class OtherLabellingError(LocalError):
    """The journal is of a labelling with other parameters or votes; nothing was asked."""


class Journal:
    """An open journal; `opened` makes one.

    Attributes:
        blocks: Answers to the queries so far, in order.
        published: Cost that looks at votes, once it was drawn: it is never drawn again.
    """

    def __init__(self, path: Path, file: int, identity: Identity) -> None:
        self._file = file
        self.blocks: list[Answers] = []
        self.published: Mapping[str, Any] | None = None
        with open(path, "rb") as reading:
            content = reading.read()
        whole = content.rfind(b"\n") + 1
        os.ftruncate(file, whole)
        os.lseek(file, whole, os.SEEK_SET)
        lines = content[:whole].splitlines()
        if not lines:
            self._write({"labelling": dict(identity)})
            return
        self._compare(path, lines[0], identity)
        for number, line in enumerate(lines[1:], start=2):
            try:
                row = json.loads(line)
                if "published" in row:
                    self.published = dict(row["published"])
                else:
                    self.blocks.append(_answers(row))
            except (ValueError, KeyError, TypeError):
                raise InvalidInputError(
                    f"{path}, line {number}: no block of a labelling; its budget cannot be counted "
                    "any more, so begin anew in another folder"
                ) from None

    @property
    def bought(self) -> tuple[Purchase, ...]:
        """All votes that were paid for."""
        return tuple(each for block in self.blocks for each in block.bought)

    @property
    def asked(self) -> int:
        """Number of queries that were asked about, from the first on."""
        return sum(len(block.outcomes) for block in self.blocks)

    def append(self, answers: Answers) -> None:
        """Keep what became of a block of queries; it is on the disk when this returns."""
        self._write(
            {
                "outcomes": answers.outcomes.tolist(),
                "bought": [[each.kind, each.queries] for each in answers.bought],
                "sights": [
                    [each.kind, each.queries, each.total.tolist(), each.voters]
                    for each in answers.sights
                ],
            }
        )
        self.blocks.append(answers)

    def publish(self, figures: Mapping[str, Any]) -> None:
        """Keep a cost that looks at votes; it is on the disk when this returns."""
        self._write({"published": dict(figures)})
        self.published = figures

    def _write(self, row: Mapping[str, object]) -> None:
        left = memoryview(json.dumps(row, allow_nan=False).encode() + b"\n")
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)

    def _compare(self, path: Path, line: bytes, identity: Identity) -> None:
        try:
            begun = dict(json.loads(line)["labelling"])
        except (ValueError, KeyError, TypeError):
            raise InvalidInputError(
                f"{path}, line 1: no journal of a labelling; name another folder"
            ) from None
        now = json.loads(json.dumps(dict(identity)))
        others = [name for name in {**begun, **now} if begun.get(name) != now.get(name)]
        if others:
            told = ", ".join(
                f"{each} {begun.get(each)!r}, not {now.get(each)!r}" for each in others
            )
            raise OtherLabellingError(
                f"{path}: was begun with {told}. The same command goes on where it stopped; for "
                "another labelling, whose costs add to this one's, name another folder"
            )


@contextmanager
def opened(path: Path, identity: Identity) -> Iterator[Journal]:
    """Open the journal in a file, which is made if it is not there.

    Args:
        path: Path of the file.
        identity: Identity of the labelling; a journal that was begun goes on under the same only.

    Raises:
        OtherLabellingError: The journal was begun with other parameters or votes.
        InvalidInputError: Another run is writing it, or it holds something else.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInputError(
                f"{path}: another run is writing it; wait for it, or name another folder"
            ) from None
        _keep_entry(path.parent)
        yield Journal(path, file, identity)
    finally:
        with contextlib.suppress(OSError):
            os.close(file)


def _keep_entry(folder: Path) -> None:
    """Make sure that a power cut does not lose the name of a file whose content is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _answers(row: dict[str, Any]) -> Answers:
    return Answers(
        np.array(row["outcomes"], dtype=np.int64),
        tuple(Purchase(Kind(kind), int(queries)) for kind, queries in row["bought"]),
        tuple(
            Sight(Kind(kind), tuple(queries), np.array(total, dtype=np.int64), int(voters))
            for kind, queries, total, voters in row["sights"]
        ),
    )
