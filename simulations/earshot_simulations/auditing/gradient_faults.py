"""Planted faults of private training: the audit of noisy gradients must see each.

None of them exists outside this file. What is caught here is caught in product code by the same
functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from earshot_simulations.auditing.findings import FAULTS, Check, Finding, Result, Role
from earshot_simulations.auditing.noisy_gradients import (
    Tried,
    alone,
    laws,
    rate_check,
    really,
)
from earshot_simulations.auditing.watching import replaced

_TRIED = Tried(1.0, 0.5, 1.0, 1)
_MUCH_NOISE = Tried(2.0, 0.5, 1.0, 1)
_SMALL_BATCHES = Tried(1.0, 0.1, 1.0, 1)
_MANY = 10
"""Times the trials, for what is hard to see."""
_NORM = 4.0


def gradient_faults(trials: int, seed: int) -> Iterator[Result]:
    """Every one of them.

    Args:
        trials: of real steps, on each of two data sets.
        seed: of them.
    """
    yield no_clipping(trials, seed)
    yield clipped_batch(trials, seed)
    yield half_noise(trials, seed)
    yield noise_without_norm(trials, seed)
    yield batches_in_order(trials, seed)
    yield from shuffled_batches(seed)
    yield frequent_batches(seed)
    yield from noise_again(seed)
    yield from clips_past_gradients(seed)


def no_clipping(trials: int, seed: int) -> Finding:
    """Gradients as long as they come."""
    from earshot_models.generators import private_training

    before = private_training._clipped_sum

    def unclipped(loss: Any, settings: Any, norm: float) -> tuple[Any, float]:
        program, _ = before(loss, settings, 1e9)
        return program, norm

    with replaced(private_training, _clipped_sum=unclipped):
        return _really("gradients that nobody clips", trials, seed)


def clipped_batch(trials: int, seed: int) -> Finding:
    """The mean gradient of a batch is clipped instead of each clip's own."""
    from earshot_models.generators import private_training

    before = private_training._clipped_sum

    def together(loss: Any, settings: Any, norm: float) -> tuple[Any, float]:
        program, _ = before(loss, settings, 1e9)

        def clipped(moving: Any, clips: Any, draws: Any, still: Any, padding: Any) -> Any:
            total = program(moving, clips, draws, still, padding)
            there = max(1, int((~np.asarray(padding)).sum()))
            return total * min(1.0, norm * there / float(np.linalg.norm(total)))

        return clipped, norm

    with replaced(private_training, _clipped_sum=together):
        return _really("a batch's gradient clipped, not each clip's", trials, seed)


def half_noise(trials: int, seed: int) -> Finding:
    """Half of what is accounted for."""
    with _noise_times(0.5):
        return _really("half the noise on gradients", _MANY * trials, seed, _MUCH_NOISE)


def noise_without_norm(trials: int, seed: int) -> Finding:
    """Noise as for a norm of 1, where gradients are clipped to more."""
    with _noise_times(1 / _NORM):
        longer = replace(_TRIED, norm=_NORM)
        return _really("noise that is not scaled by the norm", trials, seed, longer)


def batches_in_order(trials: int, seed: int) -> Finding:
    """Clips take turns that everybody knows, and the cost is that of batches at random."""
    from earshot_models.generators.private_training import NoisyGradients

    def in_order(self: Any, number: int) -> list[Any]:
        clips = len(self._clips)
        size = round(self._training.rate * clips)
        return [(number * size + np.arange(size)) % clips]

    with replaced(NoisyGradients, batches=in_order):
        words = "batches in the order of clips, accounted as random"
        return _really(words, trials, seed, _SMALL_BATCHES, _SMALL_BATCHES.rate)


def shuffled_batches(seed: int) -> Iterator[Result]:
    """Batches of one size from a shuffled order, accounted as if clips came on their own."""
    from earshot_models.generators.private_training import NoisyGradients

    def shuffled(self: Any, number: int) -> list[Any]:
        clips = len(self._clips)
        size = round(self._training.rate * clips)
        epoch, place = divmod(number, clips // size)
        order = self._randomness.generator("batch", epoch).permutation(clips)
        return [order[place * size : (place + 1) * size]]

    with replaced(NoisyGradients, batches=shuffled):
        yield from _broken("shuffled batches", list(laws(seed, Role.FAULT))[:2])


def frequent_batches(seed: int) -> Check:
    """Sample clips 5 % more often than is accounted for."""
    found = rate_check(seed, Role.FAULT, 0.105)
    return replace(found, subject=FAULTS, case="clips sampled 5 % too often")


def noise_again(seed: int) -> Iterator[Result]:
    """The same noise in every step."""
    from earshot_models.generators.randomness import Randomness

    key = Randomness.key

    def same(self: Any, *names: object) -> Any:
        return key(self, names[0])

    with replaced(Randomness, key=same):
        yield from _broken("one noise for all steps", list(laws(seed, Role.FAULT))[3:])


def clips_past_gradients(seed: int) -> Iterator[Result]:
    """A generator that is shown clips beside the gradients that noise was added to."""
    from earshot_models.generators import adversaries
    from earshot_simulations.auditing.training_transcripts import SYSTEMS, System

    gan = SYSTEMS[1]
    moved = adversaries.decoder_moved

    def train(clips: Any, given: int) -> Any:
        def peeking(state: Any, own: Any, settings: Any) -> Any:
            return moved(state, own._replace(on_sample=own.on_sample + clips[:1]), settings)

        with replaced(adversaries, decoder_moved=peeking):
            return gan.train(clips, given)

    yield from _broken(
        "a generator that is shown clips",
        [alone(System(gan.name, gan.module, train), seed, Role.FAULT)],
    )


@contextlib.contextmanager
def _noise_times(share: float) -> Iterator[None]:
    from earshot_models.generators import private_training

    noised = private_training.noised

    def thin(total: Any, key: Any, deviation: float, expected: float) -> Any:
        return noised(total, key, share * deviation, expected)

    with replaced(private_training, noised=thin):
        yield


def _really(
    fault: str, trials: int, seed: int, tried: Tried = _TRIED, there: float = 0.5
) -> Finding:
    return replace(really(tried, trials, seed, Role.FAULT, fault, there), subject=FAULTS)


def _broken(fault: str, results: list[Any]) -> Iterator[Result]:
    for each in results:
        yield replace(each, subject=FAULTS, case=f"{fault}: {each.case}")
