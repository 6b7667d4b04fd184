"""Reading of sound files: what is delivered, whatever a header says, and one kind of error."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from earshot_client.labels import LabelHierarchy
from earshot_client.recordings_folder import RecordingsFolder
from earshot_models.datasets.dataset import Clip
from earshot_protocol import sound_reading
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.sound_reading import (
    LOUDEST,
    MOST_CHANNELS,
    SUFFIXES,
    UnreadableFileError,
    check_listable,
    opened,
    unreadable_sentence,
    visible,
)
from earshot_protocol.spectrum import RATES
from earshot_simulations.populations.sound_folder import _cut

RATE = 8000
KINDS = {"wav": 1e-4, "flac": 1e-4, "au": 1e-4, "ogg": 0.05, "mp3": 0.05}


def tone(seconds: float, channels: int = 2) -> NDArray[np.float32]:
    times = np.arange(int(seconds * RATE)) / RATE
    wave = (0.5 * np.sin(2 * np.pi * 440 * times)).astype(np.float32)
    return np.stack([wave / (number + 1) for number in range(channels)], axis=1)


def written(path: Path, samples: Any, rate: int = RATE, **how: str) -> Path:
    soundfile.write(path, samples, rate, **how)
    return path


def all_of(path: Path) -> NDArray[np.float32]:
    with opened(path) as file:
        seconds = list(file.seconds())
        assert {len(each) for each in seconds[:-1]} <= {file.rate}
    return np.concatenate(seconds)


def heard_or_error(path: Path) -> NDArray[np.float32] | str:
    try:
        return all_of(path)
    except UnreadableFileError as error:
        return str(error)


def changed(path: Path, place: int, content: bytes) -> Path:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(content)
    return path


def refused(path: Path) -> str:
    with pytest.raises(UnreadableFileError) as error:
        all_of(path)
    assert str(error.value).startswith(str(path))
    return str(error.value).removeprefix(f"{path} ")


@pytest.mark.parametrize("kind", KINDS)
def test_it_delivers_what_was_written_second_by_second(kind: str, tmp_path: Path) -> None:
    assert {f".{each}" for each in KINDS} == set(SUFFIXES)
    sound = tone(2.5)
    path = written(tmp_path / f"a.{kind}", sound)
    heard = all_of(path)
    assert heard.dtype == np.float32
    assert heard.shape[1] == 2
    assert len(heard) == pytest.approx(len(sound), abs=1200 if kind == "mp3" else 0)
    with opened(path) as file:
        assert np.abs(file.second(1) - heard[RATE : 2 * RATE]).max() < 1e-6
        with pytest.raises(UnreadableFileError, match="ends before its second 3"):
            file.second(2)
    if kind != "mp3":
        assert np.abs(heard - sound).max() < KINDS[kind]


# ------------------------------------------------------------------------- what a header says


def streamed_flac(folder: Path) -> Path:
    """As an encoder writes to a pipe: the 36 bits of STREAMINFO's length are 0."""
    path = written(folder / "a.flac", tone(2.5))
    content = path.read_bytes()
    assert content[:4] == b"fLaC"
    kept = bytes([content[21] & 0xF0])
    return changed(path, 21, kept + bytes(4))


def test_a_streamed_flac_is_read_to_its_end(tmp_path: Path) -> None:
    path = streamed_flac(tmp_path)
    assert soundfile.info(path).frames in (0, 2**63 - 1)
    assert np.abs(all_of(path) - tone(2.5)).max() < 1e-4


@pytest.mark.parametrize("said", [0, 2**32 - 1, 2**31, 30_000])
def test_what_a_wav_says_of_its_length_is_not_taken_for_sound(said: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.wav", tone(2.5))
    changed(path, path.read_bytes().index(b"data") + 4, struct.pack("<I", said))
    heard = heard_or_error(path)
    if isinstance(heard, str):
        assert heard.endswith("holds no samples")
    else:
        assert np.abs(heard - tone(2.5)[: len(heard)]).max() < 1e-4


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3"])
def test_a_file_that_was_cut_off_is_heard_in_part_or_named(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"a.{kind}", tone(2.5))
    whole = path.stat().st_size
    for share in (0.9, 0.5, 0.1, 0.0):
        os.truncate(path, int(share * whole))
        heard = heard_or_error(path)
        assert str(path) in heard if isinstance(heard, str) else len(heard) <= 2.6 * RATE


def test_an_ogg_file_of_several_streams_is_named_and_never_read_for_ever(tmp_path: Path) -> None:
    one = written(tmp_path / "1.ogg", tone(1.5, 1)).read_bytes()
    other = written(tmp_path / "2.ogg", tone(3, 1)).read_bytes()
    path = tmp_path / "both.ogg"
    path.write_bytes(one + other)
    assert "holds several streams, one after the other" in refused(path)
    path.write_bytes(one)
    assert len(all_of(path)) == 1.5 * RATE


def test_a_file_that_never_ends_is_refused_at_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sound_reading, "MOST_FRAMES", 2 * RATE)
    assert len(all_of(written(tmp_path / "a.wav", tone(2)))) == 2 * RATE
    assert "is longer than 16,000 samples" in refused(written(tmp_path / "b.wav", tone(2.01)))


@pytest.mark.parametrize(
    ("samples", "rate", "said"),
    [
        (np.zeros((0, 1)), RATE, "holds no samples"),
        (np.full((RATE, 1), np.nan), RATE, "NaN or infinite"),
        (np.full((RATE, 1), -np.inf), RATE, "NaN or infinite"),
        (np.full((RATE, 1), -1e30), RATE, "a sample of 1e+30, where full scale is 1"),
        (np.zeros((RATE, MOST_CHANNELS + 1)), RATE, f"has {MOST_CHANNELS + 1} channels"),
        (np.zeros((RATE, 1)), 500, "has 500 samples per second"),
        (np.zeros((RATE, 1)), 2_000_000, "has 2000000 samples per second"),
    ],
)
def test_what_is_no_sound_says_why(
    samples: NDArray[np.float64], rate: int, said: str, tmp_path: Path
) -> None:
    assert said in refused(written(tmp_path / "a.wav", samples, rate, subtype="FLOAT"))


def test_what_is_just_accepted_is_heard(tmp_path: Path) -> None:
    least, most = RATES
    loud = np.full((least, MOST_CHANNELS), LOUDEST, np.float32)
    path = tmp_path / "a.wav"
    assert len(all_of(written(path, loud, least, subtype="FLOAT"))) == least
    assert len(all_of(written(path, loud[:, 0], most, subtype="FLOAT"))) == least
    assert f"has {most + 1} samples" in refused(written(path, loud[:, 0], most + 1))
    assert f"has {least - 1} samples" in refused(written(path, loud[:, 0], least - 1))
    louder = np.nextafter(loud, np.inf, dtype=np.float32)
    assert "where full scale is 1" in refused(written(path, louder, least, subtype="FLOAT"))


# ---------------------------------------------------------------------------- files of any kind


def fifo(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def looping(path: Path) -> None:
    path.symlink_to(path.name)


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe that nobody writes": fifo,
    "a socket": bound,
    "a folder": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": looping,
    "nothing": lambda path: None,
    "an empty file": Path.touch,
    "text": lambda path: path.write_text("sound", encoding="utf-8") and None,
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_of_sound_is_one_error_at_once(
    kind: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a{suffix}"
    ODD[kind](path)
    said = refused(path)
    assert said.startswith(("cannot be read: ", "is not a regular file", "does not decode: "))
    opens = kind in ("a pipe that nobody writes", "a folder", "a device")
    assert (said == "is not a regular file") == opens


def test_whatever_the_library_or_the_system_raises_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "a.wav", tone(1))
    for error in (MemoryError(), RuntimeError("odd"), ValueError("odd"), PermissionError(13, "no")):

        def failing(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(soundfile.SoundFile, "read", failing)
            assert refused(path)
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", failing)
            assert refused(path)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(soundfile.SoundFile, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        all_of(path)


def test_a_name_of_any_bytes_is_read_and_shown(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/Stra\xdfe\n.wav"))
    written(tmp_path / "a.wav", tone(1)).rename(path)
    assert len(all_of(path)) == RATE
    assert visible(path.name) == "Stra\\udcdfe\\n.wav"
    visible(path).encode()
    changed(path, 0, b"none")
    with pytest.raises(UnreadableFileError, match=r"Stra\\udcdfe\\n\.wav does not decode"):
        all_of(path)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    return {kind: written(folder / f"a.{kind}", tone(1.5)).read_bytes() for kind in KINDS}


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.tuples(st.integers(0), st.binary(min_size=1, max_size=4)), min_size=1, max_size=8),
    st.booleans(),
)
def test_a_damaged_file_is_sound_or_one_error(
    originals: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    damages: list[tuple[int, bytes]],
    early: bool,
) -> None:
    content = bytearray(originals[kind])
    for place, damage in damages:
        start = place % (64 if early else len(content))
        content[start : start + len(damage)] = damage
    path = tmp_path_factory.getbasetemp() / f"damaged.{kind}"
    path.write_bytes(content)
    with contextlib.suppress(UnreadableFileError), opened(path) as file:
        for second in file.seconds():
            assert second.dtype == np.float32
            assert len(second) <= file.rate
            assert second.shape[1] <= MOST_CHANNELS
            assert np.isfinite(second).all()


def test_the_first_files_that_are_left_out_are_named() -> None:
    assert unreadable_sentence(["a is odd"]) == "left out: 1 unreadable file: a is odd"
    assert unreadable_sentence(list("01234")).endswith("5 unreadable files: 0; 1; 2; 3; 4")
    said = unreadable_sentence([f"{number}" for number in range(7)])
    assert said == "left out: 7 unreadable files: 0; 1; 2; 3; 4; and 2 more"


def test_a_folder_that_may_not_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "park" / "deep").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    check_listable(tmp_path)
    for closed in (tmp_path, tmp_path / "park", tmp_path / "park" / "deep"):
        monkeypatch.setattr(os, "access", lambda path, mode, closed=closed: Path(path) != closed)
        with pytest.raises(InvalidInputError, match=f"^{closed}: this folder may not be listed"):
            check_listable(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != ".hidden")
    check_listable(tmp_path)


def test_a_phone_and_a_simulation_hear_the_same_of_each_file(tmp_path: Path) -> None:
    sound = tone(2.25, 1)
    for kind in KINDS:
        whole = written(tmp_path / f"whole.{kind}", sound).read_bytes()
        (tmp_path / f"cut.{kind}").write_bytes(whole[: len(whole) // 2])
        (tmp_path / f"start.{kind}").write_bytes(whole[:100])
    streamed_flac(tmp_path)
    one = (tmp_path / "whole.ogg").read_bytes()
    (tmp_path / "chained.ogg").write_bytes(2 * one)
    late = np.append(sound[:, 0], np.nan)
    written(tmp_path / "late.wav", late, subtype="FLOAT")
    (tmp_path / "whole.wav").rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xdf.wav"))
    hears = Counter(
        second.name.rpartition("#")[0]
        for second in RecordingsFolder(tmp_path, LabelHierarchy.flat(["a"])).seconds()
    )
    for path in tmp_path.iterdir():
        usable, skipped = _cut(Clip(path, "a", "a"), RATE)
        assert hears[visible(path.name)] == len(usable), path
        assert len(usable) or skipped, path
    assert hears["\\udcdf.wav"] == hears["whole.mp3"] == hears["a.flac"] == 2
    assert hears["chained.ogg"] == hears["late.wav"] == 0
