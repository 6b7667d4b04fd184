"""What teacher and student hear, what is kept of a teacher, and what a student should say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest
from support.teachers import Loudness

from earshot_models.augmentations import Augmentations
from earshot_models.distillation import targets
from earshot_models.distillation.lessons import Lessons, TaughtBatches, Variation
from earshot_models.distillation.targets import TargetsError, ask, principal
from earshot_models.distillation.teacher import TeacherError
from earshot_models.pools import Pool
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

RATE = 16_000
PLAIN = Variation(changed=0, coloured=0, backwards=0, mixed=0)
SILENT = Augmentations(
    pitch=0, colour=0, room=0, company=0, speed=0, tilt=0, microphone=0, pocket=0, codec=0,
    overdrive=0, background=0, noise=0,
)  # fmt: skip


def tone(hertz: float, seconds: float = 3.0) -> np.ndarray:
    time = np.arange(int(RATE * seconds)) / RATE
    return (0.1 * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def pool(*hertz: float, **what: object) -> Pool:
    sounds = [tone(each) for each in hertz]
    settings = {"share": 1.0, "rate": RATE, **what}
    return Pool(sounds, np.arange(len(sounds)), **settings)  # type: ignore[arg-type]


def pitches(spectrum: np.ndarray, least: float = 0.05) -> list[int]:
    """Where a spectrum peaks, in hertz, loudest first."""
    power = np.abs(spectrum)
    order = [
        int(each) for each in np.argsort(power)[::-1][:200] if power[each] > least * power.max()
    ]
    peaks: list[int] = []
    for each in order:
        if all(abs(each - peak) > 20 for peak in peaks):
            peaks.append(each)
    return peaks


def test_a_lesson_is_a_second_of_its_recording_at_unit_level() -> None:
    lessons = Lessons([pool(440, 5000)], PLAIN, 20)
    for number in range(20):
        spectrum, recording = lessons.spectrum(number)
        assert spectrum.shape == (RATE // 2 + 1,)
        assert pitches(spectrum)[0] == pytest.approx((440, 5000)[recording], abs=2)
        sound = lessons.sound(number)
        assert sound.shape == (RATE,)
        assert np.sqrt(np.mean(sound**2)) == pytest.approx(1, abs=1e-3)
        # Drawn again it is the same.
        np.testing.assert_array_equal(lessons.sound(number), sound)


def test_lessons_are_faster_slower_and_mixed_as_often_as_they_should() -> None:
    count = 400
    changed = Lessons([pool(1000)], replace(PLAIN, changed=0.25, octaves=0.3), count)
    heard = np.array([pitches(changed.spectrum(number)[0])[0] for number in range(count)])
    octaves = np.log2(heard / 1000)
    assert binomtest(int((np.abs(octaves) > 0.003).sum()), count, 0.25).pvalue > 1e-6
    # The lengths of windows are rounded to what transforms fast.
    assert 0.25 < np.abs(octaves).max() < 0.33
    level = replace(PLAIN, mixed=0.5, mixed_snr=(-6.0, -6.0))
    mixed = Lessons([pool(300, 700, 1500, 3100, 6000, 7500)], level, count)
    beside = 0
    for number in range(count):
        spectrum, recording = mixed.spectrum(number)
        peaks = pitches(spectrum)
        if len(peaks) > 1:
            beside += 1
            assert peaks[0] == pytest.approx((300, 700, 1500, 3100, 6000, 7500)[recording], abs=2)
            decibels = 20 * np.log10(np.abs(spectrum[peaks[1]]) / np.abs(spectrum[peaks[0]]))
            assert decibels == pytest.approx(-6, abs=0.5)
    # One in six meets itself.
    assert binomtest(beside, count, 0.5 * 5 / 6).pvalue > 1e-6


def test_lessons_are_coloured_and_heard_backwards_as_often_as_they_should() -> None:
    count, time = 400, np.arange(RATE) / RATE
    chord = (np.sin(2 * np.pi * 500 * time) + np.sin(2 * np.pi * 4000 * time)).astype(np.float32)
    one = Pool([chord], np.arange(1), 1.0, rate=RATE)
    coloured = Lessons([one], replace(PLAIN, coloured=0.25, slope=6.0), count)
    spectra = np.abs([coloured.spectrum(number)[0][[500, 4000]] for number in range(count)])
    slopes = 20 * np.log10(spectra[:, 1] / spectra[:, 0]) / 3  # three octaves lie between
    assert binomtest(int((np.abs(slopes) > 0.01).sum()), count, 0.25).pvalue > 1e-6
    assert 5 < np.abs(slopes).max() <= 6.01
    assert -1 < slopes.mean() < 1
    growing = (np.sin(2 * np.pi * 500 * time) * time).astype(np.float32)
    one = Pool([growing], np.arange(1), 1.0, rate=RATE)
    turned = Lessons([one], replace(PLAIN, backwards=0.25), count)
    sounds = np.array([turned.sound(number) for number in range(count)]) ** 2
    backwards = sounds[:, : RATE // 2].sum(axis=1) > sounds[:, RATE // 2 :].sum(axis=1)
    assert binomtest(int(backwards.sum()), count, 0.25).pvalue > 1e-6


def test_the_second_of_a_pair_is_of_the_same_sounds_changed_alike() -> None:
    hertz = (300, 700, 1500, 3100)
    lessons = Lessons([pool(*hertz)], replace(PLAIN, changed=1.0, mixed=1.0, coloured=1.0), 60)
    generator, moved = np.random.default_rng(9), 0
    for number in range(60):
        (first, second), recording = lessons.pair(number, generator)
        alone, of = lessons.spectrum(number)
        # Drawing another second changes nothing of the lesson that the teacher has heard.
        np.testing.assert_array_equal(first, alone)
        assert recording == of
        # The same two tones at the same pitches and levels ...
        np.testing.assert_allclose(sorted(pitches(second)), sorted(pitches(first)), atol=2)
        levels = [np.abs(each[pitches(first)]) for each in (first, second)]
        np.testing.assert_allclose(*levels, rtol=0.1)
        # ... at other moments.
        moved += not np.allclose(first, second, atol=0.05 * np.abs(first).max())
    assert moved > 50


def test_the_second_of_a_pair_may_come_from_another_clip_of_the_recording() -> None:
    sounds = [tone(each) for each in (300, 700, 1500)]
    lessons = Lessons([Pool(sounds, np.array([4, 4, 8]), 1.0, rate=RATE)], PLAIN, 80)
    generator, met = np.random.default_rng(2), set()
    for number in range(80):
        spectra, recording = lessons.pair(number, generator)
        heard = [pitches(each)[0] for each in spectra]
        assert {hertz > 1000 for hertz in heard} == {recording == 8}
        met.add((recording, heard[0] == heard[1]))
    assert met == {(4, True), (4, False), (8, True)}


def test_sounds_are_drawn_by_the_root_of_their_length() -> None:
    count = 600
    sounds = [tone(300, 1.0), tone(3000, 9.0)]
    lessons = Lessons([Pool(sounds, np.arange(2), 1.0, rate=RATE)], PLAIN, count)
    longer = sum(lessons.spectrum(number)[1] for number in range(count))
    assert binomtest(longer, count, 3 / 4).pvalue > 1e-6


def test_lessons_are_told_apart_by_sound_variation_count_and_seed() -> None:
    own = Lessons([pool(440, 880)], PLAIN, 20)
    others = [
        Lessons([pool(440, 881)], PLAIN, 20),
        Lessons([pool(440, 880), pool(440)], PLAIN, 20),
        Lessons([pool(440, 880)], replace(PLAIN, changed=0.1), 20),
        Lessons([pool(440, 880)], replace(PLAIN, backwards=0.1), 20),
        Lessons([pool(440, 880)], PLAIN, 21),
        Lessons([pool(440, 880)], PLAIN, 20, seed=1),
    ]
    assert len({own.identity, *(each.identity for each in others)}) == 7
    assert Lessons([pool(440, 880)], PLAIN, 20).identity == own.identity


def test_lessons_that_cannot_be_given() -> None:
    with pytest.raises(InvalidInputError, match=r"of one rate, not \[8000, 16000\]"):
        Lessons([pool(440), pool(440, rate=8000)], PLAIN, 20)
    with pytest.raises(InvalidInputError, match="silent"):
        Lessons([Pool([np.zeros(RATE, np.float32)], np.arange(1), 1.0, rate=RATE)], PLAIN, 20)
    with pytest.raises(InvalidParametersError, match="count=1"):
        Lessons([pool(440)], PLAIN, 1)
    for wrong in (
        {"changed": 1.1},
        {"coloured": 2},
        {"slope": 25},
        {"backwards": -1},
        {"octaves": 2},
        {"mixed": -1},
        {"mixed_snr": (1.0, 0.0)},
    ):
        with pytest.raises(InvalidParametersError, match=next(iter(wrong))):
            Variation(**wrong)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- the teacher's word


def test_a_teacher_is_asked_about_the_middle_of_every_lesson_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "_BLOCK", 100)
    lessons, teacher = Lessons([pool(440, 5000)], PLAIN, 210), Loudness()
    told: list[int] = []
    said = ask(lessons, teacher, tmp_path, lambda what, done, total: told.append(done))
    assert said.shape == (210, *teacher.lengths)
    assert told == [0, 100, 200, 210]
    for number in (0, 77, 209):
        middle = lessons.sound(number)[200:15_800]
        (expected,) = teacher.embed(middle[np.newaxis])
        ratio = said[number].astype(float) / expected
        # It hears every lesson at a level of its own.
        assert 0.019 < ratio.mean() < 0.21
        assert ratio.std() < 0.01 * ratio.mean()
    asked = teacher.asked
    again = ask(lessons, teacher, tmp_path)
    assert teacher.asked == asked
    np.testing.assert_array_equal(again, said)
    np.testing.assert_array_equal(ask(lessons, Loudness()), said)  # without a folder too


def test_asking_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_BLOCK", 100)
    lessons = Lessons([pool(440, 5000)], PLAIN, 250)
    whole = ask(lessons, Loudness())

    def stop(what: str, done: int, total: int, line: str | None = None) -> None:
        if done == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(lessons, Loudness(), tmp_path, stop)
    teacher = Loudness()
    np.testing.assert_array_equal(ask(lessons, teacher, tmp_path), whole)
    assert teacher.asked == 150


def test_what_was_kept_of_another_teacher_or_is_damaged_is_refused(tmp_path: Path) -> None:
    lessons = Lessons([pool(440, 5000)], PLAIN, 50)
    ask(lessons, Loudness(), tmp_path)
    (folder,) = tmp_path.iterdir()
    other = Loudness()
    other.identity = "another"
    asked = other.asked
    ask(lessons, other, tmp_path)  # into a folder of its own
    assert other.asked == asked + 50
    about = json.loads((folder / "about.json").read_text())
    (folder / "about.json").write_text(json.dumps({**about, "teacher": "another"}))
    with pytest.raises(TargetsError, match="the output of another teacher"):
        ask(lessons, Loudness(), tmp_path)
    (folder / "about.json").write_text("{")
    with pytest.raises(TargetsError, match=r"cannot be read .* remove the folder"):
        ask(lessons, Loudness(), tmp_path)
    (folder / "about.json").write_text(json.dumps(about))
    (folder / "said.npy").write_bytes(b"\0" * 40)
    with pytest.raises(TargetsError, match="cannot be read"):
        ask(lessons, Loudness(), tmp_path)


def test_a_teacher_of_another_rate_or_without_numbers() -> None:
    teacher = Loudness()
    with pytest.raises(TeacherError, match="hears 16000 samples per second, the lessons have 8000"):
        ask(Lessons([pool(440, rate=8000)], PLAIN, 5), teacher)
    teacher.embed = lambda samples: np.full((len(samples), 200), np.nan)  # type: ignore[method-assign]
    with pytest.raises(TeacherError, match="not finite"):
        ask(Lessons([pool(440)], PLAIN, 5), teacher)


def test_targets_are_principal_coordinates_by_a_textbook(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(4)
    said = generator.normal(size=(500, 40)) * np.geomspace(3, 0.1, 40) + 1
    rows = said / np.linalg.norm(said, axis=1, keepdims=True)
    centred = rows - rows.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    variances = singular**2 / (len(rows) - 1)
    expected = centred @ directions[:12].T / variances[:12] ** 0.25
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    monkeypatch.setattr(targets, "_PRINCIPAL", 500)
    found = principal(said, [40], 12)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-3)
    # Up to the sign of each coordinate, which is nobody's.
    agreement = np.abs(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(agreement, np.sum(expected**2, axis=0), rtol=1e-3)
    with pytest.raises(InvalidInputError, match="40 lessons are too few to find 40"):
        principal(said[:40], [40], 40)
    with pytest.raises(InvalidParametersError, match="dimensions=41"):
        principal(said, [40], 41)


def test_what_is_read_of_a_teacher_counts_alike_part_by_part() -> None:
    generator = np.random.default_rng(6)
    one, other = 100 * generator.normal(size=(300, 30)), 0.01 * generator.normal(size=(300, 50))
    both = principal(np.hstack([one, other]), [30, 50], 20)
    assert both.shape == (300, 40)
    np.testing.assert_allclose(both[:, :20], principal(one, [30], 20) / 2**0.5, atol=1e-6)
    np.testing.assert_allclose(both[:, 20:], principal(other, [50], 20) / 2**0.5, atol=1e-6)
    with pytest.raises(InvalidParametersError, match="dimensions=31"):
        principal(np.hstack([one, other]), [30, 50], 31)


# ---------------------------------------------------------------------------------------- batches


def test_a_batch_is_what_a_phone_hears_of_lessons_beside_their_targets() -> None:
    lessons = Lessons([pool(440, 3000, 3900)], PLAIN, 30)
    wanted = np.random.default_rng(1).normal(size=(30, 128)).astype(np.float32)
    batches = TaughtBatches(lessons, wanted, SILENT, 60, 0, 8000)
    sounds, said, recordings = batches.batch(3)
    assert sounds.shape == (60, 8000)
    assert said.shape == (60, 128)
    seen = set()
    for sound, target, recording in zip(sounds, said, recordings, strict=True):
        (lesson,) = np.flatnonzero((wanted == target).all(axis=1))
        seen.add(int(lesson))
        assert lessons.spectrum(int(lesson))[1] == recording
        assert pitches(np.fft.rfft(sound))[0] == pytest.approx((440, 3000, 3900)[recording], abs=2)
        assert np.sqrt(np.mean(sound**2)) == pytest.approx(1, abs=1e-3)
    assert len(seen) > 15
    again = batches.batch(3)
    for one, other in zip(again, (sounds, said, recordings), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(batches.batch(4)[0], sounds)


def test_behind_all_lessons_are_other_seconds_of_the_first_ones() -> None:
    hertz = (440, 1500, 3000, 3900)
    lessons = Lessons([pool(*hertz)], PLAIN, 30)
    wanted = np.random.default_rng(1).normal(size=(30, 128)).astype(np.float32)
    batches = TaughtBatches(lessons, wanted, SILENT, 20, 0, 8000, pairs=7)
    sounds, said, recordings = batches.batch(3)
    assert (len(sounds), len(said), len(recordings)) == (27, 20, 20)
    heard = [pitches(np.fft.rfft(sound))[0] for sound in sounds]
    expected = [hertz[recording] for recording in (*recordings, *recordings[:7])]
    np.testing.assert_allclose(heard, expected, atol=2)
    assert not any(np.allclose(*pair) for pair in zip(sounds[:7], sounds[20:], strict=True))
    for one, other in zip(batches.batch(3), (sounds, said, recordings), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InvalidParametersError, match="pairs=21"):
        TaughtBatches(lessons, wanted, SILENT, 20, 0, 8000, pairs=21)


def test_both_seconds_of_a_pair_are_heard_in_one_room_by_two_microphones() -> None:
    # One short sound, so that both seconds of a pair are the same samples.
    generator = np.random.default_rng(3)
    hiss = Pool([generator.normal(0, 0.1, RATE).astype(np.float32)], np.arange(1), 1.0, rate=RATE)
    lessons, wanted = Lessons([hiss], PLAIN, 4), np.zeros((4, 128), dtype=np.float32)

    def ratios(augmentations: Augmentations) -> np.ndarray:
        """How a pair's second differs from its first, in decibels by frequency."""
        sounds, _, _ = TaughtBatches(lessons, wanted, augmentations, 40, 0, RATE, 40).batch(0)
        power = np.abs(np.fft.rfft(sounds)).reshape(2, 40, -1)[..., 100:7900]
        return np.asarray(20 * np.log10(power[1] / power[0]))

    shared = replace(SILENT, room=1.0, colour=6.0)
    np.testing.assert_allclose(ratios(shared), 0, atol=0.1)
    apart = ratios(replace(shared, microphone=0.5, pocket=0.5))
    assert (np.abs(apart).max(axis=1) > 1).sum() > 20


def test_a_phone_may_hear_all_that_the_teacher_does() -> None:
    lessons = Lessons([pool(440, 6000)], PLAIN, 30)
    wanted = np.zeros((30, 128), dtype=np.float32)
    sounds, _, recordings = TaughtBatches(lessons, wanted, SILENT, 20, 0, RATE).batch(0)
    for sound, recording in zip(sounds, recordings, strict=True):
        assert pitches(np.fft.rfft(sound))[0] == pytest.approx((440, 6000)[recording], abs=2)
    with pytest.raises(InvalidParametersError, match="rate=16001"):
        TaughtBatches(lessons, wanted, SILENT, 20, 0, RATE + 1)


def test_the_student_alone_hears_the_noise() -> None:
    lessons = Lessons([pool(440)], PLAIN, 10)
    wanted = np.eye(10, 128, dtype=np.float32)
    noisy = TaughtBatches(lessons, wanted, replace(SILENT, noise=1.0), 8, 0, 8000)
    calm = TaughtBatches(lessons, wanted, SILENT, 8, 0, 8000)
    _, said, _ = noisy.batch(0)
    assert (said.sum(axis=1) == 1).all()
    assert not np.allclose(noisy.batch(0)[0], calm.batch(0)[0], atol=0.01)
    with pytest.raises(InvalidInputError, match="10 lessons need as many targets, not 9"):
        TaughtBatches(lessons, wanted[:9], SILENT, 8, 0, 8000)
