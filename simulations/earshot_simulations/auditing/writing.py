"""An audit as JSON, as a table for the terminal, and as sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.markup import escape

from earshot_simulations.auditing.findings import AuditRole, Check, Finding, Result

if TYPE_CHECKING:
    from rich.table import Table

ROLES = {
    AuditRole.PRODUCT: "Earshot's own mechanisms",
    AuditRole.FAULT: "Planted faults",
}

TITLES = {
    "ballot-sum": "Votes and histograms, added up by a secure sum or by two operators",
    "vector-sum": "Sums of vectors by cell and by label, added up by either",
    "vote-sum": "Votes on samples, and their checks, added up by either",
    "dp-lloyd": "Clustering on a phone, with Laplace noise",
    "spherical-dp-lloyd": "Clustering on a phone, with Gaussian noise",
    "private-runs": "The best of several clusterings on a phone",
    "selection": "Selection of the centroids that a phone publishes",
    "teachers-votes": "Votes of teachers, tallied by real secure sums",
    "several-winners": "Votes with several winners, by a curator",
    "thresholds": "Votes against thresholds, by a curator and by secure sums",
    "curator-votes": "Votes with one winner, by a curator, and owners' budgets",
    "published-costs": "Published data-dependent costs",
    "phases": "Whole phases, all of their steps together",
    "whole-phones": "Whole phones through whole phases: their noise, and their ledgers",
    "samplers": "The samplers of noise",
    "secure-sum": "The secrets of the secure sum",
    "two-operators": "The noise of two operators, in real sums",
    "proved-ballots": "Each operator's view of a proved ballot",
    "false-inputs": "What phones with programs of their own get counted",
    "faults": "Broken on purpose",
}
"""Descriptions of subjects, by the names that select them."""
_LOOSE = 1.1
"""Ratio of two bounds below which a number between them is shown as one of them."""


def figures(results: Sequence[Result], seconds: float) -> dict[str, Any]:
    """Return all results in plain types; infinity becomes the string `infinite`."""
    return {
        "passed": all(result.passed for result in results),
        "seconds": round(seconds, 1),
        "findings": [_finding(each) for each in results if isinstance(each, Finding)],
        "checks": [_check(each) for each in results if isinstance(each, Check)],
    }


def summary(results: Sequence[Result]) -> str:
    """Return the outcome as a sentence."""
    product = [each for each in results if each.role is AuditRole.PRODUCT]
    faults = [each for each in results if each.role is AuditRole.FAULT]
    clauses = []
    broken = sum(not each.passed for each in product)
    if broken:
        clauses.append(f"{broken} of {len(product)} claims cost more than is proven")
    elif product:
        clauses.append(f"none of {len(product)} audited claims costs more than is proven")
    if faults:
        caught = sum(each.passed for each in faults)
        clauses.append(f"{caught} of {len(faults)} planted faults are caught")
    text = "; ".join(clauses)
    return f"{text[:1].upper()}{text[1:]}."


def row(finding: Finding) -> tuple[str, ...]:
    """Return case, unit, claimed, proven, measured, power and verdict."""
    return (
        finding.case,
        finding.unit,
        number(finding.claimed),
        "–" if finding.proven is None else number(finding.proven),
        measured(finding),
        finding.power,
        finding.verdict,
    )


def check_row(check: Check) -> tuple[str, ...]:
    """Return case, required and found state, power and verdict."""
    return check.case, check.required, check.found, check.power, check.verdict


def measured(finding: Finding) -> str:
    """Format the measured ε: a number, or a lower bound if the upper one is not close."""
    low, high = finding.measured.low, finding.measured.high
    sign = "≥ " if high > _LOOSE * low + _LOOSE - 1 and math.isfinite(low) else ""
    return sign + number(finding.measured.low)


def number(value: float) -> str:
    """Format a number to four digits."""
    if math.isinf(value):
        return "∞"
    return f"{value:,.1f}" if value >= 1000 else f"{value:.4g}"


def show(results: Sequence[Result]) -> None:
    """Print two tables for each role, of findings and of checks, and the summary."""
    from rich.console import Console

    console = Console()
    for role, title in ROLES.items():
        chosen = [result for result in results if result.role is role]
        findings = [(each.subject, row(each), each) for each in chosen if isinstance(each, Finding)]
        checks = [
            (each.subject, check_row(each), each) for each in chosen if isinstance(each, Check)
        ]
        numbers = ("unit", "claimed ε", "proven ε", "measured ε", "would see", "verdict")
        for words, columns, rows in (
            (title, numbers, findings),
            (f"{title}: checks", ("required", "found", "would see", "verdict"), checks),
        ):
            if rows:
                console.print(_table(words, columns, rows))
    passed = all(each.passed for each in results)
    console.print(summary(results), style="" if passed else "bold red", highlight=False)


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, tuple[str, ...], Result]]
) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        expand=True,
        padding=(0, 1, 0, 0),
    )
    table.add_column("", ratio=2, min_width=16)
    for column in columns:
        if column in ("required", "found", "would see"):
            table.add_column(column, ratio=1, min_width=9)
        else:
            justify: Literal["left", "right"] = "right" if "ε" in column else "left"
            table.add_column(
                column, justify=justify, no_wrap=column != "unit", min_width=6, max_width=14
            )
    before = ""
    for subject, cells, result in rows:
        if subject != before:
            before = subject
            table.add_row(f"[bold]{TITLES[subject]}[/bold] ({subject})")
        table.add_row(*map(escape, cells), style="" if result.passed else "bold red")
    return table


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "subject": finding.subject,
        "role": finding.role.value,
        "case": finding.case,
        "unit": str(finding.unit),
        "delta": finding.delta,
        "claimed": _plain(finding.claimed),
        "proven": None if finding.proven is None else _plain(finding.proven),
        "library": None if finding.library is None else _plain(finding.library),
        "measured_at_least": _plain(finding.measured.low),
        "measured_at_most": _plain(finding.measured.high),
        "method": finding.method.kind,
        "how": finding.method.words,
        "trials": finding.method.trials or None,
        "confidence": finding.method.confidence if finding.method.trials else None,
        "power": finding.power,
        "verdict": finding.verdict,
        "passed": finding.passed,
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "subject": check.subject,
        "role": check.role.value,
        "case": check.case,
        "required": check.required,
        "found": check.found,
        "how": check.words,
        "power": check.power,
        "verdict": check.verdict,
        "passed": check.passed,
    }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"
