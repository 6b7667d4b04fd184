"""What sound goes through before it is heard worse: levels, filters and rooms, as they claim."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from earshot_models import audio
from earshot_models.soundscapes import synthesize
from earshot_protocol.spectrum import SAMPLE_RATE
from earshot_simulations.probing import degradations
from earshot_simulations.probing.degradations import CONDITIONS, SoundCondition, degraded

WINDOW = SAMPLE_RATE
"""Samples of a second."""
BY_NAME = {condition.name: condition for condition in CONDITIONS}


@pytest.fixture
def rain() -> np.ndarray:
    return synthesize("rain", 6, np.random.default_rng(0)) * np.array([[1, 0.1] * 3]).T


def decibels(wanted: np.ndarray, other: np.ndarray) -> np.ndarray:
    return 10 * np.log10((wanted**2).sum(axis=-1) / (other**2).sum(axis=-1))


def tone(hertz: float) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(WINDOW) / SAMPLE_RATE)[np.newaxis]


def power(sound: np.ndarray, low: float, high: float) -> float:
    hertz = np.fft.rfftfreq(sound.shape[-1], 1 / sound.shape[-1])
    spectrum = np.abs(np.fft.rfft(sound)) ** 2
    return float(spectrum[..., (hertz >= low) & (hertz < high)].sum())


@pytest.mark.parametrize("level", [20, 10, 0])
def test_noise_has_the_level_and_the_colour_that_it_claims(rain: np.ndarray, level: int) -> None:
    heard = degraded(BY_NAME[f"noise_{level}"], rain, np.arange(6) // 2)
    noise = heard - rain
    np.testing.assert_allclose(decibels(rain, noise), level, atol=0.01)
    # Pink: as much in each octave.
    octaves = [power(noise[0], low, 2 * low) for low in (125, 250, 500, 1000, 2000)]
    assert max(octaves) / min(octaves) < 1.8


def test_cloth_takes_what_it_claims_from_above_the_knee() -> None:
    knee = 1000.0
    passed = {
        hertz: decibels(
            degradations.muffled(tone(hertz), knee)[:, WINDOW // 2 :], tone(hertz)[:, WINDOW // 2 :]
        )[0]
        for hertz in (100, 1000, 2000, 3000)
    }
    assert passed[100] == pytest.approx(0, abs=0.1)
    assert passed[1000] == pytest.approx(-3, abs=0.1)
    assert passed[2000] < -12
    assert passed[3000] < -12 - 20 * np.log10(1.5) * 2 + 5


def test_a_pocket_muffles_and_shakes() -> None:
    hiss = np.random.default_rng(1).normal(0, 0.1, (8, WINDOW))
    heard = degraded(BY_NAME["pocket"], hiss, np.zeros(8, dtype=np.int64))
    # Between the knee's highest place and half an octave below 4 kHz, cloth leaves a tenth.
    assert power(heard, 2400, 3400) < 0.1 * power(hiss, 2400, 3400)
    # Rumble, 12 dB below the sound as it was: white noise has little of its own down there.
    below = power(heard - hiss, 20, 120) / power(hiss, 0, 4000)
    assert 10 * np.log10(below) == pytest.approx(-12, abs=1)


def test_a_rustle_has_the_level_that_it_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    hiss = np.random.default_rng(2).normal(0, 0.1, (40, WINDOW))
    monkeypatch.setattr(degradations, "RUMBLE_DECIBELS", -np.inf)
    generator = np.random.default_rng(3)
    heard = degradations.in_a_pocket(hiss, generator)
    knee = np.random.default_rng(3).uniform(*degradations.POCKET_KNEE)
    rustle = heard - degradations.muffled(hiss, knee)
    loud = (rustle**2).sum(axis=1) > 0
    assert 0.6 < loud.mean() < 1, "one second in seven is without a stroke"
    np.testing.assert_allclose(decibels(rustle[loud], hiss[loud]), -18, atol=0.01)
    crest = np.abs(rustle[loud]).max(axis=1) / np.sqrt((rustle[loud] ** 2).mean(axis=1))
    assert np.median(crest) > 5, "strokes, not a hiss: that has 4"


def test_a_small_microphone_is_deaf_below_and_resonates_above() -> None:
    hiss = np.random.default_rng(4).normal(0, 0.1, (8, WINDOW))
    heard = degraded(BY_NAME["device"], hiss, np.arange(8))

    def gain(low: float, high: float) -> float:
        return 10 * np.log10(power(heard, low, high) / power(hiss, low, high))

    assert gain(20, 80) < gain(600, 1200) - 12
    assert gain(2000, 3400) > gain(600, 1200) + 2


def test_a_codec_gives_back_what_it_was_given_but_for_its_steps() -> None:
    hiss = np.random.default_rng(5).normal(0, 0.1, (4, WINDOW))
    assert decibels(hiss, degradations.coded(hiss) - hiss) == pytest.approx(11, abs=1)
    # What is 60 dB below the loudest is not kept.
    faint = (tone(500) + 0.001 * tone(3000)) * np.hanning(WINDOW)
    assert power(degradations.coded(faint), 2900, 3100) < 1e-3 * power(faint, 2900, 3100)
    assert power(degradations.coded(faint), 400, 600) == pytest.approx(
        power(faint, 400, 600), rel=0.3
    )
    assert not degradations.coded(np.zeros((1, WINDOW))).any()


def test_the_first_echoes_come_when_geometry_says() -> None:
    size, source, ear = np.array([3.0, 4.0, 2.5]), np.array([1.0, 1.0, 1.2]), np.array([2, 3, 1.0])
    response = degradations.echoes(size, source, ear, 0.8)
    direct = np.linalg.norm(source - ear)
    assert response[0] == pytest.approx(1)
    expected = np.zeros_like(response)
    expected[0] = 1
    for axis in range(3):
        for wall in (0.0, size[axis]):
            image = source.copy()
            image[axis] = 2 * wall - source[axis]
            way = np.linalg.norm(image - ear)
            expected[round((way - direct) / 343 * SAMPLE_RATE)] += 0.8 * direct / way
    # Before the first echo by two walls there is nothing else.
    early = slice(0, int(np.flatnonzero(expected)[1]) + 1)
    np.testing.assert_allclose(response[early], expected[early], atol=1e-12)
    assert np.all(response >= expected - 1e-12)


@pytest.mark.parametrize("reflected", [0.7, 0.85])
def test_a_room_dies_away_as_eyring_says(reflected: float) -> None:
    """Eyring (1930): T60 = 0.161 V / (-S ln(1 - absorption)), here within a fifth."""
    size, source, ear = np.array([[3.1, 3.7, 2.6], [0.9, 1.1, 1.3], [2.2, 2.6, 1.0]])
    response = degradations.audible(degradations.echoes(size, source, ear, reflected))
    left = 10 * np.log10(np.cumsum(response[::-1] ** 2)[::-1])
    time = np.arange(len(response)) / SAMPLE_RATE
    part = (left < left[0] - 5) & (left > left[0] - 20)
    found = -60 / np.polyfit(time[part], left[part], 1)[0]
    surface = 2 * (size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
    eyring = 0.161 * size.prod() / (-surface * np.log(reflected**2))
    assert found == pytest.approx(eyring, rel=0.2)


AS_BEFORE = {
    "noise_20": (0.00568893738, 0.0338929147, -0.00061747994),
    "noise_10": (0.0145981461, 0.0291378514, 0.0110927969),
    "noise_0": (0.0515277199, 0.0842411593, 0.0412289128),
    "pocket": (0.00682634627, 0.0365033187, -0.0104746344),
    "device": (0.000933155941, 0.0480330586, 0.0130975675),
    "room": (-0.0148396054, 0.077175878, -0.0342574902),
}
"""Three samples of `lows` as they were heard when all encoders heard 8 kHz."""


def lows() -> np.ndarray:
    """Six seconds of noise of which next to nothing is above 3 kHz."""
    white = np.random.default_rng(7).normal(0, 0.1, (6, WINDOW))
    sections = signal.butter(8, 2500, fs=SAMPLE_RATE, output="sos")
    return signal.sosfiltfilt(sections, white, axis=1) * np.hanning(WINDOW)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.name)
def test_encoders_of_any_rate_hear_alike_what_all_of_them_hear(condition: SoundCondition) -> None:
    sound, clip = lows(), np.arange(6) // 2
    heard = degraded(condition, sound, clip)
    np.testing.assert_allclose(heard[[0, 2, 5], [1000, 4000, 6543]], AS_BEFORE[condition.name],
                               rtol=1e-4)  # fmt: skip
    wide = np.stack([audio.resample(second, SAMPLE_RATE, 16_000) for second in np.float32(sound)])
    wider = degraded(condition, wide, clip)
    assert wider.shape == (6, 16_000)
    back = np.stack([audio.resample(second, 16_000) for second in wider])
    # A room's echoes fall on other samples, and a codec rounds otherwise; of noise, what is between
    # 4 kHz and 8 kHz takes its part of the level. Another hearing would be 0 dB apart, or worse.
    assert decibels(heard, back - heard).min() > 7


def test_noise_of_a_wider_spectrum_goes_up_to_its_end() -> None:
    hiss = np.random.default_rng(8).normal(0, 0.1, (6, 16_000))
    noise = degraded(BY_NAME["noise_0"], hiss, np.zeros(6, dtype=np.int64)) - hiss
    np.testing.assert_allclose(decibels(hiss, noise), 0, atol=0.01)
    octaves = [power(noise, low, 2 * low) for low in (125, 250, 500, 1000, 2000, 3900)]
    assert max(octaves) / min(octaves) < 1.4


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.name)
def test_a_hearing_is_the_same_every_time_and_anothers_is_another(
    condition: SoundCondition, rain: np.ndarray
) -> None:
    clip = np.arange(6) // 2
    heard = degraded(condition, rain, clip)
    assert heard.shape == rain.shape
    assert heard.dtype == np.float32
    np.testing.assert_array_equal(heard, degraded(condition, rain, clip))
    # A clip does not depend on what else is heard.
    np.testing.assert_array_equal(heard[2:4], degraded(condition, rain[2:4], clip[2:4]))
    for other in (degraded(condition, rain, clip, seed=1), degraded(condition, rain, clip + 9)):
        assert not np.allclose(heard, other)
    assert not degraded(condition, np.zeros((1, WINDOW)), np.zeros(1, dtype=np.int64)).any()
    # Ten times as loud a sound is heard the same way: nothing here has a level of its own.
    louder = degraded(condition, 10 * rain, clip)
    np.testing.assert_allclose(louder, 10 * heard, rtol=1e-3, atol=1e-4)
