"""The labelling loop: queries in their order, until a budget has no room for one more."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.interface import Purchase, Sight, Tally
from earshot_models.votes.tally.journal import LabellingJournal
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.progress import Progress, silent
from earshot_protocol.voting.teacher_ballots import Whole


class End(enum.StrEnum):
    """Reason for the end of a labelling."""

    BUDGET = "the budget has no room for one more query"
    QUERIES = "all queries were asked about"
    ENOUGH = "as many queries were asked about as were wanted"


@dataclass(frozen=True)
class LabelledQueries:
    """Result of a labelling.

    Attributes:
        outcomes: Outcomes of the queries that were asked about, (asked,) or (asked, labels); `NONE`
            where there is no answer.
        bought: Votes that were paid for.
        sights: Sums that a server saw.
        end: Reason for the end.
        wanted: Queries that were to be asked about.
    """

    outcomes: Whole
    bought: tuple[Purchase, ...]
    sights: tuple[Sight, ...]
    end: End
    wanted: int


def check_room(tally: Tally, budget: QueryBudget) -> None:
    """Check that a budget has room for a query, before anything is written.

    Raises:
        InvalidParametersError: It has none.
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
    """Ask about queries in their order, block by block.

    A block is in the journal before the next one is asked about, so a run that was killed continues
    where it stopped: what it had asked about is read from there, and paid for once.

    Args:
        tally: Tally that is asked.
        budget: Budget for all queries, those in the journal included.
        journal: Journal of this labelling.
        most: Most queries to ask about; all by default.
        progress: Callback for the number of queries asked about.
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
