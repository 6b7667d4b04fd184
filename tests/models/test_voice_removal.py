"""Voice removal keeps what repeats and takes away what does not."""

from __future__ import annotations

import numpy as np
import pytest

from earshot_models.voice_removal import remove_voice

RATE = 8000


def test_a_lone_event_goes_and_the_loop_behind_it_stays() -> None:
    time = np.arange(6 * RATE) / RATE
    loop = 0.2 * np.sin(2 * np.pi * 440 * time) * (np.sin(2 * np.pi * 2 * time) > 0)
    event = np.zeros_like(loop)
    event[20_000:24_000] = 0.3 * np.sin(2 * np.pi * 1234 * time[:4000])
    left = remove_voice((loop + event).astype(np.float32))
    assert left.dtype == np.float32
    assert left.shape == loop.shape
    inner = slice(RATE, 5 * RATE)

    def likeness(one: np.ndarray, other: np.ndarray) -> float:
        return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))

    assert likeness(left[inner], loop[inner]) > 0.95
    there = slice(20_000, 24_000)
    assert abs(left[there] @ event[there]) < 0.05 * (event[there] @ event[there])


def test_steady_noise_mostly_stays() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 5 * RATE).astype(np.float32)
    assert np.std(remove_voice(noise)) > 0.5 * np.std(noise)


@pytest.mark.parametrize("samples", [0, 3000, 2 * RATE - 1])
def test_what_is_too_short_to_repeat_is_left_alone(samples: int) -> None:
    sound = np.random.default_rng(1).normal(size=samples).astype(np.float32)
    np.testing.assert_array_equal(remove_voice(sound), sound)


def test_silence_stays_silent() -> None:
    left = remove_voice(np.zeros(4 * RATE, dtype=np.float32))
    assert np.isfinite(left).all()
    assert not left.any()
