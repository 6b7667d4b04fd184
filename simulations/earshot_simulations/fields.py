"""Conversion and validation of settings from callers and files."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import functools
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.plain_values import plain_value


@functools.cache
def kinds(settings: Any) -> Mapping[str, Any]:
    """Return the type of each field of a dataclass or a structure, by name."""
    types = typing.get_type_hints(settings, include_extras=True)
    if dataclasses.is_dataclass(settings):
        return {each.name: types[each.name] for each in dataclasses.fields(settings)}
    return {each.name: types[each.name] for each in msgspec.structs.fields(settings)}


def taken(name: str, value: Any, kind: Any) -> Any:
    """Convert a value to a field's type.

    NumPy numbers become Python's, strings become enum members, and mappings become structures.
    Numbers are not rounded, and strings are not parsed as numbers.

    Args:
        name: Name of the field.
        value: Value that was given.
        kind: Type of the field.

    Raises:
        InvalidParametersError: The value does not have that type.
    """
    given: object = type(value)
    if given is kind and not isinstance(value, msgspec.Struct):
        return value
    for table in filter(_is_table, _members(kind)):
        # msgspec would read an array or a column as a table without entries.
        if not isinstance(value, Mapping | table | None):
            raise InvalidParametersError(f"{name}: expected a table, got `{type(value).__name__}`")
        for inner in value if isinstance(value, Mapping) else ():
            known(str(inner), kinds(table), f"{name}.")
    try:
        return msgspec.convert(_plain(value), kind)
    except msgspec.ValidationError as error:
        raise InvalidParametersError(_worded(name, kind, str(error))) from None


def settle(settings: Any) -> None:
    """Convert every value of a frozen dataclass in place, by `taken`."""
    own: Any = type(settings)
    for name, kind in kinds(own).items():
        object.__setattr__(settings, name, taken(name, getattr(settings, name), kind))


def known(name: str, names: Iterable[str], table: str = "", noun: str = "setting") -> None:
    """Refuse a name that is not known, and suggest a close one.

    Args:
        name: Name in a file.
        names: Names that are accepted.
        table: Table of the name, with a dot at the end.
        noun: Noun for the kind of name.

    Raises:
        InvalidParametersError: The name is not known.
    """
    if name in names:
        return
    names = sorted(names)
    close = difflib.get_close_matches(name, names, 1)
    meant = f"; did you mean {table}{close[0]}?" if close else ""
    raise InvalidParametersError(
        f"{table}{name}: there is no such {noun}{meant} (there are {', '.join(names)})"
    )


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types of which a value is one."""
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    return typing.get_args(kind) or (kind,)


def _is_table(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or (
        isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return {name: plain_value(entry) for name, entry in value.items()}
    return plain_value(value)


def _worded(name: str, kind: Any, words: str) -> str:
    """Reword msgspec's "Expected `float`, got `str` - at `$.clustering`" with the setting first."""
    what, _, where = words.replace(" | null`", "`").partition(" - at `$")
    what = what.replace("`object`", "a table")
    choices = [each for each in _members(kind) if isinstance(each, enum.EnumType)]
    accepted = f" (there are {', '.join(map(str, choices[0]))})" if choices else ""
    return f"{name}{where.rstrip('`')}: {what[:1].lower()}{what[1:]}{accepted}"
