"""What a teacher says of every lesson, asked once and kept on disk."""

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
from earshot_models.distillation.teacher import Teacher, TeacherError
from earshot_protocol.checks import between, whole
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file

Progress = Callable[[int, int], None]
"""Called with the lessons that are done and all of them."""

_VERSION = 1
"""Of what is kept; it is part of the key."""

_BLOCK = 1000
"""Lessons between two writes."""

_LEVELS = 0.02, 0.2
"""Root mean squares at which a teacher hears: it should not make much of loudness."""

_SAID, _ABOUT = "said.npy", "about.json"

_PRINCIPAL = 20_000
"""Lessons that the principal components of what a teacher says are found from."""


class TargetsError(InvalidInputError):
    """Kept targets that are damaged, or not of these lessons and this teacher."""


def ask(
    lessons: Lessons,
    teacher: Teacher,
    cache: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> NDArray[np.float16]:
    """The teacher's embeddings of all lessons, or what was kept of them; goes on where it stopped.

    Args:
        lessons: at the teacher's rate.
        teacher: to ask.
        cache: folder for what it says, in a folder of its own for each teacher and set of lessons;
            nothing is kept if None.
        progress: told after each block.

    Returns:
        float16 (lessons, all the teacher's lengths), mapped from disk where it is kept.

    Raises:
        TeacherError: the lessons are of another rate, or it says what is no number.
        TargetsError: what was kept is damaged, or of something else.
        OSError: the cache cannot be written.
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
    if cache is None:
        with tempfile.TemporaryFile() as file:
            mapped = np.memmap(file, np.float16, "w+", shape=shape)
            _ask_from(0, lessons, teacher, mapped, lambda done: progress(done, lessons.count))
            return np.array(mapped)
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
    folder = cache / f"targets-{key}"
    said, done = _open(folder, about, shape)

    def keep(done: int) -> None:
        said.flush()
        _write(folder, {**about, "done": done})
        progress(done, lessons.count)

    progress(done, lessons.count)
    _ask_from(done, lessons, teacher, said, keep)
    return said


def principal(
    said: NDArray[np.floating],
    lengths: Sequence[int],
    dimensions: int = DIMENSIONS,
    power: float = 0.25,
) -> NDArray[np.float32]:
    """What a student of fewer numbers should say: the teacher's leading principal coordinates.

    Of each part that was read of the teacher: each row at unit length, rotated, each coordinate
    divided by its eigenvalue to the `power` (so that the first ones do not say it all), and at unit
    length again.

    Args:
        said: (lessons, all lengths), more lessons than `dimensions`.
        lengths: of the parts.
        dimensions: to keep of each, at most its length.
        power: 0 keeps the variances, 0.5 makes them alike.

    Returns:
        float32 (lessons, parts × dimensions), unit rows of parts of one length.

    Raises:
        InvalidInputError: there are too few lessons.
        InvalidParametersError: a parameter is out of range.
    """
    whole("dimensions", dimensions, 1, min(lengths))
    between("power", power, 0, 0.5)
    if len(said) <= dimensions:
        raise InvalidInputError(
            f"{len(said)} lessons are too few to find {dimensions} principal components: there "
            f"must be {dimensions + 1}"
        )
    ends = np.cumsum(lengths)
    parts = [
        _principal(said[:, end - length : end], dimensions, power)
        for end, length in zip(ends, lengths, strict=True)
    ]
    return np.hstack(parts) / np.float32(np.sqrt(len(parts)))


def _principal(said: NDArray[np.floating], dimensions: int, power: float) -> NDArray[np.float32]:
    """Of one part."""
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
    teacher: Teacher,
    said: NDArray[np.float16],
    told: Callable[[int], None],
) -> None:
    """Fill `said` from lesson `start` on, block by block."""
    for first in range(start, lessons.count, _BLOCK):
        last = min(first + _BLOCK, lessons.count)
        sounds = np.stack([_heard(lessons, number, teacher) for number in range(first, last)])
        rows = teacher.embed(sounds)
        if not np.isfinite(rows).all():
            raise TeacherError("the teacher says numbers that are not finite")
        said[first:last] = rows
        told(last)


def _heard(lessons: Lessons, number: int, teacher: Teacher) -> NDArray[np.float32]:
    """The middle of a lesson, as loud as a teacher is used to."""
    generator = np.random.default_rng([_VERSION, number])
    level = np.exp(generator.uniform(*np.log(_LEVELS)))
    before = (lessons.rate - teacher.window) // 2
    sound = lessons.sound(number)[before : before + teacher.window]
    return np.asarray(np.clip(level * sound, -1, 1), dtype=np.float32)


def _open(
    folder: Path, about: dict[str, object], shape: tuple[int, int]
) -> tuple[np.memmap[Any, np.dtype[np.float16]], int]:
    """What was kept, and how many lessons of it are done; room for it if there is nothing."""
    if not (folder / _ABOUT).exists():
        folder.mkdir(parents=True, exist_ok=True)
        said = np.lib.format.open_memmap(folder / _SAID, "w+", np.float16, shape)
        _write(folder, {**about, "done": 0})
        return said, 0
    try:
        kept = json.loads((folder / _ABOUT).read_text())
        said = np.lib.format.open_memmap(folder / _SAID, "r+")
        done = int(kept.pop("done"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetsError(
            f"what a teacher said, in {folder}, cannot be read ({error}): remove the folder to ask "
            "again"
        ) from error
    if kept != about or said.shape != shape or said.dtype != np.float16:
        raise TargetsError(
            f"{folder} holds what another teacher said, or of other lessons: remove it to ask again"
        )
    return said, min(max(done, 0), shape[0])


def _write(folder: Path, about: dict[str, object]) -> None:
    replace_file(folder / _ABOUT, json.dumps(about, indent=1))


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    single = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(single, axis=1, keepdims=True)
    return np.asarray(single / np.maximum(lengths, 1e-6), dtype=np.float32)
