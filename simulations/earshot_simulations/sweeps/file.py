"""The file that describes a sweep."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations.phases.routes import known
from earshot_simulations.sweeps.plan import Plan

_KEYS = ("seeds", "settings", "grid", "list")
_USUAL_SEEDS = 5


def read(file: Path) -> Plan:
    """Read the sweep that a TOML file describes.

    `seeds` is their number, or a list of them; `[settings]` holds the settings that all runs share,
    by the names of `Settings`; `[grid]` has a list of values for each setting that varies, and
    every combination is run; alternatively every `[[list]]` is a point by itself.

    Raises:
        InvalidInputError: if there is no such file, or it is not TOML.
        InvalidParametersError: if a key or a setting is unknown or cannot be simulated, there is
            neither a grid nor a list, or both, or one without a point. Every message names the
            file.
    """
    try:
        described = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInputError(f"{file}: there is no such file; name a sweep file") from None
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # from TOML or from UTF-8
        raise InvalidInputError(f"{file}: is not TOML ({error})") from None
    try:
        return _plan(described)
    except InvalidParametersError as error:
        raise InvalidParametersError(f"{file}: {error}") from None


def _plan(described: Mapping[str, Any]) -> Plan:
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
        points = dict(_leaves(described["grid"]))
    else:
        points = described["list"]
        for number, point in enumerate(points, start=1):
            if not isinstance(point, Mapping):
                raise InvalidParametersError(f"list, entry {number}={point!r}: must be a table")
        points = [dict(_leaves(point)) for point in points]
    return Plan.of(described.get("settings", {}), points, described.get("seeds", _USUAL_SEEDS))


def _leaves(table: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield everything that is not a table, by its dotted name."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value
