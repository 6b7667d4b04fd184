"""The adversarial autoencoder: what it learns, what it refuses, how it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support import compiling  # noqa: F401  # programs are compiled in half the time
from support.clips import moving_bands
from support.same_bits import same_bits

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.pate_aae.generators import autoencoder, checkpoint
from earshot_studies.pate_aae.generators.autoencoder import draws, loss, started, train_autoencoder
from earshot_studies.pate_aae.generators.checkpoint import OtherTrainingError
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE, PUBLIC, private
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

TINY = GeneratorSettings(Network.DENSE, width=16, latent=3, steps=12, batch=8, critic_width=8)


@pytest.mark.slow
def test_samples_are_clips_of_the_law_that_was_learned() -> None:
    clips = moving_bands(200)
    settings = replace(TINY, steps=600, batch=32, rate=3e-3, width=32)
    generator = train_autoencoder(clips, settings, PUBLIC, 1)
    samples = generator.samples(500, 2)
    assert samples.dtype == np.float32
    assert samples.shape == (500, 4, 6)
    assert np.abs(samples).max() <= 1
    # Nearer to a clip than one clip is to the mean of all: shapes, not averages.
    flat, known = samples.reshape(500, -1), clips.reshape(200, -1)
    nearest = ((flat[:, None] - known) ** 2).sum(-1).min(1)
    spread = ((known - known.mean(0)) ** 2).sum(-1)
    assert np.median(nearest) < 0.3 * np.median(spread)
    # All of the law, not one clip of it.
    assert samples.std(axis=0).mean() > 0.5 * clips.std(axis=0).mean()


@pytest.mark.slow
@pytest.mark.parametrize("network", list(Network))
def test_each_network_makes_clips_of_odd_sizes(network: Network) -> None:
    clips = moving_bands(6, (5, 7))
    settings = replace(TINY, network=network, steps=2, dropout=0.3)
    generator = train_autoencoder(clips, settings, NOT_PRIVATE, 0)
    assert generator.samples(3, 0).shape == (3, 5, 7)
    assert generator.origin is NOT_PRIVATE


@pytest.mark.slow
def test_no_loss_moves_networks_of_another() -> None:
    generator = np.random.default_rng(0)
    networks = started((4, 6), TINY, generator).networks
    clip = moving_bands(1)[0]
    own = jax.tree.map(lambda rows: rows[0], draws(generator, 1, TINY))
    gradient = jax.jit(jax.grad(loss), static_argnames="settings")
    whole = gradient(networks, clip, own, settings=TINY)
    # Without the encoder's deception, weights of the critic move as before, and the decoder's too.
    quiet = gradient(networks, clip, own, settings=replace(TINY, adversarial=1e-30))
    assert same_bits(whole.critic, quiet.critic)
    assert same_bits(whole.decoder, quiet.decoder)
    assert not same_bits(whole.encoder, quiet.encoder)


@pytest.mark.slow
def test_first_samples_do_not_depend_on_how_many_are_asked_for() -> None:
    generator = train_autoencoder(moving_bands(8), replace(TINY, steps=1), PUBLIC, 0)
    many = generator.samples(300, 5)
    np.testing.assert_array_equal(generator.samples(7, 5), many[:7])
    assert not np.array_equal(generator.samples(7, 6), many[:7])
    assert generator.samples(0, 5).shape == (0, 4, 6)
    with pytest.raises(InvalidParametersError, match="count=-1"):
        generator.samples(-1, 5)


def killed_after(steps: int, monkeypatch: pytest.MonkeyPatch, path: Path, **kinds: Any) -> None:
    """A training that is killed after some steps, with a file every five."""
    monkeypatch.setattr("earshot_studies.pate_aae.generators.steps.EVERY", 5)
    real, calls = autoencoder._step, []

    def step(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) > steps:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(autoencoder, "_step", step)
    with pytest.raises(KeyboardInterrupt):
        train(path, **kinds)
    monkeypatch.setattr(autoencoder, "_step", real)


def train(
    path: Path | None, settings: GeneratorSettings = TINY, seed: int = 3, count: int = 9
) -> Generator:
    return train_autoencoder(moving_bands(count), settings, PUBLIC, seed, checkpoint=path)


@pytest.mark.slow
def test_a_killed_training_goes_on_bit_by_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    killed_after(8, monkeypatch, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert checkpoint.read_header(path)["done"] == 5
    assert same_bits(train(path).decoder, train(None).decoder)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"settings": replace(TINY, latent=4)}, "latent"),
        ({"settings": replace(TINY, steps=13)}, "steps"),
        ({"seed": 4}, "seed"),
        ({"count": 10}, "clips"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], named: str
) -> None:
    path = tmp_path / "checkpoint"
    killed_after(6, monkeypatch, path)
    with pytest.raises(OtherTrainingError, match=f"{named} differ"):
        train(path, **change)
    assert path.exists()


@pytest.mark.slow
def test_a_training_whose_weights_explode_says_so() -> None:
    with pytest.raises(InvalidInputError, match="lower rates"):
        train(None, replace(TINY, rate=1.0, adversarial=1e38))


@pytest.mark.parametrize(
    ("clips", "message"),
    [
        (np.zeros((4, 6), np.float32), "of shape"),
        (np.zeros((4, 4, 6), np.int64), "floating-point"),
        (np.zeros((1, 4, 6), np.float32), "at least 2"),
        (np.full((3, 4, 6), np.nan, np.float32), "not finite"),
        (np.full((3, 4, 6), np.inf), "not finite"),
        (np.full((3, 4, 6), 1.01, np.float32), "beyond"),
        (np.zeros((3, 0, 6), np.float32), "two whole numbers"),
        (np.zeros((2, 1024, 1024), np.float32), "at most"),
    ],
)
def test_what_is_no_clips_is_refused(clips: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        train_autoencoder(clips, TINY, PUBLIC, 0)


def test_training_without_noise_may_not_be_called_private() -> None:
    with pytest.raises(InvalidParametersError, match="adds no noise"):
        train_autoencoder(moving_bands(4), TINY, private(1.0, 1e-5, "clip"), 0)


@pytest.mark.parametrize(
    "change",
    [
        {"network": "dense"}, {"width": 3}, {"latent": 0}, {"steps": 0}, {"batch": 0}, {"rate": 0},
        {"critic_rate": float("nan")}, {"critic_width": 0}, {"adversarial": 0}, {"dropout": 1},
        {"smoothing": 0.5}, {"jitter": -1}, {"averaging": 1},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_settings_out_of_range_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParametersError, match=next(iter(change))):
        replace(TINY, **change)
