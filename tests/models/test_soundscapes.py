from __future__ import annotations

import numpy as np
import pytest

from earshot_client.features import one_second
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidInputError

RATES = (8000, 16_000)


def clips(scene: str, count: int = 40, seed: int = 0, rate: int = 8000) -> np.ndarray:
    return synthesize(scene, count, np.random.default_rng(seed), rate)


def power(scene: str, low: float, high: float, rate: int) -> float:
    """The median clip's share of power between two frequencies."""
    spectrum = np.abs(np.fft.rfft(clips(scene, rate=rate))) ** 2
    share = spectrum[:, int(low) : int(high)].sum(axis=1) / spectrum[:, 1:].sum(axis=1)
    return float(np.median(share))


def unsteadiness(scene: str, rate: int) -> float:
    """The median clip's spread of level, in decibels, between pieces of 50 ms."""
    pieces = clips(scene, rate=rate).reshape(40, 20, -1)
    level = 10 * np.log10(np.mean(pieces**2, axis=2))
    return float(np.median(level.std(axis=1)))


def test_there_are_ten_scenes() -> None:
    names = "rain, traffic, siren, birds, machine hum, crowd, wind, waves, train, café"
    assert ", ".join(SCENES) == names


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("scene", SCENES)
def test_every_clip_is_usable_and_another_one(scene: str, rate: int) -> None:
    sound = clips(scene, 70, rate=rate)
    assert sound.shape == (70, rate)
    assert sound.dtype == np.float32
    assert np.abs(sound).max() <= 0.951
    level = np.sqrt(np.mean(sound**2, axis=1))
    assert level.min() > 0.005
    assert level.max() / level.min() > 4
    for clip in sound[::10]:
        one_second(clip, rate, rate)
    unit = sound / np.linalg.norm(sound, axis=1, keepdims=True)
    alike = np.abs(unit @ unit.T)
    np.fill_diagonal(alike, 0)
    assert alike.max() < 0.9


@pytest.mark.parametrize("scene", SCENES)
def test_the_generator_is_the_only_randomness(scene: str) -> None:
    np.testing.assert_array_equal(clips(scene, 3, seed=5), clips(scene, 3, seed=5))
    assert not np.array_equal(clips(scene, 3, seed=5), clips(scene, 3, seed=6))


@pytest.mark.parametrize("rate", RATES)
def test_the_scenes_sound_as_their_names_say(rate: int) -> None:
    assert power("rain", 1500, rate / 2, rate) > 0.7
    assert power("birds", 2000, 4000, rate) > 0.8
    assert power("wind", 0, 600, rate) > 0.9
    assert power("machine hum", 90, 130, rate) > 0.4
    assert power("siren", 400, 4000, rate) > 0.9
    assert power("traffic", 0, 1500, rate) > 0.8
    assert power("crowd", 100, 2200, rate) > 0.9
    # A cup rings where voices do not.
    assert power("café", 2600, 3600, rate) > 2 * power("crowd", 2600, 3600, rate)


def test_the_octave_above_is_not_empty_at_twice_the_rate() -> None:
    assert power("rain", 4000, 8000, 16_000) > 0.2
    assert power("siren", 4000, 8000, 16_000) > 1e-6


@pytest.mark.parametrize("rate", RATES)
def test_the_scenes_move_as_their_names_say(rate: int) -> None:
    steady = unsteadiness("machine hum", rate)
    assert unsteadiness("rain", rate) < 2
    assert steady < 2
    for scene in ("train", "birds", "waves", "café"):
        assert unsteadiness(scene, rate) > steady + 1, scene
    # Few voices pause together more often than many.
    assert unsteadiness("café", rate) > unsteadiness("crowd", rate)
    # A swell grows or ebbs over the whole second.
    halves = clips("waves", rate=rate).reshape(40, 2, -1)
    swell = np.abs(np.diff(10 * np.log10(np.mean(halves**2, axis=2)), axis=1))
    assert np.median(swell) > 4


def test_no_clips_is_a_fair_wish() -> None:
    assert clips("rain", 0).shape == (0, 8000)


def test_other_scenes_and_counts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"rain, traffic.*not 'cafe'"):
        clips("cafe")
    with pytest.raises(InvalidInputError, match="not -1"):
        clips("rain", -1)
    with pytest.raises(InvalidInputError, match="multiple of 8000, not 12000"):
        clips("rain", rate=12_000)
