from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot_models.folders import (
    Clip,
    FolderError,
    UnreadableFileError,
    find_clips,
    read_clip,
    split,
)
from earshot_protocol.errors import InvalidInputError, InvalidParametersError


def write(path: Path, samples: np.ndarray, rate: int = 8000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate)


def tone(seconds: float = 1.0, rate: int = 8000) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * 500 * np.arange(int(seconds * rate)) / rate)


def clip(label: str, name: str, group: str) -> Clip:
    return Clip(Path(label) / name, label, group)


def test_it_lists_classes_and_files_in_order(tmp_path: Path) -> None:
    for name in ("train/b.WAV", "train/a.flac", "rain/c.ogg", "rain/.hidden.wav", ".git/d.wav"):
        write(tmp_path / name, tone())
    (tmp_path / "rain" / "notes.txt").write_text("no sound")
    write(tmp_path / "stray.wav", tone())
    clips = find_clips(tmp_path)
    assert [c.name for c in clips] == ["rain/c.ogg", "train/a.flac", "train/b.WAV"]
    assert [c.label for c in clips] == ["rain", "train", "train"]
    assert len({c.group for c in clips}) == 3


def test_esc_names_share_a_group_per_fold(tmp_path: Path) -> None:
    names = ("1-17-A.ogg", "1-99-B.ogg", "2-17-A.ogg", "1-17-A-10.wav", "1-17.ogg", "x1-17-A.ogg")
    for name in names:
        write(tmp_path / "rain" / name, tone())
    groups = {c.path.name: c.group for c in find_clips(tmp_path)}
    assert groups["1-17-A.ogg"] == groups["1-99-B.ogg"] == groups["1-17-A-10.wav"]
    assert len(set(groups.values())) == 4


@pytest.mark.parametrize(("suffix", "tolerance"), [("wav", 1e-4), ("flac", 1e-4), ("ogg", 0.05)])
def test_it_reads_what_was_written(tmp_path: Path, suffix: str, tolerance: float) -> None:
    stereo = np.stack([tone(1.5, 16_000), 0.5 * tone(1.5, 16_000)], axis=1)
    write(tmp_path / "rain" / f"a.{suffix}", stereo, 16_000)
    samples, rate = read_clip(find_clips(tmp_path)[0])
    assert rate == 16_000
    assert samples.dtype == np.float32
    assert samples.shape == stereo.shape
    assert np.abs(samples - stereo).max() < tolerance


def test_a_file_that_is_no_sound_is_named(tmp_path: Path) -> None:
    (tmp_path / "rain").mkdir()
    (tmp_path / "rain" / "a.wav").write_bytes(b"RIFF and then nothing")
    with pytest.raises(UnreadableFileError, match=r"rain/a\.wav"):
        read_clip(find_clips(tmp_path)[0])


def test_a_folder_without_sound_says_what_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"no folder.*CLASS/NAME"):
        find_clips(tmp_path / "absent")
    write(tmp_path / "flat.wav", tone())
    with pytest.raises(FolderError, match=r"no audio.*CLASS/NAME.*\.flac, \.ogg, \.wav"):
        find_clips(tmp_path)


@given(
    groups=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=40, unique=True
    ),
    fraction=st.floats(0.05, 0.95),
    seed=st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_no_group_is_torn_and_no_class_is_lost(
    groups: list[tuple[str, int]], fraction: float, seed: int
) -> None:
    clips = [clip(label, f"{i}.wav", f"group {group}") for i, (label, group) in enumerate(groups)]
    of_class = {c.label: {d.group for d in clips if d.label == c.label} for c in clips}
    if any(len(groups) == 1 for groups in of_class.values()):
        with pytest.raises(InvalidInputError, match="two recordings"):
            split(clips, fraction, np.random.default_rng(seed))
        return
    try:
        train, held_out = split(clips, fraction, np.random.default_rng(seed))
    except InvalidInputError:
        # Which groups may go depends on the others: two classes can share their only two.
        assert len(of_class) > 1
        return
    assert sorted([*train, *held_out], key=clips.index) == clips
    assert not {c.group for c in train} & {c.group for c in held_out}
    labels = {c.label for c in clips}
    assert {c.label for c in train} == {c.label for c in held_out} == labels


def test_single_files_are_held_out_in_every_class() -> None:
    clips = [clip(label, f"{i}.wav", f"{label}{i}") for label in "ab" for i in range(20)]
    train, held_out = split(clips, 0.25, np.random.default_rng(0))
    assert [sum(c.label == label for c in held_out) for label in "ab"] == [5, 5]
    other = split(clips, 0.25, np.random.default_rng(1))[1]
    assert held_out != other
    assert split(clips, 0.25, np.random.default_rng(0)) == (train, held_out)


def test_folds_are_held_out_whole() -> None:
    clips = [
        clip(label, f"{fold}-{i}-A.ogg", f"fold {fold}")
        for label in "ab"
        for fold in range(4)
        for i in range(8)
    ]
    _, held_out = split(clips, 0.25, np.random.default_rng(3))
    assert len({c.group for c in held_out}) == 1
    assert len(held_out) == 16


def test_what_cannot_be_split_is_named() -> None:
    with pytest.raises(InvalidInputError, match="held out of a"):
        split([clip("a", "1", "x"), clip("a", "2", "x")], 0.5, np.random.default_rng(0))
    for fraction in (0, 1, -0.5, np.nan):
        with pytest.raises(InvalidParametersError, match="fraction"):
            split([clip("a", "1", "x"), clip("a", "2", "y")], fraction, np.random.default_rng(0))
