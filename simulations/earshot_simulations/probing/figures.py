"""Figures of a probe: means with 95 % intervals over folds, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_simulations.probing.measures import interval
from earshot_simulations.probing.places import comparable
from earshot_simulations.probing.probe import Probe

_DIGITS = 4


@dataclass(frozen=True)
class Difference:
    """The difference in one measure between an encoder and the first, paired by fold.

    Attributes:
        mean: Mean difference, the encoder minus the first.
        wide: Half the width of the 95 % interval.
    """

    mean: float
    wide: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return abs(self.mean) > self.wide


def differences(
    probed: Mapping[str, NDArray[np.floating]], first: Mapping[str, NDArray[np.floating]]
) -> dict[str, Difference]:
    """Return the difference in every measure of both encoders.

    Args:
        probed: Measures by name, (folds,), as `Probe.values`.
        first: Measures of the first encoder, of the same folds.
    """
    return {
        name: Difference(*interval(values - first[name]))
        for name, values in probed.items()
        if name in first
    }


def sound_figures(probe: Probe) -> dict[str, Any]:
    """Return figures of the sound for JSON."""
    seconds, compared = probe.seconds, comparable(probe.seconds)
    figures: dict[str, Any] = {
        "dataset": probe.dataset,
        "clips": len(seconds.clip_labels),
        "seconds": int(seconds.disjoint.sum()),
        "silent_seconds": seconds.silent,
        "unreadable": {"count": len(seconds.unreadable), "files": list(seconds.unreadable)},
        "unheard": {
            "count": len(seconds.unheard),
            "classes": list(seconds.unheard_classes),
            "files": [f"{each.name} is {each.reason}" for each in seconds.unheard],
        },
        "classes": len(seconds.labels),
        "held_out": list(seconds.names),
        "chance": {name: round(value, _DIGITS) for name, value in probe.chance().items()},
        "compared_in_places": {
            "clips": compared,
            "too_short": seconds.too_short,
            "half_silent": len(seconds.clip_labels) - compared - seconds.too_short,
        },
    }
    return figures


def encoder_figures(probe: Probe) -> dict[str, Any]:
    """Return figures of an encoder for JSON."""
    figures: dict[str, Any] = {
        "encoder": probe.encoder,
        "rate": probe.seconds.rate,
        "files_below_rate": probe.seconds.below,
    }
    for name, values in probe.values().items():
        mean, wide = interval(values)
        folds = [round(float(value), _DIGITS) for value in values]
        _put(figures, name, _rounded(mean=mean, interval_95=wide) | {"folds": folds})
    if probe.folds:
        figures["penalties"] = [fold.penalty for fold in probe.folds]
    return figures


def paired_figures(label: str, probe: Probe, to: str, first: Probe) -> dict[str, Any]:
    """Return the differences of an encoder from the first for JSON."""
    figures: dict[str, Any] = {"encoder": label, "to": to}
    for name, of in differences(probe.values(), first.values()).items():
        _put(figures, name, {**_rounded(mean=of.mean, interval_95=of.wide), "clear": of.clear})
    return figures


def refuse_nothing(probes: Sequence[Probe]) -> None:
    """Check that something was measured.

    Raises:
        InvalidInputError: No probe has any measure.
    """
    if not any(probe.values() for probe in probes):
        raise InvalidInputError(
            f"{probes[0].dataset} has fewer than two labels, and a held-out side with fewer than "
            "two clips of two seconds: there is nothing to measure"
        )


def _put(figures: dict[str, Any], name: str, leaf: dict[str, Any]) -> None:
    *groups, last = name.split(".")
    for group in groups:
        figures = figures.setdefault(group, {})
    figures[last] = leaf


def _rounded(**numbers: float) -> dict[str, Any]:
    return {name: round(number, _DIGITS) for name, number in numbers.items()}
