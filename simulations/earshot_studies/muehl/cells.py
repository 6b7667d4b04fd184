"""The cells of Tables 6.4 to 6.7 of Mühl (2021): plans of votes, and the cost at which they stop.

In sections 5.2 to 5.4 and 6.2.2 owners with a higher budget have more influence in three ways: by
more teachers, more frequent votes or heavier ones. The text states a wrong ratio of two owners'
influence ("the square"): its tables follow from the ratio of budgets, R, and for vanishing from
frequencies of 1 : 2R².
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_models.teachers.ensemble import vote_counts
from earshot_models.votes.costs import costs, personal
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.personal import OwnerGroup
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import EarshotError
from earshot_protocol.files import replace_file
from earshot_protocol.progress import Progress
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_studies.kit.printed import printed_figures
from earshot_studies.muehl.data import StudiedData
from earshot_studies.muehl.table import Table
from earshot_studies.muehl.votes import QUARTERS, Ensembles, VoteFolder

LOWER = 1.0
"""Budget ε of the group with the lower budget."""


class InfluenceVariant(enum.StrEnum):
    """The ways in which the influence of owners differs."""

    EQUAL = "equal"
    """Equal influence: all owners have the lower budget, which is the baseline."""
    UPSAMPLING = "upsampling"
    """Records of owners with the higher budget are learned by more teachers."""
    VANISHING = "vanishing"
    """Teachers of owners with the lower budget skip most queries."""
    WEIGHTING = "weighting"
    """Teachers of owners with the higher budget have heavier votes."""


@dataclass(frozen=True)
class VotingPlan:
    """The voters, the weights and frequencies of their votes, and the influence of an owner.

    Attributes:
        wanted: Pair (copy, teacher) of each voter.
        high: Whether the voter's owners have the higher budget, bool (voters,).
        weights: Weight of each vote, float64 (voters,).
        voting: Share of the queries on which a voter of the lower and of the higher group votes.
        impact: Largest change of votes by one owner of the lower and of the higher group, Δ_o.
        budgets: Budgets ε of both groups.
        mechanism: Mechanism with noise and threshold for these votes.
        factor: Factor by which noise and threshold are scaled.
    """

    wanted: tuple[tuple[int, int], ...]
    high: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float64]
    voting: tuple[float, float]
    impact: tuple[float, float]
    budgets: tuple[float, float]
    mechanism: ConfidentRule
    factor: float


def plan(
    variant: InfluenceVariant,
    higher: float,
    quarters: int,
    ensembles: Ensembles,
    mechanism: ConfidentRule,
) -> VotingPlan:
    """Return the voting plan of an ensemble.

    Args:
        variant: Way in which influence differs.
        higher: Higher budget ε, R times the lower one.
        quarters: Quarters of the owners who have the higher budget, 1 to 3.
        ensembles: Assignment of records to teachers.
        mechanism: Mechanism for an ensemble of equal owners.

    Raises:
        InvalidParametersError: The higher budget is lower, or `quarters` is not from 1 to 3.
    """
    checks.whole("quarters", quarters, 1, QUARTERS - 1)
    checks.between("higher", higher, LOWER)
    teachers = ensembles.teachers
    rich = ensembles.ends[quarters - 1]
    groups = (OwnerGroup(LOWER, teachers - rich), OwnerGroup(higher, rich))
    wanted = [(0, teacher) for teacher in range(teachers)]
    voting, impact = np.ones(2), np.ones(2)
    factor = 1.0
    match variant:
        case InfluenceVariant.UPSAMPLING:
            impact = personal.copies(groups).astype(np.float64)
            least, most = (int(number) for number in impact)
            wanted += [(copy, teacher) for copy in range(1, least) for teacher in range(teachers)]
            wanted += [(copy, teacher) for copy in range(least, most) for teacher in range(rich)]
            factor = len(wanted) / teachers
        case InfluenceVariant.VANISHING:
            voting = personal.frequencies(groups)
            factor = float(voting @ [teachers - rich, rich]) / teachers
        case InfluenceVariant.WEIGHTING:
            impact = personal.weights(groups)
    high = np.array([teacher < rich for _, teacher in wanted])
    weights = np.ones(len(wanted))
    if variant is InfluenceVariant.WEIGHTING:
        weights = np.where(high, impact[1], impact[0])
    budgets = (LOWER, LOWER if variant is InfluenceVariant.EQUAL else higher)
    return VotingPlan(
        tuple(wanted),
        high,
        weights,
        _pair(voting),
        _pair(impact),
        budgets,
        mechanism.times(factor),
        factor,
    )


def closed_form(base: float, plan: VotingPlan, delta: float) -> float:
    """Compute the labels that the noise alone allows, from the baseline's.

    See `personal.expected_labels`.

    Args:
        base: Labels of the baseline.
        plan: Plan of the voters, who pay only for queries on which they vote.
        delta: Parameter δ of the budgets.
    """
    members = np.bincount(plan.high, minlength=2).tolist()
    groups = tuple(map(OwnerGroup, plan.budgets, members))
    often = np.array(plan.impact) * np.sqrt(plan.voting)
    return personal.expected_labels(base, groups, often, delta, plan.factor)


def participation(
    plan: VotingPlan, queries: int, generator: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw the voters of each query, bool (queries, voters).

    Each group takes turns in one random order after another, so that the number of voters of a
    query, and of votes of a voter, varies by at most one. The draw does not depend on data.
    """
    takes = np.ones((queries, len(plan.high)), dtype=bool)
    for group, often in zip((~plan.high, plan.high), plan.voting, strict=True):
        voters = np.flatnonzero(group)
        if often >= 1 or not len(voters):
            continue
        ends = np.floor(np.arange(queries + 1) * (len(voters) * often)).astype(np.int64)
        turns = np.concatenate(
            [generator.permutation(voters) for _ in range(int(ends[-1]) // len(voters) + 1)]
        )
        takes[:, voters] = False
        asked = np.repeat(np.arange(queries), np.diff(ends))
        takes[asked, turns[: ends[-1]]] = True
    return takes


def _pair(numbers: npt.NDArray[np.floating]) -> tuple[float, float]:
    lower, higher = numbers.tolist()
    return float(lower), float(higher)


THEIR_ORDERS = np.arange(2.0, 51.0)
"""Orders that Mühl (2021) tries."""
_FIRST = 500
"""Queries whose exact cost is computed first; their number doubles while the budgets last."""


class Accounting(enum.StrEnum):
    """The ways in which an owner's cost is computed."""

    THEIRS = "theirs"
    """Theorem 6 of Papernot et al. (2018), σ over Δ_o; integer orders; the classic conversion."""
    SOUND = "sound"
    """Exact laws of outcomes in both directions, of checks and answers; the tight conversion."""
    PUBLIC = "public"
    """The noise alone: the cost depends on answers, not on votes, so the stop is public."""


@dataclass(frozen=True)
class ProcessVotes:
    """The answers of a voting process.

    Attributes:
        queries: Indices of the queried samples, in this order, int64 (asked,).
        winners: Winner of each query, a class or `NONE`, int64 (asked,).
        spent: Largest ε of an owner of the lower, and of the higher group.
    """

    queries: npt.NDArray[np.int64]
    winners: npt.NDArray[np.int64]
    spent: tuple[float, float]

    @property
    def labels(self) -> int:
        """Number of samples that were answered."""
        return int((self.winners != NONE).sum())


@dataclass(frozen=True)
class _Voting:
    """All votes of one voting process, before accounting.

    Attributes:
        plan: Plan of the process.
        queries: Indices of the samples, (queries,).
        counts: Weighted votes, (queries, classes).
        winners: Winner of each query, (queries,).
        takes: Voters who took part, bool (queries, voters); None if all did.
    """

    plan: VotingPlan
    queries: npt.NDArray[np.int64]
    counts: Numbers
    winners: npt.NDArray[np.int64]
    takes: npt.NDArray[np.bool_] | None


def answered(
    plan: VotingPlan,
    votes: npt.NDArray[np.integer],
    classes: int,
    delta: float,
    accountings: tuple[Accounting, ...],
    generator: np.random.Generator,
) -> dict[Accounting, ProcessVotes]:
    """Run one voting process, and stop the same draws by each accounting.

    Samples are queried in random order. The process ends before the query by which an owner would
    exceed a budget.

    Args:
        plan: Plan of the voters.
        votes: Answers of the plan's voters, (voters, samples).
        classes: Number of classes.
        delta: Parameter δ of all budgets.
        accountings: Accountings by which to stop.
        generator: Generator of the order, of vanishing voters and of the noise.
    """
    voting = _voting(plan, votes, classes, generator)
    return {accounting: _stopped(voting, accounting, delta) for accounting in accountings}


def _voting(
    plan: VotingPlan, votes: npt.NDArray[np.integer], classes: int, generator: np.random.Generator
) -> _Voting:
    order = generator.permutation(votes.shape[1])
    takes = None
    if min(plan.voting) < 1:
        takes = participation(plan, len(order), generator)
        counts = vote_counts(votes[:, order], classes, takes.T * plan.weights[:, None])
    else:
        counts = vote_counts(votes, classes, plan.weights)[order]
    winners = plan.mechanism.outcomes(counts, generator.bytes)
    return _Voting(plan, order, counts, winners, takes)


def _stopped(voting: _Voting, accounting: Accounting, delta: float) -> ProcessVotes:
    asked, most = 0, len(voting.queries)
    known = _FIRST if accounting is Accounting.SOUND else most
    while True:
        known = min(known, most)
        each = _realized(voting, accounting, known)
        asked = _last(voting, each, accounting, delta)
        if asked < known or known == most:
            break
        known *= 2
    spent = _spent(voting, each, asked, accounting, delta)
    return ProcessVotes(voting.queries[:asked], voting.winners[:asked], spent)


def _realized(voting: _Voting, accounting: Accounting, known: int) -> tuple[Numbers, Numbers]:
    """Return the cost of each query to an owner of each group who votes, (queries, orders)."""
    voted = voting.winners[:known] != NONE
    found: list[Numbers] = []
    for impact in voting.plan.impact:
        if found and impact == voting.plan.impact[0]:
            found.append(found[0])
            continue
        method = {
            Accounting.THEIRS: Method.DEPENDENT,
            Accounting.SOUND: Method.EXACT,
            Accounting.PUBLIC: Method.INDEPENDENT,
        }[accounting]
        counts, mechanism = voting.counts[:known], voting.plan.mechanism
        orders = _orders(accounting)
        each = mechanism.divergences(counts, orders, method, impact, voted=voted)
        answers = each.answered
        if accounting is Accounting.SOUND and _scattered(voting.plan) and counts.shape[1] > 2:
            # Votes of one owner's several teachers may move to several classes, and it is not
            # proven that all to one is worst. With two classes there is only one way to move.
            answers = mechanism.divergences(
                counts, orders, Method.INDEPENDENT, impact, voted=voted
            ).answered
        found.append(each.asked + answers * voted[:, None])
    return found[0], found[1]


def _scattered(plan: VotingPlan) -> bool:
    """Return whether one owner may move several whole votes."""
    return len(plan.wanted) > len({teacher for _, teacher in plan.wanted})


def _last(
    voting: _Voting, each: tuple[Numbers, Numbers], accounting: Accounting, delta: float
) -> int:
    """Return the largest number of queries that keeps all budgets, by bisection."""
    fits, exceeds = 0, len(each[0]) + 1
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        spent = _spent(voting, each, middle, accounting, delta)
        if all(e <= budget for e, budget in zip(spent, voting.plan.budgets, strict=True)):
            fits = middle
        else:
            exceeds = middle
    return fits


def _spent(
    voting: _Voting,
    each: tuple[Numbers, Numbers],
    asked: int,
    accounting: Accounting,
    delta: float,
) -> tuple[float, float]:
    """Return the largest ε of an owner of either group after this many queries."""
    if not asked:
        return 0.0, 0.0
    found = []
    for group, cost in zip((~voting.plan.high, voting.plan.high), each, strict=True):
        if voting.takes is None:
            owners = cost[:asked].sum(axis=0, keepdims=True)
        else:
            owners = voting.takes[:asked, group].T.astype(np.float64) @ cost[:asked]
        classic = accounting is Accounting.THEIRS
        spent = costs.epsilons(owners, _orders(accounting), delta, classic=classic)
        found.append(float(spent.max()))
    return found[0], found[1]


def _orders(accounting: Accounting) -> Numbers:
    return costs.COARSE if accounting is Accounting.SOUND else THEIR_ORDERS


HIGHER: tuple[float, ...] = tuple(printed_figures(__package__)["higher"])
"""Higher budgets ε; the lower one is 1."""
DELTA = 1e-5
_FEW_SOUND = 3
"""Processes whose exact cost is computed, which is slow and varies little."""
_MOST_LABELS = 2000
"""Most labels of a student, in Mühl (2021)."""
_STUDENTS = "students.json"


class OverspentError(EarshotError):
    """An owner's budget was exceeded, which is a bug and cannot be caused by input."""


@dataclass(frozen=True)
class TableCell:
    """A cell of a table, with the answers of its processes.

    Attributes:
        variant, higher, quarters: Place of the cell in the table.
        plan: Plan of the voters.
        answers: Answers by each accounting, one entry for each process.
    """

    variant: InfluenceVariant
    higher: float
    quarters: int
    plan: VotingPlan
    answers: dict[Accounting, list[ProcessVotes]]

    def labels(self, accounting: Accounting) -> list[int]:
        """Return the number of labels of each process."""
        return [each.labels for each in self.answers[accounting]]


@dataclass(frozen=True)
class VotingWork:
    """The data to work on, and the amount of work.

    Attributes:
        subject: Data set to work on.
        ensembles: Assignment of records to teachers.
        votes: Folder of votes and of students' accuracy, kept between runs.
        processes: Voting processes of a cell.
        upsampled: Whether to train the additional teachers of upsampling.
        progress: Callback that receives the progress.
    """

    subject: StudiedData
    ensembles: Ensembles
    votes: Path
    processes: int
    upsampled: bool
    progress: Progress

    @property
    def folder(self) -> VoteFolder:
        """Folder in which votes are kept."""
        subject = self.subject
        return VoteFolder(
            self.votes, self.ensembles, subject.private, subject.asked, subject.teacher,
            subject.recipe,
        )  # fmt: skip

    def cells(self, accountings: tuple[Accounting, ...]) -> Iterator[TableCell]:
        """Yield the baseline, then all other cells; train teachers that are missing.

        Args:
            accountings: Accountings by which to stop.

        Raises:
            OverspentError: An owner's budget was exceeded.
        """
        variants = [InfluenceVariant.VANISHING, InfluenceVariant.WEIGHTING]
        if self.upsampled:
            variants.insert(0, InfluenceVariant.UPSAMPLING)
        wanted = [(InfluenceVariant.EQUAL, 1.0, 2)]
        wanted += [(v, higher, q) for v in variants for higher in HIGHER for q in (1, 2, 3)]
        for done, (variant, higher, quarters) in enumerate(wanted):
            yield self._cell(variant, higher, quarters, accountings)
            self.progress("cells", done + 1, len(wanted))

    def teachers(self) -> npt.NDArray[np.int8]:
        """Return the answers of the first ensemble, int8 (teachers, public and test)."""
        return self.folder.votes([(0, t) for t in range(self.ensembles.teachers)], self.progress)

    def _cell(
        self,
        variant: InfluenceVariant,
        higher: float,
        quarters: int,
        accountings: tuple[Accounting, ...],
    ) -> TableCell:
        public = self.subject.public
        chosen = plan(variant, higher, quarters, self.ensembles, self.subject.mechanism)
        votes = self.folder.votes(chosen.wanted, self.progress)[:, : len(public)]
        answers: dict[Accounting, list[ProcessVotes]] = {each: [] for each in accountings}
        for process in range(self.processes):
            here = tuple(
                each for each in accountings if each is not Accounting.SOUND or process < _FEW_SOUND
            )
            generator = np.random.default_rng([self.ensembles.seed, 0xCE11, process])
            found = answered(chosen, votes, len(public.classes), DELTA, here, generator)
            for accounting, each in found.items():
                checked(each, chosen)
                answers[accounting].append(each)
        return TableCell(variant, higher, quarters, chosen, answers)


def checked(answers: ProcessVotes, plan: VotingPlan) -> ProcessVotes:
    """Check that every owner stayed within its budget, and return the answers.

    Raises:
        OverspentError: An owner exceeded its budget.
    """
    for spent, budget, group in zip(answers.spent, plan.budgets, ("lower", "higher"), strict=True):
        if spent > budget:
            raise OverspentError(
                f"an owner of the {group} budget spent {spent}, more than {budget}"
            )
    return answers


def student_accuracy(
    work: VotingWork, cell: TableCell, accounting: Accounting, process: int
) -> float:
    """Return the test accuracy of a student of a process's answers.

    The result is kept in the folder of votes.

    Args:
        work: Work with data and folder.
        cell: Cell whose answers the student learns from.
        accounting: Accounting by which the processes were stopped.
        process: Number of the process.
    """
    file = work.votes / _STUDENTS
    kept: dict[str, float] = json.loads(file.read_bytes()) if file.exists() else {}
    answers = cell.answers[accounting][process]
    there = np.flatnonzero(answers.winners != NONE)[:_MOST_LABELS]
    key = f"{accounting} {cell.variant} {cell.higher:g} {cell.quarters} {process} {len(there)}"
    if key not in kept:
        test = work.subject.test
        lesson = Table(
            work.subject.public.rows[answers.queries[there]],
            answers.winners[there],
            test.classes,
        )
        right = work.subject.student(lesson, process)(test.rows) == test.labels
        kept[key] = float(np.mean(right))
        replace_file(file, json.dumps(kept, indent=1))
    return kept[key]


def right_labels(work: VotingWork, answers: Sequence[ProcessVotes]) -> float:
    """Return the share of the answers that are the true label."""
    truth = work.subject.public.labels
    right = [
        (each.winners == truth[each.queries])[each.winners != NONE]
        for each in answers
        if each.labels
    ]
    return float(np.mean(np.concatenate(right))) if right else float("nan")
