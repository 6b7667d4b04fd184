"""One labelling from its settings to its files: what is asked for, checked before any vote is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_models.votes.rules.mechanisms import Mechanism
from earshot_models.votes.tally import dependent, journal, keyed
from earshot_models.votes.tally.budgets import Budget
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.dependent import Cost
from earshot_models.votes.tally.interface import Progress, Whole, silent
from earshot_models.votes.tally.labelling import label
from earshot_models.votes.tally.result import Outcome
from earshot_models.votes.tally.tallies import Counter, Sums, tally
from earshot_models.votes.tally.votes import Electorate, fingerprint
from earshot_protocol import keyed_randomness
from earshot_protocol.errors import WrongStateError
from earshot_protocol.randomness import RandomBytes

KEY = "teachers.key"
RESUMES = (journal.FILE, KEY)
"""What a labelling that was cut short leaves in its folder."""


@dataclass(frozen=True)
class Request:
    """What is to be labelled, and how.

    Attributes:
        mechanism: which.
        budget: for all queries together.
        counter: who counts.
        sums: how secure sums are run.
        most: queries to ask about; all by default.
        cost: one that looks at votes, to be published besides; by default none is.
    """

    mechanism: Mechanism
    budget: Budget
    counter: Counter = Counter.CENTRAL
    sums: Sums = field(default_factory=Sums)
    most: int | None = None
    cost: Cost | None = None

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """All of it under plain names, as the journal compares it."""
        given = asdict(self)
        del given["cost"]  # is no part of what is asked
        own = given.pop("mechanism")
        check = own.pop("check")
        own["winners"] = own.pop("most")  # other than the most queries
        del own["steps"]  # is told by the fingerprint of votes
        if own["grid"] is not None:
            own["grid"] = ", ".join(map(repr, own["grid"]))
        plain = {**own, **given.pop("budget"), **given.pop("sums"), **given}
        for name, value in (check or {}).items():
            plain[f"check {name}"] = value
        return plain


def run(
    request: Request,
    voters: Electorate,
    folder: Path,
    weights: Whole | None = None,
    scores: npt.NDArray[np.float64] | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Label, from where a run in this folder was cut short.

    Args:
        request: what is asked for.
        voters: the teachers.
        folder: of the journal; exists.
        weights: of the teachers; all 1 by default.
        scores: a student's, see `tallies.tally`.
        progress: told how far it is.

    Raises:
        OtherLabellingError: the folder's journal is of another labelling.
        EarshotError: see `tallies.tally`.
    """
    path, key_path = folder / journal.FILE, folder / KEY
    chosen = tally(
        request.counter,
        request.mechanism,
        voters,
        weights,
        scores,
        sums=request.sums,
        delta=request.budget.delta,
        random=_noise(request.counter, path, key_path),
    )
    if request.cost is not None:
        dependent.check_noise(request.cost, chosen, request.budget)
    identity = request.identity() | {
        "votes": fingerprint(voters.predictions),
        "weights": None if weights is None else fingerprint(weights),
        "scores": None if scores is None else fingerprint(scores),
    }
    with journal.opened(path, identity) as written:
        labelled = label(chosen, request.budget, written, request.most, progress)
        if request.cost is not None and written.published is None and isinstance(chosen, Central):
            written.publish(dependent.publish(request.cost, chosen, labelled, request.budget))
        published = written.published
        key_path.unlink(missing_ok=True)
    own = np.ones(voters.teachers, dtype=np.int64) if weights is None else weights
    return Outcome(chosen, request.budget, labelled, own, voters.dealt, published)


def _noise(counter: Counter, journal_path: Path, key_path: Path) -> Callable[..., RandomBytes]:
    """Teachers' noise by names; the key behind it outlives a process that is killed.

    It is there before the journal is, so where a journal has no key the labelling was ended, or the
    key was taken away: what a sum under way has shown cannot be repeated then.
    """
    if counter is Counter.CENTRAL:
        return _refused
    begun = journal_path.exists() and journal_path.stat().st_size > 0
    if begun and not key_path.exists():
        return _refused
    key = keyed.key_of(key_path)
    return lambda *names: keyed_randomness.keyed(key, *names)


def _refused(*names: object) -> RandomBytes:
    raise WrongStateError(
        f"{KEY} is gone, and with it the noise of a sum that may have been opened; begin anew in "
        "another folder"
    )
