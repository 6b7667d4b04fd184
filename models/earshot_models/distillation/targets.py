"""A teacher's output for every lesson, computed once and cached on disk."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_models.distillation.lessons import Lessons
from earshot_models.distillation.teacher import TeacherEncoder, TeacherError
from earshot_protocol.checks import between, whole
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.progress import Progress, silent

_VERSION = 2
"""Cache format version; part of the key."""

_BLOCK = 1000
"""Lessons between two writes."""

_LEVELS = 0.02, 0.2
"""Range of levels (root mean square) given to a teacher, which should not depend on loudness."""

_SAID, _ABOUT = "said.npy", "about.json"

_PRINCIPAL = 20_000
"""Lessons from which the principal components of a teacher's output are computed."""


class TargetsError(InvalidInputError):
    """Cached targets are damaged, or belong to other lessons or another teacher."""


def ask(
    lessons: Lessons,
    teacher: TeacherEncoder,
    cache: Path | None = None,
    progress: Progress = silent,
) -> NDArray[np.float16]:
    """Return the teacher's embeddings of all lessons, computing those that are not cached.

    Args:
        lessons: Lessons at the teacher's rate.
        teacher: Teacher.
        cache: Folder with a sub-folder for each teacher and set of lessons; None to cache nothing.
        progress: Callback after each block.

    Returns:
        float16 (lessons, all the teacher's lengths), mapped from disk if cached.

    Raises:
        TeacherError: The lessons are of another rate, or the teacher's output is not finite.
        TargetsError: The cached output is damaged, or belongs to something else.
        OSError: The cache cannot be written.
    """
    if lessons.rate != teacher.rate:
        raise TeacherError(
            f"the teacher hears {teacher.rate} samples per second, the lessons have {lessons.rate}"
        )
    shape = (lessons.count, sum(teacher.lengths))
    about = {
        "version": _VERSION,
        "lessons": lessons.identity,
        "teacher": teacher.identity,
        "shape": list(shape),
    }

    def show(done: int) -> None:
        progress("asking the teacher", done, lessons.count)

    if cache is None:
        with tempfile.TemporaryFile() as file:
            mapped = np.memmap(file, np.float16, "w+", shape=shape)
            _ask_from(0, lessons, teacher, mapped, show)
            return np.array(mapped)
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
    folder = cache / f"targets-{key}"
    said, done = _open(folder, about, shape)

    def keep(done: int) -> None:
        said.flush()
        _write(folder, {**about, "done": done})
        show(done)

    show(done)
    _ask_from(done, lessons, teacher, said, keep)
    return said


def principal(
    said: NDArray[np.floating],
    lengths: Sequence[int],
    dimensions: int = DIMENSIONS,
    power: float = 0.25,
) -> NDArray[np.float32]:
    """Return a smaller student's targets: the teacher's leading principal coordinates.

    Each part read from the teacher is treated independently: rows are brought to unit length and
    rotated, each coordinate is divided by its eigenvalue to the `power` (so that the first ones do
    not dominate), and rows are brought to unit length again.

    Args:
        said: Teacher's output, (lessons, all lengths), for more lessons than `dimensions`.
        lengths: Lengths of the parts.
        dimensions: Dimensions to keep of each part, at most its length.
        power: Exponent of the eigenvalues: 0 keeps the variances, 0.5 equalizes them.

    Returns:
        float32 (lessons, parts × dimensions), unit rows of parts of one length.

    Raises:
        InvalidInputError: There are too few lessons.
        InvalidParametersError: A parameter is out of range.
    """
    whole("dimensions", dimensions, 1, min(lengths))
    between("power", power, 0, 0.5)
    if len(said) <= dimensions:
        raise InvalidInputError(
            f"{len(said)} lessons are too few to find {dimensions} principal components: at least "
            f"{dimensions + 1} are needed"
        )
    ends = np.cumsum(lengths)
    parts = [
        _principal(said[:, end - length : end], dimensions, power)
        for end, length in zip(ends, lengths, strict=True)
    ]
    return np.hstack(parts) / np.float32(np.sqrt(len(parts)))


def _principal(said: NDArray[np.floating], dimensions: int, power: float) -> NDArray[np.float32]:
    """Return the leading principal coordinates of one part."""
    some = _unit(said[:: max(1, len(said) // _PRINCIPAL)]).astype(np.float64)
    mean = some.mean(axis=0).astype(np.float32)
    variances, rotation = np.linalg.eigh(np.cov(some, rowvar=False))
    variances, rotation = variances[::-1][:dimensions], rotation[:, ::-1][:, :dimensions]
    turn = (rotation * np.maximum(variances, 1e-9) ** -power).astype(np.float32)
    blocks = (said[at : at + _PRINCIPAL] for at in range(0, len(said), _PRINCIPAL))
    return np.concatenate([_unit((_unit(rows) - mean) @ turn) for rows in blocks])


def _ask_from(
    start: int,
    lessons: Lessons,
    teacher: TeacherEncoder,
    said: NDArray[np.float16],
    told: Callable[[int], None],
) -> None:
    """Fill targets from lesson `start`, block by block."""
    for first in range(start, lessons.count, _BLOCK):
        last = min(first + _BLOCK, lessons.count)
        sounds = np.stack([_heard(lessons, number, teacher) for number in range(first, last)])
        rows = teacher.embed(sounds)
        if not np.isfinite(rows).all():
            raise TeacherError("the teacher's output is not finite")
        said[first:last] = rows
        told(last)


def _heard(lessons: Lessons, number: int, teacher: TeacherEncoder) -> NDArray[np.float32]:
    """Return the middle of a lesson at the teacher's usual level."""
    generator = np.random.default_rng([_VERSION, number])
    level = np.exp(generator.uniform(*np.log(_LEVELS)))
    before = (lessons.rate - teacher.window) // 2
    sound = lessons.sound(number)[before : before + teacher.window]
    return np.asarray(np.clip(level * sound, -1, 1), dtype=np.float32)


def _open(
    folder: Path, about: dict[str, object], shape: tuple[int, int]
) -> tuple[np.memmap[Any, np.dtype[np.float16]], int]:
    """Open the cached output and return the number of lessons done; make it if there is none."""
    if not (folder / _ABOUT).exists():
        folder.mkdir(parents=True, exist_ok=True)
        said = np.lib.format.open_memmap(folder / _SAID, "w+", np.float16, shape)
        _write(folder, {**about, "done": 0})
        return said, 0
    try:
        kept = json.loads((folder / _ABOUT).read_bytes())
        said = np.lib.format.open_memmap(folder / _SAID, "r+")
        done = int(kept.pop("done"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TargetsError(
            f"the teacher's output in {folder} cannot be read ({error}): remove the folder to ask "
            "again"
        ) from error
    if kept != about or said.shape != shape or said.dtype != np.float16:
        raise TargetsError(
            f"{folder} holds the output of another teacher, or for other lessons: remove it to ask "
            "again"
        )
    return said, min(max(done, 0), shape[0])


def _write(folder: Path, about: dict[str, object]) -> None:
    replace_file(folder / _ABOUT, json.dumps(about, indent=1))


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    single = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(single, axis=1, keepdims=True)
    return np.asarray(single / np.maximum(lengths, 1e-6), dtype=np.float32)
