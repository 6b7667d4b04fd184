"""The differences between two kept runs: first their settings, then their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from earshot_simulations.learning.settings import OPTIONS

WHERE = frozenset({"address", "engine", "jobs"})
"""Settings that decide where phones run, but nothing of the result."""

ROUTE = "discovery"
"""Name of the setting that decides how environments are found, and so whom a phase protects."""

MEASURED = frozenset({"configuration", "peak_memory_mb", "provenance", "seconds"})
"""Entries of a result that its settings do not decide, or that are settings."""

Pair = tuple[Any, Any]


def flat(value: object, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each plain value within nested tables and lists, by its dotted place, in order."""
    inner: Iterator[tuple[object, object]]
    if isinstance(value, Mapping) and value:
        inner = iter(value.items())
    elif isinstance(value, list | tuple) and value:
        inner = iter(enumerate(value))
    else:
        if place:
            yield place, value
        return
    for name, entry in inner:
        yield from flat(entry, f"{place}.{name}" if place else str(name))


def differing(first: object, second: object) -> dict[str, Pair]:
    """Return the places at which two values differ, with each one's value or None.

    Numbers are equal if they are the same number: there is no tolerance.
    """
    one, other = dict(flat(first)), dict(flat(second))
    places = [*one, *(place for place in other if place not in one)]
    missing = object()
    return {
        place: (one.get(place), other.get(place))
        for place in places
        if one.get(place, missing) != other.get(place, missing)
    }


def settings_differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Pair]:
    """Return the differences of two `configuration`s in settings that either route uses."""
    ways = {first.get(ROUTE), second.get(ROUTE)}
    used = frozenset().union(*(names for way, names in OPTIONS.items() if way in ways))
    unused = frozenset().union(*OPTIONS.values()) - used | WHERE

    def asked(configuration: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in configuration.items() if name not in unused}

    return differing(asked(first), asked(second))


def results_differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Pair]:
    """Return the differences of two `result.json`, except times, memory and settings."""

    def found(figures: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in figures.items() if name not in MEASURED}

    return differing(found(first), found(second))
