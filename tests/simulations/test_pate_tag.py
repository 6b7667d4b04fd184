"""`earshot pate tag`: from a published student and a folder of sound to names and their worth."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile
from support.command import ended

from earshot_models.tagging import recordings, tagger_file
from earshot_models.tagging.evidence import best_thresholds, gathered
from earshot_models.tagging.examples import Examples
from earshot_models.tagging.mel_power import MelSettings, mel_power
from earshot_models.tagging.publishing import publish
from earshot_models.tagging.tagger_file import TaggerCard, TaggerCost
from earshot_models.tagging.training import FAST, Tagger, Workshop
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import Unit

# What Keras does with TensorFlow's variables when it saves them; nothing of ours.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

MEL = MelSettings(4000, 256, 200, 16, 0.5)
LABELS = ("hum", "squeak", "never")
HERTZ = (300, 1400)
LEVEL = 0.1


def sound(names: Sequence[str], seconds: float, rate: int, seed: int, loud: float = 0.2):
    """Tones of labels in noise, float64 (samples,)."""
    time = np.arange(round(seconds * rate)) / rate
    made = np.random.default_rng(seed).normal(0, 0.1 * loud, len(time))
    for name, hertz in zip(LABELS, HERTZ, strict=False):
        if name in names:
            made += loud * np.sin(2 * np.pi * hertz * time)
    return made


def clips(count: int, seed: int) -> tuple[Examples, np.ndarray]:
    random = np.random.default_rng(seed)
    truth = np.c_[random.integers(0, 2, (count, 2)), np.zeros(count, int)]
    names = [[name for name, there in zip(LABELS, row, strict=True) if there] for row in truth]
    made = np.stack([sound(each, 0.5, 4000, at + seed) for at, each in enumerate(names)])
    power = mel_power(recordings.at_level(made.astype(np.float32), LEVEL), MEL)
    return Examples.of(power, truth), truth


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    examples, _ = clips(60, 1000)
    workshop = Workshop(MEL.shape, LABELS, replace(FAST, steps=120, batch=16))
    return workshop.fit(examples, seed=1)


@pytest.fixture(scope="module")
def student(tagger: Tagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("published") / "student.keras"
    cost = TaggerCost(
        epsilon=8.0, delta=1e-8, unit=Unit.REPLACED_PHONE, mechanism="GNThreshold(0.2)"
    )
    (validation, _), (test, _) = clips(60, 2000), clips(60, 3000)
    words = ("Ada of the tests", "On the answers of 50 teachers.")
    publish(tagger, MEL, LEVEL, validation, test, cost, *words, path)
    return path


@pytest.fixture(scope="module")
def card(student: Path) -> TaggerCard:
    return tagger_file.read_card(student)


def test_thresholds_are_chosen_on_some_clips_and_checked_on_others(
    tagger: Tagger, card: TaggerCard, tmp_path: Path
) -> None:
    (validation, chosen), (test, checked) = clips(60, 2000), clips(60, 3000)
    thresholds = best_thresholds(chosen, tagger.probabilities(validation.power))
    assert card.thresholds == tuple(thresholds)
    assert card.evidence == gathered(checked, tagger.probabilities(test.power), thresholds)
    words = (None, "Ada", "Somehow.", tmp_path / "student.keras")
    with pytest.raises(InvalidInputError, match="must not be the clips"):
        publish(tagger, MEL, LEVEL, test, test, *words)
    mixed = Examples(test.power, test.targets / 2)
    with pytest.raises(InvalidInputError, match="0 or 1"):
        publish(tagger, MEL, LEVEL, validation, mixed, *words)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Other rates, channels, lengths and levels than the student was trained on."""
    place = tmp_path / "sound"
    (place / "deep").mkdir(parents=True)
    stereo = np.stack([sound(["hum"], 3, 16_000, 1), sound(["hum"], 3, 16_000, 2)], axis=1)
    soundfile.write(place / "hum.wav", stereo, 16_000)
    late = np.concatenate([sound([], 1.7, 8000, 3), sound(["squeak"], 1.0, 8000, 4)])
    soundfile.write(place / "deep" / "late squeak.flac", late, 8000)
    soundfile.write(place / "both, softly.wav", sound(["hum", "squeak"], 2, 4000, 5, 0.02), 4000)
    soundfile.write(place / "noise.ogg", sound([], 2, 8000, 6), 8000)
    soundfile.write(place / "short.wav", sound(["hum"], 0.45, 4000, 7), 4000)
    soundfile.write(place / "silence.wav", np.zeros(8000), 4000)
    (place / "broken.wav").write_bytes(b"RIFF and no more")
    (place / "memo.m4a").write_bytes(b"a recorder wrote this")
    (place / "notes.txt").write_text("no sound")
    return place


def test_every_file_is_named_and_what_cannot_be_read_is_listed(
    student: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert ended(monkeypatch, "pate", "tag", student, folder, "--out", out) == 0
    with (out / "tags.csv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    named = {name: row["named"] for name, row in rows.items()}
    assert named == {
        "hum.wav": "hum",
        "deep/late squeak.flac": "squeak",
        "both, softly.wav": "hum; squeak",
        "noise.ogg": "",
        "short.wav": "hum",
        "silence.wav": "",
        "broken.wav": "",
        "memo.m4a": "",
    }
    assert rows["noise.ogg"]["note"] == "nothing above its threshold"
    assert (rows["silence.wav"]["note"], rows["silence.wav"]["hum"]) == ("silent", "")
    assert "does not decode" in rows["broken.wav"]["note"]
    assert ".m4a is not read" in rows["memo.m4a"]["note"]
    assert float(rows["hum.wav"]["hum"]) > 0.5 > float(rows["hum.wav"]["squeak"])
    assert rows["hum.wav"]["seconds"] == "3.00"

    figures = json.loads((out / "tags.json").read_text())
    late = next(file for file in figures["files"] if file["file"] == "deep/late squeak.flac")
    (name,) = late["named"]
    assert name["label"] == "squeak"
    assert 1.5 <= name["from"] <= 2.2
    # 2.7 s are five pieces of half a second, and one that ends where the sound does.
    assert late["pieces"] == 6
    assert figures["cost"]["epsilon"] == 8.0

    report = (out / "report.md").read_text()
    assert "8 files, of which 4 have a label, 1 none" in report
    assert "1 are silent and 2 cannot be read" in report
    assert "ε = 8 at δ = 1e-08 (unit: teacher replaced)" in report
    assert "Stated by Ada of the tests; nothing in the file proves it." in report
    assert "- broken.wav: " in report
    printed = capsys.readouterr().out
    assert "nothing above its threshold" in printed
    assert str(out / "report.md") in printed


def test_json_alone_needs_no_folder(
    student: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "pate", "tag", student, folder, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    by_label = {row["label"]: row for row in figures["labels"]}
    assert by_label["hum"]["files"] == 3
    assert by_label["hum"]["may_be_noise"] is False
    # What is never named is no oftener named than by chance, and nobody is told of it.
    assert by_label["never"]["pieces"] == 0


def test_the_page_plays_what_was_named_the_surest_first(
    student: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert ended(monkeypatch, "pate", "tag", student, folder, "--out", out, "--page") == 0
    page = (out / "page.html").read_text()
    assert page.count("<audio") == 5
    assert "4 files of 8 have a label" in page
    assert page.index("hum.wav") < page.index("noise.ogg")
    assert "nothing above its threshold" in page
    assert "Stated by Ada of the tests" in page
    assert "broken.wav" not in page


def test_names_that_false_alarms_would_explain_are_said_to_be_noise(
    tagger: Tagger, card: TaggerCard, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "hasty.keras"
    _, truth = clips(60, 3000)
    hasty = (0.0, *card.thresholds[1:])
    checked, _ = clips(60, 3000)
    evidence = gathered(truth, tagger.probabilities(checked.power), np.array(hasty))
    tagger_file.save(
        tagger, msgspec.structs.replace(card, thresholds=hasty, evidence=evidence, cost=None), path
    )
    out = tmp_path / "out"
    assert ended(monkeypatch, "pate", "tag", path, folder, "--out", out) == 0
    printed = capsys.readouterr().out
    assert "May be noise, named no more often than by mistake: hum." in printed
    assert "do not take it for private" in printed
    report = (out / "report.md").read_text()
    assert "**may be noise**" in next(line for line in report.splitlines() if "| hum |" in line)
    assert "do not take it for private" in report
    with (out / "tags.csv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    assert rows["noise.ogg"]["may be noise"] == "hum"
    assert rows["both, softly.wav"]["may be noise"] == "hum"


def test_a_tagger_without_evidence_says_that_all_may_be_noise(
    tagger: Tagger, card: TaggerCard, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "bare.keras"
    tagger_file.save(tagger, msgspec.structs.replace(card, evidence=()), path)
    out = tmp_path / "out"
    assert ended(monkeypatch, "pate", "tag", path, folder, "--out", out) == 0
    assert "It is not stated how often this tagger is wrong" in capsys.readouterr().out
    report = (out / "report.md").read_text()
    assert "not known" in report
    assert "any of these names may be noise" in report


def test_what_it_cannot_tag_is_refused(
    student: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    full = tmp_path / "full"
    full.mkdir()
    (full / "diary.txt").write_text("mine")
    for words, message in (
        ((student, folder), "--out: name a new folder"),
        ((student, folder, "--json", "--page"), "--out: name a new folder"),
        ((student, folder, "--out", full), "is not empty"),
        ((folder / "notes.txt", folder, "--json"), "not a published tagger"),
        ((tmp_path / "gone.keras", folder, "--json"), "not a published tagger"),
        ((student, tmp_path / "gone", "--json"), "there is no folder"),
        ((student, empty, "--json"), "holds no sound"),
    ):
        assert ended(monkeypatch, "pate", "tag", *words) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("length", "starts"),
    [(0, [0]), (3, [0]), (10, [0]), (20, [0, 10]), (21, [0, 10, 11]), (29, [0, 10, 19])],
)
def test_pieces_cover_a_sound(length: int, starts: list[int]) -> None:
    made = np.arange(1, length + 1, dtype=np.float32)
    cut, begins = recordings.pieces(made, 10)
    assert begins.tolist() == starts
    assert cut.shape == (len(starts), 10)
    assert set(made) <= set(cut.ravel())
    if length < 10:
        assert cut.sum() == made.sum()
