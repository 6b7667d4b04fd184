"""Kept runs: read, repeat and compare them; incomplete or edited ones are refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earshot_models.datasets.dataset import DatasetError
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.phases.environments import COMPARED, COUNTED
from earshot_simulations.phases.own import OWN
from earshot_simulations.phases.route_options import ROUTE, of_others
from earshot_simulations.phases.run import DIGEST, PHASE_FAILED, RESULT
from earshot_simulations.phases.settings import (
    WHERE,
    Discovery,
    Routes,
    Settings,
    settings_of,
)
from earshot_simulations.versions import check_version, digest, versions

_NEEDED = ("configuration", "provenance", "version", DIGEST)
_OTHERS = {"threshold": "labelling", "counted_phones": "statistics"}
"""Kinds of phase whose results are not repeated, by an entry that only they have."""


MEASURED = frozenset({"configuration", "peak_memory_mb", "provenance", "seconds"})
"""Entries of a result that its settings do not determine, or that are settings."""

Pair = tuple[Any, Any]


class EditedResultError(InvalidInputError):
    """The `result.json` was changed after a run wrote it."""


@dataclass(frozen=True)
class Written:
    """A kept run.

    Attributes:
        path: Path of the file.
        figures: Content of the file; see `phases.run.result`.
    """

    path: Path
    figures: Mapping[str, Any]

    @property
    def settings(self) -> Settings:
        """Settings of the run.

        Raises:
            InvalidParametersError: A setting is unknown to this version, or has a wrong type.
        """
        return settings_of(self.figures["configuration"])


def read_each(path: str | os.PathLike[str]) -> dict[Discovery, Written]:
    """Read the runs of a folder, by route: one, or those of both routes on one crowd.

    Args:
        path: Path of `result.json`, or of a folder that `earshot simulate --out` wrote.

    Raises:
        InvalidInputError: A file is missing, or is not the result of a simulated phase; see `read`.
    """
    return {
        written.settings.discovery: written
        for written in map(read, _of_routes(Path(path)) or [Path(path)])
    }


def _of_routes(folder: Path) -> list[Path]:
    """Return the folders of single routes in a folder without a `result.json`."""
    if (folder / RESULT).exists():
        return []
    return [folder / route for route in Routes.BOTH.each if (folder / route / RESULT).exists()]


def read(path: str | os.PathLike[str]) -> Written:
    """Read a run that `earshot simulate --out` wrote.

    The digest in the file detects accidental and manual changes, such as a rounded figure. It is
    not a signature: anyone can recompute it.

    Args:
        path: Path of `result.json`, or of the folder that holds it.

    Raises:
        InvalidInputError: There is no such file, or it is not the result of a simulated phase.
        EditedResultError: It was changed after it was written.
    """
    path = Path(path)
    file = path / RESULT if path.is_dir() else path
    try:
        figures = json.loads(file.read_bytes())
    except FileNotFoundError:
        if inner := _of_routes(path):
            raise InvalidInputError(
                f"{path}: holds a run of each route; name one of them: "
                f"{' or '.join(map(str, inner))}"
            ) from None
        raise InvalidInputError(
            f"{file}: there is no such file; name the {RESULT} of a run, or its folder"
        ) from None
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise InvalidInputError(
            f"{file}: is not JSON; name the {RESULT} that `earshot simulate --out` wrote"
        ) from None
    lacking = [name for name in _NEEDED if not isinstance(figures, dict) or name not in figures]
    held = figures if isinstance(figures, dict) else {}
    kind = next((kind for name, kind in _OTHERS.items() if name in held), None)
    if lacking and kind is not None:
        raise InvalidInputError(
            f"{file}: is of a {kind} phase; name the {RESULT} of a discovery or learning phase: "
            "only these are repeated and compared"
        )
    if lacking:
        raise InvalidInputError(
            f"{file}: has no {' and no '.join(lacking)}; name the {RESULT} of a simulated phase "
            "that `earshot simulate --out` wrote, in a version that writes them"
        )
    kept = figures.pop(DIGEST)
    if kept != digest(figures):
        raise EditedResultError(
            f"{file}: was edited after the run wrote it (its digest differs); restore the file, "
            "or run its settings again"
        )
    return Written(file, figures)


def flat(value: object, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each plain value in nested tables and lists, by its dotted place, in order."""
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

    Numbers are compared exactly, without a tolerance.
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
    unused = of_others([first.get(ROUTE), second.get(ROUTE)]) | WHERE

    def asked(configuration: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in configuration.items() if name not in unused}

    return differing(asked(first), asked(second))


def results_differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Pair]:
    """Return the differences of two `result.json`, except times, memory and settings."""

    def found(figures: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in figures.items() if name not in MEASURED}

    return differing(found(first), found(second))


def refuse_own(written: Written) -> None:
    """Refuse a run with code of its caller's own, which its file does not hold.

    Raises:
        InvalidInputError: The run had such code; the message says which.
    """
    own = written.figures["provenance"].get(OWN)
    if own:
        named = ", ".join(f"{name} {each['class']}" for name, each in own.items())
        raise InvalidInputError(
            f"{written.path}: this run had code of its caller's own ({named}), which the file does "
            "not hold; run the program that made it"
        )


class OtherSoundError(InvalidInputError):
    """A folder of sound, or an encoder, is not that of the run."""


def repeatable(
    written: Written, moved: Mapping[str, Any] | None = None
) -> tuple[Settings, dict[str, Pair]]:
    """Check that a run can be repeated, and return the settings for it.

    Args:
        written: Kept run.
        moved: New paths of its `data` and `encoder`, if they have moved.

    Returns:
        Settings, and the differences of libraries and machine: (then, now) by name. These seldom
        change a figure, so they do not prevent a repetition.

    Raises:
        OtherVersionError: Another version of Earshot wrote the run.
        OtherSoundError: The sound or the encoder has changed since.
        InvalidInputError: The run was interrupted, so its outcome is unknown; it had code of its
            caller's own; or its sound or file of vectors does not exist.
        InvalidParametersError: This version cannot run the settings.
    """
    figures, file = written.figures, written.path
    check_version(file, figures["version"])
    ended = figures.get("interrupted")
    if ended is not None and not str(ended).startswith(PHASE_FAILED):
        raise InvalidInputError(
            f"{file}: this run was {ended}, so it has no result to repeat; run its settings again "
            "(its report has the command)"
        )
    refuse_own(written)
    settings = replace(written.settings, **moved or {})
    settings.check()
    try:
        now = settings.provenance()
    except DatasetError as error:
        raise InvalidInputError(
            f"{file}: {error}; if the sound of the run has moved, give its folder with --data"
        ) from None
    for what, place in (("data", settings.data), ("encoder", settings.encoder)):
        if now[what] != figures["provenance"].get(what):
            raise OtherSoundError(
                f"{file}: {what} {place} is not that of the run (its SHA-256 differs); restore the "
                "original files, or run the settings again"
            )
    return settings, differing(figures["provenance"].get("versions"), versions())


def outcome(written: Written, repeated: Mapping[str, Any]) -> dict[str, Pair]:
    """Return the differences between a kept run and its repetition, (then, now) by place.

    Args:
        written: Kept run.
        repeated: Result of the repetition, from `phases.run.result`.
    """
    now = {name: value for name, value in repeated.items() if name != DIGEST}
    return results_differing(written.figures, now)


@dataclass(frozen=True)
class RunComparison:
    """The differences between two runs.

    Attributes:
        settings: Settings that differ, (A, B) by name, without those that neither run used.
        provenance: Versions and files that differ.
        figures: Every figure of either run, equal or not.
        ended: Reasons why each run ended early; None for one that did not.
        same: Whether settings and results are equal, except times, memory and where phones ran.
    """

    settings: Mapping[str, Pair]
    provenance: Mapping[str, Pair]
    figures: Mapping[str, Pair]
    ended: Pair
    same: bool

    @property
    def across(self) -> bool:
        """Whether the runs took different routes, which protect and count different things."""
        return ROUTE in self.settings

    def difference(self, name: str) -> float | None:
        """Return B − A of a figure; None if one is missing, or the two count different things."""
        a, b = self.figures[name]
        apart = self.across and name in COUNTED
        return None if a is None or b is None or apart else b - a

    def plain(self) -> dict[str, object]:
        """Return the comparison in plain types for JSON; `difference` is B − A, or None."""
        return {
            "same": self.same,
            "settings": {name: {"a": a, "b": b} for name, (a, b) in self.settings.items()},
            "provenance": {name: {"a": a, "b": b} for name, (a, b) in self.provenance.items()},
            "interrupted": {"a": self.ended[0], "b": self.ended[1]},
            "figures": {
                name: {"a": a, "b": b, "difference": self.difference(name)}
                for name, (a, b) in self.figures.items()
            },
        }


def compare(first: Written, second: Written) -> RunComparison:
    """Compare two runs of any settings and versions."""
    a, b = first.figures, second.figures
    ours, theirs = _figures(a), _figures(b)
    asked = settings_differing(a["configuration"], b["configuration"])
    return RunComparison(
        asked,
        differing(a["provenance"], b["provenance"]),
        {
            name: (ours[name], theirs[name])
            for name in ours
            if ours[name] is not None or theirs[name] is not None
        },
        (a["interrupted"], b["interrupted"]),
        not asked and not results_differing(a, b),
    )


def _figures(result: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the figures of one `result.json` by which two runs are compared."""
    together = result["privacy"]["together"]
    return {
        **{name: result.get(name) for name in COMPARED},
        "cells": len(result.get("cells") or ()) or None,
        **{
            f"{name} per {unit}": together.get(unit, {}).get(name)
            for unit in Unit
            for name in ("epsilon", "delta")
        },
        **{
            way: sum(result[way].values()) if result[way] else None
            for way in ("bytes_up_per_phone", "bytes_down_per_phone")
        },
        "seconds": result["seconds"]["total"],
        "peak_memory_mb": result["peak_memory_mb"],
    }
