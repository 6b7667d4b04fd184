"""A labelling: queries in order, until the budget has no room for one more.

All settings are checked before any vote is cast. Every block of answers is in the journal before
the next one begins, so a killed run continues where it stopped.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.releases import VotesCost
from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.rule import Plain, VotingRule
from earshot_models.votes.tally import dependent, journal
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.interface import Tally
from earshot_models.votes.tally.journal import LabellingJournal
from earshot_models.votes.tally.result import End, LabelledQueries, LabellingResult
from earshot_models.votes.tally.tallies import Counter, SumSettings, tally
from earshot_protocol import checks, keyed_randomness
from earshot_protocol.errors import InvalidInputError, InvalidParametersError, WrongStateError
from earshot_protocol.files import OWNER_ONLY, replace_file
from earshot_protocol.keyed_randomness import KEY_BYTES
from earshot_protocol.plain_values import hold_plain
from earshot_protocol.progress import Progress, silent
from earshot_protocol.randomness import RandomBytes

KEY = "teachers.key"
RESUMES = (journal.FILE, KEY)
"""Names of the files from which an interrupted labelling continues."""


@dataclass(frozen=True)
class LabellingRequest:
    """Settings of a labelling.

    Attributes:
        rule: Rule by which answers come from votes.
        budget: Budget for all queries together.
        counter: Party that counts the votes.
        sums: Settings of secure sums.
        most: Most queries to ask; all by default.
        cost: Data-dependent cost to publish as well; none by default.

    Raises:
        InvalidParametersError: `most` is below 1.
    """

    rule: VotingRule
    budget: QueryBudget
    counter: Counter = Counter.CENTRAL
    sums: SumSettings = field(default_factory=SumSettings)
    most: int | None = None
    cost: VotesCost | None = None

    def __post_init__(self) -> None:
        hold_plain(self)
        if self.most is not None:
            checks.whole("most", self.most)

    def identity(self, classes: int) -> Plain:
        """Return all settings that determine the labelling, by name, for the journal."""
        budget, sums = asdict(self.budget), asdict(self.sums)
        asked: Plain = {"counter": self.counter, "most": self.most}
        return self.rule.identity(classes) | budget | sums | asked


def run(
    request: LabellingRequest,
    voters: Electorate,
    folder: str | os.PathLike[str],
    weights: npt.ArrayLike | None = None,
    scores: npt.NDArray[np.float64] | None = None,
    progress: Progress = silent,
) -> LabellingResult:
    """Label queries, continuing an interrupted run in the same folder.

    Args:
        request: Settings of the labelling.
        voters: Teachers and their answers.
        folder: Existing folder of the journal.
        weights: Weights of the teachers; all 1 by default.
        scores: Scores of a student (see `tallies.tally`).
        progress: Callback for how far the labelling is.

    Raises:
        OtherLabellingError: The folder's journal belongs to another labelling.
        EarshotError: `tallies.tally` refuses the request.
    """
    weights = None if weights is None else np.asarray(weights)
    path, key_path = Path(folder) / journal.FILE, Path(folder) / KEY
    chosen = tally(
        request.counter,
        request.rule,
        voters,
        weights,
        scores,
        sums=request.sums,
        delta=request.budget.delta,
        random=_noise(request.counter, path, key_path),
    )
    check_room(chosen, request.budget)
    if request.cost is not None:
        dependent.check_noise(request.cost, chosen, request.budget)
    identity = request.identity(voters.classes) | {
        "votes": fingerprint(voters.predictions),
        "weights": None if weights is None else fingerprint(weights),
        "scores": None if scores is None else fingerprint(scores),
    }
    with journal.opened(path, identity) as written:
        labelled = label(chosen, request.budget, written, request.most, progress)
        if request.cost is not None and written.published is None and isinstance(chosen, Central):
            written.publish(
                dependent.publish(request.cost, chosen, labelled.outcomes, request.budget)
            )
        published = written.published
        key_path.unlink(missing_ok=True)
    own = np.ones(voters.teachers, dtype=np.int64) if weights is None else weights
    return LabellingResult(chosen, request.budget, labelled, own, voters.dealt, published)


def check_room(tally: Tally, budget: QueryBudget) -> None:
    """Check that a budget has room for a query, before anything is written.

    Raises:
        InvalidParametersError: It has no room.
    """
    if not budget.room(tally, (), 1):
        cost = budget.spent(tally, tally.worst(1), budget.unit)
        raise InvalidParametersError(
            f"epsilon={budget.epsilon:g}: has no room for a query, which costs up to {cost:.3g}; "
            "must be more, or the noise larger"
        )


def label(
    tally: Tally,
    budget: QueryBudget,
    journal: LabellingJournal,
    most: int | None = None,
    progress: Progress = silent,
) -> LabelledQueries:
    """Label queries in order, block by block.

    A block is in the journal before the next one begins, so a killed run continues where it
    stopped, and pays for each query once.

    Args:
        tally: Tally.
        budget: Budget for all queries, those in the journal included.
        journal: Journal of this labelling.
        most: Most queries to ask; all by default.
        progress: Callback for the number of queries asked.
    """
    wanted = tally.queries if most is None else min(most, tally.queries)
    end = End.QUERIES if wanted == tally.queries else End.ENOUGH
    while journal.asked < wanted:
        progress("queries", journal.asked, wanted)
        left = min(wanted - journal.asked, tally.at_once)
        count = budget.room(tally, journal.bought, left)
        if count == 0:
            end = End.BUDGET
            break
        journal.append(tally.ask(range(journal.asked, journal.asked + count), progress))
    progress("queries", journal.asked, wanted)
    outcomes = [block.outcomes for block in journal.blocks]
    return LabelledQueries(
        np.concatenate(outcomes),
        journal.bought,
        tuple(sight for block in journal.blocks for sight in block.sights),
        end,
        wanted,
    )


def fingerprint(array: npt.NDArray[np.generic]) -> str:
    """Return the SHA-256 of an array's shape, type and content."""
    described = f"{array.dtype.str} {array.shape}".encode()
    return hashlib.sha256(described + np.ascontiguousarray(array).tobytes()).hexdigest()


def _noise(counter: Counter, journal_path: Path, key_path: Path) -> Callable[..., RandomBytes]:
    """Return teachers' noise by names, from a key that survives a killed process.

    The key is written before the journal. If a journal has no key, the labelling was finished or
    the key was removed, and an interrupted sum cannot be repeated with the same noise.
    """
    if counter is Counter.CENTRAL:
        return _refused
    begun = journal_path.exists() and journal_path.stat().st_size > 0
    if begun and not key_path.exists():
        return _refused
    key = key_of(key_path)
    return lambda *names: keyed_randomness.keyed(key, *names)


def _refused(*names: object) -> RandomBytes:
    raise WrongStateError(
        f"{KEY} is gone, and with it the noise of a sum that may have been opened; begin anew in "
        "another folder"
    )


def key_of(path: Path) -> bytes:
    """Return the key in a file; if there is none, a new one, on disk when this returns.

    A phone keeps its state on its own disk, so an interrupted sum continues with the same noise.
    Phones simulated in one process derive their noise from one random key instead. Anyone with the
    key can remove the noise: only its owner can read the file, which is removed after the run.


    Raises:
        InvalidInputError: The file holds something else.
    """
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = os.urandom(KEY_BYTES)
        replace_file(path, key, OWNER_ONLY)
    if len(key) != KEY_BYTES:
        raise InvalidInputError(f"{path}: holds {len(key)} bytes, not a key of {KEY_BYTES}")
    return key
