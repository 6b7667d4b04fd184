from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from earshot_client.hearing import Second
from earshot_client.labels import LabelHierarchy, default_hierarchy
from earshot_client.microphone import Microphone, MicrophoneError
from earshot_client.recordings_folder import FolderError, RecordingsFolder
from earshot_protocol.sound_reading import UnreadableFileError

RATE = 16_000
FLAT = LabelHierarchy.flat(["bus", "Train Station", "park"])


def write(path: Path, seconds: float, rate: int = RATE, channels: int = 1) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng([len(path.name), rate, channels])
    sound = random.uniform(-0.5, 0.5, (int(seconds * rate), channels)).astype(np.float32)
    soundfile.write(path, sound, rate, subtype="FLOAT" if path.suffix.lower() == ".wav" else None)
    return sound


def test_files_are_cut_into_whole_seconds_in_order(tmp_path: Path) -> None:
    sound = write(tmp_path / "a.wav", 2.9)
    stereo = write(tmp_path / "bus" / "b.WAV", 1.0, 44_100, 2)
    write(tmp_path / "short.wav", 0.99)
    folder = RecordingsFolder(tmp_path, FLAT)
    seconds = folder.seconds()
    assert [second.name for second in seconds] == ["a.wav#0", "a.wav#1", "bus/b.WAV#0"]
    for number in range(2):
        samples, rate = folder.read(seconds[number])
        assert rate == RATE
        np.testing.assert_array_equal(samples, sound[number * RATE : (number + 1) * RATE])
    samples, rate = folder.read(seconds[2])
    assert (rate, samples.dtype) == (44_100, np.float32)
    np.testing.assert_array_equal(samples, stereo)


@pytest.mark.parametrize("suffix", [".flac", ".ogg"])
def test_compressed_files_are_heard_second_by_second(tmp_path: Path, suffix: str) -> None:
    sound = write(tmp_path / f"a{suffix}", 3.0)
    folder = RecordingsFolder(tmp_path, FLAT)
    assert len(folder.seconds()) == 3
    samples, _ = folder.read(folder.seconds()[2])
    correlation = np.corrcoef(samples[:, 0], sound[2 * RATE :, 0])[0, 1]
    assert samples.shape == (RATE, 1)
    assert correlation > (0.999 if suffix == ".flac" else 0.5)


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("bus/a.wav", "bus"),
        ("BUS/a.wav", "bus"),
        ("03 - train_station/1.wav", "Train Station"),
        ("elsewhere/park-2.wav", "park"),
        ("bus/park.wav", "bus"),
        ("Train-Station_07.wav", "Train Station"),
        ("bus stop.wav", None),
        ("1.wav", None),
        ("dog/1-2-A.wav", None),
    ],
)
def test_the_label_is_in_the_name_if_polls_offer_it(
    tmp_path: Path, path: str, label: str | None
) -> None:
    write(tmp_path / "sound" / path, 1.0)
    (second,) = RecordingsFolder(tmp_path / "sound", FLAT).seconds()
    assert second.label == label


def test_labels_are_choices_of_the_hierarchy(tmp_path: Path) -> None:
    for name in ("public_transport", "living room", "café", "fjord"):
        write(tmp_path / name / "a.wav", 1.0)
    seconds = RecordingsFolder(tmp_path, default_hierarchy()).seconds()
    assert {second.name.partition("/")[0]: second.label for second in seconds} == {
        "public_transport": "public transport",
        "living room": "living room",
        "café": "café",
        "fjord": None,
    }


def test_what_is_no_sound_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "a.wav", 1.0)
    write(tmp_path / ".hidden.wav", 1.0)
    write(tmp_path / ".hidden" / "a.wav", 1.0)
    write(tmp_path / "bus" / "deeper" / "a.wav", 1.0)
    (tmp_path / "notes.txt").write_text("sound")
    (tmp_path / "folder.wav").mkdir()
    assert [s.name for s in RecordingsFolder(tmp_path, FLAT).seconds()] == ["a.wav#0"]


def test_files_of_other_kinds_are_named_and_alone_refused(tmp_path: Path) -> None:
    for name in ("bus/a.m4a", "bus/b.WMA", ".hidden/c.m4a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"a recorder wrote this")
    refused = r"holds no sound of a kind that is read \(there is bus/a.m4a, bus/b.WMA\)"
    with pytest.raises(FolderError, match=refused):
        RecordingsFolder(tmp_path, FLAT)
    write(tmp_path / "park" / "a.wav", 1.0)
    (tmp_path / "park" / "b.opus").write_bytes(b"a recorder wrote this")
    folder = RecordingsFolder(tmp_path, FLAT)
    assert folder.unread == ("bus/a.m4a", "bus/b.WMA", "park/b.opus")
    assert folder.lost == ("bus",)


def test_a_folder_without_sound_is_refused_by_name(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(FolderError, match=r"FOLDER/CLASS/NAME.*\.wav"):
            RecordingsFolder(folder, FLAT)


def test_files_below_the_rate_of_the_encoder_are_named(tmp_path: Path) -> None:
    write(tmp_path / "whole.wav", 1.0)
    write(tmp_path / "bus" / "dull.wav", 1.0, 8000)
    with pytest.raises(FolderError) as told:
        RecordingsFolder(tmp_path, FLAT, 16_000)
    assert str(told.value) == (
        f"1 of 2 files in {tmp_path} have fewer samples per second than the 16,000 that the "
        "encoder hears: bus/dull.wav (8,000); record at that rate or above, or choose an encoder "
        "that hears less"
    )
    assert len(RecordingsFolder(tmp_path, FLAT, 8000).seconds()) == 2
    for number in range(5):
        write(tmp_path / f"{number}.wav", 1.0, 15_999)
    with pytest.raises(
        FolderError, match=r"6 of 7 .* 0\.wav \(15,999\), .* 4\.wav \(15,999\), …; rec"
    ):
        RecordingsFolder(tmp_path, FLAT, 16_000)


def test_files_shorter_than_a_second_are_named_and_alone_refused(tmp_path: Path) -> None:
    write(tmp_path / "blink.wav", 0.25)
    with pytest.raises(FolderError, match=r"blink\.wav \(0\.25 s\); record for a second or longer"):
        RecordingsFolder(tmp_path, default_hierarchy())
    write(tmp_path / "park.wav", 2.5)
    heard = RecordingsFolder(tmp_path, default_hierarchy())
    assert heard.short == ("blink.wav (0.25 s)",)
    assert len(heard.seconds()) == 2


def test_a_file_that_does_not_decode_is_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "bad.flac").write_bytes(b"fLaC" + bytes(100))
    with pytest.raises(FolderError, match=r"no file .* can be read: .*bad\.flac does not"):
        RecordingsFolder(tmp_path, FLAT)
    write(tmp_path / "good.wav", 1.0)
    folder = RecordingsFolder(tmp_path, FLAT)
    (wrong,) = folder.unreadable
    assert "bad.flac does not decode: " in wrong
    assert [each.name for each in folder.seconds()] == ["good.wav#0"]
    (tmp_path / "good.wav").unlink()
    with pytest.raises(UnreadableFileError, match=r"good\.wav"):
        folder.read(folder.seconds()[0])


# ------------------------------------------------------------------------------------ microphone


class PortAudioError(Exception):
    pass


def test_the_microphone_gives_new_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def rec(frames: int, **options: object) -> np.ndarray:
        asked.append((frames, options))
        return np.full((frames, 1), 0.25, dtype=np.float32)

    fake = SimpleNamespace(rec=rec, PortAudioError=PortAudioError)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    names = {second.name for _ in range(2) for second in Microphone(3).seconds()}
    assert len(names) == 6
    samples, rate = Microphone(1).read(Second("microphone"))
    assert (samples.shape, samples.dtype, rate) == ((16_000, 1), np.float32, 16_000)
    ((frames, options),) = asked
    assert (frames, options["samplerate"], options["blocking"]) == (16_000, 16_000, True)


def test_no_microphone_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def rec(frames: int, **options: object) -> np.ndarray:
        raise PortAudioError("Error querying device -1")

    fake = SimpleNamespace(rec=rec, PortAudioError=PortAudioError)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    with pytest.raises(MicrophoneError, match="querying device"):
        Microphone(1).read(Second("microphone"))


def test_a_microphone_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(MicrophoneError, match=r"pip install 'earshot-sensing\[microphone\]'"):
        Microphone(1).read(Second("microphone"))


def test_a_machine_without_port_audio_says_what_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Finder:
        def find_spec(self, name: str, path: object, target: object = None) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(MicrophoneError, match=r"PortAudio library not found.*libportaudio2"):
        Microphone(1).read(Second("microphone"))
