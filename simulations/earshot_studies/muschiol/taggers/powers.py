"""The mel power of every second that is mixed, computed once."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.kit.kept import Kept
from earshot_studies.kit.mixtures.mixing import LEVEL
from earshot_studies.kit.mixtures.sources import MixtureSeconds, Side, Sources, open_sources
from earshot_studies.muschiol.tagging.mel_power import MelSettings, mel_power

_VERSION = 1
"""Cache format version; part of the key."""
_FIELDS = ("label", "side", "recording", "power")


@dataclass(frozen=True)
class Powers(MixtureSeconds):
    """Seconds with their mel power.

    Attributes:
        power: Mel power, float32 (seconds, frames, bands), with each second brought to one level
            first.
    """

    power: NDArray[np.float32]


def powers(sources: Sources, settings: MelSettings) -> Powers:
    """Compute the mel powers of sound.

    Args:
        sources: Seconds at the settings' rate.
        settings: Settings of the spectrum.

    Raises:
        InvalidParametersError: The settings are for clips of another length or rate.
        InvalidInputError: Teachers have only one recording of a label, or a side lacks a label.
    """
    if (settings.rate, settings.samples) != (sources.rate, sources.rate):
        raise InvalidParametersError(
            f"seconds={settings.seconds:g}, rate={settings.rate}: must be single seconds at "
            f"{sources.rate} Hz, as the sound that is mixed"
        )
    _check(sources)
    root = np.sqrt(np.mean(np.square(sources.sound), axis=1, keepdims=True))
    level = mel_power(sources.sound * (LEVEL / np.maximum(root, 1e-6)), settings)
    return Powers(sources.label, sources.side, sources.recording, sources.labels, level)


def open_powers(
    data: Path,
    settings: MelSettings,
    cache: Path,
) -> Powers:
    """Read the sound of a folder, or its powers from the cache.

    Args:
        data: Folder as `mixtures.sources.open_sources` expects it.
        settings: Settings of the spectrum, for clips of one second.
        cache: Folder with a file for each folder of sound and settings.

    Raises:
        DatasetError: Data are missing, or not laid out as `datasets` expects.
        UnreadableFileError: A file does not decode.
        InvalidParametersError, InvalidInputError: The settings or the sound do not fit; see
            `powers`.
    """

    def made() -> dict[str, NDArray[Any]]:
        found = powers(open_sources(data, settings.rate, cache / "sound"), settings)
        return {"labels": np.array(found.labels)} | {name: getattr(found, name) for name in _FIELDS}

    depends = [_VERSION, contents(data), asdict(settings)]
    kept = Kept(cache).arrays("powers", depends, made)
    fields = {name: kept[name] for name in _FIELDS}
    return Powers(labels=tuple(map(str, kept["labels"])), **fields)


def _check(sources: Sources) -> None:
    """Refuse labels with a single recording: taggers would learn the recording, not the label."""
    for side in Side:
        sources.at(side)
    single = [
        name
        for name, rows in zip(sources.labels, sources.at(Side.TEACHERS), strict=True)
        if len(np.unique(sources.recording[rows])) < 2
    ]
    if single:
        raise InvalidInputError(
            f"only one recording of {', '.join(single)} is left for teachers: a label needs at "
            "least two, or taggers learn the recording instead"
        )


def contents(data: Path) -> str:
    """Return a SHA-256 of the paths, sizes and modification times of all files of sound."""
    found = hashlib.sha256()
    for path in sorted(data.glob("*/**/*")):
        if path.is_file() and path.parts[len(data.parts)] in ("esc10", "fsdd", "free_sounds"):
            stat = path.stat()
            name = path.relative_to(data).as_posix()
            found.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return found.hexdigest()
