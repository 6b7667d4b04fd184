from __future__ import annotations

import numpy as np
import pytest

from earshot_client.features import one_second
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidInputError


def clips(scene: str, count: int = 40, seed: int = 0) -> np.ndarray:
    return synthesize(scene, count, np.random.default_rng(seed))


def power(scene: str, low: float, high: float) -> float:
    """The median clip's share of power between two frequencies."""
    spectrum = np.abs(np.fft.rfft(clips(scene))) ** 2
    share = spectrum[:, int(low) : int(high)].sum(axis=1) / spectrum[:, 1:].sum(axis=1)
    return float(np.median(share))


def unsteadiness(scene: str, frame: int) -> float:
    """The median clip's spread of level, in decibels, between pieces of `frame` samples."""
    pieces = clips(scene).reshape(40, -1, frame)
    level = 10 * np.log10(np.mean(pieces**2, axis=2))
    return float(np.median(level.std(axis=1)))


def test_there_are_ten_scenes() -> None:
    names = "rain, traffic, siren, birds, machine hum, crowd, wind, waves, train, café"
    assert ", ".join(SCENES) == names


@pytest.mark.parametrize("scene", SCENES)
def test_every_clip_is_usable_and_another_one(scene: str) -> None:
    sound = clips(scene, 70)
    assert sound.shape == (70, 8000)
    assert sound.dtype == np.float32
    assert np.abs(sound).max() <= 0.951
    level = np.sqrt(np.mean(sound**2, axis=1))
    assert level.min() > 0.005
    assert level.max() / level.min() > 4
    for clip in sound[::10]:
        one_second(clip, 8000)
    unit = sound / np.linalg.norm(sound, axis=1, keepdims=True)
    alike = np.abs(unit @ unit.T)
    np.fill_diagonal(alike, 0)
    assert alike.max() < 0.9


@pytest.mark.parametrize("scene", SCENES)
def test_the_generator_is_the_only_randomness(scene: str) -> None:
    np.testing.assert_array_equal(clips(scene, 3, seed=5), clips(scene, 3, seed=5))
    assert not np.array_equal(clips(scene, 3, seed=5), clips(scene, 3, seed=6))


def test_the_scenes_sound_as_their_names_say() -> None:
    assert power("rain", 1500, 4000) > 0.7
    assert power("birds", 2000, 4000) > 0.8
    assert power("wind", 0, 600) > 0.9
    assert power("machine hum", 90, 130) > 0.4
    assert power("siren", 400, 4000) > 0.9
    assert power("traffic", 0, 1500) > 0.8
    assert power("crowd", 100, 2200) > 0.9
    # A cup rings where voices do not.
    assert power("café", 2600, 3600) > 2 * power("crowd", 2600, 3600)


def test_the_scenes_move_as_their_names_say() -> None:
    steady = unsteadiness("machine hum", 400)
    assert unsteadiness("rain", 400) < 2
    assert steady < 2
    for scene in ("train", "birds", "waves", "café"):
        assert unsteadiness(scene, 400) > steady + 1, scene
    # Few voices pause together more often than many.
    assert unsteadiness("café", 400) > unsteadiness("crowd", 400)
    # A swell grows or ebbs over the whole second.
    halves = clips("waves").reshape(40, 2, 4000)
    swell = np.abs(np.diff(10 * np.log10(np.mean(halves**2, axis=2)), axis=1))
    assert np.median(swell) > 4


def test_no_clips_is_a_fair_wish() -> None:
    assert clips("rain", 0).shape == (0, 8000)


def test_other_scenes_and_counts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"rain, traffic.*not 'cafe'"):
        clips("cafe")
    with pytest.raises(InvalidInputError, match="not -1"):
        clips("rain", -1)
