"""Training by noisy gradients, against loops that anyone can read and against laws."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from support import compiling  # noqa: F401  # programs are compiled in half the time
from support.clips import moving_bands
from support.same_bits import same_bits

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.pate_aae.generators import (
    adversaries,
    autoencoder,
    dp_gan,
    private_autoencoder,
)
from earshot_studies.pate_aae.generators.checkpoint import OtherTrainingError
from earshot_studies.pate_aae.generators.dp_gan import train_dp_gan
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE, PUBLIC, private
from earshot_studies.pate_aae.generators.private_autoencoder import train_private_autoencoder
from earshot_studies.pate_aae.generators.private_training import (
    NoisyGradients,
    PrivateTraining,
    _noise_added,
    noised,
)
from earshot_studies.pate_aae.generators.randomness import Randomness
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

TINY = GeneratorSettings(Network.DENSE, width=8, latent=2, batch=4, critic_width=8, critic_steps=2)
TRAINING = PrivateTraining(noise=0.7, rate=0.4, norm=0.05, steps=6)
ORIGIN = private(3.0, 1e-5, "clip")


def linear_loss(
    moving: Any, clip: Any, own: Any, still: Any, settings: GeneratorSettings
) -> jax.Array:
    """Its gradient is the clip, and a bias: easy to know."""
    del own, settings
    return jnp.sum(moving["weight"] * clip) * still + moving["bias"]


def no_draws(generator: np.random.Generator, count: int, number: int) -> Any:
    del generator, number
    return np.zeros((count, 1), np.float32)


def linear_gradients(clips: Any, training: PrivateTraining, seed: int = 0) -> NoisyGradients:
    randomness = Randomness(bytes([seed]) * 32)
    return NoisyGradients(clips, training, linear_loss, no_draws, TINY, randomness)


LINEAR = {"weight": np.zeros((4, 6), np.float32), "bias": np.float32(0)}


def textbook(
    loss: Callable[..., Any], moving: Any, clips: Any, draws: Any, still: Any, norm: float
) -> Any:
    """Clipped gradients of one clip after the other, added up in 64 bits."""
    total = [np.zeros(leaf.shape) for leaf in jax.tree.leaves(moving)]
    gradient = jax.jit(jax.grad(functools.partial(loss, settings=TINY.of_a_step())))
    for place, clip in enumerate(clips):
        own = jax.tree.map(lambda rows, place=place: rows[place], draws)
        leaves = jax.tree.leaves(gradient(moving, clip, own, still))
        leaves = [np.asarray(leaf, np.float64) for leaf in leaves]
        length = np.sqrt(sum((leaf**2).sum() for leaf in leaves))
        if not np.isfinite(length):
            continue  # a clip that makes no number of its gradient says nothing
        total = [
            whole + leaf * min(1.0, norm / length)
            for whole, leaf in zip(total, leaves, strict=True)
        ]
    return total


@pytest.mark.parametrize("system", [pytest.param("autoencoder", marks=pytest.mark.slow), "gan"])
def test_a_step_is_the_sum_of_clipped_gradients(system: str) -> None:
    clips = moving_bands(7)
    training = replace(TRAINING, noise=1e-9, rate=0.6)
    randomness = Randomness(b"k" * 32)
    generator = np.random.default_rng(5)
    moving: Any
    still: Any
    if system == "gan":
        state = adversaries.started((4, 6), TINY, generator)
        loss: Any = adversaries.critic_loss
        moving, still = state.critic, state.decoder

        def draws(own: np.random.Generator, count: int, number: int) -> Any:
            return adversaries.draws(own, count, (4, 6), TINY, 1 - number / 10)
    else:
        loss = private_autoencoder._loss
        moving, still = autoencoder.started((4, 6), TINY, generator).networks, ()

        def draws(own: np.random.Generator, count: int, number: int) -> Any:
            return autoencoder.draws(own, count, TINY)

    gradients = NoisyGradients(clips, training, loss, draws, TINY.of_a_step(), randomness)
    for number in range(2):
        (places,) = gradients.batches(number)
        given = places[places >= 0]
        own = draws(randomness.generator("draws", number), len(places), number)
        own = jax.tree.map(lambda rows, places=places: rows[places >= 0], own)
        expected = textbook(loss, moving, clips[given], own, still, training.norm)
        found = jax.tree.leaves(gradients.at(number, moving, still))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other / (0.6 * 7), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
def test_no_clip_moves_the_sum_further_than_the_norm(bad: float) -> None:
    clips = moving_bands(5)
    training = PrivateTraining(noise=1e-9, rate=1.0, norm=0.3, steps=1)
    whole = linear_gradients(clips, training).at(0, LINEAR, np.float32(1))
    worse = np.array(clips)
    worse[2] = bad
    other = linear_gradients(worse, training).at(0, LINEAR, np.float32(1))
    without = textbook(
        linear_loss, LINEAR, clips[[0, 1, 3, 4]], np.zeros((4, 1)), np.float32(1), 0.3
    )
    for changed in (whole, other):
        leaves = jax.tree.leaves(changed)
        moved = [5 * np.asarray(a) - b for a, b in zip(leaves, without, strict=True)]
        assert np.sqrt(sum((each**2).sum() for each in moved)) <= 0.3 * (1 + 1e-5)


def test_an_empty_batch_is_noise_alone() -> None:
    training = PrivateTraining(noise=1.0, rate=1e-12, norm=2.0, steps=1)
    gradients = linear_gradients(moving_bands(3), training)
    assert (gradients.batches(0)[0] == -1).all()
    other = linear_gradients(moving_bands(3, seed=9), training)
    assert same_bits(gradients.at(0, LINEAR, np.float32(1)), other.at(0, LINEAR, np.float32(1)))


def test_noise_has_the_law_that_is_accounted_for() -> None:
    # Nothing in the batch: what is left is the noise of the steps, over the batch's mean size.
    training = PrivateTraining(noise=1.7, rate=1e-9, norm=0.5, steps=1)
    gradients = linear_gradients(moving_bands(3), training)
    numbers = [
        np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(gradients.at(step, LINEAR, 1))])
        for step in range(300)
    ]
    noise = np.array(numbers) * (1e-9 * 3) / (1.7 * 0.5)
    assert noise.shape == (300, 25)
    # χ² of all, of each step's own, and no step like the one before.
    assert 1e-4 < stats.chi2(noise.size).cdf((noise**2).sum()) < 1 - 1e-4
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(stats.chi2(25).cdf((noise**2).sum(axis=1)), "uniform").pvalue > 1e-4
    assert abs((noise[1:] * noise[:-1]).sum()) < 4 * np.sqrt(noise[1:].size)


def test_noise_reaches_beyond_where_numbers_of_32_bits_end() -> None:
    # JAX's normal numbers of 32 bits are functions of 23 bits: none lies beyond 5.42, and of two
    # million most of the rare ones come twice.
    with jax.enable_x64(True):
        drawn = np.asarray(_noise_added(np.zeros(2**20, np.float32), jax.random.key(1), 1.0))
    assert drawn.dtype == np.float64
    assert len(np.unique(drawn)) == len(drawn)
    short = np.asarray(jax.random.normal(jax.random.key(1), 2**20))
    assert len(np.unique(short)) < 0.99 * len(short)


def test_noise_is_of_its_key_and_in_32_bits_at_the_end() -> None:
    one, again, other = (
        noised(np.zeros(5, np.float32), jax.random.key(key), 2.0, 4.0) for key in (1, 1, 2)
    )
    assert one.dtype == np.float32
    assert same_bits(one, again)
    assert not same_bits(one, other)


def test_each_clip_is_in_a_batch_on_its_own() -> None:
    training = PrivateTraining(noise=1.0, rate=0.3, norm=1.0, steps=1)
    gradients = linear_gradients(moving_bands(6), training)
    steps = 3000
    member = np.zeros((steps, 6), dtype=int)
    for number in range(steps):
        places = np.concatenate(gradients.batches(number))
        places = places[places >= 0]
        assert len(set(places.tolist())) == len(places)
        member[number, places] = 1
    # All 64 sets have the probability that independent coins give them.
    seen = np.bincount(member @ (1 << np.arange(6)), minlength=64)
    ones = np.array([bin(each).count("1") for each in range(64)])
    expected = steps * 0.3**ones * 0.7 ** (6 - ones)
    big = expected >= 5
    found = np.append(seen[big], seen[~big].sum())
    assert stats.chisquare(found, np.append(expected[big], expected[~big].sum())).pvalue > 1e-4
    # And steps know nothing of each other.
    assert abs(np.corrcoef(member[1:].ravel(), member[:-1].ravel())[0, 1]) < 4 / np.sqrt(steps * 6)


def test_a_batch_beyond_its_room_is_not_cut() -> None:
    training = PrivateTraining(noise=1e-9, rate=0.05, norm=10.0, steps=1)
    gradients = linear_gradients(moving_bands(40), training)
    gradients._room = 1
    number = next(n for n in range(99) if len(gradients.batches(n)) > 2)
    parts = gradients.batches(number)
    clips = moving_bands(40)[np.concatenate(parts)]
    found = gradients.at(number, LINEAR, np.float32(1))
    np.testing.assert_allclose(2 * found["weight"], clips.sum(axis=0), rtol=1e-5, atol=1e-5)


Train = Callable[..., Generator]
SYSTEMS = pytest.mark.parametrize("train", [train_private_autoencoder, train_dp_gan])
ONE_QUICKLY = pytest.mark.parametrize(
    "train", [pytest.param(train_private_autoencoder, marks=pytest.mark.slow), train_dp_gan]
)


@ONE_QUICKLY
def test_a_private_generator_makes_clips_and_says_its_price(train: Train) -> None:
    generator = train(moving_bands(9), TINY, TRAINING, ORIGIN)
    assert generator.samples(2, 0).shape == (2, 4, 6)
    assert generator.origin is ORIGIN


@pytest.mark.slow
@SYSTEMS
def test_without_a_seed_noise_is_the_operating_systems(train: Train) -> None:
    once, twice = (train(moving_bands(9), TINY, TRAINING, ORIGIN).decoder for _ in range(2))
    assert not same_bits(once, twice)


@ONE_QUICKLY
def test_a_killed_private_training_goes_on_bit_by_bit(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot_studies.pate_aae.generators.steps.EVERY", 2)
    module: Any = private_autoencoder if train is train_private_autoencoder else dp_gan
    whole = train(moving_bands(9), TINY, TRAINING, ORIGIN, seed=1)
    path = tmp_path / "checkpoint"
    real, drawn = NoisyGradients.at, {}

    def killed(self: NoisyGradients, number: int, *networks: Any) -> Any:
        if number == 5:
            raise KeyboardInterrupt
        drawn[number] = real(self, number, *networks)
        return drawn[number]

    monkeypatch.setattr(module.NoisyGradients, "at", killed)
    with pytest.raises(KeyboardInterrupt):
        train(moving_bands(9), TINY, TRAINING, ORIGIN, seed=1, checkpoint=path)
    assert path.stat().st_mode & 0o777 == 0o600
    redone = {}

    def again(self: NoisyGradients, number: int, *networks: Any) -> Any:
        redone[number] = real(self, number, *networks)
        return redone[number]

    monkeypatch.setattr(module.NoisyGradients, "at", again)
    for other in (
        {"training": replace(TRAINING, noise=0.8)},
        {"origin": private(4.0, 1e-5, "clip")},
        {"clips": moving_bands(9, seed=2)},
    ):
        arguments = {
            "clips": moving_bands(9), "settings": TINY, "training": TRAINING, "origin": ORIGIN
        } | other  # fmt: skip
        with pytest.raises(OtherTrainingError, match="differ"):
            train(**arguments, seed=1, checkpoint=path)
    on = train(moving_bands(9), TINY, TRAINING, ORIGIN, seed=1, checkpoint=path)
    assert same_bits(on.decoder, whole.decoder)
    # Step 4 was taken twice, with the same batch and the same noise: that is one release.
    assert sorted(redone) == [4, 5]
    assert same_bits(redone[4], drawn[4])
    assert not list(tmp_path.iterdir())


@SYSTEMS
@pytest.mark.parametrize("origin", [PUBLIC, NOT_PRIVATE])
def test_a_private_training_must_say_what_it_costs(train: Train, origin: Any) -> None:
    with pytest.raises(InvalidParametersError, match="epsilon"):
        train(moving_bands(9), TINY, TRAINING, origin)


@SYSTEMS
def test_clips_that_are_none_are_refused(train: Train) -> None:
    with pytest.raises(InvalidInputError, match="finite"):
        train(np.full((9, 4, 6), np.nan), TINY, TRAINING, ORIGIN)


@pytest.mark.parametrize(
    "change",
    [{"noise": 0.0}, {"rate": 0.0}, {"rate": 1.1}, {"norm": -1}, {"norm": float("inf")},
     {"steps": 0}],
    ids=str,
)  # fmt: skip
def test_private_training_out_of_range_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParametersError, match=next(iter(change))):
        replace(TRAINING, **change)
