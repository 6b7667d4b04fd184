"""Settings that only one route has, and the options that repeat a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from earshot_server.phases.options import CellOptions, CentroidOptions, Discovery
from earshot_server.phases.options import names as own_names

ROUTE = "discovery"
"""Name of the setting that selects the route, and so the unit that a phase protects."""

OPTIONS: Mapping[Discovery, frozenset[str]] = {
    Discovery.SECURE_SUM: own_names(CellOptions),
    Discovery.LOCAL: own_names(CentroidOptions) | {"budget"},
}
"""Names of the settings that only one route has, by route."""


def of_others(routes: Collection[object]) -> frozenset[str]:
    """Return the names of the settings that none of these routes has."""
    every = frozenset[str]().union(*OPTIONS.values())
    return every.difference(*(OPTIONS[name] for name in OPTIONS if name in routes))


def routes_of(option: str) -> list[Discovery]:
    """Return the routes that have a setting which is not shared; empty for shared ones."""
    return [name for name, options in OPTIONS.items() if option in options]


def in_words(configuration: Mapping[str, object]) -> Iterable[tuple[str, str | None]]:
    """Yield the options that repeat a run, each with its value; a switch has none.

    Omit unset options and those of the other route.
    """
    taken = configuration.get(ROUTE)
    others = of_others([taken]) if taken in OPTIONS else frozenset[str]()
    for name, value in configuration.items():
        if value is None or value is False or value == {} or name in others:
            continue
        option = "--" + name.replace("_", "-")
        entries = value.items() if isinstance(value, Mapping) else ()
        pairs = [(key.replace("_", "-"), str(entry)) for key, entry in entries]
        if name == "budget":
            yield option, ",".join(map("=".join, pairs))
        elif pairs:
            yield from ((f"{option}.{key}", entry) for key, entry in pairs)
        else:
            yield option, None if value is True else str(value)
