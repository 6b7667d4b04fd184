"""What decides the bits of a run beside its settings: versions, and the files that it reads."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_simulations.learning.settings import BLOBS, SOUNDSCAPES, Settings

LIBRARIES = (
    *("ai-edge-litert", "librosa", "numba", "numpy", "scikit-learn", "scipy", "soundfile", "soxr"),
)
"""Whose arithmetic and random streams reach a figure."""


class OtherVersionError(InvalidInputError):
    """What another version of Earshot wrote, and this one cannot go on with."""


def check_version(place: object, version: object) -> None:
    """Refuse what another version wrote.

    Raises:
        OtherVersionError: says which versions, and what to install.
    """
    ours = distribution.version()
    if version != ours:
        raise OtherVersionError(
            f"{place}: was written by Earshot {version}, and this is {ours}, which may come to "
            f"other figures; pip install '{distribution.NAME}=={version}', or run it anew"
        )


def versions() -> dict[str, str]:
    """What a run is done with; a library that is not installed is not named."""
    named = {"earshot": distribution.version(), "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            named[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return named | {"machine": f"{platform.system()} {platform.machine()}"}


def provenance(settings: Settings) -> dict[str, object]:
    """What `result.json` keeps so that a repetition has the same to go on.

    Returns:
        versions: see above.
        encoder: SHA-256 of the encoder file, hexadecimal; None for points, which need none.
        data: SHA-256 of names and contents of the sound files, hexadecimal; None for what is
            generated.

    Raises:
        DatasetError: there is no such folder, or no sound in it.
        OSError: a file cannot be read.
    """
    sound = settings.data != BLOBS
    folder = sound and settings.data != SOUNDSCAPES
    return {
        "versions": versions(),
        "encoder": _encoder(settings.encoder) if sound else None,
        "data": _sound(Path(settings.data)) if folder else None,
    }


def digest(figures: Mapping[str, object]) -> str:
    """SHA-256 of what JSON holds, hexadecimal, whatever its order and indentation."""
    canonical = json.dumps(figures, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _encoder(named: str | None) -> str:
    name = DEFAULT_ENCODER if named is None else named
    return SHIPPED_ENCODERS.get(name) or _file(Path(name))


def _sound(folder: Path) -> str:
    # What lists sound files loads what reads them.
    from earshot_models.datasets.folder import load

    return digest({clip.name: _file(clip.path) for clip in load(folder).clips})


def _file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
