"""The window and the mel filters; `tests/client/test_features.py` has whole spectra by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earshot_protocol.spectrum import BANDS, FRAME, FRAMES, hann_window, mel_filters


def test_the_window_is_hann_s_of_unit_energy() -> None:
    window = hann_window().astype(float)
    # A Hann window is a sine squared; the mean of its fourth power is 3/8.
    expected = [math.sin(math.pi * i / 256) ** 2 / math.sqrt(3 / 8 * 256) for i in range(FRAME)]
    np.testing.assert_allclose(window, expected, atol=1e-8)
    assert np.sum(window**2) == pytest.approx(1)


def test_the_filters_are_triangles_around_slaney_s_frequencies() -> None:
    # Below 1 kHz his scale is linear: 15 mel there, 66 intervals from 50 Hz (0.75 mel) to 4 kHz.
    step = (15 + 27 * math.log(4) / math.log(6.4) - 0.75) / (BANDS + 1)
    filters = mel_filters().astype(float)
    assert filters.shape == (129, BANDS)
    assert (filters >= 0).all()
    np.testing.assert_allclose(filters.sum(axis=0), 1, atol=1e-6)
    hertz = np.arange(129) * 31.25
    for band in range(20):
        centre = 50 + (band + 1) * step * 200 / 3
        inside = np.abs(hertz - centre) < step * 200 / 3
        assert ((filters[:, band] > 1e-12) == inside).all()
    assert (np.diff(hertz @ filters) > 0).all()
    assert hertz @ filters[:, -1] < 4000
    assert FRAMES == 61


def test_what_all_share_cannot_be_changed() -> None:
    for shared in (hann_window(), mel_filters()):
        assert shared.dtype == np.float32
        with pytest.raises(ValueError, match="read-only"):
            shared[0] = 1
