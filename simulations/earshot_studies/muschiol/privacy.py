"""`earshot reproduce audioset-privacy`: what Muschiol (2021) says of privacy, and what holds."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot_protocol import checks
from earshot_simulations.auditing.printed_votes import adaptive_threshold
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Outcome, Row, means
from earshot_studies.muschiol.pictures import draw
from earshot_studies.muschiol.printed import TABLE_5_4, Setting, fits
from earshot_studies.muschiol.settings import GUMBEL, PUBLIC, SHARES, Ensemble, measure
from earshot_studies.muschiol.statements import SOUND, cheapest, statements

NAME = "audioset-privacy"
TEACHERS = 50

_VERSION = 1
"""Of what is kept."""
_SAME = ("table", "th_e", "th_c", "sigma_e", "sigma_c", "answers")
_COLUMNS = (
    *("answered_share", "claimed", "claimed_asked", "claimed_independent", "q"),
    *("claimed_5000", "claimed_independent_5000"),
    *("macro_f1_printed", "micro_f1_printed", "never_named_printed"),
    *("sound_share", "macro_f1_sound", "micro_f1_sound", "never_named_sound"),
    *(
        f"{whom}_{how}"
        for whom in ("left_out", "replaced", "uncut")
        for how in ("independent", "dependent", "exact")
    ),
)


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        ensemble: of a seed: what its teachers say of the queries.
        described: in a sentence, for the note.
        key: names the ensembles; what was measured of a seed is kept under it.
        work: folder of that.
        seeds: ensembles, each with its own mixtures, teachers and noise.
        progress: told how far it is.
    """

    ensemble: Callable[[int], Ensemble]
    described: str
    key: str
    work: Path
    seeds: int
    progress: Callable[[str, int, int], None] = lambda what, done, total: None

    def __post_init__(self) -> None:
        checks.whole("seeds", self.seeds)

    @property
    def numbers(self) -> range:
        """The seeds: from 1, as 0 is what this was built with."""
        return range(1, self.seeds + 1)


def reproduce(plan: Plan) -> Outcome:
    """Table 5.4's costs and Figures 5.13 to 5.16; what a seed gave is kept and read again."""
    rows = [row for seed in plan.numbers for row in _of_seed(plan, seed)]
    averaged = averages(rows)
    return Outcome(
        NAME, averaged, lambda path: draw(averaged, path), note(rows, averaged, plan.described)
    )


def _of_seed(plan: Plan, seed: int) -> list[Row]:
    name = hashlib.sha256(json.dumps([_VERSION, plan.key, seed]).encode()).hexdigest()[:16]
    path = plan.work / f"privacy-{name}.json"
    if path.is_file():
        kept: list[Row] = json.loads(path.read_text(encoding="utf-8"))
        return kept
    done = 0

    def told(what: str) -> None:
        nonlocal done
        plan.progress(f"ensemble {seed} of {plan.seeds}: {what}", done, len(PUBLIC) + 5)
        done += 1

    rows = list(measure(plan.ensemble(seed), seed, told))
    new = path.with_suffix(".new")
    new.write_text(json.dumps(rows), encoding="utf-8")
    os.replace(new, path)
    return rows


def averages(rows: Sequence[Row]) -> list[Row]:
    """Means over seeds, with half of their 95 % intervals, and what Muschiol prints beside."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        bucket = row["q"] if row["table"] == "5.16" else ""
        groups.setdefault((*(row[name] for name in _SAME), bucket), []).append(row)
    found = []
    for key, group in groups.items():
        out: Row = dict(zip(_SAME, key, strict=False))
        out["seeds"] = len(group)
        whole = [{name: row.get(name, "") for name in _COLUMNS} for row in group]
        out |= means(whole, _COLUMNS)
        printed = TABLE_5_4[2000].get((str(key[1]), str(key[2])))
        here = out["table"] == "5.4" and printed is not None
        out |= {
            "theirs": printed.dependent if here and printed else "",
            "theirs_independent": printed.independent if here and printed else "",
            "theirs_q": printed.q if here and printed else "",
        }
        found.append(out)
    return found


def _with(row: Row, name: str, digits: int = 0) -> str:
    """A mean with its interval."""
    if row[name] == "":
        return "–"
    wide = row[f"{name}_interval_95"]
    said = f"{float(row[name]):.{digits}f}"
    return said if wide in ("", 0.0) else f"{said} ± {float(wide):.{digits}f}"


def _printed(value: str | float | int) -> str:
    return "–" if value == "" else f"{float(value):.1f}"


def _table(rows: Sequence[Row]) -> str:
    shown = [
        {
            "th_e": row["th_e"],
            "th_c": row["th_c"] or "–",
            "ε, theirs": _printed(row["theirs"]),
            "ours": _with(row, "claimed"),
            "by noise, theirs": _printed(row["theirs_independent"]),
            "ours ": _with(row, "claimed_independent", 1),
            "q, theirs": row["theirs_q"] or "–",
            "ours  ": _with(row, "q", 3),
            "answered": _with(row, "answered_share", 2),
            "**holds**, noise alone": _with(row, "left_out_independent"),
            "**holds**, by votes": _with(row, SOUND),
            "F1 of their rule": _with(row, "macro_f1_printed", 2),
            "F1 of what holds": _with(row, "macro_f1_sound", 2),
        }
        for row in rows
        if row["table"] == "5.4"
    ]
    return markdown_table(shown, list(shown[0]))


def _units(rows: Sequence[Row]) -> str:
    shown = [
        {
            "th_e": row["th_e"],
            "th_c": row["th_c"] or "–",
            **{
                f"{words}, {how}": _with(row, f"{whom}_{name}")
                for whom, words in (
                    ("left_out", "left out, v = 3"),
                    ("replaced", "replaced, v = 3"),
                    ("uncut", "all outputs count"),
                )
                for name, how in (
                    ("independent", "noise"),
                    ("dependent", "Theorem 6"),
                    ("exact", "exact"),
                )
            },
        }
        for row in rows
        if row["table"] == "5.4"
    ]
    return markdown_table(shown, list(shown[0]))


def _fits() -> str:
    rows = [row for row in fits() if row["th_c"]]
    return markdown_table(rows, list(rows[0]))


def _any(setting: Setting) -> bool:
    return True


def _checked(setting: Setting) -> bool:
    return bool(setting[1])


def note(rows: Sequence[Row], averaged: Sequence[Row], described: str) -> str:
    """Markdown: the table, the statements, and why figures differ."""
    found = statements(rows)
    one = adaptive_threshold()
    right = {
        (str(row["th_e"]), str(row["th_c"])): float(row["macro_f1_sound"])
        for row in averaged
        if row["table"] == "5.4"
    }

    def good(setting: Setting) -> bool:
        return right[setting] >= 0.9 * max(right.values())

    alone, checked = (cheapest(rows, "left_out_independent", among) for among in (_any, _checked))
    return f"""# Privacy of votes against thresholds

After chapter 5.3 and Table 5.4 of Muschiol (2021). AudioSet is not here, so orderings and ratios
can be compared, and numbers only where they do not depend on votes.

{described}

Noise is σ_e = .3 and σ_c = .6, variances in units of the {TEACHERS} teachers: 3.87 and 5.48 votes.
All ε are of 2,000 answers at δ = 10⁻⁸; costs add up query by query, so they are those of the mean
answer and of the checks that an answer takes. Intervals are Student's at 95 % over ensembles.

## Table 5.4

{_table(averaged)}

*Ours* is by Muschiol's accounting: Theorems 12 to 14 with n = 3, orders from 2, its conversion,
and its adaptive threshold from votes without noise. *Holds*: a teacher left out, its three largest
outputs alone count (v = 3), noise before the adaptive threshold, a threshold from a grid of
{", ".join(f"{share:g}" for share in SHARES)} by Gumbel noise of {GUMBEL:g} votes, the best order,
and bits instead of noisy votes. *Noise alone* may be published; *by votes* is exact outcomes, in
both directions, and private itself. An adaptive threshold has no exact laws here: its cost by noise
stands in. F1 is the macro average, of answered samples.

**Its data-independent column comes out exactly**: 418.4, and 1,018.4 for 5,000 answers, at λ = 2,
where its orders end; the best order gives 321.4 and 691.9.

## What it says, and what came of it

{markdown_table([each.row() for each in found], list(found[0].row()))}

*Confirmed* and *refuted*: the whole interval is on that side. *Soundly*: the same ratio by exact
outcomes of the rules that hold.

The check improves no answer: on the samples that pass it, the same rule without a check is as
right. F1 rises because the others are left out of it.

## Which setting is cheapest

- As claimed: {cheapest(rows, "claimed")}; with a check: {cheapest(rows, "claimed", _checked)}.
- What holds, by noise alone: a fixed threshold without a check, ε = {alone.epsilon.mean:.0f},
  whichever it is: only bits leave. With a check: one at {checked.setting[1]}, ε =
  {checked.epsilon.mean:.0f}, whichever the threshold is.
- What holds, by votes: {cheapest(rows, SOUND)}; with a check: {cheapest(rows, SOUND, _checked)}.
- What holds, of settings whose F1 is nine tenths of the best one's at least: by votes
  {cheapest(rows, SOUND, good)}; by noise alone {cheapest(rows, "left_out_independent", good)}.

## Why they differ

- **An adaptive threshold of raw votes has no such bound.** One query, one vote of fifty changed,
  (50, 25, 0, 0, 0) to (50, 26, 0, 0, 0): claimed {one.claimed:.1f}, measured
  {one.measured.low:.1f}.
  Noise first holds, and costs all of its noise, as the widest gap of noisy votes is no bit.
- **n = 3 is no sensitivity**: a teacher that is trained anew may change every label. It is one
  where a teacher's three largest outputs count, and it is left out; replaced, six labels change.
- **λ = 2 is not the best order**, and **bits tell less than noisy votes**: .64 of it where λ ≪ σ.
  Together they make up for what the claims leave out.
- **Theorem 6** needs all labels to be clear at once (q), exact outcomes add up what each label
  tells, and most are clear: that is where the sound cost falls below the claimed one.
- **A check** is paid by every query that is asked, answered or not; 4.2.4 says that answered
  samples pay nothing. Its table does charge them, as this shows:

{_fits()}

Share of samples that must have been answered for Table 5.4's data-independent column, by three
formulas for the check. One noise on the largest sum for every sample *asked* gives the same share
for 2,000 and 5,000 answers and for all thresholds, near Table 5.3 (60 % and 44 %, without noise);
three noises for every unanswered one are off at .6, and three for every one asked are impossible.

## Who is meant, and how it was worked out

{_units(averaged)}

Theorem 6 bounds one direction of the divergence and is no more than the noise. *All outputs count*:
a teacher may change all twenty labels.
"""
