"""The audit of training by noisy gradients as a study: what holds, and what planted faults show."""

from __future__ import annotations

from dataclasses import replace

from earshot_protocol.progress import Progress
from earshot_simulations.auditing.findings import AuditRole
from earshot_studies.kit.audited import (
    AuditedLine,
    checks_table,
    draw_findings,
    findings_table,
    rows_of,
)
from earshot_studies.kit.outcome import Reproduction
from earshot_studies.pate_aae.noisy_gradients import audit_training
from earshot_studies.pate_aae.training_faults import training_faults

NAME = "noisy-gradients"
_TIMES_MORE = 5
"""Trials of sound steps for each of a fault, which is easier to see."""


def reproduce(trials: int, seed: int, progress: Progress) -> Reproduction:
    """Audit the training, and plant its faults.

    Args:
        trials: Trials of real steps on each of two data sets.
        seed: Seed of the trials.
        progress: Callback for progress.
    """
    lines: list[AuditedLine] = []
    for done, (of, role, results) in enumerate(
        (
            ("training", AuditRole.PRODUCT, audit_training(trials, seed)),
            ("planted", AuditRole.FAULT, training_faults(trials // _TIMES_MORE, seed)),
        )
    ):
        progress(of, done, 2)
        found = [replace(each, role=role) for each in results]
        lines += [AuditedLine(of, each, each.verdict) for each in found]
    progress("planted", 2, 2)
    note = f"""# Training by noisy gradients

The law of Gaussian noise on Poisson batches, by integration, in both directions and over all steps;
the training's own steps on a clip whose gradient is as long as clipping allows, told apart by their
losses; and the conditions on which the law rests. *Planted* lines are faults, which must be caught.

{findings_table(lines)}

{checks_table(lines)}
"""
    return Reproduction(NAME, rows_of(lines), lambda path: draw_findings(lines, path), note)
