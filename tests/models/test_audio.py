from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earshot_models import audio, origins
from earshot_models.audio import read_mono, resample, seconds
from earshot_models.datasets import folder
from earshot_models.datasets import waveforms as module
from earshot_models.datasets.waveforms import readable, waveforms
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import silent
from earshot_protocol.sound_reading import UnreadableFileError


def tone(duration: float, rate: int, hertz: float = 500) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * hertz * np.arange(int(duration * rate)) / rate)


def write(path: Path, samples: np.ndarray, rate: int = 8000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, subtype="FLOAT" if path.suffix == ".wav" else None)
    return path


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 44_100, 48_000])
def test_channels_are_averaged_and_resampled_well(tmp_path: Path, rate: int) -> None:
    stereo = np.stack([tone(2, rate), np.zeros(2 * rate)], axis=1)
    mono = read_mono(write(tmp_path / "a.wav", stereo, rate))
    assert len(mono) == 16_000
    expected = 0.5 * tone(2, 8000)
    assert np.abs(mono - expected)[800:-800].max() < 1e-3


def test_what_eight_kilohertz_cannot_hold_is_filtered_out() -> None:
    heard = resample(tone(1, 44_100, 6000).astype(np.float32), 44_100)
    assert np.sqrt(np.mean(heard[400:-400] ** 2)) < 1e-4


@pytest.mark.parametrize(
    ("samples", "rate", "said"),
    [
        (np.array([]), 8000, "no samples"),
        (np.array([0.1, np.nan] * 8000), 8000, "NaN"),
        (np.array([0.1] * 8000), 500, "500 samples per second"),
    ],
)
def test_what_holds_no_sound_is_named(
    tmp_path: Path, samples: np.ndarray, rate: int, said: str
) -> None:
    with pytest.raises(UnreadableFileError, match=rf"a\.wav.*{said}"):
        read_mono(write(tmp_path / "a.wav", samples, rate))


def test_a_corrupt_or_absent_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF and then nothing")
    for name, why in (("a.wav", "does not decode"), ("b.wav", "cannot be read: No such file")):
        with pytest.raises(UnreadableFileError, match=f"{name} {why}"):
            read_mono(tmp_path / name)


def test_seconds_are_cut_padded_and_left_out_if_silent() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 20_000).astype(np.float32)
    cut = seconds(noise)
    assert cut.shape == (2, 8000)
    assert (cut.ravel() == noise[:16_000]).all()
    assert len(seconds(noise, hop=4000)) == 4
    (padded,) = seconds(noise[:3000])
    assert (padded[2500:5500] == noise[:3000]).all()
    assert not padded[:2500].any()
    assert not padded[5500:].any()
    quiet = np.concatenate([noise[:8000], 1e-5 * noise[:8000], noise[:8000]])
    assert len(seconds(quiet)) == 2


# ------------------------------------------------------------------------------------ the cache


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    generator = np.random.default_rng(1)
    for name in ("a/1.wav", "a/2.wav", "b/3.wav"):
        write(tmp_path / "sounds" / name, generator.normal(0, 0.1, 5000 + 100 * int(name[2])))
    return tmp_path / "sounds"


def test_clips_are_decoded_once(
    sounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, cache = folder.load(sounds), tmp_path / "cache"
    told: list[tuple[int, int]] = []
    fresh = waveforms(dataset, cache, lambda what, done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [len(clip) for clip in fresh.all()] == [5100, 5200, 5300]
    for clip, listed in zip(fresh.all(), dataset.clips, strict=True):
        assert (clip == audio.read_mono(listed.path)).all()
    plain = waveforms(dataset)
    assert (plain.samples == fresh.samples).all()

    def refuse(path: Path) -> None:
        raise AssertionError(f"{path} is decoded again")

    monkeypatch.setattr(module, "read_mono", refuse)
    again = waveforms(dataset, cache)
    assert (again.samples == fresh.samples).all()
    assert len(again) == 3


def test_a_changed_file_and_a_damaged_cache_are_decoded_anew(sounds: Path, tmp_path: Path) -> None:
    dataset, cache = folder.load(sounds), tmp_path / "cache"
    before = np.array(waveforms(dataset, cache).samples)
    (kept,) = cache.glob("*/samples.npy")
    kept.write_bytes(kept.read_bytes()[:-500])
    assert (waveforms(dataset, cache).samples == before).all()
    path = write(sounds / "a" / "1.wav", np.random.default_rng(2).normal(0, 0.1, 5100))
    os.utime(path, ns=(1, 1))
    after = waveforms(dataset, cache)
    assert not (after.clip(0) == before[:5100]).all()
    assert (after.clip(1) == before[5100:10_300]).all()
    assert not [path for path in cache.glob("*/*") if path.name.startswith(".")]


def test_all_files_that_do_not_decode_are_counted_and_nothing_is_kept(
    sounds: Path, tmp_path: Path
) -> None:
    for index in range(5):
        (sounds / "a" / f"broken{index}.wav").write_bytes(b"no sound")
    decoded = waveforms(folder.load(sounds), tmp_path / "cache")
    assert [len(decoded.clip(number)) > 0 for number in range(len(decoded))] == [
        not wrong for wrong in decoded.unreadable
    ]
    assert sum("does not decode" in wrong for wrong in decoded.unreadable) == 5
    with pytest.raises(UnreadableFileError, match=r"broken0\.wav.*and 2 more files"):
        decoded.all()
    assert not list((tmp_path / "cache").glob("*"))


def test_a_file_that_does_not_decode_is_left_out_unless_its_class_has_no_other(
    tmp_path: Path,
) -> None:
    """Three files of the published FMA hold no audio: what can be learned from is the rest."""
    for name in ("rock/1.wav", "rock/2.wav", "folk/3.wav"):
        write(tmp_path / name, tone(1, 8000))
    (tmp_path / "rock" / "4.wav").write_bytes(b"no sound")
    dataset = folder.load(tmp_path)
    errors = waveforms(dataset).unreadable
    left = readable(dataset, errors)
    assert {clip.path.name for clip in left.clips} == {"1.wav", "2.wav", "3.wav"}
    assert readable(left, [""] * 3) is left
    pool = origins._read(dataset, 1.0, 8000, None, silent)
    assert len(pool.sounds) == len(pool.recordings) == 3
    (told,) = pool.unreadable
    assert "rock/4.wav does not decode" in told
    broken = [f"{clip.name} is odd" if clip.label == "folk" else "" for clip in dataset.clips]
    with pytest.raises(InvalidInputError, match=r"no file of folk can be read: folk/3\.wav is odd"):
        readable(dataset, broken)
