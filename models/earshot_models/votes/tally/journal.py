"""The journal of a labelling: every outcome is on disk before it is shown.

Its first line identifies the labelling; each other line holds a block of queries with its outcomes,
or a published cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from earshot_models.votes.rules.rule import VoteKind
from earshot_models.votes.tally.interface import Answers, Purchase, Sight
from earshot_protocol import journal
from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY
from earshot_protocol.journal import Journal

FILE = "journal.jsonl"
"""Name of a journal in the output folder of a command."""

Identity = Mapping[str, str | int | float | bool | None]
"""Settings and digests of inputs that determine a labelling's queries and costs."""


class OtherLabellingError(LocalError):
    """The journal belongs to a labelling with other parameters or votes; no query was asked."""


class LabellingJournal:
    """The open journal of a labelling; `opened` makes one.

    Attributes:
        blocks: Answers to the queries so far, in order.
        published: Published data-dependent cost, drawn only once; None before.
    """

    def __init__(self, journal: Journal, identity: Identity) -> None:
        self._journal = journal
        self.blocks: list[Answers] = []
        self.published: Mapping[str, Any] | None = None
        if not journal.lines:
            self._write({"labelling": dict(identity)})
            return
        begun, *rows = journal.lines
        _compare(
            journal.path,
            begun.read(_begun, "no journal of a labelling; name another folder"),
            json.loads(json.dumps(dict(identity))),
        )
        for row in rows:
            row.read(
                self._take,
                "no block of a labelling; its budget cannot be counted any more, so begin anew in "
                "another folder",
            )

    @property
    def bought(self) -> tuple[Purchase, ...]:
        """All charged votes."""
        return tuple(each for block in self.blocks for each in block.bought)

    @property
    def asked(self) -> int:
        """Number of queries asked so far."""
        return sum(len(block.outcomes) for block in self.blocks)

    def append(self, answers: Answers) -> None:
        """Append the outcomes of a block of queries; they are on disk when this returns."""
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
        """Append a published cost; it is on disk when this returns."""
        self._write({"published": dict(figures)})
        self.published = figures

    def _take(self, line: bytes) -> None:
        row = json.loads(line)
        if "published" in row:
            self.published = dict(row["published"])
        else:
            self.blocks.append(_answers(row))

    def _write(self, row: Mapping[str, object]) -> None:
        self._journal.append(json.dumps(row, allow_nan=False))


@contextmanager
def opened(path: Path, identity: Identity) -> Iterator[LabellingJournal]:
    """Open the journal in a file, which is made if it does not exist.

    Args:
        path: Path of the file.
        identity: Identity of the labelling; an existing journal must have the same.

    Raises:
        OtherLabellingError: The journal was begun with other parameters or votes.
        InvalidInputError: Another run is writing it, or it holds something else.
    """
    with journal.opened(path, OWNER_ONLY) as lines:
        yield LabellingJournal(lines, identity)


def _begun(line: bytes) -> dict[str, Any]:
    return dict(json.loads(line)["labelling"])


def _compare(path: Path, begun: Identity, now: Identity) -> None:
    others = [name for name in {**begun, **now} if begun.get(name) != now.get(name)]
    if others:
        told = ", ".join(f"{each} {begun.get(each)!r}, not {now.get(each)!r}" for each in others)
        raise OtherLabellingError(
            f"{path}: was begun with {told}. The same command goes on where it stopped; for "
            "another labelling, whose costs add to this one's, name another folder"
        )


def _answers(row: dict[str, Any]) -> Answers:
    return Answers(
        np.array(row["outcomes"], dtype=np.int64),
        tuple(Purchase(VoteKind(kind), int(queries)) for kind, queries in row["bought"]),
        tuple(
            Sight(VoteKind(kind), tuple(queries), np.array(total, dtype=np.int64), int(voters))
            for kind, queries, total, voters in row["sights"]
        ),
    )
