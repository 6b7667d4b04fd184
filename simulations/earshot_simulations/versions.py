"""Everything on a machine that affects results bit for bit: libraries, sources, files."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import earshot_client
import earshot_models
import earshot_protocol
from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError

LIBRARIES = ("ai-edge-litert", "numba", "numpy", "scikit-learn", "scipy", "soundfile", "soxr")
"""Libraries whose arithmetic and random streams affect figures."""


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


def versions() -> dict[str, str]:
    """Return the versions that a run depends on, and the machine's instructions.

    Libraries that are not installed are left out.
    """
    named = {"earshot": distribution.version(), "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            named[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    machine = {"machine": f"{platform.system()} {platform.machine()}", "processor": _processor()}
    return named | machine


@cache
def _processor() -> str:
    """Return the processor's instruction sets, on which the last digits of results depend.

    The name of a processor is not enough, as a hypervisor may hide instructions.
    """
    found = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    kernels = {each["architecture"] for each in threadpool_info() if "architecture" in each}
    return f"{' '.join(found) or 'baseline'}; BLAS: {' '.join(sorted(kernels)) or 'unknown'}"


@cache
def sources() -> str:
    """Return the SHA-256 of the sources that make, read and embed sound, hexadecimal.

    The version alone does not change during development.
    """
    packages = [
        Path(str(package.__file__)).parent
        for package in (earshot_protocol, earshot_client, earshot_models)
    ]
    found = hashlib.sha256()
    for folder in (*packages, Path(__file__).parent / "populations"):
        for file in sorted(folder.rglob("*.py")):
            found.update(f"{file.relative_to(folder.parent)} {file_digest(file)}\n".encode())
    return found.hexdigest()


def digest(figures: Mapping[str, object]) -> str:
    """Return the SHA-256 of JSON content, hexadecimal, independent of key order."""
    canonical = json.dumps(figures, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal; an unchanged file is read once per process.

    Raises:
        OSError: The file cannot be read.
    """
    found = path.stat()
    return _digest(path, found.st_size, found.st_mtime_ns)


def readable_digest(path: Path) -> str | None:
    """Return the digest of a sound file; None if it cannot be read."""
    try:
        return file_digest(path)
    except OSError:
        return None


@lru_cache(maxsize=2**16)
def _digest(path: Path, size: int, changed: int) -> str:
    del size, changed  # part of the cache key only
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
