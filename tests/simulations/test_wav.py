"""Sound for browsers' microphones: WAV as others read it."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations.benchmarks.sitting import wav


def test_wav_is_what_the_standard_library_and_libsndfile_read(tmp_path: Path) -> None:
    sound = np.array([0.0, 1.0, -1.0, 0.5, 2.0, -3.0], dtype=np.float32)
    path = tmp_path / "a.wav"
    wav.write(path, sound, 8000)
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8000)
        whole = np.frombuffer(file.readframes(99), dtype="<i2")
    assert whole.tolist() == [0, 32767, -32767, 16384, 32767, -32767]
    assert soundfile.info(path).subtype == "PCM_16"
    assert [each.name for each in tmp_path.iterdir()] == ["a.wav"]


@pytest.mark.parametrize(
    ("samples", "rate"),
    [(np.zeros((2, 2)), 8000), (np.array([np.inf]), 8000), (np.zeros(2), 10)],
    ids=["table", "infinite", "rate"],
)
def test_what_is_no_sound_is_no_wav(
    samples: NDArray[np.float32], rate: int, tmp_path: Path
) -> None:
    with pytest.raises((InvalidInputError, InvalidParametersError)):
        wav.write(tmp_path / "a.wav", samples, rate)
    assert not list(tmp_path.iterdir())
