"""Privacy costs that papers and a library claim, beside the measured ones.

Most of these claims are wrong. Earshot's own costs are corrected, and none of these mechanisms runs
on a phone or at a curator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_simulations.auditing.findings import AuditRole, Finding
from earshot_studies.dziedzic import claims as dziedzic
from earshot_studies.kit.audited import (
    WRONG,
    AuditedLine,
    claimed,
    draw_findings,
    findings_table,
    rows_of,
)
from earshot_studies.kit.making import make
from earshot_studies.kit.outcome import Reproduction
from earshot_studies.liebenow import claims as liebenow
from earshot_studies.muschiol import claims as muschiol
from earshot_studies.papernot import claims as papernot
from earshot_studies.pate_aae import claims as pate_aae

if TYPE_CHECKING:
    from earshot_protocol.progress import Progress

NAME = "printed-claims"
CLAIMS: dict[str, Callable[[], Iterator[Finding]]] = {
    "Liebenow (2022), and its sources": liebenow.claims,
    "Papernot et al. (2018)": papernot.claims,
    "Dziedzic et al. (2023)": dziedzic.claims,
    "Muschiol (2021)": muschiol.claims,
    "Yang et al. (2021)": pate_aae.claims,
}
"""Claims by paper."""
FAULTS = (liebenow.laplace_shares, muschiol.raw_threshold)
"""Planted faults: wrong claims sold as ours, which the same measurements must see."""


def printed_claims(*, out: Path, overwrite: bool = False) -> None:
    """Measure 16 privacy costs that papers and a library claim.

    Args:
        out: New folder for the CSV, the picture and the Markdown note.
        overwrite: Replace these files where --out has them.
    """
    make(NAME, out, overwrite, reproduce, resumes=())


def reproduce(progress: Progress) -> Reproduction:
    """Measure all claims and both planted faults.

    Args:
        progress: Callback for progress.
    """
    claims: list[AuditedLine] = []
    for done, (paper, of_paper) in enumerate(CLAIMS.items()):
        progress(paper, done, len(CLAIMS))
        claims += [claimed(paper, each) for each in of_paper()]
    progress("all papers", len(CLAIMS), len(CLAIMS))
    planted = [replace(plant(), role=AuditRole.FAULT) for plant in FAULTS]
    faults = [AuditedLine("planted", each, each.verdict) for each in planted]
    lines = [*claims, *faults]
    wrong = sum(each.verdict == WRONG for each in claims)
    note = f"""# Claimed costs of papers and a library

{wrong} of {len(claims)} claims are wrong: more is measured than is claimed. *Proven* is the cost by
our accountant where it has one; where the order λ is given, the figures are divergences.

{findings_table(claims)}

The same measurements must see two wrong claims that are sold as sound:

{findings_table(faults)}
"""
    return Reproduction(NAME, rows_of(lines), lambda path: draw_findings(lines, path), note)
