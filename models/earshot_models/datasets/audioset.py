"""AudioSet: Gemmeke and others, Audio Set: An ontology and human-labeled dataset (2017)."""

from __future__ import annotations

import csv
from pathlib import Path

from earshot_models.datasets.dataset import (
    Clip,
    Dataset,
    DatasetError,
    existing,
    rows,
    sound_files,
    text,
)
from earshot_protocol.sound_reading import SOUND_SUFFIXES

LAYOUT = (
    "*_segments.csv and class_labels_indices.csv beside clips named YTID.wav or YTID_START.wav "
    "(or .flac, .mp3, .ogg) in sub-folders or audio/"
)

_SEGMENTS = {
    "balanced_train_segments.csv": "train",
    "unbalanced_train_segments.csv": "train",
    "eval_segments.csv": "test",
}

_Segment = tuple[str, float, list[str]]


def load(folder: Path) -> Dataset:
    """List the segments whose clips exist; `missing` counts the others.

    The attribute `labels` of a clip has all its classes. They are its label only if no clip has
    several, since their order in the table means nothing. The group is the video.

    Raises:
        DatasetError: A file, a column, a class or all sound is missing.
    """
    classes = existing(folder, "class_labels_indices.csv")
    names = {
        row["mid"]: row["display_name"] for row in rows(classes, ("index", "mid", "display_name"))
    }
    existing(folder, *_SEGMENTS)
    files = {path.stem: path for path in sound_files(folder, "**/*", SOUND_SUFFIXES)}
    files |= {path.stem: path for path in sound_files(folder, "**/*")}
    clips = [
        _clip(segment, split, names, files, folder / segment[0])
        for name, split in _SEGMENTS.items()
        if (folder / name).exists()
        for segment in _segments(folder / name)
    ]
    return Dataset.of_files("AudioSet", clips, folder, LAYOUT).with_single_classes()


def _segments(path: Path) -> list[_Segment]:
    """Return rows of YTID, start, end and quoted classes, which follow lines of comment."""
    segments: list[_Segment] = []
    uncommented = (line for line in text(path).splitlines() if not line.startswith("#"))
    try:
        for row in csv.reader(uncommented, skipinitialspace=True):
            video, start, _, mids = row
            segments.append((video, float(start), mids.split(",")))
    except (ValueError, csv.Error) as error:
        raise DatasetError(
            f"{path}: segment {len(segments) + 1} must be YTID, start, end and classes"
        ) from error
    return segments


def _clip(
    segment: _Segment, split: str, names: dict[str, str], files: dict[str, Path], missing: Path
) -> Clip:
    video, start, mids = segment
    unknown = [mid for mid in mids if mid not in names]
    if unknown:
        raise DatasetError(f"class_labels_indices.csv lacks the class {unknown[0]} of {video}")
    candidates = (video, f"{video}_{start:.0f}", f"{video}_{start * 1000:.0f}", f"Y{video}")
    path = next((files[name] for name in candidates if name in files), missing)
    labels = [names[mid] for mid in mids]
    return Clip(path, None, video, split=split, attributes={"labels": "; ".join(labels)})
