"""Changes since the previous phase, and which of them noise alone may explain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from earshot_server.dashboard.histograms import CONFIDENCE, Histogram
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import ngettext
from earshot_server.dashboard.wording import listed, whole

PER_PHONES = 100
"""Counts are compared per this many phones, as a different number of phones stays in each phase."""


class Change(NamedTuple):
    """Change of one label between two phases; all numbers are per `PER_PHONES` phones.

    Attributes:
        label: Name of the label.
        before: Count in the earlier phase.
        now: Count in the later phase.
        radius: Bound on the noise of their difference (see `Comparison`).
    """

    label: str
    before: float
    now: float
    radius: float

    @property
    def difference(self) -> float:
        """Difference of the two counts, positive if there is more now."""
        return self.now - self.before

    @property
    def clear(self) -> bool:
        """Whether the difference exceeds `radius`."""
        return abs(self.difference) > self.radius


@dataclass(frozen=True)
class Comparison:
    """Comparison of a phase with the previous one that asked phones for the same.

    If only the noise has changed, no change exceeds its radius with probability at least
    `CONFIDENCE`: each of the 2L noises in L labels exceeds its own bound with probability at most
    (1 − `CONFIDENCE`) / 2L. Other chance, such as which phones took part, is not included.

    Attributes:
        before: Histogram of the earlier phase.
        now: Histogram of the later phase.
        changes: Changes of the labels that both have: the clear ones first, then the largest.
        appeared: Labels that only the later one has.
        vanished: Labels that only the earlier one has.
    """

    before: Histogram
    now: Histogram
    changes: tuple[Change, ...]
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]

    per = PER_PHONES

    @property
    def sentence(self) -> str:
        """The comparison as a sentence."""
        clear = [each for each in self.changes if each.clear]
        rose = [each.label for each in clear if each.difference > 0]
        fell = [each.label for each in clear if each.difference < 0]
        still = len(self.changes) - len(clear)
        parts = []
        if rose:
            parts.append(_("%(labels)s rose", labels=listed(rose)))
        if fell:
            parts.append(_("%(labels)s fell", labels=listed(fell)))
        if self.appeared:
            parts.append(_("%(labels)s counted for the first time", labels=listed(self.appeared)))
        if self.vanished:
            parts.append(_("%(labels)s no longer counted", labels=listed(self.vanished)))
        if still and clear:
            parts.append(
                ngettext(
                    "%(number)s label changed by no more than the noise",
                    "%(number)s labels changed by no more than the noise",
                    still,
                    number=whole(still),
                )
            )
        elif still:
            parts.append(_("no label changed by more than the noise"))
        return "; ".join(parts)


def since_before(histograms: Sequence[Histogram]) -> Comparison | None:
    """Compare the newest phase with the newest one before it that asked phones for the same.

    Args:
        histograms: Histograms of the phases, oldest first.

    Returns:
        The comparison; None if there is no such phase.
    """
    if not histograms:
        return None
    now = histograms[-1]
    before = next((each for each in reversed(histograms[:-1]) if each.asked == now.asked), None)
    return None if before is None else compare(before, now)


def compare(before: Histogram, now: Histogram) -> Comparison:
    """Compare two histograms that asked phones for the same, label by label."""
    labels = [label for label in now.counts if label in before.counts]
    confidence = 1.0 - (1.0 - CONFIDENCE) / max(1, 2 * len(labels))
    rates = [PER_PHONES / max(1, each.inputs) for each in (before, now)]
    radius = math.fsum(
        rate * each.radius_at(confidence) for rate, each in zip(rates, (before, now), strict=True)
    )
    changes = [
        Change(
            label,
            rates[0] * before.counts[label].published,
            rates[1] * now.counts[label].published,
            radius,
        )
        for label in labels
    ]
    changes.sort(key=lambda each: (not each.clear, -abs(each.difference)))
    return Comparison(
        before,
        now,
        tuple(changes),
        tuple(label for label in now.counts if label not in before.counts),
        tuple(label for label in before.counts if label not in now.counts),
    )
