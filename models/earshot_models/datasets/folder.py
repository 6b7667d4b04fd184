"""Sound in a folder of one's own: one sub-folder per class, with audio files in it."""

from __future__ import annotations

from pathlib import Path

from earshot_models.datasets import esc
from earshot_models.datasets.dataset import Clip, Dataset, DatasetError, sound_files

LAYOUT = "FOLDER/CLASS/NAME with NAME ending in .au, .flac, .mp3, .ogg or .wav"


def load(folder: Path) -> Dataset:
    """List the clips of a folder, by class and then by name; hidden files are left out.

    Files named as ESC names its clips share a group per fold; any other file has its own.

    Raises:
        DatasetError: There is no such folder, or it holds no sound where it is expected.
    """
    for pattern, where in (("*", "in no class"), ("*/*/*", "in folders within classes")):
        misplaced = (
            None if any(sound_files(folder, "*/*")) else next(sound_files(folder, pattern), None)
        )
        if misplaced is not None:
            raise DatasetError(
                f"{folder} has its sound {where} ({misplaced.relative_to(folder)}): put each class "
                f"in a folder of its own, as {folder}/CLASS/{misplaced.name}"
            )
    clips = [Clip(path, path.parent.name, _group(path)) for path in sound_files(folder, "*/*")]
    return Dataset.of_files(folder.resolve().name, clips, folder, LAYOUT)


def _group(path: Path) -> str:
    name = esc.NAME.fullmatch(path.stem)
    return f"fold {name[1]}" if name else f"{path.parent.name}/{path.name}"
