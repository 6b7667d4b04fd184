"""Table 1 of Papernot et al. (ICLR 2018): the cost of Confident-GNMax on published votes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.costs import (
    COARSE,
    Method,
    epsilon,
    epsilons,
    spent,
)
from earshot_models.votes.costs.releases import CostRelease, best_release
from earshot_models.votes.costs.smooth import exact_sensitivities, local_sensitivities
from earshot_models.votes.counts import checked_counts
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress, silent
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, estimate
from earshot_studies.kit.claims import beside
from earshot_studies.kit.outcome import Reproduction, Row
from earshot_studies.kit.pictures import multiples
from earshot_studies.kit.printed import printed_figures

NAME = "papernot-table-1"
TEACHERS = 250
SEEDS = 10
_BUDGET = 1.0
"""Budget ε at which labels are counted."""
_ORDERS = np.geomspace(3, 60, 24)
"""Orders at which labels are counted."""
_RELEASES = np.array([3.0, 5.0, 7.0, 9.0, 11.0, 14.0, 18.0, 25.0])
"""Orders, one of which is published."""

_DIFFERS = "the order of the paper's queries and its draw of noise are not known"
"""Difference from the paper's table that explains other numbers."""

Votes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's table.

    Attributes:
        file: Name of the file of votes.
        rule: Rule with the paper's parameters.
        delta: Parameter δ of the guarantee.
        answers: Number of answers that the paper's students learned from.
        printed: Cost ε in the paper; None if it is not known here.
    """

    file: str
    rule: ConfidentRule
    delta: float
    answers: int
    printed: float | None


CASES = {
    name: PaperRow(
        f"{name.lower()}.npy",
        ConfidentRule(
            sigma=row["sigma"], threshold=row["threshold"], check_sigma=row["check_sigma"]
        ),
        row["delta"],
        row["answers"],
        row.get("epsilon"),
    )
    for name, row in printed_figures(__package__)["table_1"].items()
}


def read_votes(folder: Path, cases: Mapping[str, PaperRow] = CASES) -> dict[str, Votes]:
    """Read the votes of all cases.

    Raises:
        InvalidInputError: A file is missing, or does not hold votes of 250 teachers.
    """
    found = {}
    for name, case in cases.items():
        path = folder / case.file
        try:
            table = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"{path}: must be a file of votes (NumPy), as published with the paper: {error}"
            ) from None
        found[name] = checked_counts(table, TEACHERS)
    return found


def reproduce(
    votes: Mapping[str, Votes],
    seeds: int = SEEDS,
    cases: Mapping[str, PaperRow] = CASES,
    progress: Progress = silent,
) -> Reproduction:
    """Draw the mechanism's noise with every seed, and account for the outcomes in every way.

    Args:
        votes: Votes of each case, (queries, classes).
        seeds: Number of seeds, at least 1; one has no intervals.
        cases: Cases to reproduce.
        progress: Callback that receives the progress.
    """
    drawn: dict[str, list[RowRun]] = {name: [] for name in cases}
    for seed in range(seeds):
        progress("accounting votes", seed, seeds)
        for name, case in cases.items():
            drawn[name].append(account(case, votes[name], seed))
    progress("accounting votes", seeds, seeds)
    rows = [_row(name, case, drawn[name]) for name, case in cases.items()]
    return Reproduction(
        NAME,
        rows,
        lambda path: _draw(cases, votes, drawn, path),
        _note(rows, {name: each[0].seconds for name, each in drawn.items()}, seeds),
    )


@dataclass(frozen=True)
class RowRun:
    """One run of a case.

    Attributes:
        asked: Number of queries until there were as many answers as in the paper.
        voted: Whether each of these queries was answered, bool (asked,).
        epsilons: Cost ε by name of the accounting.
        labels: Number of labels at an ε of 1, by name of the accounting.
        release: Release of the data-dependent cost, by name of the accounting.
        seconds: Seconds of CPU by task.
    """

    asked: int
    voted: npt.NDArray[np.bool_]
    epsilons: dict[str, float]
    labels: dict[str, float]
    release: dict[str, CostRelease]
    seconds: dict[str, float]


THEIRS = "data-dependent"
SANITIZED = "data-dependent, published"
SOUND = "independent"
EXACT = "exact"
EXACT_CLASSIC = "exact, their conversion"
EXACT_SANITIZED = "exact, published"
_ACCOUNTS = (SOUND, THEIRS, SANITIZED, EXACT, EXACT_CLASSIC, EXACT_SANITIZED)


def account(case: PaperRow, votes: Votes, seed: int) -> RowRun:
    """Draw winners in the order of queries, and account for those up to the last answer.

    Args:
        case: Case to run.
        votes: Votes, (queries, classes).
        seed: Seed of the noise.

    Raises:
        InvalidInputError: There are fewer answers than in the paper.
    """
    clock = _Clock()
    winners = case.rule.outcomes(votes, np.random.default_rng(seed).bytes)
    answered = np.flatnonzero(winners != NONE)
    if len(answered) < case.answers:
        raise InvalidInputError(
            f"{len(answered)} answers of {len(votes)} queries: must be at least {case.answers}"
        )
    asked = int(answered[case.answers - 1]) + 1
    table, voted = votes[:asked], winners[:asked] != NONE
    clock.split("draw")
    found: dict[str, float] = {}

    def whole(method: Method, *, classic: bool) -> float:
        return case.rule.spent_epsilon(table, voted, case.delta, method, classic=classic)[0]

    found[SOUND] = whole(Method.INDEPENDENT, classic=False)
    found[THEIRS] = whole(Method.DEPENDENT, classic=True)
    found[SANITIZED], release = _published(case, table, voted, Method.DEPENDENT)
    releases = {SANITIZED: release}
    clock.split("data-dependent and smooth")
    found[EXACT] = whole(Method.EXACT, classic=False)
    clock.split("exact outcomes")
    found[EXACT_CLASSIC] = whole(Method.EXACT, classic=True)
    if votes.shape[1] == 2:
        found[EXACT_SANITIZED], releases[EXACT_SANITIZED] = _published(
            case, table, voted, Method.EXACT
        )
    labels = {}
    for name, method, classic in (
        (SOUND, Method.INDEPENDENT, False),
        (THEIRS, Method.DEPENDENT, True),
        (EXACT, Method.EXACT, False),
        (EXACT_CLASSIC, Method.EXACT, True),
    ):
        labels[name] = float(_labels(case, votes, winners != NONE, method, classic))
    return RowRun(asked, voted, found, labels, releases, clock.seconds)


def _labels(
    case: PaperRow, votes: Votes, voted: npt.NDArray[np.bool_], method: Method, classic: bool
) -> int:
    """Count answers before ε exceeds 1; take queries in doubling pieces until it does."""
    size = 500
    while True:
        each = case.rule.divergences(votes[:size], _ORDERS, method, voted=voted[:size])
        total = epsilons(spent(each, voted[:size]), _ORDERS, case.delta, classic=classic)
        if total[-1] > _BUDGET or size >= len(votes):
            return int(voted[:size][total <= _BUDGET].sum())
        size *= 2


def _published(
    case: PaperRow, votes: Votes, voted: npt.NDArray[np.bool_], method: Method
) -> tuple[float, CostRelease]:
    """Return the mean published ε, with the cost of its release, by their conversion."""
    found, rule = [], case.rule
    each = rule.divergences(votes, _RELEASES, method, voted=voted)
    total = (each.asked + each.answered).sum(axis=0)
    for order, divergence in zip(_RELEASES.tolist(), total.tolist(), strict=True):
        of = exact_sensitivities if method is Method.EXACT else local_sensitivities
        near = of(rule.sigma, rule.check, votes, voted, order, TEACHERS)
        release = best_release(near, order)
        whole = np.array([divergence + release.divergence])
        found.append((epsilon(whole, [order], case.delta, classic=True)[0], release))
    return min(found, key=lambda each: each[0])


class _Clock:
    """A clock of the CPU seconds of this process, by task."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.process_time()

    def split(self, name: str) -> None:
        now = time.process_time()
        self.seconds[name], self._since = now - self._since, now


def _row(name: str, case: PaperRow, drawn: Sequence[RowRun]) -> Row:
    row: Row = {
        "data": name,
        "answers": case.answers,
        "delta": f"{case.delta:g}",
        "queries": _said([each.asked for each in drawn], 0),
        "theirs": "" if case.printed is None else f"{case.printed:.2f}",
        "why": beside(case.printed, estimate([each.epsilons[THEIRS] for each in drawn]), _DIFFERS),
    }
    for account_name in _ACCOUNTS:
        known = [each.epsilons.get(account_name) for each in drawn]
        row[account_name] = "" if known[0] is None else _said([each or 0 for each in known], 2)
    for account_name in drawn[0].labels:
        row[f"labels at 1, {account_name}"] = _said(
            [each.labels[account_name] for each in drawn], 0
        )
    return row


def _said(values: Sequence[float], digits: int) -> str:
    found: Estimate = estimate(values)
    wide = "" if found.wide is None else f" ± {found.wide:.{digits}f}"
    return f"{found.mean:.{digits}f}{wide}"


def _note(rows: Sequence[Row], seconds: Mapping[str, Mapping[str, float]], seeds: int) -> str:
    columns = [column for column in rows[0] if not column.startswith("labels")]
    labels = ["data", *(column for column in rows[0] if column.startswith("labels"))]
    times: list[Row] = [
        {"data": name, **{what: round(value, 3) for what, value in each.items()}}
        for name, each in seconds.items()
    ]
    together = sum(sum(each.values()) for each in seconds.values())
    return f"""# Confident-GNMax on published votes

After Table 1 of Papernot et al. (ICLR 2018), on the votes of 250 teachers that were published with
it, with the paper's thresholds and noise, in the order of the file, up to the paper's number of
answers. Noise is drawn anew for each of {seeds} seeds; intervals are Student's, at 95 %, of the
mean over seeds. Each query pays for its check when it is asked, and for its answer when it has one.

{markdown_table(rows, columns)}

- **theirs**: as printed, where known; **why**: the reason why the same accounting gives another
  figure here. All further columns use other accountings.
- **{SOUND}**: by the noise alone, for the queries asked until there were that many answers,
  converted by Canonne, Kamath and Steinke (2020). It reveals nothing beyond the answers, but the
  number of queries depends on the votes, so only a budget at which the mechanism stops can be
  guaranteed.
- **{THEIRS}**: Theorem 6 and R + ln(1/δ)/(λ − 1), as in the paper; it depends on the votes, so it
  is itself secret, and it bounds only the divergence of these votes from their neighbours'.
- **{SANITIZED}**: the same with the cost of its release by smooth sensitivity, on average
  over the release's noise, β and σ_s tuned on these votes for least cost and noise together, and
  the cost of the release corrected (the paper's Theorem 23 understates it).
- **{EXACT}**: by the law of what is published, for all neighbours and in both directions;
  **{EXACT_CLASSIC}** is for comparison. It depends on the votes and is secret, too.
  **{EXACT_SANITIZED}** is known for two classes.

Labels at an ε of 1, before the mechanism must stop:

{markdown_table(rows, labels)}

By noise alone a mechanism may stop when its budget is spent; by the other columns it may not, since
the point at which it stops would reveal something about the votes. They only show what a budget
would have allowed.

CPU seconds of the first seed alone, on one core; {together:.1f} together:

{markdown_table(times, list(times[0]))}

{_DIFFERS[0].upper()}{_DIFFERS[1:]}, nor whether its figures are of one draw or expected ones.
"""


def _draw(
    cases: Mapping[str, PaperRow],
    votes: Mapping[str, Votes],
    drawn: Mapping[str, Sequence[RowRun]],
    path: Path,
) -> None:
    """Draw ε by answers, for the first seed."""

    def chart(name: str, axis: Any) -> None:
        case, first = cases[name], drawn[name][0]
        for method in Method:
            each = case.rule.divergences(
                votes[name][: first.asked], COARSE, method, voted=first.voted
            )
            curve = epsilons(spent(each, first.voted), COARSE, case.delta)
            axis.plot(np.cumsum(first.voted), curve, label=str(method))
        if case.printed is not None:
            axis.plot([case.answers], [case.printed], "kx", label="printed")
        axis.set(title=name, xlabel="answers", ylabel=f"ε at δ = {case.delta:g}")
        axis.grid(alpha=0.3)
        if name == next(iter(cases)):
            axis.legend(frameon=False)

    charts = [partial(chart, name) for name in cases]
    multiples(path, (4.2 * len(cases), 4.0), len(cases), charts, dpi=120)
