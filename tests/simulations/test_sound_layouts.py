"""Every command that takes a folder of sound reads the same clips in it, or refuses it alike."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support import sound_layouts as layouts
from support.command import earshot

from earshot_models.datasets.dataset import Dataset, DatasetError
from earshot_models.datasets.opening import open_dataset
from earshot_models.datasets.splits import folds, split
from earshot_models.origins import SoundSource
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.phases.settings import Settings
from earshot_simulations.populations import SoundFolder
from earshot_simulations.probing.seconds import cut

SORTED = "put the sound of each class into a folder of its own, as FOLDER/CLASS/NAME"
SCENES = ("airport", "bus", "metro_station")
PLACES = {"lisbon-1000", "lisbon-1001"}
SOURCES = {str(100 * label + fold) for label in range(3) for fold in (1, 2, 3)}
SLICED = {str(1000 * fold + label) for label in range(3) for fold in (1, 2, 10)}


@dataclass(frozen=True)
class Found:
    """What a folder holds.

    Attributes:
        classes: classes in alphabetical order; none if clips have no single class.
        clips: number of clips.
        groups: groups that stay on one side of a split.
        refused: what those who need classes say; empty if they need not.
    """

    classes: tuple[str, ...]
    clips: int
    groups: set[str]
    refused: str = ""


Write = Callable[[Path], None]

ESC = Found(("dog", "rain", "sea_waves"), 18, SOURCES)
US8K = Found(("air_conditioner", "car_horn", "dog_bark"), 18, SLICED)
TAU = Found(SCENES, 12, PLACES)
FMA = Found(("Folk", "Rock"), 8, {"1", "2", "3", "4"})


def without(name: str, write: Write) -> Write:
    def remove(root: Path) -> None:
        place = root / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()

    return layouts.in_order(write, remove)


TABLE: dict[str, tuple[Write, str, Found | str]] = {
    # Layout, the part of it that is named, and what it holds or why it is refused.
    "ESC-50": (layouts.esc50, "", ESC),
    "ESC-50, its sound alone": (layouts.esc50, "audio", ESC),
    "ESC-50, the table elsewhere": (
        without("meta", layouts.esc50),
        "audio",
        "lacks meta/esc50.csv, which has the classes of ESC-50",
    ),
    "ESC-50, without the table": (
        without("meta", layouts.esc50),
        "",
        "has its sound in audio, which are names of parts of a data set and not of classes",
    ),
    "ESC-10": (layouts.esc10, "", Found(("dog", "rain"), 8, {"11", "12", "21", "22"})),
    "UrbanSound8K": (layouts.us8k, "", US8K),
    "UrbanSound8K, its sound alone": (layouts.us8k, "audio", US8K),
    "UrbanSound8K, one fold": (
        layouts.us8k,
        "audio/fold10",
        Found(US8K.classes, 6, {"10000", "10001", "10002"}),
    ),
    "UrbanSound8K, without the table": (
        without("metadata", layouts.us8k),
        "audio",
        "lacks metadata/UrbanSound8K.csv, which has the classes of UrbanSound8K",
    ),
    "FSD50K": (
        layouts.fsd50k,
        "",
        Found(
            (),
            8,
            {"dev0", "dev1", "eval0", "eval1"},
            "FSD50K has 8 clips without a class of their own, of 8, since clips of it have several "
            f"classes each: {SORTED}",
        ),
    ),
    "FSD50K, of one class each": (
        partial(layouts.fsd50k, labels="Siren"),
        "",
        Found(("Rain", "Siren"), 8, {"dev0", "dev1", "eval0", "eval1"}),
    ),
    "FSD50K, one half": (
        partial(layouts.fsd50k, labels="Siren"),
        "FSD50K.dev_audio",
        Found(("Rain", "Siren"), 4, {"dev0", "dev1"}),
    ),
    "FSD50K, without the tables": (
        without("FSD50K.ground_truth", layouts.fsd50k),
        "",
        "lacks FSD50K.ground_truth, which has the classes of FSD50K",
    ),
    "TAU 2019": (layouts.tau, "", TAU),
    "TAU 2020 Mobile": (layouts.tau, "", TAU),
    "TAU 2022 Mobile": (partial(layouts.tau, part="0-"), "", TAU),
    "TAU, its sound alone": (partial(layouts.tau, part="0-"), "audio", TAU),
    "TAU, without the table": (without("meta.csv", layouts.tau), "", TAU),
    "FMA": (layouts.fma, "", FMA),
    "FMA, one size": (layouts.fma, "fma_small", FMA),
    "FMA, without the table": (
        without("fma_metadata", layouts.fma),
        "fma_small",
        "lacks fma_metadata/tracks.csv, which has the classes of FMA",
    ),
    "AudioSet": (
        layouts.audioset,
        "",
        Found(
            (),
            4,
            {f"-video0000{number}" for number in (1, 2, 3, 4)},
            "AudioSet has 4 clips without a class of their own, of 4, since clips of it have "
            f"several classes each: {SORTED}",
        ),
    ),
    "AudioSet, of one class each": (
        partial(layouts.audioset, both=""),
        "",
        Found(("Dog, bark", "Speech"), 4, {f"-video0000{number}" for number in (1, 2, 3, 4)}),
    ),
    "flat": (layouts.flat, "", r"has its sound in no class (dog1.wav): put each class in a folder"),
    "classes": (
        layouts.classes,
        "",
        Found(
            ("bar", "park", "street"),
            6,
            {f"{name}/{number}.wav" for name in ("bar", "park", "street") for number in (0, 1)},
        ),
    ),
    "classes in parts": (
        partial(layouts.classes, names=("train/dog", "test/dog")),
        "",
        "has its sound in folders within classes (test/dog/0.wav)",
    ),
    "parts": (
        partial(layouts.classes, names=("train", "test", "eval_audio")),
        "",
        "has its sound in eval_audio, test, train, which are names of parts of a data set",
    ),
    "folds": (
        partial(layouts.classes, names=("fold1", "fold2")),
        "",
        "has its sound in fold1, fold2, which are names of parts of a data set",
    ),
    "one class": (
        partial(layouts.classes, names=("rain",), files=4),
        "",
        Found(
            ("rain",),
            4,
            {f"rain/{number}.wav" for number in range(4)},
            "are of one class, rain, and at least two are needed",
        ),
    ),
    "a railway": (
        partial(layouts.classes, names=("train", "rain")),
        "",
        Found(
            ("rain", "train"),
            4,
            {f"{name}/{number}.wav" for name in ("rain", "train") for number in (0, 1)},
        ),
    ),
    "sorted by class": (
        layouts.sorted_by_class,
        "",
        Found(
            ("airport", "bus", "clock", "siren", "yes"),
            20,
            {"paris-1", "paris-2", "5", "6", "fold 5", "fold 6", "0a5", "0a6"},
        ),
    ),
    "a table of something else": (
        layouts.in_order(layouts.classes, lambda root: layouts.text(root / "meta.csv", ["a,b"])),
        "",
        Found(
            ("bar", "park", "street"),
            6,
            {f"{name}/{number}.wav" for name in ("bar", "park", "street") for number in (0, 1)},
        ),
    ),
}

LISTED = "listed, and enough"


@pytest.fixture
def commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> dict[str, Callable[[Path], Dataset | str]]:
    """Each command up to where it has listed its sound: the data set, or what it says instead."""
    seen: list[Dataset] = []

    def keep(*given: object, **_: object) -> None:
        for each in given:
            for one in each if isinstance(each, list) else [each]:
                if isinstance(one, SoundSource):
                    seen.append(one.dataset)
                elif isinstance(one, Dataset):
                    seen.append(one)
        raise InvalidInputError(LISTED)

    for place in (
        "earshot_simulations.populations.sound_folder.split",
        "earshot_simulations.commands.probe._measured",
        "earshot_models.recipe.train_encoder",
        "earshot_simulations.probing.starts.renewed",
    ):
        monkeypatch.setattr(place, keep)
    monkeypatch.setattr("earshot_simulations.probing.seconds.side_names", lambda dataset: ["1"])
    out = tmp_path / "out"

    def run(*words: object) -> Callable[[Path], Dataset | str]:
        def listed(folder: Path) -> Dataset | str:
            seen.clear()
            ended = earshot(*words, "--data", folder)
            assert "Traceback" not in ended.stderr
            return seen[-1] if LISTED in ended.stderr else ended.stderr

        return listed

    few = ("--phones", 500, "--recordings", 8, "--jobs", 1)
    return {
        "simulate": run("simulate", *few),
        "simulate labelling": run("simulate", "labelling", *few),
        "probe": run("probe", "--raw"),
        "train": run("train", "--out", out / "encoder"),
        "starts": run("starts", "--encoder", "contrast-3", "--out", out / "starts.tflite"),
    }


@pytest.mark.parametrize("name", TABLE)
def test_every_command_finds_the_same(
    name: str, tmp_path: Path, commands: dict[str, Callable[[Path], Dataset | str]]
) -> None:
    write, part, expected = TABLE[name]
    write(tmp_path / "sound")
    folder = tmp_path / "sound" / part
    for command, listed in commands.items():
        found = listed(folder)
        if isinstance(expected, str):
            assert isinstance(found, str), f"{command} reads it"
            assert f"earshot: {folder} {expected}" in found, command
        elif expected.refused and command.startswith("simulate"):
            assert isinstance(found, str), f"{command} reads it"
            assert expected.refused in found, command
        else:
            assert isinstance(found, Dataset), (command, found)
            groups = {clip.group for clip in found.clips}
            assert (found.labels, len(found.clips)) == (expected.classes, expected.clips), command
            assert groups == expected.groups, command
    if isinstance(expected, Found):
        dataset = open_dataset(folder)
        assert len({clip.path for clip in dataset.clips}) == expected.clips
        if len({clip.fold for clip in dataset.clips}) > 1:
            for one, other in folds(dataset):
                assert {clip.group for clip in one.clips}.isdisjoint(
                    clip.group for clip in other.clips
                )


@pytest.mark.parametrize("name", ["FSD50K", "AudioSet", "one class"])
def test_a_probe_says_first_that_kinds_are_not_measured(
    name: str, tmp_path: Path, commands: dict[str, Callable[[Path], Dataset | str]]
) -> None:
    write, part, expected = TABLE[name]
    assert isinstance(expected, Found)
    write(tmp_path)
    said = earshot("probe", "--raw", "--data", tmp_path / part).stderr
    first, then = said.splitlines()
    assert first.startswith("only places are measured, no kinds of sound: ")
    assert expected.refused in first
    assert LISTED in then


def bare_bar(root: Path) -> None:
    """A class of a recorder's own kind, another with some, and files where no class is."""
    layouts.classes(root, names=("park", "street"))
    for name in ("bar/0.m4a", "bar/1.m4a", "park/x.OPUS", "stray.wav", "street/deep/0.wav"):
        layouts.sound(root / name)
    layouts.sound(root / ".hidden" / "0.m4a")
    layouts.text(root / "bar" / "notes.txt", ["no sound"])


UNHEARD = (
    "5 sound files are not heard, and with them all of bar: bar/0.m4a is of a kind that is not "
    "read (.m4a); bar/1.m4a is of a kind that is not read (.m4a); park/x.OPUS is of a kind that is "
    "not read (.opus); stray.wav is in no class; street/deep/0.wav is in folders within classes "
    "(read are .au, .flac, .mp3, .ogg, .wav)"
)


def test_every_command_names_what_it_does_not_hear(
    tmp_path: Path, commands: dict[str, Callable[[Path], Dataset | str]]
) -> None:
    bare_bar(tmp_path)
    for listed in commands.values():
        dataset = listed(tmp_path)
        assert isinstance(dataset, Dataset)
        assert dataset.unheard_classes == ("bar",)
    few = ("--phones", 500, "--recordings", 8, "--jobs", 1)
    for words in (("simulate", *few), ("probe", "--raw"), ("train", "--out", tmp_path / "out")):
        said = earshot(*words, "--data", tmp_path).stderr
        assert said.splitlines()[0] == f"{tmp_path.name}: {UNHEARD}"


def test_a_listed_class_of_an_unread_kind_is_named(tmp_path: Path) -> None:
    layouts.esc50(tmp_path)
    for path in (tmp_path / "audio").glob("*-2.wav"):
        path.rename(path.with_suffix(".m4a"))
    dataset = open_dataset(tmp_path)
    assert (dataset.labels, dataset.unheard_classes) == (("dog", "rain"), ("sea_waves",))
    assert (len(dataset.unheard), dataset.missing) == (6, 6)
    for path in (tmp_path / "audio").glob("*.wav"):
        path.rename(path.with_suffix(".opus"))
    with pytest.raises(
        DatasetError, match=r"no sound of a kind that is read \(audio/.*opus is not"
    ):
        open_dataset(tmp_path)


def test_a_simulation_writes_what_it_did_not_hear(tmp_path: Path) -> None:
    bare_bar(tmp_path)
    population = SoundFolder(tmp_path, 3, 5, 0.5, 1)
    assert population.unheard == f"{tmp_path.name}: {UNHEARD}"
    assert [entry.recording for entry in population.skipped] == [
        "bar/0.m4a",
        "bar/1.m4a",
        "park/x.OPUS",
        "stray.wav",
        "street/deep/0.wav",
    ]


def test_no_source_is_on_both_sides_of_a_simulation(tmp_path: Path) -> None:
    for write in (layouts.esc50, layouts.us8k, layouts.tau, layouts.fma, layouts.sorted_by_class):
        folder = tmp_path / write.__name__
        write(folder)
        for seed in range(3):
            sides = split(open_dataset(folder), 0.25, np.random.default_rng(seed))
            one, other = ({clip.group for clip in side.clips} for side in sides)
            assert min(len(one), len(other)) > 0
            assert one.isdisjoint(other)


def test_other_classes_or_groups_are_other_sound(tmp_path: Path) -> None:
    layouts.esc50(tmp_path)
    settings = Settings(data=str(tmp_path))
    before = settings.provenance()["data"]
    assert settings.provenance()["data"] == before
    table = tmp_path / "meta" / "esc50.csv"
    table.write_bytes(table.read_bytes().replace(b'"dog"', b'"cat"'))
    assert settings.provenance()["data"] != before


def test_one_file_a_class_is_refused(tmp_path: Path) -> None:
    layouts.classes(tmp_path, files=1)
    with pytest.raises(InvalidInputError, match="nothing can be held out of bar, park, street"):
        SoundFolder(tmp_path, 3, 5, 0.5, 1)
    with pytest.raises(InvalidInputError, match="bar, park, street are held out together"):
        cut(open_dataset(tmp_path))
    for command in ("simulate", "simulate labelling", "simulate statistics", "probe"):
        told = " ".join(earshot(*command.split(), "--help").stdout.replace("│", " ").split())
        assert "two files" in told, command


def test_one_scene_is_refused_where_it_is_generated_too() -> None:
    ended = earshot("simulate", "--scenes", 1)
    assert (ended.returncode, "scenes=1" in ended.stderr) == (2, True)


def test_a_folder_without_classes_is_refused_from_python_too(tmp_path: Path) -> None:
    layouts.classes(tmp_path / "one", names=("rain",), files=4)
    layouts.audioset(tmp_path / "several")
    for name, why in (("one", "of one class, rain"), ("several", "several classes each")):
        with pytest.raises(DatasetError, match=why):
            SoundFolder(tmp_path / name, 3, 5, 0.5, 1)


def test_the_size_of_fma_that_is_named_is_read(tmp_path: Path) -> None:
    layouts.fma(tmp_path)
    shutil.copytree(tmp_path / "fma_small", tmp_path / "fma_medium")
    clips = open_dataset(tmp_path / "fma_medium").clips
    assert {clip.path.parents[1].name for clip in clips} == {"fma_medium"}


def test_a_clip_is_read_where_it_lies_in_two_kinds(tmp_path: Path) -> None:
    layouts.audioset(tmp_path)
    layouts.sound(tmp_path / "audio" / "-video00001.webm")
    dataset = open_dataset(tmp_path)
    assert (len(dataset.clips), len(dataset.unheard)) == (4, 1)


def test_a_class_behind_a_link_that_is_not_read_is_named(tmp_path: Path) -> None:
    for name in ("sound/park/1.wav", "sound/street/1.wav", "elsewhere/1.m4a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "sound" / "bar").symlink_to(tmp_path / "elsewhere")
    dataset = open_dataset(tmp_path / "sound")
    assert set(dataset.labels) == {"park", "street"}
    assert dataset.unheard_classes == ("bar",)


def test_names_of_any_bytes_that_are_not_heard_can_be_written(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    for name in (b"park/1.wav", b"street/1.wav", b"caf\xe9/Stra\xdfe.m4a", b"\xdf.wav"):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).touch()
    dataset = open_dataset(tmp_path)
    assert dataset.unheard_classes == ("caf\\udce9",)
    assert {each.name for each in dataset.unheard} == {
        "caf\\udce9/Stra\\udcdfe.m4a",
        "\\udcdf.wav",
    }
    dataset.unheard_sentence().encode()
