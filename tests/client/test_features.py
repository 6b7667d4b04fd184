from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from earshot_client.features import (
    CLIPPED_FRACTION,
    Unusable,
    UnusableRecordingError,
    log_mel,
    one_second,
)
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import NARROW, SAMPLE_RATE, SILENT_RMS, WIDE, Spectrum

WINDOW = SAMPLE_RATE
"""Samples of a second."""


def tone(hertz: float, rate: int, seconds: float = 1.0, level: float = 0.5) -> np.ndarray:
    return level * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate + 0.3)


def slaney_mel(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def textbook_log_mel(samples: np.ndarray, frame: int) -> list[float]:
    """One frame, by the definitions: a window, a slow Fourier sum, and triangles in hertz."""
    long = len(samples) * 32 // 1000
    window = [0.5 * (1 - math.cos(2 * math.pi * i / long)) for i in range(long)]
    energy = sum(w * w for w in window)
    piece = samples[frame * long // 2 : (frame + 2) * long // 2].astype(float) * window
    time = np.arange(long)
    power = [
        abs(np.sum(piece * np.exp(-2j * np.pi * k * time / long))) ** 2
        for k in range(long // 2 + 1)
    ]
    # The edges of the bands are found by bisection of the scale, not by its inverse.
    step = (slaney_mel(len(samples) / 2) - slaney_mel(50)) / 65
    edges = []
    for i in range(66):
        low, high = 0.0, 8000.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if slaney_mel(middle) < slaney_mel(50) + i * step else (low, middle)
            )
        edges.append(low)
    bands = []
    for low, centre, high in zip(edges, edges[1:], edges[2:], strict=False):
        weights = []
        for k in range(long // 2 + 1):
            hertz = k * 31.25
            if low < hertz <= centre:
                weights.append((hertz - low) / (centre - low))
            elif centre < hertz < high:
                weights.append((high - hertz) / (high - centre))
            else:
                weights.append(0.0)
        mean = sum(w * p for w, p in zip(weights, power, strict=True)) / sum(weights) / energy
        bands.append(math.log(mean + 1e-8))
    return bands


@pytest.mark.parametrize("spectrum", [NARROW, WIDE])
def test_log_mel_agrees_with_the_textbook(spectrum: Spectrum) -> None:
    generator = np.random.default_rng(0)
    batch = generator.uniform(-0.5, 0.5, (2, spectrum.rate)).astype(np.float32)
    batch[1] = tone(440, spectrum.rate)
    spectra = log_mel(batch, spectrum)
    assert spectra.shape == (2, 61, 64)
    assert spectra.dtype == np.float32
    for clip in (0, 1):
        for frame in (0, 17, 60):
            expected = textbook_log_mel(batch[clip], frame)
            np.testing.assert_allclose(spectra[clip, frame], expected, atol=2e-3)


@pytest.mark.parametrize("deviation", [0.01, 0.3])
def test_white_noise_reads_its_variance_in_every_band(deviation: float) -> None:
    noise = np.random.default_rng(1).normal(0, deviation, (400, WINDOW))
    power = np.exp(log_mel(noise)).mean(axis=(0, 1))
    np.testing.assert_allclose(power, deviation**2, rtol=0.05)


def test_log_mel_of_a_batch_is_that_of_its_clips() -> None:
    batch = np.random.default_rng(2).normal(0, 0.1, (5, WINDOW)).astype(np.float32)
    one_by_one = np.concatenate([log_mel(batch[i : i + 1]) for i in range(5)])
    np.testing.assert_array_equal(log_mel(batch), one_by_one)
    assert log_mel(batch[:0]).shape == (0, 61, 64)


@pytest.mark.parametrize("shape", [(WINDOW,), (1, WINDOW - 1), (1, 1, WINDOW)])
def test_log_mel_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="8000"):
        log_mel(np.zeros(shape, dtype=np.float32))
    with pytest.raises(InvalidInputError, match="int16"):
        log_mel(np.zeros((1, WINDOW), dtype=np.int16))


@given(
    rate=st.sampled_from([8000, 11_025, 16_000, 22_050, 44_100, 48_000, 8001, 16_001]),
    wanted=st.sampled_from([8000, 16_000]),
    hertz=st.integers(1, 3900),
)
@settings(max_examples=60, deadline=None)
def test_a_tone_survives_resampling(rate: int, wanted: int, hertz: int) -> None:
    assume(rate >= wanted)
    second = one_second(tone(hertz, rate, 1.3), rate, wanted)
    assert second.dtype == np.float32
    np.testing.assert_allclose(second, tone(hertz, wanted), atol=1e-5)


@pytest.mark.parametrize(("rate", "wanted"), [(7999, 8000), (8000, 16_000), (15_999, 16_000)])
def test_sound_below_the_rate_of_the_encoder_is_refused_by_name(rate: int, wanted: int) -> None:
    says = f"has {rate:,} samples per second, but the encoder hears {wanted:,}"
    with pytest.raises(InvalidInputError, match=says) as caught:
        one_second(tone(440, rate, 1.3), rate, wanted)
    assert not isinstance(caught.value, UnusableRecordingError)
    assert len(one_second(tone(440, wanted), wanted, wanted)) == wanted


def test_what_8_khz_cannot_hold_does_not_alias() -> None:
    heard = tone(1000, 44_100, level=0.3)
    second = one_second(heard + tone(7000, 44_100, level=0.3), 44_100)
    np.testing.assert_allclose(second, tone(1000, SAMPLE_RATE, level=0.3), atol=1e-5)
    with pytest.raises(UnusableRecordingError) as caught:
        one_second(tone(7000, 44_100), 44_100)
    assert caught.value.reason is Unusable.SILENT


def test_channels_are_averaged_and_an_offset_is_removed() -> None:
    left, right = tone(300, 16_000, level=0.6), tone(700, 16_000, level=0.2)
    second = one_second(np.stack([left, right], axis=1) + 0.1, 16_000)
    expected = tone(300, SAMPLE_RATE, level=0.3) + tone(700, SAMPLE_RATE, level=0.1)
    np.testing.assert_allclose(second, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_integers_are_scaled(dtype: type) -> None:
    sound = tone(500, SAMPLE_RATE)
    scaled = (sound * -float(np.iinfo(dtype).min)).astype(dtype)
    np.testing.assert_allclose(one_second(scaled, SAMPLE_RATE), sound, atol=1e-4)


def test_only_the_first_full_second_counts() -> None:
    sound = tone(500, SAMPLE_RATE, 2.0)
    sound[WINDOW:] = np.nan
    np.testing.assert_allclose(one_second(sound, SAMPLE_RATE), sound[:WINDOW], atol=1e-6)


def unusable(samples: np.ndarray, rate: int = SAMPLE_RATE) -> Unusable:
    with pytest.raises(UnusableRecordingError) as caught:
        one_second(samples, rate)
    assert caught.value.reason in str(caught.value)
    assert isinstance(caught.value, InvalidInputError)
    return caught.value.reason


def test_unusable_recordings_are_named() -> None:
    sound = tone(500, SAMPLE_RATE)
    assert unusable(sound[:-1]) is Unusable.TOO_SHORT
    assert unusable(sound[:0]) is Unusable.TOO_SHORT
    assert unusable(sound * 0) is Unusable.SILENT
    assert unusable(sound * 0 + 0.4) is Unusable.SILENT
    assert unusable(np.clip(4 * sound, -1, 1)) is Unusable.CLIPPED
    assert unusable(np.full(WINDOW, -32768, dtype=np.int16)) is Unusable.CLIPPED
    for value in (np.nan, np.inf, -np.inf):
        sound[77] = value
        assert unusable(sound) is Unusable.NOT_FINITE


def test_what_is_a_sample_too_short_is_not_called_a_second() -> None:
    with pytest.raises(UnusableRecordingError) as caught:
        one_second(tone(500, 16_000)[:-1], 16_000)
    assert "15,999 samples" in caught.value.detail
    assert "16,000" in caught.value.detail
    assert "1.000 s" not in caught.value.detail


def test_channels_before_samples_are_refused_by_name() -> None:
    stereo = np.stack([tone(500, 16_000), tone(700, 16_000)], axis=1)
    one_second(stereo, 16_000)
    with pytest.raises(InvalidInputError, match=r"\(2, 16000\).*first axis.*transpose") as caught:
        one_second(stereo.T, 16_000)
    assert not isinstance(caught.value, UnusableRecordingError)


def test_the_thresholds_are_those_that_are_stated() -> None:
    quiet = tone(500, SAMPLE_RATE, level=SILENT_RMS * math.sqrt(2))
    assert len(one_second(quiet * 1.01, SAMPLE_RATE)) == WINDOW
    assert unusable(quiet * 0.99) is Unusable.SILENT
    peaks = int(CLIPPED_FRACTION * WINDOW)
    sound = tone(500, SAMPLE_RATE)
    sound[:peaks] = 1.0
    assert len(one_second(sound, SAMPLE_RATE)) == WINDOW
    sound[peaks] = 1.0
    assert unusable(sound) is Unusable.CLIPPED
    # One overdriven channel of two is clipped, though the average is not.
    assert unusable(np.stack([sound, sound * 0.1], axis=1)) is Unusable.CLIPPED


@pytest.mark.parametrize(
    ("samples", "rate"),
    [
        (np.zeros((2, 2, 2)), 8000),
        (np.zeros((9000, 0)), 8000),
        (np.zeros(9000, dtype=np.uint8), 8000),
        (np.zeros(9000, dtype=complex), 8000),
        (np.zeros(9000), 0),
        (np.zeros(9000), -8000),
        (np.zeros(9000), 8000.5),
    ],
)
def test_other_arrays_and_rates_are_refused(samples: np.ndarray, rate: int) -> None:
    with pytest.raises(InvalidInputError) as caught:
        one_second(samples, rate)
    assert not isinstance(caught.value, UnusableRecordingError)
