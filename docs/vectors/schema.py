"""Table of all fields of all messages, for writers of other languages: types, limits, defaults.

It is made from the types that our decoders read by. JSON cannot tell 1.0 from 1, and a reader of
MessagePack cannot tell whether an integer stands where a real number is asked for: the table does.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import inspect

from earshot_protocol.api import AskTask, Enrol, Enrolled, Leave, Problem, Refuse
from earshot_protocol.messages import AnyAnswer, AnyParameters, AnyTask
from earshot_protocol.text import line
from earshot_protocol.two_operators.messages import HELPER_ANSWERS, HELPER_TASKS, Offer
from earshot_protocol.two_operators.transport import ListPart

Table = dict[str, Any]

_LINE = line(1).pattern
_LIMITS = {"ge": "least", "gt": "above", "le": "most", "lt": "below"}
_SIZES = {"min_length": "shortest", "max_length": "longest"}

_MESSAGES: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "tasks": AnyTask.__args__,
    "answers": AnyAnswer.__args__,
    "bodies": (Enrol, Enrolled, AskTask, Refuse, Leave, Problem),
    "helper_tasks": HELPER_TASKS,
    "helper_answers": HELPER_ANSWERS,
    "list_parts": (ListPart,),
    "parameters": AnyParameters.__args__,
    "hashed": (Offer,),
}
"""Maps that are read by themselves, by where they come from; of parameters and an offer, canonical
forms are hashed."""


def schema() -> Table:
    """Return the table: maps by name, and the names of those that are read by themselves."""
    maps: dict[str, Table] = {}
    pending = [kind for kinds in _MESSAGES.values() for kind in kinds]
    while pending:
        kind = pending.pop(0)
        if kind.__name__ not in maps:
            maps[kind.__name__] = _map(kind, pending)
    messages = {group: [kind.__name__ for kind in kinds] for group, kinds in _MESSAGES.items()}
    return {"messages": messages, "maps": dict(sorted(maps.items()))}


def _map(kind: type[msgspec.Struct], met: list[type[msgspec.Struct]]) -> Table:
    """Describe a map; append the kinds of maps inside it to those that were met."""
    config, described = kind.__struct_config__, inspect.type_info(kind)
    if not isinstance(described, inspect.StructType):
        raise TypeError(kind)
    table: Table = {}
    if config.tag_field is not None:
        table["tag"] = {"name": config.tag_field, "value": config.tag}
    table["leaves_out_defaults"] = config.omit_defaults
    if not config.forbid_unknown_fields:
        table["ignores_others"] = True
    table["fields"] = [
        {"name": field.encode_name, **_type(field.type, met), **_default(field)}
        for field in described.fields
    ]
    return table


def _default(field: inspect.Field) -> Table:
    if field.required:
        return {}
    if field.default is inspect.NODEFAULT:
        raise ValueError(f"{field.name} has a default that is made anew for every map")
    value = field.default
    if isinstance(value, bytes):
        return {"default": value.hex()}
    return {"default": value.value if isinstance(value, enum.Enum) else value}


def _type(described: inspect.Type, met: list[type[msgspec.Struct]]) -> Table:
    match described:
        case inspect.Metadata():
            return _type(described.type, met)
        case inspect.BoolType():
            return {"type": "yes or no"}
        case inspect.IntType():
            return {"type": "whole", **_limits(described, _LIMITS)}
        case inspect.FloatType():
            return {"type": "real", **_limits(described, _LIMITS)}
        case inspect.BytesType():
            return {"type": "bytes", **_limits(described, _SIZES)}
        case inspect.StrType():
            return {"type": "text", **_limits(described, _SIZES), **_pattern(described.pattern)}
        case inspect.DateType():
            return {"type": "date"}
        case inspect.EnumType():
            return {"type": "choice", "choices": [each.value for each in described.cls]}
        case inspect.VarTupleType():
            of = _type(described.item_type, met)
            return {"type": "list", **_limits(described, _SIZES), "of": of}
        case inspect.StructType():
            met.append(described.cls)
            return {"type": "map", "map": described.cls.__name__}
        case inspect.UnionType():
            return _union(described.types, met)
    raise TypeError(described)


def _union(types: Iterable[inspect.Type], met: list[type[msgspec.Struct]]) -> Table:
    """Describe a field that may be nil, or hold one of several maps, told apart by their tags."""
    given = [each for each in types if not isinstance(each, inspect.NoneType)]
    or_nil = {"or_nil": True} if len(given) < len(list(types)) else {}
    if len(given) == 1:
        return {**_type(given[0], met), **or_nil}
    structs = [each.cls for each in given if isinstance(each, inspect.StructType)]
    if len(structs) < len(given):
        raise TypeError(types)
    met.extend(structs)
    return {"type": "map of a kind", "maps": [each.__name__ for each in structs], **or_nil}


def _limits(described: object, names: dict[str, str]) -> Table:
    limits = {plain: getattr(described, name, None) for name, plain in names.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}


def _pattern(pattern: str | None) -> Table:
    if pattern is None:
        return {}
    # Other patterns are of ASCII alone, and end in what Python needs to see the end of a text.
    return {"line": True} if pattern == _LINE else {"pattern": pattern.removesuffix(r"(?!\n)")}
