"""Generator and critic without noise, and the noise on what critics are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import fft
from support import compiling  # noqa: F401  # programs are compiled in half the time
from support.clips import moving_bands
from support.same_bits import same_bits

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.pate_aae.generators import adversaries, gan
from earshot_studies.pate_aae.generators.checkpoint import OtherTrainingError
from earshot_studies.pate_aae.generators.gan import start_gan
from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE, PUBLIC, private
from earshot_studies.pate_aae.generators.settings import GeneratorSettings

TINY = GeneratorSettings(width=16, latent=2, steps=6, batch=8, critic_width=8)


@pytest.mark.slow
def test_samples_come_to_lie_where_clips_do() -> None:
    clips = moving_bands(100)
    settings = replace(TINY, steps=300, batch=32, rate=3e-3, critic_rate=3e-3)
    learned = start_gan(clips, settings, NOT_PRIVATE, 1).generator
    fresh = start_gan(clips, replace(settings, steps=1), NOT_PRIVATE, 1).generator

    def miss(generator: Any) -> float:
        return float(np.abs(generator.samples(300, 0).mean(0) - clips.mean(0)).mean())

    assert learned.origin is NOT_PRIVATE
    assert miss(learned) < 0.5 * miss(fresh)


@pytest.mark.slow
def test_a_killed_training_goes_on_bit_by_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot_studies.pate_aae.generators.steps.EVERY", 2)
    path, clips = tmp_path / "checkpoint", moving_bands(5)
    settings = replace(TINY, critic_steps=2)
    whole = start_gan(clips, settings, PUBLIC, 1).generator
    real, calls = gan._critic_step, [0]

    def killed(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == 8:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(gan, "_critic_step", killed)
    with pytest.raises(KeyboardInterrupt):
        start_gan(clips, settings, PUBLIC, 1, checkpoint=path)
    monkeypatch.setattr(gan, "_critic_step", real)
    with pytest.raises(OtherTrainingError, match="origin"):
        start_gan(clips, settings, NOT_PRIVATE, 1, checkpoint=path)
    again = start_gan(clips, settings, PUBLIC, 1, checkpoint=path).generator
    assert same_bits(again.decoder, whole.decoder)
    assert not list(tmp_path.iterdir())


def test_what_is_no_clips_and_what_claims_privacy_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="beyond"):
        start_gan(np.full((4, 4, 6), 2.0), TINY, PUBLIC, 0)
    with pytest.raises(InvalidParametersError, match="adds no noise"):
        start_gan(moving_bands(4), TINY, private(1.0, 1e-5, "clip"), 0)


@pytest.mark.parametrize("shape", [(32, 40), (7, 5), (1, 1)])
def test_smooth_noise_has_slow_waves_alone_each_as_strong(shape: tuple[int, int]) -> None:
    fields = adversaries.smooth(np.random.default_rng(0), 4000, shape)
    assert fields.shape == (4000, *shape)
    waves = fft.dctn(fields.astype(np.float64), axes=(1, 2), norm="ortho")
    frames, bands = -(-shape[0] // 4), -(-shape[1] // 4)
    slow = waves[:, :frames, :bands]
    fast = (waves**2).sum() - (slow**2).sum()
    assert fast < 1e-9 * (waves**2).sum()
    expected = shape[0] * shape[1] / (frames * bands)
    np.testing.assert_allclose((slow**2).mean(axis=0) / expected, 1, atol=6 * np.sqrt(2 / 4000))
    # Deviation 1 on average over a clip.
    np.testing.assert_allclose((fields.astype(np.float64) ** 2).mean(), 1, atol=0.1)


def test_noise_on_critics_ends_with_the_training() -> None:
    last = adversaries.draws(np.random.default_rng(0), 3, (4, 6), TINY, 0.0)
    assert not last.on_clip.any()
    assert not last.on_sample.any()
    first = adversaries.draws(np.random.default_rng(0), 3, (4, 6), TINY, 1.0)
    assert not np.array_equal(first.on_clip, first.on_sample)
    np.testing.assert_array_equal(first.latent, last.latent)
