"""Votes, tables and sounds for the runs: made of numpy alone, the same at every commit."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import soundfile

_RATE = 8000
_SCENES = ("rain", "siren", "crickets", "engine")
_SPEAKERS = ("ann", "bob", "cyd")
_DIGITS, _TAKES = range(4), range(30)
_RECORDS = 400
_PERSON = "{}, Private, {}, Bachelors, 13, Divorced, Sales, Wife, White, Male, 0, 0, 40, Peru, {}\n"


def write(folder: Path) -> None:
    """Write all of it into a folder, which must not exist."""
    folder.mkdir(parents=True)
    _votes(folder)
    _published_votes(folder / "published")
    _sounds(folder)
    _census(folder / "census")
    (folder / "sweep.toml").write_text(
        "seeds = 2\n[settings]\nphones = 30\nrecordings = 10\npolicy = 'anything'\n"
        "[grid]\nsums = [0, 2]\n",
        encoding="utf-8",
    )


def _votes(folder: Path) -> None:
    generator = np.random.default_rng(1)
    np.save(folder / "counts.npy", generator.multinomial(100, [0.85, 0.05, 0.05, 0.05], 60))
    teachers = (generator.random((50, 40, 5)) < [0.9, 0.8, 0.2, 0.1, 0.02]).astype(np.int8)
    np.save(folder / "labels.npy", teachers)
    noise = generator.normal(0, 0.1, teachers.shape)
    np.save(folder / "outputs.npy", np.clip(0.1 + 0.8 * teachers + noise, 0, 1))
    np.save(folder / "classes.npy", (generator.random((50, 40)) < 0.15).astype(np.int64))
    np.save(folder / "weights.npy", np.repeat([1, 2], 25))
    scores = generator.random((60, 4))
    scores[::3, 0] += 30
    scores /= scores.sum(axis=1, keepdims=True)
    np.save(folder / "scores.npy", scores)
    np.save(folder / "fewer.npy", scores[:40])
    samples = generator.normal(size=(80, 6))
    samples[:, 0] += np.repeat([-3.0, 3.0], 40)
    np.save(folder / "samples.npy", samples)
    np.save(folder / "answers.npy", (samples[:40, 0] > 0).astype(np.int64))


def _published_votes(folder: Path) -> None:
    folder.mkdir()
    generator = np.random.default_rng(2)
    for name, likely in (
        ("mnist", [0.82] + [0.02] * 9),
        ("svhn", [0.82] + [0.02] * 9),
        ("adult", [0.9, 0.1]),
    ):
        np.save(folder / f"{name}.npy", generator.multinomial(250, likely, 12_000))


def _sounds(folder: Path) -> None:
    generator = np.random.default_rng(3)
    for number, (name, fold, _) in enumerate(itertools.product(_SCENES, range(1, 6), range(3))):
        pitch = 300 * (1 + _SCENES.index(name))
        _tone(folder / "esc10" / name / f"{fold}-{1000 + number}-A.wav", pitch, 5, generator)
    for digit, speaker, take in itertools.product(_DIGITS, _SPEAKERS, _TAKES):
        pitch = 250 * (1 + digit) + 40 * _SPEAKERS.index(speaker)
        _tone(folder / "fsdd" / f"{digit}_{speaker}_{take}.wav", pitch, 0.8, generator)
    for number in range(12):
        _tone(folder / "free_sounds" / "doors" / f"{number}.wav", 1500 + 50 * number, 2, generator)
    for number, (name, fold, _) in enumerate(itertools.product(_SCENES, (1, 2), range(8))):
        pitch = 300 * (1 + _SCENES.index(name))
        _tone(folder / "halves" / name / f"{fold}-{2000 + number}-A.wav", pitch, 5, generator)
    for number in range(40):
        _tone(folder / "streets" / "cars" / f"{number}.wav", 200 + 20 * number, 5, generator)


def _tone(path: Path, pitch: float, seconds: float, generator: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    times = np.arange(int(seconds * _RATE)) / _RATE
    loud = generator.uniform(0.1, 0.4)
    sound = loud * np.sin(2 * np.pi * pitch * generator.uniform(0.97, 1.03) * times)
    soundfile.write(path, sound + generator.normal(0, 0.02, len(times)), _RATE)


def _census(folder: Path) -> None:
    folder.mkdir()
    generator = np.random.default_rng(4)
    lines = []
    for age, weight in generator.integers(20, 80, (_RECORDS, 2)):
        lines.append(_PERSON.format(age, weight, ">50K" if age > 50 else "<=50K"))
    for name, part in (("train", lines[:300]), ("test", lines[300:])):
        (folder / f"adult-{name}.csv").write_text("".join(part), encoding="utf-8")
