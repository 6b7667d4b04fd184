"""Two kept runs side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.learning.differences import (
    ROUTE,
    Pair,
    differing,
    results_differing,
    settings_differing,
)
from earshot_simulations.learning.written import Written

_COUNTED = ("named", "global_centroids", "top_global_centroids")
"""Figures that count centroids on the local route, and cells where sums are taken."""
_FIGURES = (
    *("survivors", "ari_train", "ari_test", "label_accuracy", "clear_label_accuracy", *_COUNTED),
)


@dataclass(frozen=True)
class Comparison:
    """The differences between two runs.

    Attributes:
        settings: Settings that differ, (A, B) by name; those that neither run used are left out.
        provenance: Versions and files that differ.
        figures: Every figure that one of the runs has, whether it differs or not.
        ended: Reasons why each run ended early; None for one that did not.
        same: Whether nothing differs but clock measurements and the place where the runs ran.
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
        """Return B − A of a figure; None if one run lacks it, or the two count different things."""
        a, b = self.figures[name]
        apart = self.across and name in _COUNTED
        return None if a is None or b is None or apart else b - a

    def plain(self) -> dict[str, object]:
        """Return the comparison as JSON has it; `difference` is B − A, or null."""
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


def compare(first: Written, second: Written) -> Comparison:
    """Compare two runs of any settings and versions."""
    a, b = first.figures, second.figures
    ours, theirs = _figures(a), _figures(b)
    asked = settings_differing(a["configuration"], b["configuration"])
    return Comparison(
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
        **{name: result[name] for name in _FIGURES},
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
