"""Every loader on a small tree in the layout in which the data set is published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from support.sound_layouts import fsd50k, us8k

from earshot_models.datasets.dataset import Dataset, DatasetError
from earshot_models.datasets.opening import KINDS, guess, open_dataset
from earshot_protocol.errors import InvalidParametersError


def sound(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = {"format": "MP3"} if path.suffix == ".mp3" else {}
    soundfile.write(path, 0.1 * np.sin(np.arange(4000)), 8000, **kind)


def text(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def esc50(root: Path) -> None:
    text(
        root / "meta" / "esc50.csv",
        "filename,fold,target,category,esc10,src_file,take",
        "1-100032-A-0.wav,1,0,dog,True,100032,A",
        "1-100032-B-0.wav,1,0,dog,True,100032,B",
        "5-9032-A-14.wav,5,14,chirping_birds,False,9032,A",
    )
    for name in ("1-100032-A-0.wav", "1-100032-B-0.wav", "5-9032-A-14.wav"):
        sound(root / "audio" / name)


def esc10(root: Path) -> None:
    for name in ("dog_bark/1-17-A.ogg", "dog_bark/2-18-A.ogg", "rain/1-19-C.ogg"):
        sound(root / name)


def tau(root: Path) -> None:
    rows = (
        "audio/airport-barcelona-0-0-a.wav\tairport\tbarcelona-0\ta",
        "audio/airport-barcelona-0-1-s1.wav\tairport\tbarcelona-0\ts1",
        "audio/bus-lyon-1021-43-b.wav\tbus\tlyon-1021\tb",
    )
    text(root / "meta.csv", "filename\tscene_label\tidentifier\tsource_label", *rows)
    text(
        root / "evaluation_setup" / "fold1_train.csv",
        "filename\tscene_label",
        "audio/airport-barcelona-0-0-a.wav\tairport",
    )
    text(
        root / "evaluation_setup" / "fold1_evaluate.csv",
        "filename\tscene_label",
        "audio/bus-lyon-1021-43-b.wav\tbus",
    )
    for row in rows:
        sound(root / row.split("\t")[0])


def gtzan(root: Path) -> None:
    for name in ("blues/blues.00000.wav", "blues/blues.00001.au", "rock/rock.00099.wav"):
        sound(root / "genres_original" / name)


def fma(root: Path) -> None:
    text(
        root / "fma_metadata" / "tracks.csv",
        ",artist,set,set,track",
        ",id,split,subset,genre_top",
        "track_id,,,,",
        "2,1,training,small,Hip-Hop",
        "5,1,test,small,",
        "140,54,validation,medium,Folk",
    )
    sound(root / "fma_small" / "000" / "000002.mp3")
    sound(root / "fma_small" / "000" / "000005.mp3")


def speech_commands(root: Path) -> None:
    for name in (
        "yes/0a7c2a8d_nohash_0.wav",
        "yes/0a7c2a8d_nohash_1.wav",
        "no/105a0eea_nohash_0.wav",
        "no/3b4f8f24_nohash_0.wav",
        "_background_noise_/running_tap.wav",
    ):
        sound(root / name)
    text(root / "validation_list.txt", "no/105a0eea_nohash_0.wav")
    text(root / "testing_list.txt", "no/3b4f8f24_nohash_0.wav")


def spoken_digits(root: Path) -> None:
    for name in ("7_jackson_0.wav", "7_jackson_5.wav", "0_theo_49.wav"):
        sound(root / "recordings" / name)


def audioset(root: Path) -> None:
    text(
        root / "class_labels_indices.csv",
        "index,mid,display_name",
        '0,/m/09x0r,"Speech"',
        '1,/m/05zppz,"Male speech, man speaking"',
    )
    text(
        root / "balanced_train_segments.csv",
        "# Segments csv created Sun Mar  5 10:54:31 2017",
        "# num_ytids=2",
        "# YTID, start_seconds, end_seconds, positive_labels",
        '--4gqARaEJE, 0.000, 10.000, "/m/05zppz,/m/09x0r"',
        '--BfvyPmVMo, 20.000, 30.000, "/m/09x0r"',
        '-notthere00, 20.000, 30.000, "/m/09x0r"',
    )
    text(
        root / "eval_segments.csv",
        "# Segments csv created Sun Mar  5 10:54:25 2017",
        '-0-abc, 40.000, 50.000, "/m/09x0r"',
    )
    for name in ("--4gqARaEJE.wav", "--BfvyPmVMo_20.flac", "-0-abc_40000.wav"):
        sound(root / "audio" / name)


def folder(root: Path) -> None:
    for name in ("train/b.WAV", "train/a.flac", "rain/c.ogg", "rain/.hidden.wav", ".git/d.wav"):
        sound(root / name)
    text(root / "rain" / "notes.txt", "no sound")
    sound(root / "stray.wav")


WRITERS: dict[str, Callable[[Path], None]] = {
    "esc": esc50,
    "tau": tau,
    "urbansound8k": us8k,
    "fsd50k": fsd50k,
    "gtzan": gtzan,
    "fma": fma,
    "speech-commands": speech_commands,
    "spoken-digits": spoken_digits,
    "audioset": audioset,
    "folder": folder,
}


def written(kind: str, root: Path) -> Dataset:
    WRITERS[kind](root)
    assert guess(root) == kind
    return open_dataset(root)


def test_every_kind_has_a_tree_here() -> None:
    assert WRITERS.keys() == KINDS.keys()


def test_esc50(tmp_path: Path) -> None:
    dataset = written("esc", tmp_path)
    assert [clip.label for clip in dataset.clips] == ["dog", "dog", "chirping_birds"]
    assert [clip.fold for clip in dataset.clips] == [1, 1, 5]
    assert [clip.recording for clip in dataset.clips] == ["100032", "100032", "9032"]
    assert dataset.labels == ("chirping_birds", "dog")
    from earshot_models.datasets import esc

    assert len(esc.load(tmp_path, esc10=True).clips) == 2


def test_esc10(tmp_path: Path) -> None:
    esc10(tmp_path)
    assert guess(tmp_path) == "esc"
    dataset = open_dataset(tmp_path)
    assert [(clip.label, clip.fold, clip.group) for clip in dataset.clips] == [
        ("dog_bark", 1, "17"),
        ("dog_bark", 2, "18"),
        ("rain", 1, "19"),
    ]
    sound(tmp_path / "rain" / "other.ogg")
    with pytest.raises(DatasetError, match="FOLD-ID-TAKE"):
        open_dataset(tmp_path, "esc")


def test_tau(tmp_path: Path) -> None:
    dataset = written("tau", tmp_path)
    assert [clip.group for clip in dataset.clips] == ["barcelona-0", "barcelona-0", "lyon-1021"]
    assert [clip.split for clip in dataset.clips] == ["train", None, "test"]
    assert dataset.clips[1].attributes == {
        "city": "barcelona",
        "location": "0",
        "segment": "1",
        "device": "s1",
    }


def test_gtzan(tmp_path: Path) -> None:
    dataset = written("gtzan", tmp_path)
    assert [clip.label for clip in dataset.clips] == ["blues", "blues", "rock"]
    assert len({clip.group for clip in dataset.clips}) == 3


def test_fma(tmp_path: Path) -> None:
    dataset = written("fma", tmp_path)
    assert [(clip.label, clip.group, clip.split) for clip in dataset.clips] == [
        ("Hip-Hop", "1", "train"),
        (None, "1", "test"),
    ]
    assert dataset.missing == 1  # a track of a larger subset


def test_speech_commands(tmp_path: Path) -> None:
    dataset = written("speech-commands", tmp_path)
    found = {f"{clip.label} {clip.group}": clip.split for clip in dataset.clips}
    assert found == {
        "yes 0a7c2a8d": "train",
        "no 105a0eea": "validation",
        "no 3b4f8f24": "test",
    }


def test_spoken_digits(tmp_path: Path) -> None:
    dataset = written("spoken-digits", tmp_path)
    assert [(clip.label, clip.group, clip.split) for clip in dataset.clips] == [
        ("0", "theo", "train"),
        ("7", "jackson", "test"),
        ("7", "jackson", "train"),
    ]


def test_audioset(tmp_path: Path) -> None:
    dataset = written("audioset", tmp_path)
    assert dataset.missing == 1
    assert [(clip.group, clip.label, clip.split) for clip in dataset.clips] == [
        ("--4gqARaEJE", None, "train"),
        ("--BfvyPmVMo", None, "train"),
        ("-0-abc", None, "test"),
    ]
    assert dataset.clips[0].attributes["labels"] == "Male speech, man speaking; Speech"


def test_a_folder_lists_classes_and_files_in_order(tmp_path: Path) -> None:
    dataset = written("folder", tmp_path)
    assert [clip.name for clip in dataset.clips] == ["rain/c.ogg", "train/a.flac", "train/b.WAV"]
    assert len({clip.group for clip in dataset.clips}) == 3


def test_esc_names_in_a_folder_share_a_group_per_fold(tmp_path: Path) -> None:
    names = ("1-17-A.ogg", "1-99-B.ogg", "2-17-A.ogg", "1-17.ogg", "x1-17-A.ogg")
    for name in names:
        sound(tmp_path / "rain" / name)
    groups = {clip.path.name: clip.group for clip in open_dataset(tmp_path, "folder").clips}
    assert groups["1-17-A.ogg"] == groups["1-99-B.ogg"]
    assert len(set(groups.values())) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_is_not_there_or_empty_is_named(kind: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no folder|lacks"):
        open_dataset(tmp_path / "absent", kind)
    with pytest.raises(DatasetError, match=f"{tmp_path} (lacks|holds no)"):
        open_dataset(tmp_path, kind)


@pytest.mark.parametrize(
    ("kind", "file", "column"),
    [
        ("esc", "meta/esc50.csv", "src_file"),
        ("tau", "meta.csv", "identifier"),
        ("audioset", "class_labels_indices.csv", "mid"),
    ],
)
def test_a_missing_column_is_named(kind: str, file: str, column: str, tmp_path: Path) -> None:
    WRITERS[kind](tmp_path)
    table = (tmp_path / file).read_text()
    (tmp_path / file).write_text(table.replace(column, "renamed"))
    with pytest.raises(DatasetError, match=f"{Path(file).name} lacks the column {column}"):
        open_dataset(tmp_path, kind)


def test_other_damage_is_named(tmp_path: Path) -> None:
    fma(tmp_path / "fma")
    tracks = tmp_path / "fma" / "fma_metadata" / "tracks.csv"
    tracks.write_text(tracks.read_text().replace("genre_top", "genre"))
    with pytest.raises(DatasetError, match=r"track genre_top"):
        open_dataset(tmp_path / "fma")
    audioset(tmp_path / "audioset")
    segments = tmp_path / "audioset" / "eval_segments.csv"
    segments.write_text("-0-abc, 40, 50\n")
    with pytest.raises(DatasetError, match="segment 1 must be"):
        open_dataset(tmp_path / "audioset")
    segments.write_text('-0-abc, 40, 50, "/m/unknown"\n')
    with pytest.raises(DatasetError, match="lacks the class /m/unknown"):
        open_dataset(tmp_path / "audioset")
    tau(tmp_path / "tau")
    meta = tmp_path / "tau" / "meta.csv"
    meta.write_text(meta.read_text().replace("bus-lyon-1021-43-b", "bus"))
    with pytest.raises(DatasetError, match=r"bus\.wav"):
        open_dataset(tmp_path / "tau")
    with pytest.raises(InvalidParametersError, match="spoken-digits"):
        open_dataset(tmp_path, "digits")
