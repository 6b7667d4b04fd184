"""`earshot reproduce multi-winner-queries`: the table, the picture and the note."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.dziedzic.multi_winner import BINARY, CLIPPED, POWERSET, RULES, Study
from earshot_studies.dziedzic.tables import (
    ENSEMBLES,
    FEW,
    PRINTED,
    SURE,
    TORN,
    data_independent,
    figure_1,
    measure,
)
from earshot_studies.kit.outcome import Outcome, Row, means

NAME = "multi-winner-queries"

_SAME = ("table", "ensemble", "rule", "labels", "most", "epsilon", "delta", "theirs")
_MEANS = ("sigma", "claimed", "exactly", "exactly_best", "counted", "counted_sigma", "gap")
_MEASURES = ("ACC", "BAC", "AUC", "MAP")
_LOOKS = {BINARY: ("#1f77b4", "o"), CLIPPED: ("#2ca02c", "s"), POWERSET: ("#d62728", "^")}

Key = tuple[Any, ...]


def reproduce(study: Study) -> Outcome:
    """All tables and figures."""
    measured = [
        {"seed": 0, "ensemble": "made up", **row} for row in (*figure_1(), *data_independent())
    ]
    rows = averaged([*measured, *measure(study)])
    return Outcome(NAME, rows, lambda path: _draw(rows, path), _note(rows, study))


def averaged(rows: Sequence[Row]) -> list[Row]:
    """Means over seeds with half of their 95 % intervals; noise is kept apart where it varies."""
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


def _said(row: Row, name: str) -> str:
    """Queries, with their interval."""
    if row[name] == "":
        return "–"
    wide = row[f"{name}_interval_95"]
    return f"{float(row[name]):.0f}" + ("" if wide in ("", 0.0) else f" ± {float(wide):.0f}")


def _plain(name: str) -> Callable[[Row], str]:
    """A column as it is: numbers in as few digits as they have."""
    return lambda row: f"{row[name]:g}" if isinstance(row[name], float) else str(row[name])


def _shown(rows: Sequence[Row], *extra: str) -> str:
    """As a table of the note."""
    columns: dict[str, Callable[[Row], Any]] = {
        "rule": lambda row: row["rule"],
        "labels": lambda row: row["labels"],
        **{name: _plain(name) for name in extra},
        "σ": lambda row: f"{float(row['sigma']):.3g}",
        "theirs": lambda row: row["theirs"],
        "ours, their accounting": lambda row: _said(row, "claimed"),
        "exact outcomes, same σ": lambda row: _said(row, "exactly"),
        "largest σ": lambda row: f"{float(row['counted_sigma']):.3g}",
        "exact outcomes, better σ": lambda row: _said(row, "exactly_best"),
        "noisy counts, largest σ": lambda row: _said(row, "counted"),
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


def _ratio(rows: Sequence[Row], ensemble: str, column: str) -> str:
    found = {
        row["rule"]: row[column] for row in _of(rows, "labels", ensemble) if row["labels"] == 20
    }
    over, under = found[BINARY], found[POWERSET]
    if over == "" or under == "" or not float(under):
        return "–"
    return f"{float(over) / float(under):.1f}"


def _beside(rows: Sequence[Row], ensemble: str, column: str) -> str:
    """Of all labels: τ beside Binary."""
    found = {
        row["rule"]: _said(row, column)
        for row in _of(rows, "labels", ensemble)
        if row["labels"] == 20
    }
    return f"{found[CLIPPED]} for τ, {found[BINARY]} for Binary"


def _note(rows: Sequence[Row], study: Study) -> str:
    made_up = [row for row in rows if row["ensemble"] == "made up"]
    for row in made_up:
        row["case"] = row["table"]
    sections = "\n\n".join(
        f"### {name[0].upper()}{name[1:]}\n\n{_shown(_of(rows, 'labels', name))}"
        for name in ENSEMBLES
    )
    ten = _beside(rows, FEW, "claimed")
    ten_exactly = _beside(rows, FEW, "exactly_best")
    gap = float(_of(rows, "labels", SURE, POWERSET)[-1]["gap"])
    noise = [row for row in _of(rows, "noise", SURE) if row["sigma"] in (3.0, 7.0, 9.0, 14.0, 20.0)]
    return f"""# Queries answered by rules with several winners

After Tables 3, 11, 12, 14 and 15 and Figures 1 to 4, 8 to 10 and 14 of Private Multi-Winner Voting
for Machine Learning (Dziedzic et al.,
PoPETs 2023). Its data (Pascal VOC, three sets of chest X-rays) are not here, so
what can be compared are orderings and ratios, not numbers.

{study.described}

Ensembles: *high consensus* stands beside Pascal VOC (thresholds for F1, δ 10⁻⁵), *low consensus*
beside CheXpert (thresholds for balanced accuracy, δ 10⁻⁶), *ten teachers* beside PadChest. ε is 20
where nothing else is said.

## How to read it

- *Theirs*: the paper's number on its own data.
- *Ours, their accounting*: per label Theorem 6 of Papernot et al. (2018) with σ on each of two
  counts, or λ/σ²; with τ at most λτ²/σ². Conversion ε = R + ln(1/δ)/(λ − 1). Of all noise with
  which the three rules are equally right on validation mixtures ("largest σ"), the σ with which
  most are answered.
- That is not what the mechanism costs. V¹ + N(0, σ²) > n − V¹ (Definitions 4 and 7; Algorithm 1 is
  the same law) leaves noise σ/2 on V¹, and Theorem 6 bounds one direction only. *Exact outcomes*
  are the Rényi divergences of the bits that are published, worked out in both directions with noise
  σ/2, for a curator who holds the votes. They look at the votes, as Theorem 6 does: such a cost
  must not be published, nor labelling be stopped by it, without a release of its own.
- *Noisy counts*: what holds whatever the votes, also against a server that sees the sum: λk/2s²,
  with τ λ·min(2τ², k)/2s², s = σ/2; for sets λ/σ². This number of queries depends on no vote.
- For sets, exact outcomes are worked out for 11 and 20 labels at high consensus: their laws take
  long. "Better σ" is the larger number of the two noises.
- The unit is all that one teacher holds, against what another one might. A recording that serves
  several teachers costs as many times that, squared. *AUC* of hard answers equals BAC.

## By labels (Tables 11 and 12, Figure 3)

{sections}

Binary answers {_ratio(rows, SURE, "claimed")} times as many queries as Powerset at 20 labels where
consensus is high (theirs: 5.5), by noisy counts {_ratio(rows, SURE, "counted")}. Gaps (Figures 8
to 10) are votes of the winner beyond those of the second: theirs are above 40 for Binary, and 18
(VOC) and 13 (CheXpert) on average for Powerset. With ten teachers τ comes first, as in the paper on
PadChest: {ten} at 20 labels by their accounting, {ten_exactly} by exact outcomes.

## By noise (Figures 4 and 14), high consensus

{_shown(noise)}

"L2-DI" and "L1-DI" are clipped ballots whatever the votes. The claim charges L1 with its L1 norm,
which makes L2 many times better; by what the counts really cost both are the same within a few
queries.

## By ε and δ (Tables 3 and 14), Binary, high consensus

{_shown(_of(rows, "epsilon", SURE), "epsilon")}

{_shown(_of(rows, "delta", SURE), "delta")}

## Sets of at most v labels (Table 15), Powerset, high consensus

{_shown(_of(rows, "set size", SURE), "most")}

## Made-up votes, and their own parameters (Figure 1, F.9)

{_shown(made_up, "case")}

Figure 1 has random ballots at ε 20 on the left, unanimous zeros at ε 2 on the right, σ 7; 500 are
all that were made up. F.9 says 123 (VOC) and 48 (MIMIC) for τ voting whatever the votes: exactly
⌊ρ(20)σ²/τ²⌋. By what the noisy counts cost it is a quarter of 123; and 20 for MIMIC, whose τ of 3
saves nothing with 11 labels: min(2τ², k) = k.

## Where it differs

- Their noise is tuned on the queries themselves, ours on mixtures of other recordings.
- Their Table 11 chooses a σ for each cell by hand; ours follows one rule, see above.
- At 20 labels Powerset is left with {gap:.0f} votes of gap here, Pascal VOC with 18: the noise of
  2²⁰ sets drowns it sooner, and the ratio is larger.
- At low consensus Powerset falls behind from 8 labels on; on CheXpert neither rule is ahead, as its
  labels depend on each other and ours, drawn at random, do not.
- Intervals are Student's at 95 % over seeds.

{study.served()}
"""


def _draw(rows: Sequence[Row], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 9), layout="constrained")
    panels = figure.subplots(2, 3)
    for axis, ensemble, beside in ((panels[0][0], SURE, "VOC"), (panels[0][1], TORN, "CheXpert")):
        _by_labels(axis, rows, ensemble, "claimed", "their accounting")
        for rule in (BINARY, POWERSET):
            printed = PRINTED[ensemble, rule]
            colour, marker = _LOOKS[rule]
            style = {"color": colour, "marker": marker, "markerfacecolor": "none"}
            label = f"{rule}, theirs ({beside})"
            axis.plot(list(printed), list(printed.values()), ":", label=label, **style)
        axis.set_title(f"{ensemble}: as they count, beside {beside}")
    _by_labels(panels[0][2], rows, SURE, "exactly_best", "exact outcomes", (BINARY, CLIPPED))
    _by_labels(panels[0][2], rows, SURE, "counted", "noisy counts", RULES, "--")
    panels[0][2].set_title(f"{SURE}: soundly counted")
    for axis, ensemble in ((panels[1][0], SURE), (panels[1][1], FEW)):
        for rule, name, line in (
            (BINARY, "Binary, their accounting", "-"),
            (CLIPPED, "τ, their accounting", "-"),
        ):
            _curve(axis, _of(rows, "noise", ensemble, rule), "sigma", "claimed", rule, name, line)
        chosen = _of(rows, "noise", ensemble, "L2-DI")
        _curve(axis, chosen, "sigma", "claimed", CLIPPED, "τ, whatever the votes (L2-DI)", ":")
        exact = _of(rows, "noise", ensemble, BINARY)
        _curve(axis, exact, "sigma", "exactly", BINARY, "Binary, exact outcomes", "--")
        _curve(axis, exact, "sigma", "counted", BINARY, "Binary, noisy counts", ":")
        axis.set_title(f"{ensemble}, 20 labels")
        axis.set_xlabel("σ")
    axis = panels[1][2]
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
    for axis in (*panels[0], *panels[1][:2]):
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(0, 60_000)
        axis.set_ylabel("queries answered at ε 20")
        axis.legend(fontsize=7, ncols=2)
    figure.savefig(path, dpi=110)


def _by_labels(
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
    places = [float(row[x]) for row in shown]
    means = [float(row[y]) for row in shown]
    wide = [float(row[f"{y}_interval_95"] or 0.0) for row in shown]
    axis.errorbar(
        places,
        means,
        yerr=wide,
        fmt=line,
        color=colour,
        marker=marker,
        markersize=4,
        capsize=2,
        label=name,
    )
