"""The mel power of every second that is mixed, computed once."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_models.datasets.waveforms import Progress
from earshot_models.tagging.mel_power import MelSettings, mel_power
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.kit.kept import Kept
from earshot_studies.kit.mixtures.mixing import LEVEL
from earshot_studies.kit.mixtures.sources import Seconds, Side, Sources, open_sources

_VERSION = 1
"""Of what is kept; it is part of the key."""
_FIELDS = ("label", "side", "recording", "power")


@dataclass(frozen=True)
class Powers(Seconds):
    """Seconds with their mel power.

    Attributes:
        power: float32 (seconds, frames, bands), each second brought to one level first.
    """

    power: NDArray[np.float32]


def powers(sources: Sources, settings: MelSettings) -> Powers:
    """Of sound that was read.

    Args:
        sources: seconds at the settings' rate.
        settings: of the spectrum.

    Raises:
        InvalidParametersError: settings for clips of another length or rate.
        InvalidInputError: a label that teachers have one recording of, or one that a side lacks.
    """
    if (settings.rate, settings.samples) != (sources.rate, sources.rate):
        raise InvalidParametersError(
            f"seconds={settings.seconds:g}, rate={settings.rate}: what is mixed are single seconds "
            f"at {sources.rate} Hz"
        )
    _check(sources)
    root = np.sqrt(np.mean(np.square(sources.sound), axis=1, keepdims=True))
    level = mel_power(sources.sound * (LEVEL / np.maximum(root, 1e-6)), settings)
    return Powers(sources.label, sources.side, sources.recording, sources.labels, level)


def open_powers(
    data: Path,
    settings: MelSettings,
    cache: Path,
    progress: Progress = lambda done, total: None,
) -> Powers:
    """Read the sound of a folder, or what was kept of it.

    Args:
        data: folder as `mixtures.sources.open_sources` expects it.
        settings: of the spectrum, for clips of a second.
        cache: folder in which a file for each folder of sound and settings is kept.
        progress: told after each file.

    Raises:
        DatasetError: data are missing, or not laid out as `datasets` expects.
        UnreadableFileError: a file does not decode.
        InvalidParametersError, InvalidInputError: as `powers`.
    """

    def made() -> dict[str, NDArray[Any]]:
        found = powers(open_sources(data, settings.rate, cache / "sound", progress), settings)
        return {"labels": np.array(found.labels)} | {name: getattr(found, name) for name in _FIELDS}

    depends = [_VERSION, contents(data), asdict(settings)]
    kept = Kept(cache).arrays("powers", depends, made)
    fields = {name: kept[name] for name in _FIELDS}
    return Powers(labels=tuple(map(str, kept["labels"])), **fields)


def _check(sources: Sources) -> None:
    """What one recording alone stands for is that recording, and not a label."""
    for side in Side:
        sources.at(side)
    single = [
        name
        for name, rows in zip(sources.labels, sources.at(Side.TEACHERS), strict=True)
        if len(np.unique(sources.recording[rows])) < 2
    ]
    if single:
        raise InvalidInputError(
            f"one recording alone of {', '.join(single)} is left for teachers: a label needs two "
            "at least, or its name is that recording's"
        )


def contents(data: Path) -> str:
    """All that sound depends on: where each file lies, how large it is and when it was written."""
    found = hashlib.sha256()
    for path in sorted(data.glob("*/**/*")):
        if path.is_file() and path.parts[len(data.parts)] in ("esc10", "fsdd", "free_sounds"):
            stat = path.stat()
            name = path.relative_to(data).as_posix()
            found.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return found.hexdigest()
