"""The window and the mel filters; `tests/client/test_features.py` has whole spectra by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earshot_protocol.spectrum import BANDS, FRAMES, NARROW, SPECTRA, WIDE, Spectrum

both = pytest.mark.parametrize("spectrum", [NARROW, WIDE], ids=["8 kHz", "16 kHz"])


@both
def test_a_frame_lasts_32_ms_and_starts_every_16(spectrum: Spectrum) -> None:
    assert (spectrum.frame, spectrum.hop) == (0.032 * spectrum.rate, 0.016 * spectrum.rate)
    assert 1 + (spectrum.rate - spectrum.frame) // spectrum.hop == FRAMES
    assert SPECTRA[spectrum.features] == spectrum
    assert f"{spectrum.rate // 1000} kHz" in spectrum.features


@both
def test_the_window_is_hann_s_of_unit_energy(spectrum: Spectrum) -> None:
    window, frame = spectrum.hann_window().astype(float), spectrum.frame
    # A Hann window is a sine squared; the mean of its fourth power is 3/8.
    sines = [math.sin(math.pi * i / frame) ** 2 for i in range(frame)]
    expected = np.array(sines) / math.sqrt(3 / 8 * frame)
    np.testing.assert_allclose(window, expected, atol=1e-8)
    assert np.sum(window**2) == pytest.approx(1)


@both
def test_the_filters_are_triangles_around_slaney_s_frequencies(spectrum: Spectrum) -> None:
    # Below 1 kHz his scale is linear: 15 mel there, 65 intervals from 50 Hz (0.75 mel) to the end.
    end = spectrum.rate / 2
    step = (15 + 27 * math.log(end / 1000) / math.log(6.4) - 0.75) / (BANDS + 1)
    filters = spectrum.mel_filters().astype(float)
    bins = spectrum.frame // 2 + 1
    assert filters.shape == (bins, BANDS)
    assert (filters >= 0).all()
    np.testing.assert_allclose(filters.sum(axis=0), 1, atol=1e-6)
    hertz = np.arange(bins) * 31.25
    for band in range(15):
        centre = 50 + (band + 1) * step * 200 / 3
        inside = np.abs(hertz - centre) < step * 200 / 3
        assert ((filters[:, band] > 1e-12) == inside).all()
    assert (np.diff(hertz @ filters) > 0).all()
    assert hertz @ filters[:, -1] < end


def test_what_all_share_cannot_be_changed() -> None:
    for shared in (WIDE.hann_window(), WIDE.mel_filters()):
        assert shared.dtype == np.float32
        with pytest.raises(ValueError, match="read-only"):
            shared[0] = 1
    with pytest.raises(TypeError):
        SPECTRA["another"] = WIDE  # type: ignore[index]
