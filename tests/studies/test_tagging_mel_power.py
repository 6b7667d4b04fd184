"""Mel power against a transform and filters written out here."""

import numpy as np
import pytest

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.muschiol.tagging.mel_power import FLOOR, MelSettings, log_mel, mel_power

SMALL = MelSettings(8000, 512, 160, 40, 1.0)


def hertz(mel):
    """Slaney's scale: 200/3 Hz a mel up to 1 kHz, a factor of 6.4 in 27 mel above."""
    return mel * 200 / 3 if mel < 15 else 1000 * np.exp((mel - 15) * np.log(6.4) / 27)


def textbook(sound, settings):
    """One clip, frame by frame."""
    top = 15 + 27 * np.log(settings.rate / 2 / 1000) / np.log(6.4)
    edges = [hertz(mel) for mel in np.linspace(0, top, settings.bands + 2)]
    bins = np.arange(settings.window // 2 + 1) * settings.rate / settings.window
    filters = []
    for low, centre, high in zip(edges, edges[1:], edges[2:], strict=False):
        rise, fall = (bins - low) / (centre - low), (high - bins) / (high - centre)
        filters.append(np.maximum(0, np.minimum(rise, fall)) * 2 / (high - low))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(settings.window) / settings.window)
    padded = np.pad(sound.astype(float), settings.window // 2)
    rows = []
    for start in range(0, len(sound) + 1, settings.hop):
        frame = padded[start : start + settings.window] * window
        rows.append(np.array(filters) @ np.abs(np.fft.rfft(frame)) ** 2)
    return np.array(rows)


@pytest.mark.parametrize(
    "settings", [SMALL, MelSettings(16_000, 1024, 250, 64, 0.5)], ids=["small", "other"]
)
def test_it_is_the_textbooks(settings):
    sound = np.random.default_rng(0).normal(0, 0.1, (2, settings.samples))
    sound += 0.3 * np.sin(2 * np.pi * 440 * np.arange(settings.samples) / settings.rate)
    got = mel_power(sound, settings)
    assert got.shape == (2, *settings.shape)
    assert got.dtype == np.float32
    for clip, power in zip(sound, got, strict=True):
        np.testing.assert_allclose(power, textbook(clip, settings), rtol=2e-3, atol=1e-5)


def test_a_tone_is_loudest_in_its_band():
    settings = MelSettings(44_100, 2048, 441, 64, 1.0)
    time = np.arange(settings.samples) / settings.rate
    power = mel_power(np.sin(2 * np.pi * 3000 * time)[None], settings)
    # 3 kHz is mel 31 of 60, between the middles of bands 32 and 33 of 64.
    (band,) = set(power[0, 5:-5].argmax(axis=1))
    assert band in (32, 33)


def test_the_power_of_two_sounds_is_on_average_the_sum_of_theirs():
    random = np.random.default_rng(1)
    one, other = random.normal(0, 0.1, (2, 200, SMALL.samples))
    both = mel_power(one + other, SMALL).mean(axis=0)
    apart = (mel_power(one, SMALL) + mel_power(other, SMALL)).mean(axis=0)
    assert np.median(np.abs(both / apart - 1)) < 0.08
    # The same sound twice is four times its power, not twice: sums hold for unlike sounds.
    np.testing.assert_allclose(mel_power(2 * one[:2], SMALL), 4 * mel_power(one[:2], SMALL), 1e-4)


def test_many_clips_come_out_as_each_alone():
    settings = MelSettings(1000, 64, 32, 8, 0.1)
    sound = np.random.default_rng(2).normal(size=(600, settings.samples))
    power = mel_power(sound, settings)
    for place in (0, 255, 256, 599):
        np.testing.assert_allclose(power[place], mel_power(sound[[place]], settings)[0], rtol=1e-5)
    assert mel_power(sound[:0], settings).shape == (0, *settings.shape)


def test_silence_has_a_logarithm():
    power = mel_power(np.zeros((1, SMALL.samples)), SMALL)
    assert not power.any()
    np.testing.assert_allclose(log_mel(power), np.log(FLOOR), rtol=1e-6)


def test_what_is_no_sound_of_that_length_is_refused():
    with pytest.raises(InvalidInputError, match=r"must be \(clips, 8000\)"):
        mel_power(np.zeros((1, 7999)), SMALL)
    with pytest.raises(InvalidInputError, match="NaN"):
        mel_power(np.full((1, 8000), np.nan), SMALL)


@pytest.mark.parametrize(
    "wrong",
    [(0, 512, 160, 40, 1), (8000, 8, 4, 40, 1), (8000, 512, 513, 40, 1), (8000, 512, 160, 3, 1),
     (8000, 512, 160, 40, 0), (8000, 512, 160, 40, 0.01)],
    ids=["rate", "window", "hop", "bands", "seconds", "shorter than a window"],
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidParametersError):
        MelSettings(*wrong)
