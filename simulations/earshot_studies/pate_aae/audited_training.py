"""Study that audits training by noisy gradients, and training with planted faults.

A fault replaces parts of the training, so that it does not run as accounted for. The same functions
audit both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from earshot_protocol.progress import Progress
from earshot_simulations.auditing.findings import AuditRole, Check, Result
from earshot_simulations.auditing.watching import replaced
from earshot_studies.kit.audited import (
    AuditedLine,
    checks_table,
    draw_findings,
    findings_table,
    rows_of,
)
from earshot_studies.kit.outcome import Reproduction
from earshot_studies.pate_aae.generators import adversaries
from earshot_studies.pate_aae.generators.private_training import NoisyGradients, PrivateTraining
from earshot_studies.pate_aae.generators.randomness import Randomness
from earshot_studies.pate_aae.noisy_gradients import (
    TriedTraining,
    audit_training,
    noisy_gradients_check,
    rate_check,
    sampled_training,
    step_law_checks,
)
from earshot_studies.pate_aae.trainings import SYSTEMS, Parts

NAME = "noisy-gradients"
_TIMES_MORE = 5
"""Trials of sound steps per trial of a fault, which is easier to detect."""
_ENDLESS = 1e9
"""Norm that no gradient reaches."""
_USUAL = TriedTraining(1.0, 0.5, 1.0, 1)
"""Low-noise training that exposes faults."""


def reproduce(trials: int, seed: int, progress: Progress) -> Reproduction:
    """Audit the training, and the training with planted faults.

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
the training's own steps on a clip whose gradient is as long as clipping allows, distinguished by
their losses; and the assumptions of the law. *Planted* lines are faults, which must be caught.

{findings_table(lines)}

{checks_table(lines)}
"""
    return Reproduction(NAME, rows_of(lines), lambda path: draw_findings(lines, path), note)


def training_faults(trials: int, seed: int) -> Iterator[Result]:
    """Yield audits of planted faults: of clipping, noise, batches and a generator's input.

    Args:
        trials: Trials of real steps, on each of two data sets; ten times as many for a fault that
            is hard to detect.
        seed: Seed of the trials.
    """
    for words, tried, parts, times in gradient_faults():
        yield sampled_training(words, tried, times * trials, seed, parts, tried.rate)
    yield from broken_laws(seed)
    yield shown_clips(seed)


def gradient_faults() -> Iterator[tuple[str, TriedTraining, Parts, int]]:
    """Yield faults of gradients, noise and batches: name, training, parts, factor of the trials."""

    def unclipped(own: PrivateTraining) -> PrivateTraining:
        """Return a training with the same noise, and a norm that no gradient reaches."""
        return replace(own, norm=_ENDLESS, noise=own.noise * own.norm / _ENDLESS)

    class ClippedBatch(NoisyGradients):
        """A batch whose mean gradient is clipped, instead of each clip's own."""

        def __init__(self, clips: Any, training: PrivateTraining, *others: Any) -> None:
            super().__init__(clips, unclipped(training), *others)
            whole = self._clipped

            def together(moving: Any, own: Any, draws: Any, still: Any, padding: Any) -> Any:
                total = whole(moving, own, draws, still, padding)
                there = max(1, int((~np.asarray(padding)).sum()))
                return total * min(1.0, training.norm * there / float(np.linalg.norm(total)))

            self._clipped = together

    class InOrder(NoisyGradients):
        """Batches in a public order, accounted as random ones."""

        def batches(self, number: int) -> list[Any]:
            clips = len(self._clips)
            size = round(self._training.rate * clips)
            return [(number * size + np.arange(size)) % clips]

    half = Parts(training=lambda own: replace(own, noise=own.noise / 2))
    bare = Parts(training=lambda own: replace(own, noise=own.noise / own.norm))
    yield "gradients that are not clipped", _USUAL, Parts(training=unclipped), 1
    yield "a batch's gradient clipped, not each clip's", _USUAL, Parts(ClippedBatch), 1
    yield "half the noise on gradients", replace(_USUAL, noise=2.0), half, 10
    yield "noise that is not scaled by the norm", replace(_USUAL, norm=4.0), bare, 1
    ordered = "batches in the order of clips, accounted as random"
    yield ordered, replace(_USUAL, rate=0.1), Parts(InOrder), 1


def broken_laws(seed: int) -> Iterator[Check]:
    """Yield checks of real steps under faults of batches and noise, which they must detect."""

    class Shuffled(NoisyGradients):
        """Batches of one size from a shuffled order, accounted as Poisson samples."""

        def batches(self, number: int) -> list[Any]:
            clips = len(self._clips)
            size = round(self._training.rate * clips)
            epoch, place = divmod(number, clips // size)
            order = self._randomness.generator("batch", epoch).permutation(clips)
            return [order[place * size : (place + 1) * size]]

    class OneKey(Randomness):
        """Randomness whose noise is the same in every step."""

        def key(self, *names: object) -> Any:
            return super().key(names[0])

    for fault, parts, which in (
        ("shuffled batches", Parts(Shuffled), slice(2)),
        ("one noise for all steps", Parts(randomness=OneKey), slice(3, 4)),
    ):
        for check in list(step_law_checks(seed, parts))[which]:
            yield replace(check, case=f"{fault}: {check.case}")
    often = Parts(training=lambda own: replace(own, rate=1.05 * own.rate))
    yield replace(rate_check(seed, often), case="clips sampled 5 % too often")


def shown_clips(seed: int) -> Check:
    """Check a generator that sees clips in each of its steps, beside the noisy gradients."""
    gan, moved = SYSTEMS[1], adversaries.decoder_moved

    def train(clips: Any, given: int) -> Any:
        def peeking(state: Any, own: Any, settings: Any) -> Any:
            return moved(state, own._replace(on_sample=own.on_sample + clips[:1]), settings)

        with replaced(adversaries, decoder_moved=peeking):
            return gan.train(clips, given)

    check = noisy_gradients_check(replace(gan, train=train), seed)
    return replace(check, case=f"a generator that is shown clips: {check.case}")
