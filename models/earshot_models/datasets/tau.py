"""TAU Urban Acoustic Scenes 2020 Mobile: Heittola, Mesaros, Virtanen (2020)."""

from __future__ import annotations

from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, DatasetError, existing, rows

LAYOUT = "meta.csv with audio/SCENE-CITY-LOCATION-SEGMENT-DEVICE.wav"

_COLUMNS = ("filename", "scene_label", "identifier", "source_label")
_SPLITS = {"fold1_train.csv": "train", "fold1_evaluate.csv": "test"}


def load(folder: Path) -> Dataset:
    """List the clips, with the attributes city, location and device.

    The group of a clip is its location in its city. Clips that the official set-up trains on or
    evaluates with have that `split`.

    Raises:
        DatasetError: A file, a column or all sound is missing, or a name has another form.
    """
    meta = existing(folder, "meta.csv")
    splits = _splits(folder / "evaluation_setup")
    clips = []
    for row in rows(meta, _COLUMNS, "\t"):
        parts = Path(row["filename"]).stem.split("-")
        if len(parts) != 5:
            raise DatasetError(f"meta.csv: {row['filename']} is not named as in {LAYOUT}")
        attributes = dict(zip(("city", "location", "segment"), parts[1:4], strict=True))
        clips.append(
            Clip(
                folder / row["filename"],
                row["scene_label"],
                row["identifier"],
                split=splits.get(row["filename"]),
                attributes={**attributes, "device": row["source_label"]},
            )
        )
    return Dataset.of_files("TAU Urban Acoustic Scenes 2020 Mobile", clips, folder, LAYOUT)


def _splits(folder: Path) -> dict[str, str]:
    """Return the official set-up, if it was unpacked too."""
    return {
        row["filename"]: split
        for name, split in _SPLITS.items()
        if (folder / name).exists()
        for row in rows(folder / name, ("filename",), "\t")
    }
