"""The two data sets of Mühl (2021), with their splits and models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_models.votes.rules.confident import ConfidentRule
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.muehl.table import Table
from earshot_studies.muehl.votes import Fit

_CUT = 0xADA
"""Number of the random stream that splits a data set."""
_STUDENT_EPOCHS = 60
"""Epochs of a student: more than a teacher's, as in Mühl (2021), which does not state a number."""


@dataclass(frozen=True)
class StudiedData:
    """A data set, with its models and its mechanism.

    Attributes:
        name: Name, "mnist" or "adult".
        private: Records that teachers learn from.
        public: Records that teachers label; their true labels only serve to measure accuracy.
        test: Records that students are tested on.
        mechanism: Mechanism of Table 6.3.
        teacher, student: Training of a teacher and of a student.
        recipe: Recipe of teachers, as text.
        processes: Voting processes of a cell in Mühl (2021).
    """

    name: str
    private: Table
    public: Table
    test: Table
    mechanism: ConfidentRule
    teacher: Fit
    student: Fit
    recipe: str
    processes: int

    @property
    def asked(self) -> npt.NDArray[np.float32]:
        """Rows that teachers vote on: the public ones, then those of the test."""
        return self.public.joined(self.test).rows


def open_subject(folder: Path, seed: int = 0) -> StudiedData:
    """Open the data set of a folder, recognized by its files.

    The header of Table 6.3 has two columns swapped: 60,000 and 37,222 records are private, 9,000
    and 7,000 public, and 1,000 are for the test.

    Raises:
        DatasetError: The folder holds neither data set.
        InvalidParametersError: There are too few records to cut.
    """
    if any(folder.glob("*-images-idx3-ubyte*")):
        return _digits(folder, seed)
    return _census(folder, seed)


def _digits(folder: Path, seed: int) -> StudiedData:
    from earshot_studies.muehl import mnist
    from earshot_studies.muehl.cnn import CnnSettings

    split = mnist.load(folder)
    rest = _mixed(split.test, seed)
    public, test = _cut(rest, len(rest) - len(rest) // 10)
    settings = CnnSettings()
    return StudiedData(
        "mnist",
        split.train,
        public,
        test,
        ConfidentRule(sigma=40, threshold=200, check_sigma=150),
        _networks(settings),
        _networks(replace(settings, epochs=_STUDENT_EPOCHS)),
        f"network of Table 6.1, {settings}",
        processes=15,
    )


def _census(folder: Path, seed: int) -> StudiedData:
    from earshot_studies.muehl import adult

    split = adult.load(folder)
    whole = _mixed(split.train.joined(split.test), seed)
    # 37,222, 7,000 and 1,000 of the 45,222 complete records.
    records = len(whole)
    private, rest = _cut(whole, records - records * 8000 // 45_222)
    public, test = _cut(rest, len(rest) - len(rest) // 8)
    return StudiedData(
        "adult",
        private,
        public,
        test,
        ConfidentRule(sigma=40, threshold=300, check_sigma=200),
        forest,
        forest,
        "forest of 100 trees, scikit-learn's defaults",
        processes=50,
    )


def forest(table: Table, seed: int) -> Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int64]]:
    """Train a random forest of 100 trees, on one core."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(100, random_state=seed, n_jobs=1)
    forest.fit(table.rows, table.labels)
    return lambda rows: forest.predict(rows).astype(np.int64)


def _networks(settings: object) -> Fit:
    """Return a function that trains networks on one graph, built at its first call."""
    from earshot_studies.muehl.cnn import CnnSettings, NetworkWorkshop

    assert isinstance(settings, CnnSettings)  # noqa: S101 - for the type checker
    workshops: dict[tuple[int, ...], NetworkWorkshop] = {}

    def fit(table: Table, seed: int) -> Callable[..., npt.NDArray[np.int64]]:
        height, width, channels = shape = table.rows.shape[1:]
        if shape not in workshops:
            workshops[shape] = NetworkWorkshop((height, width, channels), table.classes, settings)
        return workshops[shape].fit(table.rows, table.labels, seed).predict

    return fit


def _mixed(table: Table, seed: int) -> Table:
    return table.at(np.random.default_rng([seed, _CUT]).permutation(len(table)))


def _cut(table: Table, first: int) -> tuple[Table, Table]:
    if not 0 < first < len(table):
        raise InvalidParametersError(f"{len(table)} records: too few to cut into parts")
    return table.at(slice(first)), table.at(slice(first, None))
