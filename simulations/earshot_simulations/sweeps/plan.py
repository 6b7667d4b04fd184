"""The plan of a sweep: a base, the settings that vary, and seeds; from Python or a file."""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.plain_values import plain_value
from earshot_protocol.text import decoded
from earshot_simulations.fields import known
from earshot_simulations.phases.kept import flat, refuse_own
from earshot_simulations.phases.kept import read as read_result
from earshot_simulations.phases.own import OF_SETTINGS, Own
from earshot_simulations.phases.route_options import ROUTE, of_others, routes_of
from earshot_simulations.phases.run import leaves, plain
from earshot_simulations.phases.settings import (
    LARGEST_SEED,
    WHERE,
    Settings,
    entries_of,
    placed,
    settings_of,
)
from earshot_simulations.sweeps.phase import simulated_with
from earshot_simulations.sweeps.sweep import Arm

MOST_RUNS = 100_000
"""Most runs of a sweep: a grid grows as a product, and more would be a mistake in the file."""
SEED = "seed"
_KEYS = ("seeds", "settings", "grid", "list")
_USUAL_SEEDS = 5
NOT_VARIED = WHERE | {SEED}
"""Settings that a sweep sets itself and does not read from its file."""

Changes = Mapping[str, Any]
"""Changes of settings, by their dotted names."""


@dataclass(frozen=True)
class SweepPlan:
    """A sweep, checked before any work; `of` makes one.

    Attributes:
        varied: Dotted names of the settings that differ between points.
        arms: Arms, one per point, with the values of these settings as labels.
        seeds: Seeds of every point.
        own: Things of the caller's own that take part in every run.
    """

    varied: tuple[str, ...]
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    own: Own = OF_SETTINGS

    @classmethod
    def of(
        cls,
        base: Changes,
        points: Mapping[str, Iterable[Any]] | Iterable[Changes],
        seeds: int | Iterable[int],
        own: Own = OF_SETTINGS,
    ) -> SweepPlan:
        """Return the plan of every point of a grid or of a list, each with every seed.

        Args:
            base: Settings that all runs share; others keep their default.
            points: Values of each setting, of which every combination is run; or the points one by
                one.
            seeds: Number of seeds, from 0 on; or the seeds.
            own: Things of the caller's own that take part in every run.

        Raises:
            InvalidParametersError: Something of the caller's own cannot be used, a grid or list has
                no point, a setting is unknown, unused or cannot be simulated, seeds repeat, or
                there are more runs than `MOST_RUNS`; the message says which point it is.
        """
        chosen = _seeds(seeds)
        changes = list(_combinations(points) if isinstance(points, Mapping) else _listed(points))
        checks.whole("runs", len(changes) * len(chosen), 1, MOST_RUNS)
        each = [_settings(base, point, own) for point in changes]
        measure = simulated_with(own)
        _refuse_unused(base, changes, each)
        held = [dict(flat(plain(settings.configuration(), math.inf))) for settings in each]
        touched = dict.fromkeys(name for point in changes for name in point)
        places = dict.fromkeys(place for each in held for place in each)
        varied = tuple(
            place
            for name in touched  # in the order in which they were written
            for place in places
            if (place == name or place.startswith(f"{name}."))
            and any(other.get(place) != held[0].get(place) for other in held)
        )
        labels: list[dict[str, Any]] = [
            {name: point.get(name) for name in varied} for point in held
        ]
        _refuse_equal(labels)
        arms = tuple(
            Arm(label, measure, tuple(replace(settings, seed=seed) for seed in chosen))
            for label, settings in zip(labels, each, strict=True)
        )
        return cls(varied, arms, chosen, own)

    @property
    def runs(self) -> int:
        """Number of phases that are simulated."""
        return len(self.arms) * len(self.seeds)

    @property
    def shared(self) -> dict[str, Any]:
        """Settings that all runs share, by dotted names."""
        held = dict(flat(plain(self.arms[0].phases[0].configuration(), math.inf)))
        return {name: held[name] for name in held if name not in (*self.varied, *NOT_VARIED)}


def _entries(values: object) -> list[Any] | None:
    """Return the entries of a list, an array, a column or a range; None for anything else."""
    unordered = isinstance(values, str | bytes | Mapping | AbstractSet)
    if unordered or not isinstance(values, Iterable):
        return None
    try:
        return [plain_value(value) for value in values]
    except TypeError:  # an array without dimensions, which is a number
        return None


def _seeds(seeds: Any) -> tuple[int, ...]:
    listed = _entries(seeds)
    if listed is None:
        return tuple(range(checks.whole("seeds", seeds, 1, MOST_RUNS)))
    chosen = tuple(checks.whole("seeds", seed, 0, LARGEST_SEED) for seed in listed)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidParametersError(
            f"seeds={list(chosen)}: must be a number of seeds, or a list of different ones"
        )
    return chosen


def _combinations(points: Mapping[str, Iterable[Any]]) -> Iterator[Changes]:
    if not points:
        raise InvalidParametersError(
            "the grid is empty: name at least one setting and its values, such as epsilon = [2, 8]"
        )
    grid: dict[str, list[Any]] = {}
    for name, given in points.items():
        values = _entries(given)
        if not values:
            raise InvalidParametersError(
                f"grid: {name}={given!r}: must be a list of at least one value"
            )
        told = {value if isinstance(value, str | float | int) else repr(value) for value in values}
        if len(told) < len(values):
            raise InvalidParametersError(f"grid: {name}={values}: a value occurs twice")
        grid[str(name)] = values
    checks.whole("runs", math.prod(map(len, grid.values())), 1, MOST_RUNS)
    return (dict(zip(grid, point, strict=True)) for point in itertools.product(*grid.values()))


def _listed(points: Iterable[Changes]) -> Sequence[Changes]:
    listed = _entries(points)
    if listed is None:
        raise InvalidParametersError(
            f"points={points!r}: must be a grid, with a list of values for each setting that "
            "varies, or a list of points"
        )
    if not listed:
        raise InvalidParametersError("the list is empty: give at least one point")
    for number, point in enumerate(listed, start=1):
        if not isinstance(point, Mapping):
            raise InvalidParametersError(f"list, entry {number}={point!r}: must be a table")
    return [{str(name): plain_value(value) for name, value in each.items()} for each in listed]


def _settings(base: Changes, point: Changes, own: Own) -> Settings:
    """Return the checked settings of one point."""
    told = ", ".join(f"{name}={value}" for name, value in point.items()) or "no change"
    for name in (*base, *point):
        if name in NOT_VARIED:
            raise InvalidParametersError(
                f"{name}: not a setting of a sweep, which has seeds, and the processes of the "
                "command"
            )
    try:
        settings = settings_of(_nested(base, point))
        settings.check(own)
        return settings.over(own)[0]
    except InvalidParametersError as error:
        raise InvalidParametersError(f"point {told}: {error}") from None


def _nested(base: Changes, point: Changes) -> dict[str, Any]:
    """Return the base with the changes of a point at their dotted places."""
    entries = dict(base)
    for name, value in point.items():
        outer, _, inner = name.partition(".")
        if inner:
            held = entries.get(outer)
            held = {} if held is None else held  # an open setting, such as a budget
            if not isinstance(held, Mapping):
                raise InvalidParametersError(f"{outer}={held!r}: must be a table, as {name} varies")
            entries[outer] = {**held, inner: value}
        else:
            entries[outer] = value
    return entries


def _refuse_unused(base: Changes, points: Sequence[Changes], each: Sequence[Settings]) -> None:
    """Refuse settings that no run uses, as points that differ only in these are equal."""
    used = [settings.discovery for settings in each]
    usual = entries_of(Settings())
    given = {name for name, value in base.items() if value != usual.get(name)}
    unused = sorted(given & of_others(used))
    for point, settings in zip(points, each, strict=True):
        names = {name.partition(".")[0] for name in point}
        unused += sorted(names & of_others([settings.discovery]))
    if unused:
        raise InvalidParametersError(
            f"{unused[0]}: not for discovery = {' or '.join(sorted(set(used)))}, but for "
            f"{' or '.join(routes_of(unused[0]))}; leave it out, or list the points one by one"
        )


def _refuse_equal(labels: Sequence[Mapping[str, Any]]) -> None:
    """Refuse points that are the same."""
    for place, label in enumerate(labels):
        first = labels.index(label)
        if first < place:
            raise InvalidParametersError(
                f"points {first + 1} and {place + 1} are the same run; leave one out"
            )


def read(file: str | os.PathLike[str]) -> SweepPlan:
    """Read the sweep that a TOML file describes.

    `seeds` is their number, or a list of them; `[settings]` holds the settings that all runs share,
    by the names of `Settings`; `[grid]` has a list of values for each setting that varies, and
    every combination is run; alternatively every `[[list]]` is a point by itself. Paths of sound
    and of encoders are relative to the folder of the file.

    Raises:
        InvalidInputError: There is no such file, or it is not TOML.
        InvalidParametersError: A key or a setting is unknown or cannot be simulated, there is
            neither a grid nor a list, or both, or one without a point. Every message names the
            file.
    """
    file = Path(file)
    described = _toml(file, "a sweep file")
    try:
        return _plan(described, os.path.dirname(file))
    except InvalidParametersError as error:
        raise InvalidParametersError(f"{file}: {error}") from None


def read_settings(file: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the settings of one run that the file names, as plain values.

    Args:
        file: TOML file with `[settings]` as in a sweep; or the `result.json` of a run, or its
            folder, with all settings of the run's route except where phones ran.

    Raises:
        InvalidInputError: There is no such file, it has another format, or its run had code of the
            caller's own.
        InvalidParametersError: A key or a setting is unknown, or has the wrong type; the message
            names the file.
    """
    file = Path(file)
    if file.is_dir() or file.suffix == ".json":
        written = read_result(file)
        refuse_own(written)
        configuration = written.figures["configuration"]
        others = WHERE | of_others([configuration.get(ROUTE)])
        held = {name: value for name, value in configuration.items() if name not in others}
    else:
        described = _toml(file, "a file of settings")
        for key in described.keys() - {"settings"}:
            raise InvalidParametersError(
                f"{file}: {key}: a run takes a file of [settings] alone; "
                + (
                    f"earshot sweep {file} runs a sweep"
                    if key in _KEYS
                    else "its settings stand below that line"
                )
            )
        settings = described.get("settings", {})
        if not isinstance(settings, Mapping):
            raise InvalidParametersError(f"{file}: settings={settings!r}: must be a table")
        held = placed(settings, os.path.dirname(file))
    try:
        whole = entries_of(settings_of(held))
    except InvalidParametersError as error:
        raise InvalidParametersError(f"{file}: {error}") from None
    return {name: whole[name] for name in held}


def _toml(file: Path, wanted: str) -> dict[str, Any]:
    try:
        return tomllib.loads(decoded(file.read_bytes(), file))
    except FileNotFoundError:
        raise InvalidInputError(f"{file}: there is no such file; name {wanted}") from None
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{file}: is not TOML ({error}); docs/research.md has a sweep file"
        ) from None


def _plan(described: Mapping[str, Any], folder: str) -> SweepPlan:
    for key in described:
        known(key, _KEYS, noun="key of a sweep")
    for key, kind, what in (
        ("seeds", int | list, "a whole number, or a list of them"),
        ("settings", dict, "a table"),
        ("grid", dict, "a table"),
        ("list", list, "tables, each under [[list]]"),
    ):
        value = described.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise InvalidParametersError(f"{key}={value!r}: must be {what}")
    if ("grid" in described) == ("list" in described):
        raise InvalidParametersError(
            "must have either [grid], for every combination of values, or [[list]], for points one "
            "by one"
        )
    points: Any
    if "grid" in described:
        points = placed(dict(leaves(described["grid"])), folder)
        twice = sorted(points.keys() & dict(leaves(described.get("settings", {}))).keys())
        if twice:
            raise InvalidParametersError(
                f"{', '.join(twice)}: in [settings] and in [grid]; leave it out of one of them"
            )
    else:
        points = [placed(dict(leaves(point)), folder) for point in _listed(described["list"])]
    base = placed(described.get("settings", {}), folder)
    return SweepPlan.of(base, points, described.get("seeds", _USUAL_SEEDS))
