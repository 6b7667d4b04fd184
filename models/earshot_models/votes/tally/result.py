"""Output files of a labelling: answers, figures, and a report on their reliability.

Figures are of two kinds. The *promised* cost is known before any vote is cast. The *realised* cost
depends on the votes, through the answers given and where the labelling ended: it is no guarantee,
and may be shown only to those who have the answers.
"""

from __future__ import annotations

import csv
import enum
import io
import json
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earshot_models.votes.costs import muschiol
from earshot_models.votes.rules.rule import UNITS, TeacherUnit, VoteKind
from earshot_models.votes.rules.table import RULES
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.federated import Federated
from earshot_models.votes.tally.interface import Purchase, Sight, Tally, times
from earshot_protocol.arrays import Whole
from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE

ANSWERS, FIGURES, REPORT = "answers.csv", "result.json", "report.md"
FILES = (ANSWERS, FIGURES, REPORT)

CONFIDENCE = 0.95

UNIT_WORDS = {
    TeacherUnit.LEFT_OUT: "a teacher is left out (its noise share is added all the same)",
    TeacherUnit.REPLACED: "a teacher, or one record of it, is replaced by another",
}


class End(enum.StrEnum):
    """Reason for the end of a labelling."""

    BUDGET = "the budget has no room for one more query"
    QUERIES = "all queries were asked about"
    ENOUGH = "as many queries were asked about as were wanted"


@dataclass(frozen=True)
class LabelledQueries:
    """Result of a labelling.

    Attributes:
        outcomes: Outcomes of the queries that were asked, (asked,) or (asked, labels); `NONE` where
            there is no answer.
        bought: Votes that were paid for.
        sights: Sums that a server saw.
        end: Reason for the end.
        wanted: Number of queries requested.
    """

    outcomes: Whole
    bought: tuple[Purchase, ...]
    sights: tuple[Sight, ...]
    end: End
    wanted: int


@dataclass(frozen=True)
class LabellingResult:
    """A labelling with its inputs.

    Attributes:
        tally: Tally.
        budget: Budget of the labelling.
        labelled: Outcomes and purchases.
        weights: Weights of the teachers, int64 (teachers,).
        dealt: Whether only counts of votes were given.
        dependent: Figures of a published data-dependent cost, if requested.
    """

    tally: Tally
    budget: QueryBudget
    labelled: LabelledQueries
    weights: Whole
    dealt: bool
    dependent: Mapping[str, Any] | None = None

    @property
    def answered(self) -> int:
        """Number of queries with an answer, for at least one label."""
        given = self.labelled.outcomes != NONE
        return int((given if given.ndim == 1 else given.any(axis=1)).sum())

    def figures(self) -> dict[str, Any]:
        """Return all figures, by the names of `result.json`."""
        own, labelled = self.tally.rule, self.labelled
        check = own.check
        voters = int(self.weights.sum())
        return {
            "tally": "federated" if isinstance(self.tally, Federated) else "central",
            "mechanism": own.name,
            "classes": self.tally.poll.classes,
            "teachers": len(self.weights),
            "deviation": own.sigma,
            "check_threshold": check and check.threshold,
            "check_deviation": check and check.deviation,
            "queries": self.tally.queries,
            "promised": {
                "epsilon": self.budget.epsilon,
                "delta": self.budget.delta,
                "unit": TeacherUnit.of(self.budget.unit).value,
                "records": self.budget.records,
                "queries": labelled.wanted,
                "worst": self._each(
                    lambda unit, weight: self.budget.promised(
                        self.tally, labelled.wanted, unit, weight
                    )
                ),
            },
            "realised": {
                "private": True,
                "asked": len(labelled.outcomes),
                "answered": self.answered,
                "end": labelled.end.value,
                "costs": self._each(
                    lambda unit, weight: self.budget.spent(
                        self.tally, labelled.bought, unit, weight
                    )
                ),
                "as_printed": own.claimed_epsilon(times(labelled.bought), self.budget.delta),
            },
            "data_dependent": self.dependent,
            "sees": sees(self.tally),
            "lead_in_doubt": lead_in_doubt(self.tally),
            "answers_in_doubt": self._in_doubt(),
            "passes_by_chance": own.passes_by_chance(self.tally.poll, voters),
            "votes_dealt": self.dealt,
            "effort": self._effort(),
        }

    def _each(self, epsilon: Callable[[Unit, int], float]) -> list[dict[str, Any]]:
        """Return ε in both units, for every weight that teachers have."""
        return [
            {
                "weight": weight,
                "teachers": int((self.weights == weight).sum()),
                "epsilon": {TeacherUnit.of(unit).value: epsilon(unit, weight) for unit in UNITS},
            }
            for weight in sorted(set(self.weights.tolist()))
        ]

    def _in_doubt(self) -> int | None:
        """Return the number of answers whose noisy lead is within the noise at 95 % confidence.

        None with a curator, who does not publish margins, and for rules of several labels.
        """
        if not isinstance(self.tally, Federated) or self.tally.rule.several:
            return None
        lead, doubtful = lead_in_doubt(self.tally), 0
        for sight in self.labelled.sights:
            if sight.kind is VoteKind.VOTES:
                given = self.labelled.outcomes[list(sight.queries)] != NONE
                two = np.sort(sight.total, axis=1)[:, -2:]
                doubtful += int(((two[:, 1] - two[:, 0] < lead) & given).sum())
        return doubtful

    def _effort(self) -> dict[str, Any] | None:
        """Return the effort of sums in this run; None for a curator, or if the journal had all."""
        if not isinstance(self.tally, Federated) or not self.tally.sums.effort.sums:
            return None
        effort = self.tally.sums.effort
        each = effort.answering
        return {
            "sums": effort.sums,
            "seconds": effort.seconds,
            "teacher_cpu_ms_per_sum": 1000 * effort.teacher_seconds / each,
            "server_cpu_ms_per_sum": 1000 * effort.server_seconds / effort.sums,
            "bytes_up_per_teacher_and_sum": effort.bytes_up / each,
            "bytes_down_per_teacher_and_sum": effort.bytes_down / each,
        }


def write(outcome: LabellingResult, folder: str | os.PathLike[str]) -> list[Path]:
    """Write answers, figures and report, each file atomically."""
    folder, figures = Path(folder), outcome.figures()
    contents = {
        ANSWERS: table(outcome.labelled.outcomes),
        FIGURES: json.dumps(figures, indent=2, allow_nan=False) + "\n",
        REPORT: report(figures),
    }
    for name, content in contents.items():
        replace_file(folder / name, content)
    return [folder / name for name in contents]


def table(outcomes: Whole) -> str:
    """Return answers as CSV: an empty cell where there is none."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    several = outcomes.ndim == 2
    names = [f"label_{each}" for each in range(outcomes.shape[1])] if several else ["answer"]
    writer.writerow(["query", *names])
    for query, row in enumerate(outcomes.reshape(len(outcomes), -1).tolist()):
        writer.writerow([query, *("" if each == NONE else each for each in row)])
    return file.getvalue()


def cost_rows(figures: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the three costs of the budget's unit, for the heaviest teachers, by `_COLUMNS`."""
    promised, realised = figures["promised"], figures["realised"]
    worst, spent = (
        max(each["epsilon"][promised["unit"]] for each in costs)
        for costs in (promised["worst"], realised["costs"])
    )
    heaviest = max(each["weight"] for each in realised["costs"])
    published, rule = figures["data_dependent"], RULES[figures["mechanism"]]
    if published is not None:
        how = "exactly" if published["method"] == "exact" else "by Theorem 6"
        own = (
            f"{published['epsilon']:.4g}",
            "yes, once",
            f"from the votes {how}, with noise; may be too small by chance",
        )
    elif rule.publishes and figures["tally"] == "central" and heaviest == 1:
        own = "–", "–", "from the votes, with noise; --votes-cost draws one"
    else:
        weighed = "" if heaviest == 1 else ", weights"
        own = "–", "–", f"not known for {rule.name}, {figures['tally']} tally{weighed}"
    rows = [
        (
            "promised",
            f"{promised['epsilon']:.4g}",
            "yes",
            f"the budget: holds for any votes; at worst {worst:.4g} is spent",
        ),
        (
            "realised",
            f"{spent:.4g}",
            "no",
            "what was asked and answered; depends on the votes, guarantees nothing",
        ),
        ("with noise of its own", *own),
    ]
    delta = f"{promised['delta']:g}"
    return [
        dict(zip(_COLUMNS, (name, epsilon, delta, publish, meaning), strict=True))
        for name, epsilon, publish, meaning in rows
    ]


_COLUMNS = {"cost": 22, "ε": 10, "δ": 10, "publish?": 10, "what it means": 0}
"""Columns of the costs, and their widths on a terminal, which do not depend on votes."""
_TERMINAL = 80
"""Width of a terminal, in characters."""


def summary(figures: Mapping[str, Any]) -> list[str]:
    """Return the lines for a terminal: the three costs, then the realised figures."""
    realised = figures["realised"]
    lines = [_whose(figures)]
    titles = dict(zip(_COLUMNS, _COLUMNS, strict=True))
    for row in (titles, *cost_rows(figures)):
        *cells, meaning = (f"{row[name]:<{width}} " for name, width in _COLUMNS.items())
        start = "".join(cells)
        lines += textwrap.wrap(start + meaning, _TERMINAL, subsequent_indent=" " * len(start))
    lines.append("also private, as they depend on the votes:")
    lines += [f"{each:<22} {realised[each]}" for each in ("asked", "answered", "end")]
    if realised["as_printed"] is not None:
        lines.append(
            f"{'as printed':<22} {realised['as_printed']:.4g}; does not hold: {muschiol.WHY_NOT}"
        )
    return lines


def _whose(figures: Mapping[str, Any]) -> str:
    """Return a sentence on the unit of the three costs and whom they protect."""
    promised = figures["promised"]
    whom = "" if len(promised["worst"]) == 1 else ", for teachers of the largest weight"
    return f"ε where {UNIT_WORDS[TeacherUnit(promised['unit'])]}{whom}:"


def report(figures: Mapping[str, Any]) -> str:
    """Return the report in Markdown: results, costs, visibility, noise and assumptions."""
    promised, realised = figures["promised"], figures["realised"]
    lines = [
        f"# {realised['answered']} answers from {figures['teachers']} teachers",
        "",
        f"{realised['asked']} of {figures['queries']} queries were asked about, by "
        f"{figures['mechanism']}, {figures['tally']} tally; {realised['end']}.",
        "",
        "## The three costs",
        _whose(figures),
        "",
        f"| {' | '.join(_COLUMNS)} |",
        "|---" * len(_COLUMNS) + "|",
        *(f"| {' | '.join(row.values())} |" for row in cost_rows(figures)),
        "",
        "## What is promised",
        *_promised(promised),
        "",
        "## What was realised, and is private",
        "What was asked and answered, by the noise alone. **It depends on the votes and guarantees "
        "nothing**: only those who have all answers may see it. Publish the promise instead, or a "
        f"cost with noise (`--votes-cost`). At δ = {promised['delta']:g}:",
        "",
        *_table(realised["costs"]),
        *_claimed(realised),
        *_dependent(figures),
        "",
        "## Who saw what",
        *(f"- {sentence}" for sentence in figures["sees"]),
        "",
        "## What may be noise",
        *(f"- {sentence}" for sentence in _doubts(figures)),
        "",
        "## What these figures rely on",
        *(f"- {sentence}" for sentence in _sources(figures)),
        "",
    ]
    return "\n".join(lines)


def _promised(promised: Mapping[str, Any]) -> list[str]:
    """Return the data-independent part of the report, the same for all votes on these queries."""
    words = UNIT_WORDS[TeacherUnit(promised["unit"])]
    return [
        f"The budget: ε = {promised['epsilon']:g} at δ = {promised['delta']:g}, where {words}.",
        "",
        f"The worst case, if the votes are such that {promised['queries']} queries, or as many as "
        "the budget has room for, are asked and answered in the dearest way:",
        "",
        *_table(promised["worst"]),
    ]


def _table(costs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        "| teachers | weight | ε where " + " | ε where ".join(UNIT_WORDS.values()) + " |",
        "|---|---|---|---|",
        *(
            f"| {cost['teachers']} | {cost['weight']} | "
            + " | ".join(f"{cost['epsilon'][unit]:.4g}" for unit in UNIT_WORDS)
            + " |"
            for cost in costs
        ),
    ]


def _claimed(figures: Mapping[str, Any]) -> list[str]:
    if figures["as_printed"] is None:
        return []
    return [
        "",
        f"As printed by Muschiol (2021): ε = {figures['as_printed']:.4g}. **It does not hold**: "
        f"{muschiol.WHY_NOT}; it stands here for comparison alone.",
    ]


def _dependent(figures: Mapping[str, Any]) -> list[str]:
    published = figures["data_dependent"]
    if published is None:
        return []
    one_way = "" if published["method"] == "exact" else ", in one direction (Theorem 6)"
    return [
        "",
        "## What may be published of what the votes cost",
        f"By the votes that there were{one_way}, where a teacher is replaced: ε = "
        f"{published['epsilon']:.4g} at the order {published['order']:.3g}. Such a cost is private "
        "itself. This one has noise of smooth sensitivity, may be too small by chance, and pays "
        f"{published['publishing']:.2g} for being published; it was drawn once and stays.",
    ]


def _doubts(figures: Mapping[str, Any]) -> list[str]:
    lead = f"{figures['lead_in_doubt']:.0f}"
    classes = RULES[figures["mechanism"]].between_classes
    between = "between two classes" if classes else "from what decides on a label"
    said = [
        f"noise alone makes a distance {between} of {lead} votes in "
        f"{100 * (1 - CONFIDENCE):.0f} of 100 votes; a winner that is at most {lead} votes ahead "
        "may have lost"
    ]
    if figures["answers_in_doubt"] is not None:
        said.append(
            f"{figures['answers_in_doubt']} of all answers have no larger lead in the noisy counts"
        )
    if figures["passes_by_chance"] is not None:
        said.append(
            "a query on which teachers agree least passes the check with probability "
            f"{figures['passes_by_chance']:.2g}"
        )
    return said


def _sources(figures: Mapping[str, Any]) -> list[str]:
    said = [
        "ε is worked out here from the noise and from what one teacher can change; it holds if "
        "teachers learned from data of their own, none of which two of them share",
        f"that there are {figures['promised']['records']} records, and which they are, is the "
        "operator's word",
        "answers are the teachers' noisy votes; they were not compared with true classes",
    ]
    if figures["tally"] == "federated":
        said.append(
            "votes went through secure sums with real cryptography, all teachers in this process: "
            "whoever runs it could read them here, but not where each phone is a teacher"
        )
    if figures["votes_dealt"]:
        said.append(
            "the file has counts of votes; who cast which was made up here, which changes no sum"
        )
    return said


def sees(tally: Tally) -> list[str]:
    """Return sentences on what each party sees."""
    if isinstance(tally, Federated):
        return _sees_sums(tally)
    published = "published: for each query its outcome"
    if tally.adaptive:
        published += ", an answer or none"
    return [
        "the curator sees every vote: the figures below protect against all others",
        f"{published}; no count, noisy or not, nor how close a vote was",
    ]


def _sees_sums(tally: Federated) -> list[str]:
    own, crowd = tally.rule, tally.sums.crowd
    entries = own.ballot(tally.poll).length
    counts = f"for each query {entries} noisy counts"
    sentences = [
        "teachers see all queries, and with a check every proposed answer",
        "a teacher's votes leave it under a mask; whether it abstained, vanished from the vote or "
        "weighs nothing, its ballot looks like any other",
    ]
    if own.check is None:
        bar = "" if own.bar is None else ", and whether there is one,"
        sentences.append(f"the server sees {counts}, the answers{bar} are read from them")
    elif tally.proposals is None:
        sentences.append(
            f"the server sees {counts}, and {_checked(tally)} with noise of their own; also of "
            "queries without an answer"
        )
    else:
        sentences.append(
            f"the server sees {_checked(tally)} where the student proposes an answer, and {counts} "
            "where teachers do not agree with it"
        )
    sentences.append(
        f"it sees no vote unless more than {100 * crowd.corrupted:g} % of the teachers collude "
        f"with it; the noise is what {crowd.honest_survivors} of {crowd.teachers} teachers add, "
        "and grows with every further one that stays"
    )
    return sentences


def _checked(tally: Federated) -> str:
    per_label = tally.rule.check_ballot(tally.poll).length > 1
    return f"how many agree with {'each label of ' if per_label else ''}the proposed answer"


def lead_in_doubt(tally: Tally) -> float:
    """Return the lead in votes that noise alone exceeds in 5 of 100 votes.

    It is a lead between two classes, or a label's distance from its threshold.
    """
    own = tally.rule
    if not isinstance(tally, Federated):
        return own.lead_in_doubt(CONFIDENCE)
    law = tally.summed(Purchase(VoteKind.VOTES, 1), tally.heaviest).noise(tally.sums.crowd.teachers)
    decisive = law.of_difference if own.between_classes else law
    return decisive.radius(CONFIDENCE) / own.ballot(tally.poll).vote
