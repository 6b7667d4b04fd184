"""Private training of generators: what its noisy gradients cost, and that it does what is proven.

Exactly: the law of the losses of all steps. By trials: real steps, told apart by their losses. And
checks of all that the law rests on: no clip moves a sum by more than the norm, the noise is
Gaussian and new in every step, batches are Poisson's, and nothing else of the clips gets through.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import (
    EXACT,
    SAMPLED,
    Check,
    Finding,
    Method,
    Result,
    Role,
)
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.sampling import CONFIDENCE, sampled_epsilon
from earshot_simulations.auditing.selection import Outcome, OutcomeLaw, law_check
from earshot_simulations.auditing.subsampled_gaussian import realized, training_epsilon

if TYPE_CHECKING:
    from earshot_simulations.auditing.training_transcripts import System

TRAINING = "noisy-gradients"
UNIT = "clip, there or not"
_DELTA = 1e-5
_CLIPS = 1000
_TRIED_STEPS = 4
_LAW_STEPS = 600
_RATE, _MANY_CLIPS = 0.1, 5000
"""Rate and clips of the batches that are counted."""
_BLOCK = 20
"""Steps of which it is counted how often a clip is in their batches."""
_FIT = 1e-6
_SINGLE = 1e-5
"""Relative room for the rounding of single precision."""
_DEVIATIONS = 6.0


@dataclass(frozen=True)
class Setting:
    """A training as somebody asks for it.

    Attributes:
        epsilon: the budget.
        clips: how many there are.
        batch: of them in a step, on average.
        steps: how many.
    """

    epsilon: float
    clips: int
    batch: int
    steps: int


SETTINGS = (
    Setting(1.0, 1800, 64, 2000),
    Setting(10.0, 450, 64, 1000),
    Setting(100.0, 1800, 90, 500),
)
"""Spoken digits of four speakers and of one, as `earshot pate generate` trains."""


@dataclass(frozen=True)
class Tried:
    """A training whose real steps are tried: little noise, that a few trials show.

    Attributes:
        noise, rate, norm, steps: see `PrivateTraining`.
    """

    noise: float
    rate: float
    norm: float
    steps: int

    @property
    def words(self) -> str:
        """In words."""
        return (
            f"noise {self.noise:g}, rate {self.rate:g}, {self.steps} "
            f"step{'s' if self.steps > 1 else ''}, clipped to {self.norm:g}"
        )


TRIED = (Tried(0.8, 0.5, 1.0, 1), Tried(1.2, 0.3, 0.5, _TRIED_STEPS))


def audit_training(trials: int, seed: int) -> Iterator[Result]:
    """All settings exactly, two by real steps, and what they rest on.

    Args:
        trials: transcripts of real steps, on each of two data sets.
        seed: of them.
    """
    for setting in SETTINGS:
        yield exactly(setting)
    for tried in TRIED:
        yield really(tried, trials, seed)
    yield from laws(seed)
    yield rate_check(seed)
    from earshot_simulations.auditing.training_transcripts import SYSTEMS

    for system in SYSTEMS:
        yield longest(system, seed)
        yield alone(system, seed)


def exactly(setting: Setting) -> Finding:
    """A budget, the noise that is worked out for it, and what that noise costs."""
    from earshot_server.accounting import dp_sgd
    from earshot_simulations.generation import budgets

    noise = budgets.dp_sgd(setting.epsilon, _DELTA, setting.clips, setting)
    rate = setting.batch / setting.clips
    return Finding(
        TRAINING,
        f"{setting.clips} clips, {setting.batch} in a batch, {setting.steps} steps, noise "
        f"{noise:.3g}",
        UNIT,
        _DELTA,
        setting.epsilon,
        dp_sgd.training_epsilon(noise, rate, setting.steps, _DELTA),
        training_epsilon(noise, rate, setting.steps, _DELTA),
        Method(EXACT, "exact: the losses of Gaussian noise on random batches, convolved"),
    )


def really(
    tried: Tried,
    trials: int,
    seed: int,
    role: Role = Role.PRODUCT,
    words: str = "",
    there: float = 0.5,
) -> Finding:
    """Transcripts of real steps with a clip and without it, told apart by their losses.

    Args:
        tried: the training.
        trials: on each of two data sets.
        seed: of them.
        role: why.
        words: what is audited, if not what the training is.
        there: which share of all clips are there.
    """
    from earshot_models.generators.private_training import PrivateTraining
    from earshot_server.accounting import dp_sgd
    from earshot_simulations.auditing import noisy_steps

    training = PrivateTraining(tried.noise, tried.rate, tried.norm, tried.steps)
    seen = noisy_steps.steps(training, _CLIPS, round(there * _CLIPS), trials, seed)
    ours, others = (
        np.asarray(realized(each, tried.noise, tried.rate).sum(axis=1))
        for each in (seen.there, seen.missing)
    )
    proven = dp_sgd.training_epsilon(tried.noise, tried.rate, tried.steps, _DELTA)
    both = (sampled_epsilon(ours, others, _DELTA), sampled_epsilon(-others, -ours, _DELTA))
    return Finding(
        TRAINING,
        words or f"real steps: {tried.words}",
        UNIT,
        _DELTA,
        proven,
        proven,
        max(both, key=lambda each: each.low),
        Method(SAMPLED, "likelihood ratios of real steps", len(ours), CONFIDENCE),
        role,
    )


def laws(seed: int, role: Role = Role.PRODUCT) -> Iterator[Check]:
    """Of noise and batches, as real steps have them."""
    from earshot_models.generators.private_training import PrivateTraining
    from earshot_simulations.auditing import noisy_steps

    training = PrivateTraining(1.3, 0.1, 2.0, _LAW_STEPS)
    batches = noisy_steps.batches(training, _CLIPS // 10, seed)
    yield from _batches(batches, training.rate, role)
    few = PrivateTraining(1.3, 0.1, 2.0, 30)
    seen = noisy_steps.transcript(few, np.zeros((_CLIPS // 10, 1, _CLIPS), np.float32), seed)
    yield from _noise(seen / few.noise, role)


def rate_check(seed: int, role: Role = Role.PRODUCT, sampled: float = _RATE) -> Check:
    """Check that clips are sampled as often as is accounted for, no more and no less."""
    from earshot_models.generators.private_training import PrivateTraining
    from earshot_simulations.auditing import noisy_steps

    training = PrivateTraining(1.3, sampled, 2.0, _LAW_STEPS)
    batches = noisy_steps.batches(training, _MANY_CLIPS, seed)
    off = (float(batches.mean()) - _RATE) * math.sqrt(batches.size / (_RATE * (1 - _RATE)))
    return Check(
        TRAINING, "how often clips are in batches",
        f"a rate of {_RATE:g}, within {_DEVIATIONS:g} deviations", f"{off:+.1f} deviations",
        abs(off) <= _DEVIATIONS, f"{_LAW_STEPS} batches of {_MANY_CLIPS} clips",
        power.of_rate(_RATE, batches.size, _DEVIATIONS), role,
    )  # fmt: skip


def longest(system: System, seed: int, role: Role = Role.PRODUCT) -> Check:
    """That no clip's gradients move a sum by more than the norm that noise is made for."""
    from earshot_simulations.auditing import training_transcripts

    found = training_transcripts.longest_gradient(system, seed)
    norm = training_transcripts.TRAINING.norm
    return Check(
        TRAINING, f"{system.name}: the longest gradient of a clip", f"at most {norm:g}",
        f"{found:.6g}", found <= norm * (1 + _SINGLE), "each clip alone in a batch of real steps",
        power.EXACTLY,
        role,
    )  # fmt: skip


def alone(system: System, seed: int, role: Role = Role.PRODUCT) -> Check:
    """That nothing of the clips leaves but through noisy gradients."""
    from earshot_simulations.auditing import training_transcripts

    held = training_transcripts.depends_on_noisy_gradients_alone(system, seed)
    return Check(
        TRAINING, f"{system.name}: what a generator depends on", "noisy gradients alone",
        "those alone" if held else "something else of the clips, too", held,
        "a second training on other clips, which gets the noisy gradients of the first",
        power.EXACTLY, role,
    )  # fmt: skip


def _batches(batches: Numbers, rate: float, role: Role) -> Iterator[Check]:
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
        yield law_check(TRAINING, what, drawn, law, role)


def _noise(noise: Numbers, role: Role) -> Iterator[Check]:
    from scipy.stats import kstest

    fit = float(kstest(noise.ravel(), "norm").pvalue)
    yield Check(
        TRAINING, "noise of real steps", f"N(0, (noise · norm)²) (p ≥ {_FIT:g})", f"p = {fit:.2g}",
        fit >= _FIT, f"Kolmogorov and Smirnov's test of {noise.size:,} numbers",
        power.of_kolmogorov(noise.size, _FIT), role,
    )  # fmt: skip
    together = np.asarray(np.corrcoef(noise))[np.triu_indices(len(noise), 1)]
    found = float(np.abs(together).max()) * math.sqrt(noise.shape[1])
    yield Check(
        TRAINING, "noise of different steps",
        f"no correlation beyond {_DEVIATIONS:g} deviations", f"{found:.1f} deviations",
        found <= _DEVIATIONS, f"each of {len(noise)} steps with each",
        power.of_correlation(noise.shape[1], _DEVIATIONS), role,
    )  # fmt: skip
