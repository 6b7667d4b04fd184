"""Claims and planted faults of a study as the audit measures them: rows, a table and a picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from earshot_simulations.auditing.findings import Finding, Result
from earshot_simulations.auditing.writing import measured, number
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Row

WRONG, RIGHT, BROKEN = "claim is wrong", "claim holds", "BROKEN"
_ROUNDING = 1e-9
"""Relative difference of two computations of the same ε."""
_INCHES_A_LINE = 0.32
_LONGEST_CASE = 80
"""Characters of a case that a picture shows."""


@dataclass(frozen=True)
class AuditedLine:
    """A result of an audit, in a study.

    Attributes:
        of: Paper, or part of the study, that it belongs to.
        result: Finding or check.
        verdict: Verdict on it.
    """

    of: str
    result: Result
    verdict: str


def claimed(of: str, finding: Finding) -> AuditedLine:
    """Return a paper's claim with its verdict: wrong if more is measured than is claimed."""
    if finding.exceeds:
        return AuditedLine(of, finding, BROKEN)
    wrong = finding.measured.low > finding.claimed * (1 + _ROUNDING)
    return AuditedLine(of, finding, WRONG if wrong else RIGHT)


def rows_of(lines: Iterable[AuditedLine]) -> list[Row]:
    """Return the rows of the CSV, with the columns of findings and of checks."""
    return [_row(each) for each in lines]


def _row(line: AuditedLine) -> Row:
    found, check = (line.result, None) if isinstance(line.result, Finding) else (None, line.result)
    proven = found.proven if found else None
    return {
        "of": line.of,
        "case": line.result.case,
        "unit": found.unit if found else "",
        "delta": found.delta if found else "",
        "claimed": found.claimed if found else "",
        "proven": "" if proven is None else proven,
        "measured_at_least": found.measured.low if found else "",
        "measured_at_most": found.measured.high if found else "",
        "required": check.required if check else "",
        "found": check.found if check else "",
        "would_see": line.result.power,
        "verdict": line.verdict,
    }


def findings_table(lines: Sequence[AuditedLine]) -> str:
    """Return the lines that are findings as a Markdown table."""
    columns = ("", "unit", "δ", "claimed ε", "proven ε", "measured ε", "verdict")
    rows = []
    for line in lines:
        if isinstance(found := line.result, Finding):
            proven = "–" if found.proven is None else number(found.proven)
            values = (found.case, found.unit, f"{found.delta:g}")
            epsilons = (number(found.claimed), proven, measured(found))
            rows.append(dict(zip(columns, (*values, *epsilons, line.verdict), strict=True)))
    return markdown_table(rows, columns)


def checks_table(lines: Sequence[AuditedLine]) -> str:
    """Return the lines that are checks as a Markdown table."""
    columns = ("", "required", "found", "would see", "verdict")
    rows = []
    for line in lines:
        if not isinstance(check := line.result, Finding):
            cells = (check.case, check.required, check.found, check.power)
            rows.append(dict(zip(columns, (*cells, line.verdict), strict=True)))
    return markdown_table(rows, columns)


def draw_findings(lines: Sequence[AuditedLine], path: Path) -> None:
    """Write a picture of claimed and measured ε; an infinite one lies at the right edge."""
    from matplotlib.figure import Figure

    found = [line.result for line in lines if isinstance(line.result, Finding)]
    figure = Figure(figsize=(11, 1 + _INCHES_A_LINE * len(found)), layout="constrained")
    axes = figure.subplots()
    values = {
        "claimed": [each.claimed for each in found],
        "measured": [each.measured.low for each in found],
    }
    largest = max(each for own in values.values() for each in own if math.isfinite(each))
    for (name, own), marker in zip(values.items(), "ox", strict=True):
        places = [min(each, 10 * largest) for each in own]
        axes.plot(places, range(len(found)), marker, label=f"{name} ε")
    axes.set_xscale("log")
    axes.set_yticks(range(len(found)), [each.case[:_LONGEST_CASE] for each in found])
    axes.tick_params(axis="y", labelsize=7)
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, dpi=110)
