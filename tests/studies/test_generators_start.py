"""Private trainings that start with public networks: which these may be, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support import compiling  # noqa: F401  # programs are compiled in half the time
from support.clips import moving_bands
from support.same_bits import same_bits

from earshot_models.votes.rules.gnmax import GNMax
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.pate_aae.generators import (
    dp_gan,
    pate_gan,
    private_autoencoder,
    private_training,
)
from earshot_studies.pate_aae.generators.autoencoder import start_autoencoder, train_autoencoder
from earshot_studies.pate_aae.generators.beside import Beside
from earshot_studies.pate_aae.generators.checkpoint import OtherTrainingError
from earshot_studies.pate_aae.generators.gan import start_gan
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE, PUBLIC, private
from earshot_studies.pate_aae.generators.pate_gan import Ensemble
from earshot_studies.pate_aae.generators.private_training import NoisyGradients, PrivateTraining
from earshot_studies.pate_aae.generators.randomness import Randomness
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network
from earshot_studies.pate_aae.generators.start import NotPublicStartError, Start, begun
from earshot_studies.pate_aae.generators.steps import Loop

pytestmark = pytest.mark.slow

TINY = GeneratorSettings(Network.DENSE, width=8, latent=2, batch=6, critic_width=8, steps=4)
ORIGIN = private(3.0, 1e-5, "clip")
STEPS = 4


@dataclass(frozen=True)
class System:
    """A private training, and what it may start with."""

    name: str
    module: Any
    begins: Callable[..., Start[Any]]

    def train(self, start: Start[Any] | None, clips: Any = None, **names: Any) -> Generator:
        given = moving_bands(9) if clips is None else clips
        arguments: dict[str, Any] = {"seed": 1, "start": start} | names
        if self.module is pate_gan:
            team, noise = Ensemble(teachers=3, width=4, batch=2), GNMax(1.0)
            return pate_gan.train_pate_gan(given, TINY, team, noise, ORIGIN, **arguments)
        training = PrivateTraining(noise=0.7, rate=0.4, norm=0.05, steps=STEPS)
        learn = getattr(self.module, f"train_{self.name}")
        made: Generator = learn(given, TINY, training, ORIGIN, **arguments)
        return made

    def start(
        self, seed: int = 5, settings: GeneratorSettings = TINY, clips: Any = None
    ) -> Start[Any]:
        given = moving_bands(8, seed=3) if clips is None else clips
        return self.begins(given, settings, PUBLIC, seed)


SYSTEMS = [
    System("private_autoencoder", private_autoencoder, start_autoencoder),
    System("dp_gan", dp_gan, start_gan),
    System("pate_gan", pate_gan, start_gan),
]
EACH = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


@EACH
def test_a_start_that_is_not_of_public_sound_alone_is_refused(
    system: System, tmp_path: Path
) -> None:
    for origin in (NOT_PRIVATE, private(0.1, 1e-9, "clip")):
        start = replace(system.start(), origin=origin)
        with pytest.raises(NotPublicStartError, match="public sound alone"):
            system.train(start, checkpoint=tmp_path / "checkpoint")
    assert not list(tmp_path.iterdir())


@EACH
def test_a_start_that_does_not_fit_is_refused_by_name(system: System) -> None:
    start = system.start()
    with pytest.raises(InvalidParametersError, match="5 frames × 6 bands; the clips here are 4"):
        system.train(replace(start, shape=(5, 6)))
    with pytest.raises(InvalidParametersError, match="width=12 instead of 8"):
        system.train(replace(start, settings=replace(TINY, width=12)))
    with pytest.raises(InvalidParametersError, match="latent=3 instead of 2"):
        system.train(replace(start, settings=replace(TINY, latent=3)))
    (other,) = {start_gan, start_autoencoder} - {system.begins}
    with pytest.raises(InvalidParametersError, match="of another system"):
        system.train(replace(system, begins=other).start())
    # How long, how fast and with how much noise it learned is its own matter.
    other_steps = replace(start, settings=replace(TINY, steps=2, rate=0.1, jitter=0.0))
    assert begun(start.networks, other_steps, (4, 6), TINY) is start.networks


@EACH
def test_a_training_begins_with_the_weights_of_its_start(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[Any] = []
    real = Loop.run

    def run(loop: Loop, state: Any, *rest: Any, **named: Any) -> Any:
        first.append(state)
        return real(loop, state, *rest, **named)

    start = system.start()
    monkeypatch.setattr(Loop, "run", run)
    assert not same_bits(system.train(start).decoder, system.train(None).decoder)
    begun, fresh = (state.public if system.module is pate_gan else state for state in first)
    if system.module is private_autoencoder:
        assert same_bits(begun.networks, start.networks)
        assert not same_bits(fresh.networks, start.networks)
    else:
        assert same_bits((begun.decoder, begun.critic), start.networks)
        assert not same_bits(fresh.decoder, start.networks.decoder)
    assert same_bits(begun.average, start.networks.decoder)


@pytest.mark.parametrize("system", SYSTEMS[:2], ids=lambda system: system.name)
def test_noise_and_batches_are_what_they_would_be_without_a_start(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[Any]] = []
    noised, batches = private_training.noised, NoisyGradients.batches

    def watched(total: Any, key: Any, deviation: float, expected: float) -> Any:
        seen[-1].append((jax.random.key_data(key).tolist(), deviation, expected))
        return noised(total, key, deviation, expected)

    def drawn(self: NoisyGradients, number: int) -> Any:
        found = batches(self, number)
        seen[-1].append([places.tolist() for places in found])
        return found

    monkeypatch.setattr(private_training, "noised", watched)
    monkeypatch.setattr(NoisyGradients, "batches", drawn)
    for start in (None, system.start()):
        seen.append([])
        system.train(start)
    assert len(seen[0]) == 2 * STEPS
    assert seen[0] == seen[1]


def test_votes_are_as_many_and_as_noisy_as_without_a_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise that drowns all votes shows itself: winners are its own."""
    system, seen = SYSTEMS[2], []  # type: System, list[Any]
    real = GNMax.winners

    def winners(self: GNMax, votes: Any, random: Any) -> Any:
        assert self == GNMax(1.0), "as it was handed over"
        seen.append((votes.shape, votes.sum(axis=1).tolist(), real(GNMax(1e9), votes, random)))
        return seen[-1][2]

    monkeypatch.setattr(GNMax, "winners", winners)
    system.train(None)
    without = list(seen)
    seen.clear()
    system.train(system.start())
    assert sum(shape[0] for shape, _, _ in seen) == pate_gan.queries(TINY)
    for one, other in zip(without, seen, strict=True):
        assert one[:2] == other[:2]
        np.testing.assert_array_equal(one[2], other[2])


@EACH
def test_from_a_start_too_clips_are_heard_through_noise_alone(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What left the clips in one training is handed to a training on others: the same bits."""
    owner, name = (GNMax, "winners") if system.module is pate_gan else (NoisyGradients, "at")  # type: Any, str
    real, told = getattr(owner, name), []  # type: Any, list[Any]

    def noted(*arguments: Any) -> Any:
        told.append(real(*arguments))
        return told[-1]

    monkeypatch.setattr(owner, name, noted)
    start = system.start()
    whole = system.train(start)
    monkeypatch.setattr(owner, name, lambda *_: told.pop(0))
    assert same_bits(system.train(start, -moving_bands(12, seed=7)).decoder, whole.decoder)
    assert not told


@EACH
def test_a_killed_training_goes_on_from_its_own_start_alone(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot_studies.pate_aae.generators.steps.EVERY", 2)
    start, path = system.start(), tmp_path / "checkpoint"
    whole = system.train(start)

    def stop(what: str, done: int, total: int, line: str | None = None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        system.train(start, checkpoint=path, progress=stop)
    assert path.is_file()
    for other in (None, system.start(seed=6)):
        with pytest.raises(OtherTrainingError, match="start"):
            system.train(other, checkpoint=path)
    # A start that is learned again is the same, bit by bit.
    assert same_bits(system.train(system.start(), checkpoint=path).decoder, whole.decoder)
    assert not list(tmp_path.iterdir())


def distance(moving: Any, clip: Any, own: Any, still: Any, settings: GeneratorSettings) -> Any:
    """Its gradient is the place's distance from the clip, and as much as was drawn."""
    del settings
    return still * ((moving - clip) ** 2).sum() / 2 + (own * moving).sum()


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_public_clips_have_the_rest_of_a_step(share: float) -> None:
    start = replace(SYSTEMS[1].start(clips=np.eye(6, dtype=np.float32)[:, None]), share=share)
    seen: list[Any] = []

    def draws(generator: np.random.Generator, count: int, number: int) -> Any:
        seen.append((number, generator.standard_normal((count, 1, 6), np.float32)))
        return seen[-1][1]

    randomness = Randomness(b"k" * 32)
    beside = Beside(start, distance, draws, 500, TINY, randomness)
    moving, noisy = np.full((1, 6), 0.5, np.float32), np.arange(6, dtype=np.float32)[None]
    found = beside.mixed(3, noisy, moving, 2.0)
    ((number, own),) = seen
    assert number == 3
    # Every clip is as likely: what their mean differs from a sixth by is chance of 500 draws.
    public = 2 * (moving - 1 / 6) + own.mean(axis=0)
    np.testing.assert_allclose(found, share * noisy + (1 - share) * public, atol=0.2)
    assert np.abs(np.asarray(found) - share * noisy).max() > 0.2 or share == 1.0
    np.testing.assert_array_equal(found, beside.mixed(3, noisy, moving, 2.0))
    if share < 1:
        assert not np.array_equal(found, beside.mixed(4, noisy, moving, 2.0))
        assert not np.array_equal(found, beside.mixed(3, noisy, moving, 2.0, lesson=1))
    # Without a start, nothing is mixed in.
    assert (
        Beside(None, distance, draws, 500, TINY, randomness).mixed(3, noisy, moving, 2.0) is noisy
    )


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(InvalidParametersError, match="share"):
        replace(SYSTEMS[1].start(), share=share)


def test_a_start_and_a_generator_come_of_the_same_training() -> None:
    clips = moving_bands(8)
    start = start_autoencoder(clips, TINY, NOT_PRIVATE, 2)
    generator = train_autoencoder(clips, TINY, NOT_PRIVATE, 2)
    assert same_bits(start.networks.decoder, generator.decoder)
    assert (start.shape, start.origin) == (generator.shape, NOT_PRIVATE)


def test_a_digest_names_weights() -> None:
    start = SYSTEMS[1].start()
    assert start.digest == SYSTEMS[1].start().digest
    assert start.digest == replace(start, origin=NOT_PRIVATE).digest
    moved = jax.tree.map(np.array, start.networks)
    moved.decoder.body.layers[0].bias[0] += 1e-3
    names = {start.digest, replace(start, networks=moved).digest}
    names |= {SYSTEMS[1].start(seed=6).digest, SYSTEMS[0].start().digest}
    names |= {replace(start, share=0.4).digest, replace(start, clips=-start.clips).digest}
    assert len(names) == 6
