"""The features of PATE-AAE: 80 mel bands and 13 cepstral coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earshot_models.generators.spectrogram import SMALL, log_mel
from earshot_models.generators.speech_features import PAPER, mfcc
from earshot_protocol.errors import InvalidInputError, InvalidParametersError


def test_a_second_is_100_frames_of_80_bands_and_13_coefficients() -> None:
    seconds = np.random.default_rng(1).normal(0, 0.1, (2, 16000)).astype(np.float32)
    pictures = log_mel(seconds, PAPER)
    assert pictures.shape == (2, 100, 80)
    found = mfcc(pictures)
    assert found.shape == (2, 100, 13)
    # A textbook's cosine transform of the decibels of one frame.
    decibels = [PAPER.floor + (each + 1) / 2 * (PAPER.ceiling - PAPER.floor)
                for each in pictures[1, 40].tolist()]  # fmt: skip
    for place in range(13):
        total = sum(
            each * math.cos(math.pi * place * (2 * band + 1) / 160)
            for band, each in enumerate(decibels)
        )
        scale = math.sqrt(1 / 80) if place == 0 else math.sqrt(2 / 80)
        assert found[1, 40, place] == pytest.approx(scale * total, rel=1e-4, abs=1e-3)


def test_louder_sound_moves_the_first_coefficient_alone() -> None:
    pictures = np.random.default_rng(2).uniform(-0.5, 0.2, (1, *SMALL.shape))
    soft, loud = (mfcc(each, SMALL) for each in (pictures, pictures + 0.25))
    np.testing.assert_allclose(loud[..., 1:], soft[..., 1:], atol=1e-4)
    # 10 dB in every band.
    np.testing.assert_allclose(loud[..., 0] - soft[..., 0], 10 * math.sqrt(40), rtol=1e-5)


def test_other_pictures_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="n × 100 × 80"):
        mfcc(np.zeros((1, 32, 40)))
    with pytest.raises(InvalidInputError, match="finite"):
        mfcc(np.full((1, 100, 80), np.nan))
    with pytest.raises(InvalidParametersError, match="coefficients=81"):
        mfcc(np.zeros((1, 100, 80)), coefficients=81)
