"""Measures in the order and under the headings in which tables show them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from earshot_models.recipe import PROJECTIONS
from earshot_simulations.probing.degradations import CONDITIONS
from earshot_simulations.probing.probe import CLEAN, MEASURES, PLACES


@dataclass(frozen=True)
class Section:
    """Measures that belong together.

    Attributes:
        title: Title above the measures.
        rows: Title of each measure, by its name in `Probe.values`.
    """

    title: str
    rows: dict[str, str]


def sections(names: Collection[str]) -> list[Section]:
    """Return all sections that show some of these measures."""
    kept = []
    for section in _SECTIONS:
        rows = {name: title for name, title in section.rows.items() if name in names}
        if rows:
            kept.append(Section(section.title, rows))
    return kept


def _heard(measure: str) -> dict[str, str]:
    conditions = {f"robustness.{each.name}.{measure}": each.title for each in CONDITIONS}
    return {CLEAN[measure]: "clean"} | conditions


_SECTIONS = (
    Section("Kinds of sound", {name: name.replace("_", " ") for name in MEASURES}),
    Section(
        "Kinds, k-means ARI after projection",
        {
            f"{name}_by_dimensions.{dimensions}": f"{name.replace('_', ' ')}, d = {dimensions}"
            for name in ("ari", "ari_twice")
            for dimensions in PROJECTIONS
        },
    ),
    Section(
        "The same place again",
        {f"places.{name}": "ari, k = places" if name == "ari" else f"by {name}" for name in PLACES},
    ),
    Section("Kinds when heard worse, seconds", _heard("second_accuracy")),
    Section("The same place when heard worse, halves", _heard("same_place")),
)
