"""An ensemble in a folder: one model per file, and their votes.

`ensemble.json` lists classes and files with digests of each model and of its training data, so an
interrupted training continues, and a folder of other data or other classes is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_models.teachers import teacher as files
from earshot_models.teachers.teacher import Learner, trained
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.files import replace_file, replacement
from earshot_protocol.progress import Progress

LIST = "ensemble.json"
"""Name of the file that lists the ensemble."""


class EnsembleError(InvalidInputError):
    """The folder holds no ensemble, or a damaged one."""


class OtherClassesError(EnsembleError):
    """The models have another class list."""


class OtherEnsembleError(EnsembleError):
    """The models were trained on other samples, or there are more than expected."""


def train(
    folder: Path,
    make: Callable[[int], Learner],
    samples: NDArray[np.floating],
    labels: NDArray[np.integer],
    parts: Sequence[NDArray[np.integer]],
    classes: Sequence[str],
    progress: Progress,
) -> None:
    """Train a teacher on each part, and save it; existing teachers are kept.

    Args:
        folder: Folder of the ensemble; made if it does not exist.
        make: Function that returns an untrained model, given the number of the teacher.
        samples: Samples, (samples, …).
        labels: Class of each sample, (samples,), as an index into `classes`.
        parts: Indices of the samples of each teacher; see `partitions`.
        classes: Names of the classes, at least two.
        progress: Callback for the number of trained teachers.

    Raises:
        OtherClassesError: The folder has models of other classes.
        OtherEnsembleError: The folder has models of other samples or parts.
        InvalidParametersError: There is no part, or a part is empty.
        InvalidInputError: Labels are not classes (see `teacher.trained`).
    """
    if not len(parts) or any(not len(part) for part in parts):
        raise InvalidParametersError("parts: must be at least one, and none may be empty")
    folder.mkdir(parents=True, exist_ok=True)
    listed = _listed(folder) if (folder / LIST).exists() else _empty(classes)
    _check_classes(folder, listed, classes)
    if len(listed["teachers"]) > len(parts):
        raise OtherEnsembleError(
            f"{folder} holds {len(listed['teachers'])} teachers, more than {len(parts)}: choose "
            "another folder"
        )
    for number, part in enumerate(parts):
        own, answers = samples[part], np.asarray(labels)[part]
        learned = _digest(np.ascontiguousarray(own).tobytes(), answers.astype("<i8").tobytes())
        if number < len(listed["teachers"]):
            if listed["teachers"][number]["learned"] != learned:
                raise OtherEnsembleError(
                    f"{folder}: teacher {number + 1} learned from other samples; choose another "
                    "folder"
                )
        else:
            learner = make(number)
            name = f"teacher-{number + 1:04d}{files.suffix(learner)}"
            with replacement(folder / name) as draft:
                files.save(trained(learner, own, answers, classes), draft)
                digest = _digest(draft.read_bytes())
            listed["teachers"].append(
                {"file": name, "digest": digest, "learned": learned, "samples": len(part)}
            )
            _write(folder, listed)
        progress("teachers", number + 1, len(parts))


def classes_of(folder: Path) -> tuple[str, ...]:
    """Return the names of the classes that a folder's teachers know, in the order of their numbers.

    Raises:
        EnsembleError: There is no ensemble.
    """
    return tuple(_listed(folder)["classes"])


def votes(
    folder: Path, samples: NDArray[np.floating], classes: Sequence[str], progress: Progress
) -> NDArray[np.int64]:
    """Return the answer of each teacher of a folder, int64 (teachers, samples).

    Each file must have the digest recorded at training. That detects damage, not malice: open only
    ensembles that you trained yourself (see `teacher`).

    Raises:
        OtherClassesError: The teachers name other classes than these, or in another order.
        EnsembleError: There is no ensemble, or a file is missing or changed.
    """
    listed = _listed(folder)
    _check_classes(folder, listed, classes)
    entries = listed["teachers"]
    if not entries:
        raise EnsembleError(f"{folder} holds no teacher yet: train at least one")
    answers = np.empty((len(entries), len(samples)), np.int64)
    for number, entry in enumerate(entries):
        path = folder / entry["file"]
        try:
            content = path.read_bytes()
        except OSError as error:
            raise EnsembleError(f"{path} cannot be read: {error}") from error
        if _digest(content) != entry["digest"]:
            raise EnsembleError(f"{path} is not the model that was trained: restore or retrain it")
        answers[number] = files.load(path, classes).predict(samples)
        progress("votes", number + 1, len(entries))
    return answers


def vote_counts(
    answers: NDArray[np.integer], classes: int, weights: NDArray[np.floating] | None = None
) -> NDArray[np.float64]:
    """Return the weighted votes of each class, float64 (samples, classes).

    Args:
        answers: Class numbers, (teachers, samples); −1 abstains.
        classes: Number of classes.
        weights: Weights of teachers, (teachers,), or by sample, (teachers, samples); None for one
            each.

    Raises:
        InvalidInputError: Numbers are not classes, or weights have another shape or are negative.
    """
    given = np.asarray(answers)
    if given.ndim != 2 or given.dtype.kind not in "iu":
        raise InvalidInputError("answers: must be class numbers, (teachers, samples)")
    if given.size and not -1 <= given.min() <= given.max() < classes:
        raise InvalidInputError(f"answers: must be from 0 to {classes - 1}, or -1 for none")
    each = np.ones(len(given)) if weights is None else np.asarray(weights, dtype=np.float64)
    if each.shape not in {given.shape, given.shape[:1]} or not (each >= 0).all():
        raise InvalidInputError("weights: must be numbers of at least 0, one for each teacher")
    if each.ndim == 1:
        each = each[:, None]
    return np.stack([((given == place) * each).sum(axis=0) for place in range(classes)], axis=1)


def _empty(classes: Sequence[str]) -> dict[str, Any]:
    return {"classes": list(classes), "teachers": []}


def _listed(folder: Path) -> dict[str, Any]:
    path = folder / LIST
    try:
        listed: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        complete = all(
            {"file", "digest", "learned", "samples"} <= entry.keys()
            and Path(entry["file"]).name == entry["file"]
            for entry in listed["teachers"]
        )
        if not complete or not all(isinstance(name, str) for name in listed["classes"]):
            raise ValueError("it lacks entries")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EnsembleError(f"{folder} holds no readable {LIST}: {error}") from error
    return listed


def _check_classes(folder: Path, listed: dict[str, Any], classes: Sequence[str]) -> None:
    if listed["classes"] != list(classes):
        raise OtherClassesError(
            f"{folder} holds teachers of another class list, {', '.join(listed['classes'])}; "
            f"wanted: {', '.join(classes)}"
        )


def _digest(*contents: bytes) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()


def _write(folder: Path, listed: dict[str, Any]) -> None:
    replace_file(folder / LIST, json.dumps(listed, indent=1))
