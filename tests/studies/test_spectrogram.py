"""Pictures of sound for generators, against textbook loops and sines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.pate_aae.generators import spectrogram
from earshot_studies.pate_aae.generators.spectrogram import SMALL, SpectrogramSettings

RATE = SMALL.rate


def sine(hertz: float, amplitude: float) -> NDArray[np.float32]:
    seconds = np.arange(RATE) / RATE
    return (amplitude * np.sin(2 * np.pi * hertz * seconds)).astype(np.float32)


def chirp() -> NDArray[np.float32]:
    """A second that swells, and rises from 200 to 1,800 Hz."""
    seconds = np.arange(RATE) / RATE
    phase = 2 * np.pi * (200 * seconds + 800 * seconds**2)
    return (0.2 * np.sin(np.pi * seconds) * np.sin(phase)).astype(np.float32)


def slaney(hertz: float) -> float:
    """Slaney's mel scale: a band is as wide as 66.7 Hz below 1 kHz, and logarithmic above."""
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def test_a_picture_is_what_a_textbook_makes_of_a_second() -> None:
    second = chirp() + np.float32(0.01)
    found = spectrogram.log_mel(second[np.newaxis])[0]
    window = [math.sin(math.pi * place / 512) ** 2 for place in range(512)]
    edges = [slaney(50) + (slaney(4000) - slaney(50)) * each / 41 for each in range(42)]
    for frame in (0, 9, 31):
        start = 250 * frame + 125 - 256
        samples = [
            float(second[place]) * weight if 0 <= place < RATE else 0.0
            for place, weight in zip(range(start, start + 512), window, strict=True)
        ]
        power = [
            abs(sum(x * np.exp(-2j * math.pi * bin_ * n / 512) for n, x in enumerate(samples))) ** 2
            / (sum(window) / 2) ** 2
            for bin_ in range(257)
        ]
        for band in (0, 7, 20, 39):
            low, centre, high = (_hertz(edges[band + each]) for each in range(3))
            total = 0.0
            for bin_, each in enumerate(power):
                hertz = bin_ * RATE / 512
                rise, fall = (hertz - low) / (centre - low), (high - hertz) / (high - centre)
                total += max(0.0, min(rise, fall)) * each
            decibels = min(0.0, max(-80.0, 10 * math.log10(total + 1e-30)))
            assert found[frame, band] == pytest.approx(decibels / 40 + 1, abs=1e-4)


def _hertz(mel: float) -> float:
    return 200 * mel / 3 if mel < 15 else 1000 * math.exp((mel - 15) * math.log(6.4) / 27)


def test_a_picture_does_not_depend_on_other_seconds() -> None:
    together = np.stack([chirp(), sine(440, 1.0), np.zeros(RATE, dtype=np.float32)])
    pictures = spectrogram.log_mel(together)
    assert pictures.dtype == np.float32
    assert pictures.shape == (3, 32, 40)
    for second, picture in zip(together, pictures, strict=True):
        assert np.array_equal(spectrogram.log_mel(second[np.newaxis])[0], picture)
    assert (pictures[2] == -1).all()


def test_full_scale_is_the_top_of_the_range_and_twenty_decibels_are_half_of_its_half() -> None:
    loud, soft = spectrogram.log_mel(np.stack([sine(1000, 1.0), sine(1000, 0.1)]))
    assert loud.max() == 1
    band = int(soft[16].argmax())
    assert loud[16, band] - soft[16, band] == pytest.approx(0.5, abs=0.05)
    assert spectrogram.log_mel(100 * sine(1000, 1.0)[np.newaxis]).max() == 1


def test_no_seconds_are_no_pictures() -> None:
    assert spectrogram.log_mel(np.empty((0, RATE), dtype=np.float32)).shape == (0, 32, 40)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (np.zeros((2, 7999), dtype=np.float32), "must be n × 8000"),
        (np.zeros(8000, dtype=np.float32), "must be n × 8000"),
        (np.full((1, 8000), np.nan, dtype=np.float32), "finite"),
        (np.zeros((1, 8000), dtype=np.int16), "int16"),
    ],
    ids=["short", "flat", "nan", "whole numbers"],
)
def test_what_is_no_second_is_refused(wrong: NDArray[np.float32], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        spectrogram.log_mel(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"frames": 33},
        {"frames": 0},
        {"bands": 200},
        {"window": 200},
        {"window": 511},
        {"window": 9000},
        {"floor": 0.0},
        {"floor": math.nan},
    ],
    ids=str,
)
def test_settings_that_make_no_picture_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParametersError, match=next(iter(wrong))):
        SpectrogramSettings(**wrong)  # type: ignore[arg-type]


def test_a_sine_is_loudest_in_the_band_of_its_pitch() -> None:
    edges = [slaney(50) + (slaney(4000) - slaney(50)) * each / 41 for each in range(42)]
    for band in (3, 17, 36):
        picture = spectrogram.log_mel(sine(_hertz(edges[band + 1]), 0.1)[np.newaxis])[0]
        assert picture[16].argmax() == band


def test_other_settings_make_other_pictures() -> None:
    wide = SpectrogramSettings(rate=16_000, frames=50, bands=64, window=1024)
    second = np.repeat(chirp(), 2)[np.newaxis]
    picture = spectrogram.log_mel(second, wide)
    assert picture.shape == (1, 50, 64)
