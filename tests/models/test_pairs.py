"""Views and pairs: what each augmentation does, and that batches can be drawn again."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_models import augmentations as augment
from earshot_models import responses
from earshot_models.augmentations import Augmentations, Variant
from earshot_models.pairs import Pairs
from earshot_models.pools import Audible, Pool
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.spectrum import SAMPLE_RATE

WINDOW = SAMPLE_RATE
"""Samples of a second."""
NONE = Augmentations(
    offset=0, pitch=0, colour=0, room=0, company=0,
    speed=0, tilt=0, microphone=0, pocket=0, codec=0, overdrive=0, background=0, noise=0,
)  # fmt: skip
PLAIN = Variant()


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def tone(hertz: float, samples: int = WINDOW) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(samples) / SAMPLE_RATE).astype(np.float32)


def pitch(sound: np.ndarray) -> float:
    return float(np.abs(np.fft.rfft(sound)).argmax() * SAMPLE_RATE / len(sound))


def level(sound: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(sound, dtype=np.float64))))


def test_without_augmentations_a_view_is_the_window_at_unit_level() -> None:
    noise = generator().normal(0, 0.01, WINDOW).astype(np.float32)
    assert augment.length(NONE, PLAIN, WINDOW, generator()) == WINDOW
    view = augment.view(noise, NONE, PLAIN, WINDOW, generator())
    np.testing.assert_allclose(view, noise / level(noise), atol=0.05)
    # What is missing is the one bin at half the rate.
    assert level(view - noise / level(noise)) < 0.02
    assert (augment.mix(view[np.newaxis], NONE, generator())[0] == view).all()


def test_speed_changes_pitch_within_its_bounds() -> None:
    faster = Augmentations(**{**as_dict(NONE), "speed": 0.5})
    pitches = []
    for seed in range(60):
        length = augment.length(faster, PLAIN, WINDOW, generator(seed))
        pitches.append(
            pitch(augment.view(tone(1000, length), faster, PLAIN, WINDOW, generator(seed)))
        )
    octaves = np.log2(np.array(pitches) / 1000)
    assert -0.51 < octaves.min() < -0.35
    assert 0.35 < octaves.max() < 0.51


def as_dict(augmentations: Augmentations) -> dict[str, object]:
    return {field.name: getattr(augmentations, field.name) for field in fields(augmentations)}


@pytest.mark.parametrize(
    ("change", "of"),
    [({"tilt": 6.0}, PLAIN), ({"overdrive": 1.0}, PLAIN), ({"microphone": 1.0}, PLAIN),
     ({"pocket": 1.0}, PLAIN), ({"codec": 1.0}, PLAIN), ({}, Variant(slope=5)),
     ({}, Variant(room=3))],
    ids=["tilt", "overdrive", "microphone", "pocket", "codec", "colour", "room"],
)  # fmt: skip
def test_each_augmentation_of_a_view_does_something(change: dict[str, float], of: Variant) -> None:
    noise = generator().normal(0, 0.1, WINDOW).astype(np.float32)
    plain = augment.view(noise, NONE, PLAIN, WINDOW, generator())
    changed = augment.view(
        noise, Augmentations(**{**as_dict(NONE), **change}), of, WINDOW, generator(6)
    )
    assert level(changed) == pytest.approx(1, abs=1e-4)
    assert level(changed - plain) > 0.02
    assert np.corrcoef(changed, plain)[0, 1] > 0.2  # and yet it is the same sound


def test_a_variant_is_drawn_within_its_bounds() -> None:
    wide = Augmentations(pitch=0.3, colour=4.0, room=0.25)
    drawn = [augment.variant(wide, generator(seed)) for seed in range(400)]
    assert 0.28 < max(abs(each.octaves) for each in drawn) <= 0.3
    assert 3.8 < max(abs(each.slope) for each in drawn) <= 4
    assert np.mean([each.room is not None for each in drawn]) == pytest.approx(0.25, abs=0.07)
    assert augment.variant(NONE, generator()) == PLAIN


def test_both_views_are_of_one_variant() -> None:
    high = Augmentations(**{**as_dict(NONE), "pitch": 0.5})
    long = [Pool([tone(1000, 40_000)], np.array([0]), 1.0)]
    first, second, _ = Pairs(long, high, 60, 0).batch(0)
    heard = np.array([[pitch(a), pitch(b)] for a, b in zip(first, second, strict=True)])
    assert np.abs(heard[:, 0] - heard[:, 1]).max() <= 2
    assert np.log2(heard[:, 0] / 1000).std() > 0.2


def test_both_views_keep_the_same_company() -> None:
    beside = Augmentations(**{**as_dict(NONE), "company": 1.0, "company_snr": (6.0, 6.0)})
    tones = [tone(hertz, 40_000) for hertz in (300, 700, 1500, 3100)]
    pairs = Pairs([Pool(tones, np.arange(4), 1.0)], beside, 80, 0)
    first, second, recordings = pairs.batch(0)
    bins = [300, 700, 1500, 3100]
    for one, other, recording in zip(first, second, recordings, strict=True):
        strengths = [np.abs(np.fft.rfft(view))[bins] for view in (one, other)]
        loudest = [np.argsort(each)[::-1][:2] for each in strengths]
        if strengths[0][loudest[0][1]] > 100:  # the company may be the recording itself
            assert loudest[0].tolist() == loudest[1].tolist()
            ratio = strengths[0][loudest[0][0]] / strengths[0][loudest[0][1]]
            assert 20 * np.log10(ratio) == pytest.approx(6, abs=0.3)
        assert loudest[0][0] == recording


def test_tilt_is_in_decibels_per_octave() -> None:
    noise = generator().normal(0, 0.1, WINDOW).astype(np.float32)
    tilted = Augmentations(**{**as_dict(NONE), "tilt": 6.0})
    slopes = []
    for seed in range(40):
        ratio = np.abs(
            np.fft.rfft(augment.view(noise, tilted, PLAIN, WINDOW, generator(seed)))[100:3900]
        )
        ratio /= np.abs(np.fft.rfft(noise)[100:3900])
        octaves = np.log2(np.arange(100, 3900) / 1000)
        slopes.append(np.polyfit(octaves, 20 * np.log10(ratio), 1)[0])
    assert -6.01 < min(slopes) < -4.5
    assert 4.5 < max(slopes) < 6.01


def test_background_and_noise_are_as_loud_as_asked() -> None:
    views = generator().normal(0, 1, (64, WINDOW)).astype(np.float32)
    behind = Augmentations(**{**as_dict(NONE), "background": 1.0, "background_snr": (10.0, 10.0)})
    added = augment.mix(views, behind, generator()) - views
    assert 20 * np.log10([level(row) for row in added]) == pytest.approx(-10, abs=0.5)
    noisy = Augmentations(**{**as_dict(NONE), "noise": 1.0})
    added = augment.mix(views, noisy, generator()) - views
    loudness = 20 * np.log10([level(row) for row in added])
    assert loudness.min() > -36
    assert loudness.max() < -4


def test_a_silent_window_stays_silent() -> None:
    silence = np.zeros(WINDOW, np.float32)
    view = augment.view(silence, Augmentations(overdrive=1), Variant(room=1), WINDOW, generator())
    assert not view.any()


@pytest.mark.parametrize(
    "change",
    [
        {"room": 1.5},
        {"speed": 2.0},
        {"tilt": -1.0},
        {"offset": -1.0},
        {"background_snr": (5, 0)},
        {"pitch": 1.1},
        {"colour": 25.0},
        {"company": -0.1},
        {"company_snr": (5, 0)},
    ],
)
def test_bad_augmentations_are_named(change: dict[str, object]) -> None:
    with pytest.raises(InvalidParametersError, match=next(iter(change))):
        Augmentations(**change)


def test_one_augmentation_can_be_switched_off() -> None:
    assert Augmentations().without("room") == Augmentations(room=0)
    with pytest.raises(InvalidParametersError, match="room"):
        Augmentations().without("rooms")


# --------------------------------------------------------------------------------------- pairs


def pools() -> list[Pool]:
    """Two recordings of two tones each, and one of another origin."""
    low = [tone(hertz, 16_000) for hertz in (400, 500, 600, 700)]
    return [
        Pool(low, np.array([0, 0, 1, 1]), 3.0),
        Pool([tone(2000, 3000)], np.array([2]), 1.0),
    ]


def test_a_batch_follows_from_seed_and_number() -> None:
    pairs = Pairs(pools(), Augmentations(), 16, seed=5)
    first, second, recordings = pairs.batch(7)
    assert first.shape == second.shape == (16, WINDOW)
    assert first.dtype == second.dtype == np.float32
    assert recordings.dtype == np.int32
    again = Pairs(pools(), Augmentations(), 16, seed=5)
    again.batch(3)
    for ours, its in zip(pairs.batch(7), again.batch(7), strict=True):
        assert (ours == its).all()
    assert not (pairs.batch(8)[0] == first).all()
    assert not (Pairs(pools(), Augmentations(), 16, seed=6).batch(7)[0] == first).all()


def test_pairs_are_of_one_recording_and_shares_are_kept() -> None:
    anywhere = Augmentations(**{**as_dict(NONE), "offset": None})
    pairs = Pairs(pools(), anywhere, 400, seed=0)
    first, second, recordings = pairs.batch(0)
    tones = {0: {400, 500}, 1: {600, 700}, 2: {2000}}
    heard = [(round(pitch(a), -2), round(pitch(b), -2)) for a, b in zip(first, second, strict=True)]
    for (one, other), recording in zip(heard, recordings, strict=True):
        assert {one, other} <= tones[int(recording)]
    # The two sounds of a recording are paired with each other too.
    assert any(one != other for one, other in heard)
    assert np.mean(recordings == 2) == pytest.approx(0.25, abs=0.08)


def test_offset_bounds_how_far_windows_lie_apart() -> None:
    noise = generator().normal(0, 0.1, 40_000).astype(np.float32)

    def start(view: np.ndarray) -> int:
        spectrum = np.fft.rfft(noise) * np.fft.rfft(view, len(noise)).conj()
        return int(np.fft.irfft(spectrum, len(noise)).argmax())

    def apart(offset: float | None) -> list[int]:
        near = Augmentations(**{**as_dict(NONE), "offset": offset})
        first, second, _ = Pairs([Pool([noise], np.array([0]), 1.0)], near, 60, 0).batch(0)
        return [abs(start(a) - start(b)) for a, b in zip(first, second, strict=True)]

    # Windows start at multiples of a tenth of a second, and up to as much later.
    assert 0.1 * SAMPLE_RATE < max(apart(0.2)) < 0.3 * SAMPLE_RATE
    assert max(apart(None)) > 2 * SAMPLE_RATE


def test_silent_sounds_are_left_out() -> None:
    silent = np.zeros(16_000, np.float32)
    half = np.concatenate([np.zeros(24_000, np.float32), tone(500, 16_000)])
    pairs = Pairs([Pool([silent, half], np.array([0, 1]), 1.0)], NONE, 50, 0)
    first, _, recordings = pairs.batch(0)
    assert (recordings == 1).all()
    assert min(level(row) for row in first) > 0.99
    with pytest.raises(InvalidInputError, match="silent"):
        Pairs([Pool([silent], np.array([0]), 1.0)], NONE, 50, 0)


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidInputError, match="pool"):
        Pool([], np.array([], int), 1.0)
    with pytest.raises(InvalidInputError, match="2 sounds and 1 recordings"):
        Pool([tone(1), tone(2)], np.array([0]), 1.0)
    with pytest.raises(InvalidParametersError, match="share"):
        Pool([tone(1)], np.array([0]), 0.0)
    with pytest.raises(InvalidParametersError, match=r"batch=1: .* at least 2"):
        Pairs(pools(), NONE, 1, 0)
    with pytest.raises(InvalidInputError, match="pool"):
        Pairs([], NONE, 2, 0)


# --------------------------------------------------------------------------------- another rate


def test_at_twice_the_rate_a_view_is_the_same_sound_and_an_octave_more() -> None:
    low, high = generator(3).normal(0, 1, (2, 16_000))
    spectrum = np.fft.rfft(low)
    spectrum[4000:] = 0
    bright = np.fft.rfft(high)
    bright[:4000] = 0
    both = np.fft.irfft(spectrum + bright, 16_000).astype(np.float32)
    for change, of in (({"pocket": 1.0}, PLAIN), ({"microphone": 1.0}, PLAIN), ({}, Variant(5))):
        heard = Augmentations(**{**as_dict(NONE), **change})
        wide = np.fft.rfft(augment.view(both, heard, of, 16_000, generator(4)))
        narrow = np.fft.rfft(augment.view(both, heard, of, 8000, generator(4)))
        # Up to the level, which is one second's own.
        ratio = np.abs(wide[20:3900]) / np.abs(narrow[20:3900])
        np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-2)
    assert augment.length(NONE, PLAIN, 16_000, generator()) == 16_000


def test_a_room_is_as_loud_at_any_rate() -> None:
    echoes = []
    for rate in (8000, 16_000):
        response = np.fft.irfft(responses.rooms(rate), rate)
        echoes.append(np.sum(response[:, 1:] ** 2, axis=1))
    assert np.median(echoes[0]) == pytest.approx(np.median(echoes[1]), rel=0.1)


def test_pairs_are_of_the_rate_of_their_pools() -> None:
    noise = generator().normal(0, 0.1, 40_000).astype(np.float32)
    wide = Pool([noise], np.array([0]), 1.0, rate=16_000)
    first, second, _ = Pairs([wide], Augmentations(), 3, 0).batch(0)
    assert first.shape == second.shape == (3, 16_000)
    with pytest.raises(InvalidInputError, match=r"of one rate, not \[8000, 16000\]"):
        Pairs([wide, Pool([noise], np.array([0]), 1.0)], Augmentations(), 3, 0)


class Lowest:
    """A generator that draws the least number there is."""

    def uniform(self, low: float, high: float) -> float:
        del high
        return low


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([8000, 11_025, 16_000]),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_after_every_start_the_shortest_window_is_not_silent(
    seed: int, rate: int, octaves: float, speed: float
) -> None:
    """Sound comes in bursts of a twentieth of a second, so most short windows are silent."""
    bursts = np.repeat(np.append(generator(seed).random(60) < 0.2, True), rate // 20)
    sound = (bursts * generator(seed).normal(0, 0.1, len(bursts))).astype(np.float32)
    augmentations = Augmentations(**{**as_dict(NONE), "pitch": octaves, "speed": speed})
    shortest = augment.length(augmentations, Variant(-octaves), rate, Lowest())
    audible = Audible(Pool([sound], np.array([0]), 1.0, rate=rate), octaves + speed)
    for start in audible.starts[0]:
        assert level(sound[start : start + shortest]) > 0
