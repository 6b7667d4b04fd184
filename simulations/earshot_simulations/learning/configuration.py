"""Settings in files: nested tables of plain values, written and read."""

from __future__ import annotations

import difflib
import enum
import typing
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.learning_budget import BUDGETS
from earshot_simulations.learning.settings import (
    Discovery,
    Settings,
    geometry_of,
    whole_budget,
)

_TYPES = typing.get_type_hints(Settings)


def configuration(settings: Settings) -> dict[str, object]:
    """Return all settings of a run, one entry each, with defaults filled in."""
    budget, epsilon = settings.budget, settings.epsilon
    if settings.discovery is Discovery.SECURE_SUM:
        epsilon = settings.whole_epsilon
    elif budget is None and epsilon is None:
        budget = BUDGETS[geometry_of(settings.data)]
    held = asdict(settings) | {"policy": settings.agreement, "epsilon": epsilon}
    return held | {"budget": None if budget is None else entries_of(budget)}


def settings_of(entries: Mapping[str, Any]) -> Settings:
    """Return the settings that a file names; others keep their defaults.

    Args:
        entries: Values by the names of `Settings`; `heterogeneity`, `adversary` and `budget` are
            tables of their own, and a budget may also be written as on the command line.

    Raises:
        InvalidParametersError: if a name is unknown, or a value has the wrong type or range; the
            message says which and what is accepted. Errors that only `Settings.check` finds are not
            detected.
    """
    held: dict[str, Any] = entries_of(Settings())
    usual = BUDGETS[geometry_of(str(entries.get("data", held["data"])))]
    tables = held | {"budget": entries_of(usual)}
    for name, value in entries.items():
        known(name, held)
        if name == "budget" and isinstance(value, str):
            held[name] = entries_of(whole_budget(value))
        elif isinstance(tables[name], dict) and isinstance(value, Mapping):
            for inner in value:
                known(inner, tables[name], f"{name}.")
            held[name] = tables[name] | dict(value)
        else:
            held[name] = value
    try:
        return msgspec.convert(held, Settings)
    except msgspec.ValidationError as error:
        raise InvalidParametersError(_worded(str(error))) from None


def known(name: str, names: Iterable[str], table: str = "", noun: str = "setting") -> None:
    """Refuse a name that is not known, and suggest a close one.

    Args:
        name: Name in a file.
        names: Names that are accepted.
        table: Table of the name, with a point at the end.
        noun: Noun for what the names stand for.

    Raises:
        InvalidParametersError: if the name is not known.
    """
    if name in names:
        return
    names = sorted(names)
    close = difflib.get_close_matches(name, names, 1)
    meant = f"; did you mean {table}{close[0]}?" if close else ""
    raise InvalidParametersError(
        f"{table}{name}: there is no such {noun}{meant} (there are {', '.join(names)})"
    )


def entries_of(value: object) -> dict[str, Any]:
    """Return a dataclass of settings as plain values for a file; open ones are None."""
    held: dict[str, Any] = msgspec.to_builtins(value)
    return held


def _worded(words: str) -> str:
    """Reword msgspec's "Expected `int`, got `str` - at `$.phones`" with the setting first."""
    what, _, where = words.replace(" | null`", "`").partition(" - at `$.")
    name = where.rstrip("`")
    types = typing.get_args(_TYPES.get(name)) or (_TYPES.get(name),)
    choices = [each for each in types if isinstance(each, enum.EnumType)]
    accepted = f" (there are {', '.join(map(str, choices[0]))})" if choices else ""
    return f"{name}: {what[:1].lower()}{what[1:]}{accepted}"
