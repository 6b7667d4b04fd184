"""The TOML file of a campaign: every wrong value is refused by name, with what would be right."""

from __future__ import annotations

import difflib
import tomllib
import types
from datetime import date
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from earshot_protocol.environments import default_hierarchy
from earshot_protocol.errors import InvalidInputError, InvalidParametersError, LocalError
from earshot_protocol.phases.parameters import Choices
from earshot_protocol.text import text_of
from earshot_server.campaigns.campaign import MOST_BEFORE, Campaign
from earshot_server.phases.hierarchy_file import read_hierarchy

_MADE = ("choices",)
"""Fields of a campaign that are not keys of its file: they come with the labels."""


def read_campaign(file: Path) -> Campaign:
    """Read a campaign, the labels that it names by a file, and the campaign that it follows.

    Paths in the file are relative to its folder.

    Args:
        file: TOML file of the campaign.

    Raises:
        InvalidInputError: A file cannot be read, is not TOML, or leads back to itself.
        InvalidParametersError: A key is unknown or missing, or a value is wrong. Every message
            names the file and the key.
    """
    return _read(file, ())


def _read(file: Path, before: tuple[Path, ...]) -> Campaign:
    values = _toml(file)
    if file.resolve() in before:
        raise InvalidInputError(f"{file}: leads back to itself; name an earlier campaign")
    if len(before) > MOST_BEFORE:
        raise InvalidParametersError(
            f"follows: at most {MOST_BEFORE} campaigns, one after another; begin without any, more "
            "than 366 days after the last"
        )
    try:
        return _campaign(values, file.parent, (*before, file.resolve()))
    except LocalError as error:
        raise type(error)(f"{file}: {error}") from None


def _campaign(values: dict[str, Any], folder: Path, before: tuple[Path, ...]) -> Campaign:
    for name in ("labels", "follows"):
        if isinstance(values.get(name), str) and "\0" in values[name]:
            raise InvalidParametersError(f"{name}={values[name]!r}: must be the path of a file")
    labels, choices = _labels(values.get("labels"), folder)
    follows = values.get("follows")
    if follows is not None and not isinstance(follows, str):
        raise InvalidParametersError(f"follows={follows!r}: must be the file of a campaign")
    told = {name: value for name, value in values.items() if name not in ("labels", "follows")}
    made: dict[str, Any] = {"labels": labels, "choices": choices}
    if follows is not None:
        try:
            made["follows"] = _read(folder / follows, before)
        except LocalError as error:
            raise type(error)(f"follows: {error}") from None
    campaign: Campaign = _table(Campaign, told, "", made)
    campaign.check()
    return campaign


def _toml(file: Path) -> dict[str, Any]:
    content = text_of(file, "the TOML file of a campaign")
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{file}: is not TOML ({error}); docs/campaigns.md has a campaign's file"
        ) from None


def _labels(given: object, folder: Path) -> tuple[tuple[str, ...], Choices]:
    """Return labels and their choices: of a list, of a JSON file, or the everyday ones."""
    if isinstance(given, str):
        hierarchy = read_hierarchy(folder / given, "labels")
    elif given is None:
        hierarchy = default_hierarchy()
    elif isinstance(given, list) and all(isinstance(each, str) for each in given):
        return tuple(given), ()
    else:
        raise InvalidParametersError(
            f"labels={given!r}: must be a list of names, or the JSON file of classes and choices"
        )
    return hierarchy.classes, tuple(hierarchy.groups.values())


def _table(kind: type[Any], values: dict[str, Any], path: str, made: dict[str, Any]) -> Any:
    """Convert a table to its type.

    Args:
        kind: Type of the table, a struct.
        values: Table as TOML gives it.
        path: Name of the table with a dot behind it; empty for the file itself.
        made: Fields that are known already, by name.
    """
    hints = get_type_hints(kind, include_extras=True)
    fields = {
        each.encode_name: each
        for each in msgspec.structs.fields(kind)
        if each.name not in (*made, *_MADE)
    }
    for name in values:
        if name not in fields:
            keys = [*fields, *(key for key in made if key not in _MADE)]
            close = difflib.get_close_matches(name, keys, 1)
            meant = f"did you mean {close[0]}? " if close else ""
            where = f"[{path.rstrip('.')}] has" if path else "a campaign has"
            raise InvalidParametersError(
                f"{path}{name}: no such key; {meant}{where} {', '.join(sorted(keys))}"
            )
    found = dict(made)
    for name, field in fields.items():
        if name in values:
            found[field.name] = _value(hints[field.name], values[name], f"{path}{name}")
        elif field.required:
            raise InvalidParametersError(
                f"{path}{name} is missing: give {_wanted(hints[field.name])}"
            )
    return kind(**found)


def _value(hint: Any, value: object, name: str) -> Any:
    """Convert a value to the type of its field."""
    kind = _bare(hint)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if not isinstance(value, dict):
            raise InvalidParametersError(f"{name}={value!r}: must be a table, [{name}]")
        return _table(kind, value, f"{name}.", {})
    # To Python, a moment is a date as well; and text is not a date of TOML.
    right = type(value) is date if kind is date else True
    try:
        if right:
            return msgspec.convert(value, hint, builtin_types=(date,))
    except msgspec.ValidationError:
        pass
    raise InvalidParametersError(f"{name}={_shown(value)}: must be {_wanted(hint)}")


def _bare(hint: Any) -> Any:
    """Return a type without its constraints, and without None."""
    if hasattr(hint, "__metadata__"):
        return get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def _wanted(hint: Any) -> str:
    """Return what a value of this type is, for people."""
    kind = _bare(hint)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        needed = [each.encode_name for each in msgspec.structs.fields(kind) if each.required]
        return f"a table with {', '.join(needed)}"
    if get_origin(kind) is tuple:
        return "a list of at most 64 names, each of 1 to 32 lower-case letters, digits and hyphens"
    if kind in _WANTED:
        return _WANTED[kind]
    return f"one of {', '.join(kind)}"


_WANTED: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    date: "a day without quotes, such as 2027-01-04",
    str: "text in one line, not too long",
}


def _shown(value: object) -> str:
    """Return a value as TOML writes it, where Python writes it otherwise."""
    return str(value) if isinstance(value, date) else repr(value)
