"""`audit.html`: an audit on one page that loads nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from earshot_protocol import distribution
from earshot_protocol.files import replace_file
from earshot_simulations.auditing.findings import SAMPLED, AuditRole, Finding, Result
from earshot_simulations.auditing.writing import ROLES, TITLES, check_row, number, row, summary
from earshot_simulations.reporting.pages import page

FILES = ("audit.json", "audit.html")
_WORDS = {
    AuditRole.PRODUCT: (
        "Each line is something that leaves a phone or a curator, for two data sets that differ in "
        "one recording, or in everything that one phone contributes. ε bounds how much the "
        "published numbers can reveal about that difference: it changes the probability of any "
        "result by at most a factor of e^ε, except with probability δ. Claimed is by the "
        "mechanism's own formula, proven is by a phone's accounting (and, next to it, by Google's "
        "dp-accounting library), and measured is computed from the noise that is really drawn. "
        "Measured may never exceed proven. Would see is the smallest error that the line would "
        "detect with a probability of at least .99."
    ),
    AuditRole.FAULT: (
        "An audit that never fails may be unable to. So each of these was broken on purpose, as "
        "such systems have been broken before, and the audit must detect it."
    ),
}


def write(results: Sequence[Result], figures: dict[str, Any], folder: Path) -> None:
    """Write `audit.json` and `audit.html`, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, allow_nan=False)
    replace_file(folder / FILES[0], f"{text}\n")
    replace_file(folder / FILES[1], render(results))


def render(results: Sequence[Result]) -> str:
    """Return the whole page as one HTML document."""
    return page(
        "auditing/page.html",
        title="privacy audit",
        kicker="Earshot · an audit of privacy claims",
        headline=summary(results),
        version=distribution.version(),
        parts=[
            _part(role, [each for each in results if each.role is role])
            for role in ROLES
            if any(each.role is role for each in results)
        ],
    )


class _Part(NamedTuple):
    """Findings and checks of one role."""

    title: str
    words: str
    findings: Mapping[str, list[list[str]]]
    checks: list[list[str]]
    methods: Iterable[str]


def _part(role: AuditRole, results: Sequence[Result]) -> _Part:
    findings: dict[str, list[list[str]]] = {}
    checks = []
    for each in results:
        title = TITLES[each.subject]
        if isinstance(each, Finding):
            findings.setdefault(title, []).append(_cells(each))
        else:
            checks.append([f"{title}: {each.case}", *check_row(each)[1:]])
    methods = dict.fromkeys(f"{TITLES[each.subject]}: {_how(each)}" for each in results)
    return _Part(ROLES[role], _WORDS[role], findings, checks, methods)


def _cells(finding: Finding) -> list[str]:
    case, unit, claimed, proven, found, seen, verdict = row(finding)
    delta = f"{finding.delta:.0e}" if finding.delta else "0"
    library = "–" if finding.library is None else number(finding.library)
    return [case, unit, delta, claimed, proven, library, found, seen, verdict]


def _how(result: Result) -> str:
    if not isinstance(result, Finding):
        return result.words
    method = result.method
    if method.kind != SAMPLED:
        return method.words
    return (
        f"{method.words}, {method.trials:,} on each of two data sets; a lower bound at a "
        f"confidence of {method.confidence:.6g} (Clopper and Pearson)"
    )
