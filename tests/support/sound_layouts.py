"""Published layouts of data sets, as small trees of silent files: three classes or so in each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import soundfile

BOM = "\ufeff"


def sound(path: Path) -> None:
    """Write a very short file, of the kind that its name says if that kind is read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".wav", ".flac", ".ogg", ".mp3"):
        soundfile.write(path, np.zeros(1000), 16000, format=path.suffix[1:].upper())
    else:
        path.write_bytes(b"a recorder wrote this")


def text(path: Path, lines: Iterable[str], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}{end}" for line in lines).encode())


def esc50(root: Path, suffix: str = ".wav") -> None:
    """Three classes in three folds, two takes of a recording in each; as a spreadsheet saves it."""
    rows = [f"{BOM}filename,fold,target,category,esc10,src_file,take,remark"]
    for target, label in enumerate(("dog", "rain", "sea_waves")):
        for fold in (1, 2, 3):
            for take in "AB":
                source = 100 * target + fold
                name = f"{fold}-{source}-{take}-{target}"
                rows.append(f'{name}.wav,{fold},{target},"{label}",True,{source},{take},"a, b"')
                sound(root / "audio" / f"{name}{suffix}")
    text(root / "meta" / "esc50.csv", rows, "\r\n")


def esc10(root: Path) -> None:
    for label, source in (("dog", 10), ("rain", 20)):
        for fold in (1, 2):
            for take in "AB":
                sound(root / label / f"{fold}-{source + fold}-{take}.ogg")


def us8k(root: Path) -> None:
    rows = ["slice_file_name,fsID,start,end,salience,fold,classID,class"]
    for number, label in enumerate(("air_conditioner", "car_horn", "dog_bark")):
        for fold in (1, 2, 10):
            for part in (0, 1):
                source = 1000 * fold + number
                name = f"{source}-{number}-0-{part}.wav"
                rows.append(f"{name},{source},0.0,1.0,1,{fold},{number},{label}")
                sound(root / "audio" / f"fold{fold}" / name)
    text(root / "metadata" / "UrbanSound8K.csv", rows)


def fsd50k(root: Path, labels: str = "Bark,Dog,Animal") -> None:
    for half, first in (("dev", 0), ("eval", 100)):
        names = [str(first + number) for number in range(4)]
        header = "fname,labels,mids" + (",split" if half == "dev" else "")
        rest = ",train" if half == "dev" else ""
        chosen = [labels if number % 2 else "Rain" for number in range(4)]
        rows = [f'{name},"{label}","/m/1"{rest}' for name, label in zip(names, chosen, strict=True)]
        text(root / "FSD50K.ground_truth" / f"{half}.csv", [header, *rows])
        told = {
            name: {"uploader": f"{half}{number // 2}", "title": "é"}
            for number, name in enumerate(names)
        }
        text(root / "FSD50K.metadata" / f"{half}_clips_info_FSD50K.json", [json.dumps(told)])
        for name in names:
            sound(root / f"FSD50K.{half}_audio" / f"{name}.wav")


def tau(root: Path, part: str = "", city: str = "lisbon") -> None:
    """Three scenes in two places each; six parts in a name as of 2022, five before."""
    rows = ["filename\tscene_label\tidentifier\tsource_label"]
    for scene in ("airport", "bus", "metro_station"):
        for place in (1000, 1001):
            for segment in (0, 1):
                name = f"audio/{scene}-{city}-{place}-{segment}-{part}a.wav"
                rows.append(f"{name}\t{scene}\t{city}-{place}\ta")
                sound(root / name)
    text(root / "meta.csv", rows, "\r\n")


def fma(root: Path) -> None:
    rows = [",artist,set,set,track", ",id,split,subset,genre_top", "track_id,,,,"]
    for number in range(1, 9):
        rows.append(
            f"{number},{(number + 1) // 2},training,small,{'Rock' if number % 2 else 'Folk'}"
        )
        sound(root / "fma_small" / "000" / f"{number:06d}.mp3")
    rows.append("140000,54,training,large,Pop")
    text(root / "fma_metadata" / "tracks.csv", rows)


def audioset(root: Path, both: str = ",/m/2") -> None:
    text(
        root / "class_labels_indices.csv",
        [f"{BOM}index,mid,display_name", '0,/m/1,"Speech"', '1,/m/2,"Dog, bark"'],
    )
    text(
        root / "balanced_train_segments.csv",
        [
            f"{BOM}# YTID, start_seconds, end_seconds, positive_labels",
            f'-video00001, 0.000, 10.000, "/m/1{both}"',
            *(f'-video0000{n}, 0.000, 10.000, "/m/{1 + n % 2}"' for n in (2, 3, 4)),
            '-notthere00, 0.000, 10.000, "/m/2"',
        ],
    )
    for number in (1, 2, 3, 4):
        sound(root / "audio" / f"-video0000{number}.wav")


def flat(root: Path) -> None:
    for name in ("dog1.wav", "dog2.wav", "rain1.wav"):
        sound(root / name)


def classes(root: Path, names: Iterable[str] = ("park", "street", "bar"), files: int = 2) -> None:
    for name in names:
        for number in range(files):
            sound(root / name / f"{number}.wav")


def sorted_by_class(root: Path) -> None:
    """Files of published data sets that somebody put into folders by class."""
    for label in ("airport", "bus"):
        for place in (1, 2):
            for segment in (0, 1):
                sound(root / label / f"{label}-paris-{place}-{segment}-0-a.wav")
    for source in (5, 6):
        for part in (0, 1):
            sound(root / "siren" / f"{source}-8-0-{part}.wav")
            sound(root / "clock" / f"{source}-{70 + source}-{'AB'[part]}-38.wav")
            sound(root / "yes" / f"0a{source}_nohash_{part}.wav")


def in_order(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    """One tree after several steps."""

    def write(root: Path) -> None:
        for step in steps:
            step(root)

    return write
