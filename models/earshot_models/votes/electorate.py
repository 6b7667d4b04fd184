"""Answers of teachers to queries, from files of counts of votes or of each teacher's answers."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_models.votes.counts import checked_counts
from earshot_models.votes.output_ballots import STEPS, in_steps
from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.voting.teacher_ballots import NONE


@dataclass(frozen=True)
class PollForm:
    """Shape of a query and of its answers.

    Attributes:
        classes: Number of classes (m), of which one wins, or of labels (k), of which any may.
        teachers: Number of teachers (n).
        steps: Steps of a whole vote where teachers answer with probabilities; 1 for zeros and ones.
    """

    classes: int
    teachers: int
    steps: int = 1


@dataclass(frozen=True)
class Electorate:
    """Answers of all teachers to all queries.

    Attributes:
        predictions: Classes, `NONE` abstaining, integers (teachers, queries); or zeros and ones
            (teachers, queries, labels), or steps of a vote, from 0 to `steps`.
        classes: Number of classes (m) or labels (k).
        dealt: Whether only counts are known. Votes were then assigned to teachers arbitrarily, with
            the same sums.
        steps: Steps of a whole vote where teachers answered with probabilities; 1 for zeros and
            ones.
    """

    predictions: Whole
    classes: int
    dealt: bool = False
    steps: int = 1

    @property
    def teachers(self) -> int:
        """Number of teachers, n."""
        return int(self.predictions.shape[0])

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self.predictions.shape[1])

    @property
    def poll(self) -> PollForm:
        """Form of the queries and of their answers."""
        return PollForm(self.classes, self.teachers, self.steps)

    def among(self, queries: range) -> Electorate:
        """Return the same teachers on some queries."""
        return replace(self, predictions=self.predictions[:, queries.start : queries.stop])


def electorate(
    array: npt.ArrayLike,
    several: bool,
    teachers: int | None = None,
    classes: int | None = None,
    fractions: bool = False,
) -> Electorate:
    """Return the teachers' answers that an array holds.

    Args:
        array: Counts of votes (queries, classes); with `classes`, each teacher's class (teachers,
            queries); for several labels each teacher's zeros and ones (teachers, queries, labels),
            or the number of teachers that gave each label (queries, labels).
        several: Whether any number of labels may win.
        teachers: Number of teachers; by default, for counts of classes, the first query's sum.
        classes: Number of classes; if given, the array holds classes instead of counts.
        fractions: Whether a teacher may give labels probabilities from 0 to 1 (teachers, queries,
            labels), rounded to `STEPS` steps.

    Raises:
        InvalidInputError: The array has another shape or other numbers, or counts do not add up to
            the number of teachers.
        InvalidParametersError: A number of teachers or classes is out of range or missing.
    """
    array = np.asarray(array)
    if fractions and array.ndim == 3 and not _all_whole(array):
        return _of(teachers, _probable(array))
    table = _whole(array)
    if table.ndim == 3 and several:
        found = Electorate(_within("labels", table, 0, 1), table.shape[2])
    elif table.ndim == 2 and classes is not None and not several:
        known = checks.whole("classes", classes, 2)
        found = Electorate(_within("classes", table, NONE, known - 1), known)
    elif table.ndim == 2 and classes is None and several:
        if teachers is None:
            raise InvalidParametersError(
                "votes: counts of labels do not say how many teachers there are; add --teachers"
            )
        known = checks.whole("teachers", teachers)
        counts = _within("counts of labels", table, 0, known)
        found = Electorate(
            (np.arange(known)[:, None, None] < counts).astype(np.int8), table.shape[1], dealt=True
        )
    elif table.ndim == 2 and classes is None:
        if table.min() < 0:
            raise InvalidInputError(
                f"votes: counts must not be negative, and one is {table.min()}; where the file has "
                "a class for each teacher, add --classes"
            )
        first = int(table[0].sum())
        counts = checked_counts(table, first if teachers is None else teachers)
        found = Electorate(_dealt(counts), table.shape[1], dealt=True)
    else:
        kinds = (
            "labels (teachers × queries × labels) or counts of them (queries × labels)"
            if several
            else "counts (queries × classes) or, with --classes, classes (teachers × queries)"
        )
        raise InvalidInputError(f"votes of shape {table.shape}: must be {kinds}")
    return _of(teachers, found)


def _all_whole(array: npt.NDArray[np.generic]) -> bool:
    floating = np.issubdtype(array.dtype, np.floating)
    return not floating or bool((array == np.rint(array)).all())


def _probable(array: npt.NDArray[np.generic]) -> Electorate:
    outputs = np.asarray(array, dtype=np.float64)
    if not outputs.size:
        raise InvalidInputError(f"votes of shape {array.shape}: must be numbers")
    steps = in_steps(outputs).astype(np.int16)
    return Electorate(steps, array.shape[2], steps=STEPS)  # type: ignore[arg-type]


def _of(teachers: int | None, found: Electorate) -> Electorate:
    """Return the answers after a check of the number of teachers."""
    if teachers is not None and found.teachers != teachers:
        raise InvalidInputError(
            f"votes of {found.teachers} teachers, where --teachers says {teachers}"
        )
    return found


def load(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """Return the array of a `.npy` file.

    Raises:
        InvalidInputError: There is no such file, or no array that can be read without running code.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: there is no such file; name a .npy file") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, EOFError) as error:
        raise InvalidInputError(
            f"{path}: not a .npy file of numbers; write one with numpy.save"
        ) from error
    if not isinstance(array, np.ndarray):
        raise InvalidInputError(f"{path}: holds several arrays; save one as .npy")
    return array


def _dealt(counts: Whole) -> Whole:
    """Assign a class to every teacher so that these are the counts, int16 (teachers, queries)."""
    until = counts.cumsum(axis=1)
    teachers = int(until[0, -1])
    dealt = np.zeros((teachers, len(counts)), dtype=np.int16)
    for edge in until.T[:-1]:
        dealt += np.arange(teachers)[:, None] >= edge
    return dealt  # type: ignore[return-value]


def _whole(array: npt.NDArray[np.generic]) -> Whole:
    if array.size == 0 or (not np.issubdtype(array.dtype, np.number) and array.dtype != np.bool_):
        raise InvalidInputError(
            f"votes of type {array.dtype}, shape {array.shape}: must be numbers"
        )
    if np.issubdtype(array.dtype, np.complexfloating) or not np.isfinite(array).all():
        raise InvalidInputError("votes: must be finite whole numbers, and one is NaN or infinite")
    found = array.astype(np.int64)
    if (found != array).any():
        raise InvalidInputError("votes: must be whole numbers, and one is a fraction")
    return found


def _within(name: str, table: Whole, least: int, most: int) -> Whole:
    low, high = int(table.min()), int(table.max())
    if low < least or high > most:
        raise InvalidInputError(f"{name} from {low} to {high}: must be from {least} to {most}")
    return table
