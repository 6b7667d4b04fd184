"""Everything that decides the bits of a run besides its settings: versions and input files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_simulations.phases.settings import BLOBS, SOUNDSCAPES, PhaseSettings
from earshot_simulations.versions import file_digest, readable_digest, versions


class OtherVersionError(InvalidInputError):
    """The file was written by another version of Earshot, and cannot be continued."""


def check_version(place: object, version: object) -> None:
    """Refuse a file that another version wrote.

    Raises:
        OtherVersionError: The versions differ; the message says which, and what to install.
    """
    ours = distribution.version()
    if version != ours:
        raise OtherVersionError(
            f"{place}: was written by Earshot {version}, but this is {ours}, which may produce "
            f"other figures; pip install '{distribution.NAME}=={version}', or run it again"
        )


def provenance(settings: PhaseSettings[Any]) -> dict[str, object]:
    """Return the entries by which `result.json` makes a repetition comparable.

    Returns:
        versions: Versions of Earshot, Python and libraries; see `versions`.
        encoder: SHA-256 of the encoder file, hexadecimal; None for points, which need none.
        data: SHA-256 of names, classes, groups and contents of the sound files, hexadecimal; None
            for generated data.

    Raises:
        DatasetError: There is no such folder, or no sound in it.
        OSError: A file cannot be read.
    """
    sound = settings.data != BLOBS
    folder = sound and settings.data != SOUNDSCAPES
    return {
        "versions": versions(),
        "encoder": _encoder(settings.encoder) if sound else None,
        "data": _sound(Path(settings.data)) if folder else None,
    }


def digest(figures: Mapping[str, object]) -> str:
    """Return the SHA-256 of JSON content, hexadecimal, whatever its order and indentation."""
    canonical = json.dumps(figures, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _encoder(named: str | None) -> str:
    name = DEFAULT_ENCODER if named is None else named
    return SHIPPED_ENCODERS.get(name) or file_digest(Path(name))


def _sound(folder: Path) -> str:
    # Imported here because listing sound files loads the libraries that read them.
    from earshot_models.datasets.opening import open_dataset

    clips = open_dataset(folder).clips
    told = [[each.name, each.label, each.group, readable_digest(each.path)] for each in clips]
    return digest({"clips": told})
