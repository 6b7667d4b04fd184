"""`earshot reproduce multi-winner-queries`: the table, the picture and the note."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import paired
from earshot_studies.dziedzic.contests import (
    ByLabel,
    BySet,
    Contest,
    answered,
    binary,
    clipped,
    limited_votes,
    powerset,
)
from earshot_studies.dziedzic.multi_winner import (
    BINARY,
    CLIPPED,
    EPSILON,
    POWERSET,
    RULES,
    VOC_DELTA,
    XRAY_DELTA,
    MixtureStudy,
    VotingTeachers,
    best_noise,
    ensembles,
)
from earshot_studies.dziedzic.scores import scores
from earshot_studies.kit.claims import Claim, claims_table
from earshot_studies.kit.mixtures.ensembles import Aim
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import curve, multiples
from earshot_studies.kit.printed import printed_figures

SURE, TORN, FEW = "high consensus", "low consensus", "ten teachers"
ENSEMBLES = {
    SURE: (Aim.F1, 50, VOC_DELTA),
    TORN: (Aim.BALANCED, 50, XRAY_DELTA),
    FEW: (Aim.BALANCED, 10, XRAY_DELTA),
}
"""Ensembles compared with Pascal VOC, CheXpert and PadChest: aim of thresholds, teachers, δ."""

LABELS = (1, 2, 3, 5, 8, 11, 14, 16, 20)
SIGMAS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28)

_PRINTED = printed_figures(__package__)
PRINTED: Mapping[tuple[str, str], Mapping[int, int]] = {
    (ensemble, rule): dict(_PRINTED["queries"][data][rule])
    for ensemble, data in ((SURE, "voc"), (TORN, "chexpert"))
    for rule in (BINARY, POWERSET)
}
"""Queries of Tables 11 and 12, by labels."""
_TABLE_15: Mapping[int, int] = dict(_PRINTED["powerset"]["table_15"])

_CHUNK = 50
"""Queries whose costs are computed first; each further chunk is twice as large."""
_SET_LABELS = (11, 20)
"""Numbers of labels for which the law of the winning set is computed, which is slow."""
_MADE_UP = 500
"""Number of queries of Figure 1."""
_TUNED = 500
"""Number of validation mixtures by whose costs noise is chosen."""


@dataclass(frozen=True)
class Allowance:
    """A privacy budget."""

    epsilon: float
    delta: float


def measure(study: MixtureStudy) -> list[Row]:
    """Return the rows of all seeds, kept or measured."""
    return [row for seed in study.reported for row in study.kept("queries", seed, _of_seed)]


def _of_seed(study: MixtureStudy, seed: int) -> list[Row]:
    rows: list[Row] = []
    made = ensembles(study.mixtures(seed), ENSEMBLES)
    for done, ensemble in enumerate(made, start=1):
        for row in _of_ensemble(ensemble, seed):
            rows.append({"seed": seed, "ensemble": ensemble.name, **row})
        study.progress(f"elections, seed {seed}", done, len(made))
    return rows


def _of_ensemble(ensemble: VotingTeachers, seed: int) -> Iterator[Row]:
    yield from _by_labels(ensemble, seed)
    yield from _by_noise(ensemble, seed)
    if ensemble.name == SURE:
        yield from _by_budget(ensemble, seed)
        yield from _by_size_of_set(ensemble, seed)


def _by_labels(ensemble: VotingTeachers, seed: int) -> Iterator[Row]:
    """Yield Tables 11 and 12, and Figures 3, 9 and 10."""
    budget = Allowance(EPSILON, ensemble.delta)
    for labels in LABELS:
        most = ensemble.most_noise(labels, seed)
        for rule in RULES:
            contest = ensemble.contest(rule, ensemble.queries, labels)
            sigma = _chosen(ensemble, rule, labels, most[rule], budget)
            printed = PRINTED.get((ensemble.name, rule), {}).get(labels, "")
            row = _row("labels", rule, labels, sigma, budget, printed)
            laws = rule != POWERSET or (ensemble.name == SURE and labels in _SET_LABELS)
            row |= _counts(contest, sigma, most[rule], budget, laws)
            count = int(row["claimed"])
            row |= {"gap": contest.gap()} | _right(ensemble, contest, labels, sigma, count, seed)
            yield row


def _chosen(
    ensemble: VotingTeachers, rule: str, labels: int, most: float, budget: Allowance
) -> float:
    """Return the σ with which a rule answers most queries as claimed, on validation mixtures."""
    own = ensemble.contest(rule, ensemble.validation, labels).rows(0, _TUNED)
    return best_noise(own.claimed, most, budget.epsilon, budget.delta)


def _by_noise(ensemble: VotingTeachers, seed: int) -> Iterator[Row]:
    """Yield Figures 2, 4 and 14, of all labels, but of eleven labels for sets."""
    budget = Allowance(EPSILON, ensemble.delta)
    cast = ensemble.queries.ballots
    contests: dict[str, tuple[int, Contest]] = {
        BINARY: (20, binary(cast)),
        CLIPPED: (20, clipped(cast, ensemble.tau)),
        POWERSET: (11, powerset(cast[:, :, :11])),
    }
    taus = {norm: ensemble.least_tau(norm) for norm in (1, 2)}
    for sigma in SIGMAS:
        for rule, (labels, contest) in contests.items():
            row = _row("noise", rule, labels, float(sigma), budget, "")
            row |= _counts(contest, float(sigma), float(sigma), budget, rule == BINARY)
            yield row | _right(ensemble, contest, labels, float(sigma), 1000, seed)
        for norm, name in ((2, "L2-DI"), (1, "L1-DI")):
            whole = clipped(cast[:, :1], taus[norm], norm)
            claimed = answered(whole.independently_claimed(sigma), budget.epsilon, budget.delta)
            seen = answered(whole.counted(sigma), budget.epsilon, budget.delta)
            row = _row("noise", name, 20, float(sigma), budget, "")
            yield row | _figures(claimed, "", "", seen, float(sigma))


def _by_budget(ensemble: VotingTeachers, seed: int) -> Iterator[Row]:
    """Yield Tables 3 (ε) and 14 (δ): Binary voting on all labels, with the noise of one ε."""
    labels = 20
    contest = ensemble.contest(BINARY, ensemble.queries, labels)
    most = ensemble.most_noise(labels, seed)[BINARY]
    budget = Allowance(EPSILON, ensemble.delta)
    sigma = _chosen(ensemble, BINARY, labels, most, budget)
    for epsilon, printed in _PRINTED["binary"]["table_3"]:
        own = Allowance(float(epsilon), ensemble.delta)
        row = _row("epsilon", BINARY, labels, sigma, own, printed)
        yield row | _counts(contest, sigma, most, own)
    for delta, printed in _PRINTED["binary"]["table_14"]:
        own = Allowance(16.0, delta)
        row = _row("delta", BINARY, labels, sigma, own, printed)
        yield row | _counts(contest, sigma, most, own)


def _by_size_of_set(ensemble: VotingTeachers, seed: int) -> Iterator[Row]:
    """Yield Table 15: sets of at most v labels, all with the noise for unlimited sets."""
    labels, budget = 20, Allowance(EPSILON, ensemble.delta)
    most = ensemble.most_noise(labels, seed)[POWERSET]
    sigma = _chosen(ensemble, POWERSET, labels, most, budget)
    for size, printed in _TABLE_15.items():
        own = ensemble.queries
        contest = BySet(limited_votes(own.ballots, own.probabilities, size))
        row = _row("set size", POWERSET, labels, sigma, budget, printed) | {"most": size}
        yield row | _counts(contest, sigma, sigma, budget, laws=False)


def _row(table: str, rule: str, labels: int, sigma: float, budget: Allowance, printed: Any) -> Row:
    return {
        "table": table,
        "rule": rule,
        "labels": labels,
        "most": "",
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "sigma": sigma,
        "theirs": printed,
        "claimed": "",
        "exactly": "",
        "exactly_best": "",
        "counted": "",
        "counted_sigma": "",
        "gap": "",
        **dict.fromkeys(("ACC", "BAC", "AUC", "MAP"), ""),
    }


def _counts(
    contest: Contest, sigma: float, most: float, budget: Allowance, laws: bool = True
) -> Row:
    """Count answers: as claimed; by exact outcomes, at this σ and at the largest; by counts."""
    claimed = first_queries(contest, lambda part: part.claimed(sigma), budget)
    exactly: int | str = ""
    best: int | str = ""
    if laws:
        exactly = best = first_queries(contest, lambda part: part.exactly(sigma), budget)
        if most > sigma and isinstance(contest, ByLabel):
            best = max(best, first_queries(contest, lambda part: part.exactly(most), budget))
    seen = answered(contest.counted(most), budget.epsilon, budget.delta)
    return _figures(claimed, exactly, best, seen, most)


def _figures(claimed: int, exactly: Any, best: Any, seen: int, most: float) -> Row:
    return {
        "claimed": claimed,
        "exactly": exactly,
        "exactly_best": best,
        "counted": seen,
        "counted_sigma": most,
    }


def first_queries(
    contest: Contest, cost: Callable[[Contest], NDArray[np.float64]], budget: Allowance
) -> int:
    """Count the successive queries that are answered before the budget is spent.

    Args:
        contest: Contest of all queries.
        cost: Function that returns the divergences of some queries, (queries, orders).
        budget: Budget of ε and δ.
    """
    spent: NDArray[np.float64] | None = None
    start, chunk = 0, _CHUNK
    while True:
        if start >= len(contest):
            return len(contest)
        divergences = np.array(cost(contest.rows(start, start + chunk)))
        chunk *= 2
        if spent is not None:
            divergences[0] += spent
        count = answered(divergences, budget.epsilon, budget.delta)
        if count < len(divergences):
            return start + count
        spent, start = divergences.sum(axis=0), start + len(divergences)


def _right(
    ensemble: VotingTeachers, contest: Contest, labels: int, sigma: float, count: int, seed: int
) -> Row:
    """Score the answered queries; AUC of hard answers is BAC, as in the paper's tables."""
    if count < 1:
        return {}
    truth = ensemble.queries.part.truth[:count, :labels]
    if not (truth.any(axis=0) & ~truth.all(axis=0)).any():
        return {}
    generator = np.random.default_rng([seed, labels, int(10 * sigma)])
    found = scores(truth, contest.rows(0, count).winners(sigma, generator))
    return dict(found.row())


def figure_1() -> Sequence[Row]:
    """Count queries of Figure 1, σ = 7, k = 20: random ballots, ε = 20; unanimous zeros, ε = 2."""
    generator = np.random.default_rng(1)
    even = (generator.random((50, _MADE_UP, 20)) < 0.5).astype(np.int8)
    rows = []
    for name, ballots, epsilon in (("random", even, 20.0), ("all zeros", 0 * even, 2.0)):
        budget = Allowance(epsilon, VOC_DELTA)
        for rule, contest in ((BINARY, binary(ballots)), (POWERSET, powerset(ballots))):
            row = _row(f"figure 1, {name}", rule, 20, 7.0, budget, "")
            rows.append(row | _counts(contest, 7.0, 7.0, budget))
    return rows


def data_independent() -> Sequence[Row]:
    """Count queries that τ voting answers whatever the votes, at the paper's parameters (F.9)."""
    rows = []
    for data, labels, tau, sigma, delta, printed in _PRINTED["tau"]["section_f9"]:
        budget = Allowance(EPSILON, delta)
        contest = clipped(np.zeros((50, 1, labels), np.int8), tau)
        row = _row(f"F.9, {data}", "L2-DI", labels, sigma, budget, printed)
        claimed = answered(contest.independently_claimed(sigma), EPSILON, delta)
        seen = answered(contest.counted(sigma), EPSILON, delta)
        rows.append(row | _figures(claimed, "", "", seen, sigma))
    return rows


NAME = "multi-winner-queries"

_SAME = ("table", "ensemble", "rule", "labels", "most", "epsilon", "delta", "theirs")
_MEANS = ("sigma", "claimed", "exactly", "exactly_best", "counted", "counted_sigma", "gap")
_MEASURES = ("ACC", "BAC", "AUC", "MAP")
_LOOKS = {BINARY: ("#1f77b4", "o"), CLIPPED: ("#2ca02c", "s"), POWERSET: ("#d62728", "^")}

Key = tuple[Any, ...]


def reproduce(study: MixtureStudy) -> Reproduction:
    """Make all tables and figures."""
    made_up = [
        {"seed": 0, "ensemble": "made up", **row} for row in (*figure_1(), *data_independent())
    ]
    measured = measure(study)
    rows = averaged([*made_up, *measured])
    return Reproduction(NAME, rows, lambda path: _draw(rows, path), _note(measured, rows, study))


def averaged(rows: Sequence[Row]) -> list[Row]:
    """Compute means over seeds with half of their 95 % intervals, by noise where it varies."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        noise = row["sigma"] if row["table"] == "noise" else ""
        groups.setdefault((*(row[name] for name in _SAME), noise), []).append(row)
    found = []
    for key, group in groups.items():
        out: Row = dict(zip(_SAME, key[:-1], strict=True))
        out["seeds"] = len(group)
        found.append(out | means(group, (*_MEANS, *_MEASURES)))
    return found


def _plain(name: str) -> Callable[[Row], str]:
    """Return a formatter of a column, without trailing zeros."""
    return lambda row: f"{row[name]:g}" if isinstance(row[name], float) else str(row[name])


def _shown(rows: Sequence[Row], *extra: str) -> str:
    """Format rows as a table of the note."""
    columns: dict[str, Callable[[Row], Any]] = {
        "rule": lambda row: row["rule"],
        "labels": lambda row: row["labels"],
        **{name: _plain(name) for name in extra},
        "σ": lambda row: f"{float(row['sigma']):.3g}",
        "theirs": lambda row: row["theirs"],
        "ours, their accounting": lambda row: with_interval(row, "claimed", 0),
        "exact outcomes, same σ": lambda row: with_interval(row, "exactly", 0),
        "largest σ": lambda row: f"{float(row['counted_sigma']):.3g}",
        "exact outcomes, better σ": lambda row: with_interval(row, "exactly_best", 0),
        "noisy counts, largest σ": lambda row: with_interval(row, "counted", 0),
        "BAC": lambda row: row["BAC"] if row["BAC"] == "" else f"{float(row['BAC']):.2f}",
        "gap": lambda row: row["gap"] if row["gap"] == "" else f"{float(row['gap']):.1f}",
    }
    table = [{name: column(row) for name, column in columns.items()} for row in rows]
    kept = [name for name in columns if any(row[name] not in ("", "–") for row in table)]
    return markdown_table(table, kept)


def _of(rows: Sequence[Row], table: str, ensemble: str, *rules: str) -> list[Row]:
    return [
        row
        for row in rows
        if row["table"] == table
        and row["ensemble"] == ensemble
        and (not rules or row["rule"] in rules)
    ]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return the paper's claims on how many queries each rule answers.

    Args:
        rows: Rows of `measure`, of all seeds.
    """
    seeds = sorted({int(row["seed"]) for row in rows})
    values = {
        (row["seed"], row["ensemble"], row["rule"], row["labels"]): row
        for row in rows
        if row["table"] == "labels"
    }
    most = max(LABELS)

    def claim(
        said: str, ensemble: str, one: str, other: str, column: str, labels: int = most
    ) -> Claim:
        first, second = (
            [float(values[seed, ensemble, rule, labels][column]) for seed in seeds]
            for rule in (one, other)
        )
        own = [PRINTED.get((ensemble, rule), {}).get(labels, math.nan) for rule in (one, other)]
        theirs = own[0] - own[1] if column == "claimed" and not math.isnan(sum(own)) else None
        what = f"{labels} labels, {_MEANT[column]}: {one} − {other}"
        return Claim(said, what, theirs, paired(first, second))

    sure = "Binary answers more than Powerset where consensus is high"
    few = "τ answers more than Binary where teachers are few"
    return [
        *(claim(sure, SURE, BINARY, POWERSET, "claimed", each) for each in LABELS if each > 2),
        claim(sure, SURE, BINARY, POWERSET, "counted"),
        claim("Winners of Binary are the clearer ones", SURE, BINARY, POWERSET, "gap"),
        claim(few, FEW, CLIPPED, BINARY, "claimed"),
        claim(few, FEW, CLIPPED, BINARY, "exactly_best"),
    ]


_MEANT = {
    "claimed": "queries by their accounting",
    "exactly_best": "queries by exact outcomes",
    "counted": "queries by noisy counts",
    "gap": "votes beyond the second",
}


def _note(measured: Sequence[Row], rows: Sequence[Row], study: MixtureStudy) -> str:
    made_up = [row for row in rows if row["ensemble"] == "made up"]
    for row in made_up:
        row["case"] = row["table"]
    sections = "\n\n".join(
        f"### {name[0].upper()}{name[1:]}\n\n{_shown(_of(rows, 'labels', name))}"
        for name in ENSEMBLES
    )
    noise = [row for row in _of(rows, "noise", SURE) if row["sigma"] in (3.0, 7.0, 9.0, 14.0, 20.0)]
    return f"""# Queries answered by rules with several winners

After Tables 3, 11, 12, 14 and 15 and Figures 1 to 4, 8 to 10 and 14 of Private Multi-Winner Voting
for Machine Learning (Dziedzic et al., PoPETs 2023), on other data: orderings can be compared,
numbers cannot.

{study.described}

*High consensus* is compared with Pascal VOC (thresholds for F1, δ 10⁻⁵), *low consensus* with
CheXpert (thresholds for balanced accuracy, δ 10⁻⁶), *ten teachers* with PadChest. ε is 20 unless
stated otherwise. Intervals are Student's at 95 % over seeds.

## What holds

{claims_table(claims(measured), "Dziedzic et al.", "mixtures of sound, not pictures")}

## By labels (Tables 11 and 12, Figure 3)

{sections}

- *Theirs*: the paper's number on its own data. *Ours, their accounting*: per label Theorem 6 of
  Papernot et al. (2018) with σ on each of two counts, or λ/σ²; with τ at most λτ²/σ²; converted by
  ε = R + ln(1/δ)/(λ − 1). σ is the one with which most queries are answered, up to the largest with
  which the three rules are equally accurate ("largest σ"), on mixtures of other recordings. The
  paper tunes on the queries themselves.
- That is not the true cost: V¹ + N(0, σ²) > n − V¹ (Definitions 4 and 7) leaves noise σ/2 on V¹,
  and Theorem 6 bounds one direction. *Exact outcomes* are the divergences of the published bits in
  both directions, for a curator who holds the votes; sets are slow, so they are computed for 11 and
  20 labels at high consensus only. They depend on the votes, so publish neither them nor the point
  at which they stop.
- *Noisy counts* hold whatever the votes, also against a server that sees the sum: λk/2s², with τ
  λ·min(2τ², k)/2s², s = σ/2; for sets λ/σ².
- A Powerset winner is lost in the noise of 2²⁰ sets, and sooner here than on VOC, whose gap is 18.
  At low consensus ours falls behind from 8 labels on; on CheXpert, whose labels depend on each
  other, neither rule is ahead.

## By noise (Figures 4 and 14), high consensus

{_shown(noise)}

"L2-DI" and "L1-DI" are clipped ballots whatever the votes. The claim charges L1 with its L1 norm,
which makes L2 many times better; the true costs of their counts differ by a few queries.

## By ε and δ (Tables 3 and 14), Binary, high consensus

{_shown(_of(rows, "epsilon", SURE), "epsilon")}

{_shown(_of(rows, "delta", SURE), "delta")}

## Sets of at most v labels (Table 15), Powerset, high consensus

{_shown(_of(rows, "set size", SURE), "most")}

## Made-up votes, and their own parameters (Figure 1, F.9)

{_shown(made_up, "case")}

Figure 1 has {_MADE_UP} random ballots at ε 20, unanimous zeros at ε 2, σ 7. F.9 is τ voting
whatever the votes: exactly ⌊ρ(20)σ²/τ²⌋. By noisy counts fewer are answered: a τ of 3 saves nothing
with 11 labels.

{study.served()}
"""


def _draw(rows: Sequence[Row], path: Path) -> None:
    charts = [
        lambda axis: _draw_claimed(axis, rows, SURE, "VOC"),
        lambda axis: _draw_claimed(axis, rows, TORN, "CheXpert"),
        lambda axis: _draw_sound(axis, rows),
        lambda axis: _draw_by_noise(axis, rows, SURE),
        lambda axis: _draw_by_noise(axis, rows, FEW),
        lambda axis: _draw_answers(axis, rows),
    ]
    multiples(path, (15, 9), 3, charts)


def _draw_claimed(axis: Any, rows: Sequence[Row], ensemble: str, beside: str) -> None:
    _draw_by_labels(axis, rows, ensemble, "claimed", "their accounting")
    for rule in (BINARY, POWERSET):
        printed = PRINTED[ensemble, rule]
        colour, marker = _LOOKS[rule]
        style = {"color": colour, "marker": marker, "markerfacecolor": "none"}
        label = f"{rule}, theirs ({beside})"
        axis.plot(list(printed), list(printed.values()), ":", label=label, **style)
    axis.set_title(f"{ensemble}: as they count, beside {beside}")
    _count_queries(axis)


def _draw_sound(axis: Any, rows: Sequence[Row]) -> None:
    _draw_by_labels(axis, rows, SURE, "exactly_best", "exact outcomes", (BINARY, CLIPPED))
    _draw_by_labels(axis, rows, SURE, "counted", "noisy counts", RULES, "--")
    axis.set_title(f"{SURE}: soundly counted")
    _count_queries(axis)


def _draw_by_noise(axis: Any, rows: Sequence[Row], ensemble: str) -> None:
    for rule, own, column, name, line in (
        (BINARY, BINARY, "claimed", "Binary, their accounting", "-"),
        (CLIPPED, CLIPPED, "claimed", "τ, their accounting", "-"),
        (CLIPPED, "L2-DI", "claimed", "τ, whatever the votes (L2-DI)", ":"),
        (BINARY, BINARY, "exactly", "Binary, exact outcomes", "--"),
        (BINARY, BINARY, "counted", "Binary, noisy counts", ":"),
    ):
        _curve(axis, _of(rows, "noise", ensemble, own), "sigma", column, rule, name, line)
    axis.set_title(f"{ensemble}, 20 labels")
    axis.set_xlabel("σ")
    _count_queries(axis)


def _draw_answers(axis: Any, rows: Sequence[Row]) -> None:
    for rule, name in (
        (BINARY, "Binary, 20 labels"),
        (CLIPPED, "τ, 20"),
        (POWERSET, "Powerset, 11"),
    ):
        _curve(axis, _of(rows, "noise", SURE, rule), "sigma", "BAC", rule, name, "-")
    axis.set_title(f"{SURE}: answers (Figure 2)")
    axis.set_ylabel("balanced accuracy")
    axis.set_xlabel("σ")
    axis.legend(fontsize=8)


def _count_queries(axis: Any) -> None:
    axis.set_yscale("symlog", linthresh=1)
    axis.set_ylim(0, 60_000)
    axis.set_ylabel("queries answered at ε 20")
    axis.legend(fontsize=7, ncols=2)


def _draw_by_labels(
    axis: Any,
    rows: Sequence[Row],
    ensemble: str,
    column: str,
    name: str,
    rules: Sequence[str] = RULES,
    line: str = "-",
) -> None:
    for rule in rules:
        found = _of(rows, "labels", ensemble, rule)
        _curve(axis, found, "labels", column, rule, f"{rule}, {name}", line)
    axis.set_xlabel("labels")


def _curve(axis: Any, rows: Sequence[Row], x: str, y: str, rule: str, name: str, line: str) -> None:
    shown = [row for row in rows if row[y] != ""]
    colour, marker = _LOOKS[rule]
    look = {"fmt": line, "color": colour, "marker": marker, "markersize": 4, "capsize": 2}
    curve(axis, [float(row[x]) for row in shown], shown, y, label=name, **look)
