"""Private training of generators: the cost of its noisy gradients, and the proof's assumptions.

The cost is computed exactly from the law of the losses of all steps, and bounded by trials of real
steps. Checks test the assumptions: no clip moves a sum by more than the norm, the noise is Gaussian
and new in every step, batches are Poisson samples, and the result depends on clips only through
noisy gradients.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from earshot_protocol.arrays import Numbers
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import (
    EXACT,
    SAMPLED,
    Check,
    Finding,
    Result,
    Technique,
    p_said,
)
from earshot_simulations.auditing.sampling import (
    CONFIDENCE,
    Outcome,
    OutcomeLaw,
    law_check,
    sampled_epsilon,
)
from earshot_studies.kit import dp_sgd
from earshot_studies.pate_aae import budgets, trainings
from earshot_studies.pate_aae.generators.private_training import PrivateTraining
from earshot_studies.pate_aae.subsampled_gaussian import realized, training_epsilon
from earshot_studies.pate_aae.trainings import SOUND, SYSTEMS, Parts, PrivateSystem

_UNIT = "clip, there or not"
_DELTA = 1e-5
_CLIPS = 1000
_TRIED_STEPS = 4
_LAW_STEPS = 600
_RATE, _MANY_CLIPS = 0.1, 5000
"""Rate and clips of the batches that are counted."""
_BLOCK = 20
"""Steps of a block, in which each clip's batches are counted."""
_FIT = 1e-6
_SINGLE = 1e-5
"""Relative room for the rounding of single precision."""
_DEVIATIONS = 6.0


@dataclass(frozen=True)
class RequestedTraining:
    """A training given by its budget and size.

    Attributes:
        epsilon: Budget ε.
        clips: Number of clips.
        batch: Clips in a step, on average.
        steps: Number of steps.
    """

    epsilon: float
    clips: int
    batch: int
    steps: int


SETTINGS = (
    RequestedTraining(1.0, 1800, 64, 2000),
    RequestedTraining(10.0, 450, 64, 1000),
    RequestedTraining(100.0, 1800, 90, 500),
)
"""Trainings on spoken digits of four speakers, and of one."""


@dataclass(frozen=True)
class TriedTraining:
    """A training whose real steps are sampled, with so little noise that few trials suffice.

    Attributes:
        noise, rate, norm, steps: Fields of `PrivateTraining`.
    """

    noise: float
    rate: float
    norm: float
    steps: int

    @property
    def words(self) -> str:
        """Training as text."""
        return (
            f"noise {self.noise:g}, rate {self.rate:g}, {self.steps} "
            f"step{'s' if self.steps > 1 else ''}, clipped to {self.norm:g}"
        )


TRIED = (TriedTraining(0.8, 0.5, 1.0, 1), TriedTraining(1.2, 0.3, 0.5, _TRIED_STEPS))


def audit_training(trials: int, seed: int) -> Iterator[Result]:
    """Audit `SETTINGS` exactly, `TRIED` by real steps, and the assumptions of both.

    Args:
        trials: Transcripts of real steps, on each of two data sets.
        seed: Seed of the trials.
    """
    for setting in SETTINGS:
        yield budget_finding(setting)
    for tried in TRIED:
        yield sampled_training(f"real steps: {tried.words}", tried, trials, seed)
    yield from step_law_checks(seed)
    yield rate_check(seed)
    for system in SYSTEMS:
        yield longest_gradient_check(system, seed)
        yield noisy_gradients_check(system, seed)


def budget_finding(setting: RequestedTraining) -> Finding:
    """Compare a budget with the cost of the noise calibrated to it."""
    noise = budgets.dp_sgd(setting.epsilon, _DELTA, setting.clips, setting.steps, setting.batch)
    rate = setting.batch / setting.clips
    return Finding(
        f"{setting.clips} clips, {setting.batch} in a batch, {setting.steps} steps, noise "
        f"{noise:.3g}",
        _UNIT,
        _DELTA,
        setting.epsilon,
        dp_sgd.training_epsilon(noise, rate, setting.steps, _DELTA),
        training_epsilon(noise, rate, setting.steps, _DELTA),
        Technique(EXACT, "exact: the losses of Gaussian noise on random batches, convolved"),
    )


def sampled_training(
    words: str,
    tried: TriedTraining,
    trials: int,
    seed: int,
    parts: Parts = SOUND,
    there: float = 0.5,
) -> Finding:
    """Distinguish transcripts of real steps with and without a clip, by their losses.

    Args:
        words: Name of the finding.
        tried: Training that is accounted for.
        trials: Trials on each of two data sets.
        seed: Seed of the trials.
        parts: Parts of the training that runs; by default the product's own.
        there: Share of the clips that are present.
    """
    training = PrivateTraining(tried.noise, tried.rate, tried.norm, tried.steps)
    present = round(there * _CLIPS)
    seen = trainings.steps(training, _CLIPS, present, trials, seed, parts)
    ours, others = (
        np.asarray(realized(each, tried.noise, tried.rate).sum(axis=1))
        for each in (seen.there, seen.missing)
    )
    proven = dp_sgd.training_epsilon(tried.noise, tried.rate, tried.steps, _DELTA)
    both = (sampled_epsilon(ours, others, _DELTA), sampled_epsilon(-others, -ours, _DELTA))
    return Finding(
        words,
        _UNIT,
        _DELTA,
        proven,
        proven,
        max(both, key=lambda each: each.low),
        Technique(SAMPLED, "likelihood ratios of real steps", len(ours), CONFIDENCE),
    )


def step_law_checks(seed: int, parts: Parts = SOUND) -> Iterator[Check]:
    """Check the laws of batches and of noise in real steps, two checks each."""
    training = PrivateTraining(1.3, 0.1, 2.0, _LAW_STEPS)
    batches = trainings.batches(training, _CLIPS // 10, seed, parts)
    yield from _batches(batches, training.rate)
    few = PrivateTraining(1.3, 0.1, 2.0, 30)
    clips = np.zeros((_CLIPS // 10, 1, _CLIPS), np.float32)
    yield from _noise(trainings.transcript(few, clips, seed, parts) / few.noise)


def rate_check(seed: int, parts: Parts = SOUND) -> Check:
    """Check that clips are sampled at the rate that is accounted for.

    Args:
        seed: Seed of the batches.
        parts: Parts of the training that runs; by default the product's own.
    """
    training = PrivateTraining(1.3, _RATE, 2.0, _LAW_STEPS)
    batches = trainings.batches(training, _MANY_CLIPS, seed, parts)
    off = (float(batches.mean()) - _RATE) * math.sqrt(batches.size / (_RATE * (1 - _RATE)))
    return Check(
        "how often clips are in batches",
        f"a rate of {_RATE:g}, within {_DEVIATIONS:g} deviations",
        f"{off:+.1f} deviations",
        abs(off) <= _DEVIATIONS,
        f"{_LAW_STEPS} batches of {_MANY_CLIPS} clips",
        power.of_rate(_RATE, batches.size, _DEVIATIONS),
    )


def longest_gradient_check(system: PrivateSystem, seed: int) -> Check:
    """Check that no clip moves a sum of gradients by more than the clipping norm."""
    found, norm = trainings.longest_gradient(system, seed), trainings.TRAINING.norm
    return Check(
        f"{system.name}: the longest gradient of a clip",
        f"at most {norm:g}",
        f"{found:.6g}",
        found <= norm * (1 + _SINGLE),
        "each clip alone in a batch of real steps",
        power.EXACTLY,
    )


def noisy_gradients_check(system: PrivateSystem, seed: int) -> Check:
    """Check that a result depends on the clips through the noisy gradients alone."""
    held = trainings.depends_on_noisy_gradients_alone(system, seed)
    return Check(
        f"{system.name}: what a generator depends on",
        "noisy gradients alone",
        "those alone" if held else "something else of the clips, too",
        held,
        "a second training on other clips, which gets the noisy gradients of the first",
        power.EXACTLY,
    )


def _batches(batches: Numbers, rate: float) -> Iterator[Check]:
    from scipy.stats import binom

    steps, clips = batches.shape
    blocks = batches[: steps // _BLOCK * _BLOCK].reshape(-1, _BLOCK, clips)
    for what, counted, trials in (
        ("clips in a batch", batches.sum(axis=1), clips),
        (f"batches of {_BLOCK} that a clip is in", blocks.sum(axis=1).ravel(), _BLOCK),
    ):
        law: OutcomeLaw = {
            (at,): float(chance)
            for at, chance in enumerate(binom.pmf(range(trials + 1), trials, rate))
        }
        drawn: Counter[Outcome] = Counter((int(each),) for each in counted)
        yield law_check(what, drawn, law)


def _noise(noise: Numbers) -> Iterator[Check]:
    from scipy.stats import kstest

    fit = float(kstest(noise.ravel(), "norm").pvalue)
    yield Check(
        "noise of real steps",
        f"N(0, (noise · norm)²) (p ≥ {_FIT:g})",
        p_said(fit),
        fit >= _FIT,
        f"Kolmogorov and Smirnov's test of {noise.size:,} numbers",
        power.of_kolmogorov(noise.size, _FIT),
    )
    together = np.asarray(np.corrcoef(noise))[np.triu_indices(len(noise), 1)]
    found = float(np.abs(together).max()) * math.sqrt(noise.shape[1])
    yield Check(
        "noise of different steps",
        f"no correlation beyond {_DEVIATIONS:g} deviations",
        f"{found:.1f} deviations",
        found <= _DEVIATIONS,
        f"each of {len(noise)} steps with each",
        power.of_correlation(noise.shape[1], _DEVIATIONS),
    )
