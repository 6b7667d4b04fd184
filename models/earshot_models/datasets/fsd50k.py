"""FSD50K: Fonseca and others, FSD50K: An Open Dataset of Human-Labeled Sound Events (2022)."""

from __future__ import annotations

import json
from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, DatasetError, root_of, rows

LAYOUT = "FSD50K.ground_truth/dev.csv and eval.csv beside FSD50K.dev_audio/ and FSD50K.eval_audio/"

TABLES = "FSD50K.ground_truth"
SOUND = ("FSD50K.dev_audio", "FSD50K.eval_audio")

_SPLITS = {"train": "train", "val": "validation"}


def load(folder: Path) -> Dataset:
    """List the clips, also of one half alone if the tables lie beside it.

    The attribute `labels` of a clip has all its classes, ancestors included. They are its label
    only if no clip has several. The group is the uploader, if FSD50K.metadata/ is there, and
    otherwise the clip.

    Raises:
        DatasetError: A file, a column or all sound is missing.
    """
    root = root_of(folder, "FSD50K", TABLES)
    clips = []
    for name, sound in zip(("dev", "eval"), SOUND, strict=True):
        table = root / TABLES / f"{name}.csv"
        if not table.exists():
            continue
        uploaders = _uploaders(root / "FSD50K.metadata" / f"{name}_clips_info_FSD50K.json")
        for row in rows(table, ("fname", "labels")):
            clips.append(
                Clip(
                    root / sound / f"{row['fname']}.wav",
                    None,
                    uploaders.get(row["fname"], row["fname"]),
                    split=_SPLITS.get(row.get("split") or "") if name == "dev" else "test",
                    attributes={"labels": "; ".join(row["labels"].split(","))},
                )
            )
    return Dataset.of_files("FSD50K", clips, folder, LAYOUT).with_single_classes()


def _uploaders(path: Path) -> dict[str, str]:
    """Return the uploader of each clip, if the metadata was unpacked too."""
    if not path.exists():
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8-sig"))
        return {name: str(each["uploader"]) for name, each in told.items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise DatasetError(f"{path} cannot be read: {error!r}") from error
