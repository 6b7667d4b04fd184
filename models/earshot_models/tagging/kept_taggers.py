"""Taggers kept on disk once trained, so that a killed run continues with the next.

These files are private to the owner of the clips, as weights reveal much about them. The file that
may be given away is a student's `tagger_file`.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from earshot_models.tagging.examples import Examples
from earshot_models.tagging.training import Tagger, Workshop
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replacement

_VERSION = 1
"""Version of the files and of the training behind them; part of the key."""


def fit_or_open(
    workshop: Workshop,
    folder: Path,
    examples: Examples,
    validation: Examples | None = None,
    seed: int = 0,
) -> Tagger:
    """Train a tagger as `Workshop.fit` does, or read one that was trained in the same way before.

    Args:
        workshop: Workshop that trains.
        folder: Folder that keeps a file for each key: network, settings, labels, seed and clips.
        examples: Examples for `Workshop.fit`.
        validation: Validation examples for `Workshop.fit`.
        seed: Seed for `Workshop.fit`.

    Raises:
        InvalidInputError: as for `Workshop.fit`.
        OSError: if the folder cannot be written.
    """
    path = folder / f"tagger-{_key(workshop, examples, validation, seed)}.npz"
    tagger = _opened(workshop, path)
    if tagger is None:
        tagger = workshop.fit(examples, validation, seed)
        _keep(tagger, path)
    return tagger


def _key(workshop: Workshop, examples: Examples, validation: Examples | None, seed: int) -> str:
    described = [_VERSION, asdict(workshop.settings), workshop.labels, workshop.shape, seed]
    digest = hashlib.sha256(json.dumps(described).encode())
    for part in (examples, validation):
        arrays = () if part is None else (part.power, part.targets)
        for array in arrays:
            digest.update(f"{array.shape}{array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).data)
        digest.update(b"|")
    return digest.hexdigest()[:32]


def _opened(workshop: Workshop, path: Path) -> Tagger | None:
    """Return the kept tagger; None if there is none, or it is incomplete."""
    try:
        # Open the file here, as numpy does not close one that it finds damaged.
        with path.open("rb") as file, np.load(file) as kept:
            history = tuple((int(step), float(score)) for step, score in kept["history"])
            weights = tuple(kept[f"weights_{at}"] for at in range(len(kept.files) - 1))
        workshop.restore(weights)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, InvalidInputError):
        return None
    return Tagger(workshop.labels, weights, history, workshop)


def _keep(tagger: Tagger, path: Path) -> None:
    """Write under a temporary name first, so that no file is ever half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"weights_{at}": array for at, array in enumerate(tagger.weights)}
    history = np.array(tagger.history, dtype=np.float64).reshape(-1, 2)
    with replacement(path) as draft:
        np.savez(draft, allow_pickle=False, history=history, **arrays)
