"""Settings from Python: NumPy's numbers, words, paths and tables are what a person would expect."""

from __future__ import annotations

import dataclasses
import math
import os
import pickle
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pandas
import pytest

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.learning import Budget
from earshot_simulations import Adversary, Heterogeneity, Settings, simulate, sweep
from earshot_simulations.fields import kinds
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.phases.settings import settings_of
from earshot_simulations.phases.statistics import StatisticsSettings
from earshot_simulations.sweeps.plan import SweepPlan
from earshot_simulations.sweeps.sweep import Arm, Measure, measured

GIVEN: dict[type, dict[str, Any]] = {
    Settings: {"pool": 5, "encoder": "mine.tflite", "address": "host:1", "epsilon": 1.5}
    | {"cells": 8, "most_cells": 9, "dimensions": 16, "label_votes": 3, "policy": "anything"}
    | {"top_global_centroids": 3}
    | {"budget": Budget(1.0, 2.0, 3.0, 4.0)},
    LabellingSettings: {"pool": 5, "encoder": "mine.tflite", "address": "h:1", "threshold": 9.5},
    StatisticsSettings: {"places": "out/map", "since": date(2027, 1, 4), "until": date(2027, 1, 8)},
    Heterogeneity: {},
    Adversary: {},
}
"""A value of each field that has none by default."""
FIELDS = [
    (settings, name)
    for settings in GIVEN
    for name in kinds(settings)
    if settings not in (LabellingSettings, StatisticsSettings)
    or name not in kinds(Settings)
    or name == "policy"
]
WHOLE = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64, np.array]
REAL = [np.float32, np.float64, np.longdouble, np.array]


def plain(settings: type, name: str) -> Any:
    """A value of a field that every kind of number holds exactly."""
    value = GIVEN[settings].get(name, getattr(settings(), name))
    if isinstance(value, float):
        return 0.5
    return 3 if isinstance(value, int) else value


def ways(value: Any) -> list[Any]:
    """The same value as a caller may have it."""
    if isinstance(value, date):
        return [value, str(value)]
    if isinstance(value, int):
        return [value, *(kind(value) for kind in WHOLE)]
    if isinstance(value, float):
        return [value, *(kind(value) for kind in REAL)]
    if isinstance(value, str):
        return [value, str(value), np.str_(value)]
    if isinstance(value, msgspec.Struct):
        table = msgspec.structs.asdict(value)
        same = [type(value)(**{name: np.float64(each) for name, each in table.items()})]
    else:
        table = dataclasses.asdict(value)
        same = [type(value)(**{name: np.float32(each) for name, each in table.items()})]
    return [value, *same, table, {name: np.array(each) for name, each in table.items()}]


def types(value: Any) -> Any:
    """The exact types of a value and of all within it."""
    if dataclasses.is_dataclass(value):
        value = dataclasses.asdict(value)  # type: ignore[arg-type]
    elif isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    inner = {name: types(each) for name, each in value.items()} if isinstance(value, dict) else {}
    return type(value), inner


@pytest.mark.parametrize(("settings", "name"), FIELDS)
def test_every_field_takes_what_libraries_have_and_holds_what_python_has(
    settings: type, name: str
) -> None:
    usual = settings(**{name: plain(settings, name)})
    for value in ways(plain(settings, name)):
        made = settings(**{name: value})
        assert made == usual
        assert types(getattr(made, name)) == types(getattr(usual, name))
        assert repr(made) == repr(usual)
        assert dataclasses.replace(usual, **{name: value}) == usual
        assert pickle.loads(pickle.dumps(made)) == usual  # noqa: S301 - just made
        if settings is Settings:
            configurations = [each.configuration() for each in (made, usual)]
            assert repr(configurations[0]) == repr(configurations[1])


WRONG = [b"3", [3], np.array([3, 4]), object(), 3j, True, np.True_, len]


def refused(settings: type, name: str, value: object, message: str) -> None:
    with pytest.raises(InvalidParametersError, match=f"^{name}{message}"):
        settings(**{name: value}).check()


@pytest.mark.parametrize(("settings", "name"), FIELDS)
def test_every_field_refuses_what_is_none_by_its_name(settings: type, name: str) -> None:
    for wrong in WRONG:
        refused(settings, name, wrong, ": ")
    if not isinstance(plain(settings, name), int | float):
        refused(settings, name, 3, ": ")
        refused(settings, name, np.float64(3), ": ")
        return
    # No word is read as a number, and nothing is rounded.
    for wrong in ("3", np.str_("3"), math.nan):
        refused(settings, name, wrong, "[:=]")
    if isinstance(plain(settings, name), int):
        for wrong in (3.0, np.float64(3)):
            refused(settings, name, wrong, ": expected `int`, got `float`")


@pytest.mark.parametrize("wrong", ["3", None, [3]])
def test_settings_that_nobody_checked_are_refused_by_name_wherever_they_go(
    wrong: object, tmp_path: Path
) -> None:
    made = Settings(phones=wrong)  # type: ignore[arg-type]
    work: list[object] = []
    arm = Arm({}, Measure("none", lambda settings: work.append(settings) or {}), (made,))
    uses: list[Callable[[], object]] = [
        made.check,
        lambda: simulate(made),
        lambda: sweep(made, {"epsilon": [1.0, 2.0]}, tmp_path),
        lambda: measured([arm], tmp_path / "phases.jsonl"),
        lambda: settings_of({"phones": wrong}),
        lambda: sweep(Settings(), {"phones": [200, wrong]}, tmp_path),
    ]
    for use in uses:
        with pytest.raises(InvalidParametersError, match="phones: expected `int`, got `"):
            use()
    assert (work, list(tmp_path.iterdir())) == ([], [])


def test_tables_are_partial_and_their_names_are_known() -> None:
    made = Settings(heterogeneity={"quantity_skew": 1})  # type: ignore[arg-type]
    assert made.heterogeneity == Heterogeneity(quantity_skew=1.0)
    local = Settings(discovery="local", budget={"clustering": 8})  # type: ignore[arg-type]
    assert local.budget is not None
    filled = settings_of({"discovery": "local", "budget": {"clustering": 8}}).budget
    assert (local.budget.clustering, local.budget) == (8.0, filled)
    for table, names in {"heterogeneity": "concentration", "budget": "clustering"}.items():
        wrong = {names[:-1]: 1.0}
        with pytest.raises(
            InvalidParametersError, match=rf"^{table}\.\w+: .* mean {table}\.{names}"
        ):
            Settings(**{table: wrong}).check()
        with pytest.raises(InvalidParametersError, match=rf"^{table}\.{names}: expected `float`"):
            Settings(**{table: {names: "1"}}).check()


@pytest.mark.parametrize(("setting", "shipped"), [("data", "blobs"), ("encoder", "contrast-3")])
def test_a_path_is_a_file_even_with_the_name_of_what_is_none(setting: str, shipped: str) -> None:
    class OnlyAPath(SimpleNamespace):
        def __fspath__(self) -> str:
            return str(self.path)

    for path in (Path("sound"), OnlyAPath(path="sound")):
        assert getattr(Settings(**{setting: path}), setting) == "sound"
    assert getattr(Settings(**{setting: Path(shipped)}), setting) == os.path.join(".", shipped)


# ------------------------------------------------------------------------------------------- grids


def planned(points: Any, seeds: Any = 1) -> SweepPlan:
    shared = {"phones": 60, "discovery": "local", "policy": "anything"}
    return SweepPlan.of(shared, points, seeds)


def written(plan: SweepPlan) -> tuple[str, list[str]]:
    """All that files have of a plan."""
    told = repr(([dict(arm.labels) for arm in plan.arms], plan.seeds, plan.shared))
    return told, [phase.key for arm in plan.arms for phase in arm.measurements()]


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(1, 3, 3),
        np.linspace(1, 3, 3, dtype=np.float32),
        np.arange(1, 4),
        list(np.arange(1, 4)),
        pandas.Series([1, 2, 3], index=[7, 8, 9]),
        pandas.Index([1.0, 2.0, 3.0]),
        range(1, 4),
        (1, 2, 3),
        [1, 2.0, np.float64(3)],
    ],
    ids=lambda values: type(values).__name__,
)
def test_a_grid_and_seeds_are_whatever_lists_numbers(values: Any) -> None:
    expected = written(planned({"epsilon": [1.0, 2.0, 3.0]}))
    assert written(planned({"epsilon": values})) == expected
    assert written(planned({"epsilon": iter(values)})) == expected
    if not any(isinstance(value, float | np.floating) for value in values):
        assert repr(planned({"epsilon": [1.0]}, values).seeds) == "(1, 2, 3)"


def test_points_one_by_one_and_numbers_of_seeds_may_be_of_numpy() -> None:
    frame = pandas.DataFrame({"epsilon": [1.0, 2.0], "labelled": [0.25, 0.5]})
    points = [{"epsilon": 1.0, "labelled": 0.25}, {"epsilon": 2.0, "labelled": 0.5}]
    expected = written(planned(points, 2))
    assert written(planned(frame.to_dict("records"), np.int64(2))) == expected
    assert written(planned(iter(points), np.array(2))) == expected
    tables = [{"heterogeneity": Heterogeneity(0.1)}, {"heterogeneity.concentration": np.float64(3)}]
    assert [arm.labels for arm in planned(tables).arms] == [
        {"heterogeneity.concentration": 0.1},
        {"heterogeneity.concentration": 3.0},
    ]


@pytest.mark.parametrize(
    ("points", "seeds", "message"),
    [
        ({"epsilon": np.array([])}, 1, "grid: epsilon=.*: must be a list of at least one value"),
        ({"epsilon": np.array(2.0)}, 1, "grid: epsilon=.*: must be a list of at least one value"),
        ({"epsilon": {1.0, 2.0}}, 1, "grid: epsilon=.*: must be a list of at least one value"),
        ({"epsilon": 2.0}, 1, "grid: epsilon=2.0: must be a list of at least one value"),
        ({"epsilon": "inf"}, 1, "grid: epsilon='inf': must be a list of at least one value"),
        ({"epsilon": np.ones(2)}, 1, r"grid: epsilon=\[1.0, 1.0\]: a value occurs twice"),
        ({"epsilon": [math.inf, "inf"]}, 1, "points 1 and 2 are the same run"),
        ({"epsilon": np.ones((2, 2)) * [[1], [2]]}, 1, "epsilon: expected `float`, got `numpy"),
        ({"epsilon": [1.0, math.nan]}, 1, "point epsilon=nan: epsilon=nan: must be a positive"),
        ({"epsilon": [1.0, "2"]}, 1, "point epsilon=2: epsilon: expected `float`, got `str`"),
        ({"epsilon": [True, 2.0]}, 1, "point epsilon=True: epsilon: expected `float`, got `bool`"),
        ({3: [1]}, 1, "3: there is no such setting"),
        (pandas.DataFrame({"epsilon": [1.0]}), 1, "list, entry 1='epsilon': must be a table"),
        ("epsilon", 1, "points='epsilon': must be a grid"),
        (3, 1, "points=3: must be a grid"),
        ({"epsilon": [1.0, 2.0]}, 1.0, "seeds=1.0: must be a whole number"),
        ({"epsilon": [1.0, 2.0]}, True, "seeds=True: must be a whole number"),
        ({"epsilon": [1.0, 2.0]}, "12", "seeds='12': must be a whole number"),
        ({"epsilon": [1.0, 2.0]}, [0.0], "seeds=0.0: must be a whole number"),
        ({"epsilon": [1.0, 2.0]}, [2**63], "seeds=9223372036854775808: must be a whole number"),
    ],
)
def test_what_is_no_grid_is_named(points: Any, seeds: Any, message: str) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        planned(points, seeds)
