"""The figures that are made by simulating whole phases: the thesis's, and two of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from earshot_studies.kit.outcome import Outcome
from earshot_studies.liebenow import figure_9_3 as liebenow_9_3
from earshot_studies.liebenow import figure_9_4 as liebenow_9_4
from earshot_studies.liebenow import figure_9_5 as liebenow_9_5
from earshot_studies.liebenow import figure_9_6 as liebenow_9_6
from earshot_studies.liebenow import growing_crowd, phone_unit
from earshot_studies.liebenow import section_10_1 as liebenow_10_1
from earshot_studies.liebenow.contenders import Setup, Size

_SOON = Size(phones=300, recordings=100, seeds=5)
_LARGE = Size(phones=1000, recordings=200, seeds=20)


@dataclass(frozen=True)
class Figure:
    """One of them.

    Attributes:
        make: given what to work with, and whether to measure at many points.
        soon: its size by default: minutes on two cores.
        full: its size with --full: hours.
        varies: the size that is its axis, so that nobody can choose it; empty for none.
    """

    make: Callable[[Setup, bool], Outcome]
    soon: Size = _SOON
    full: Size = _LARGE
    varies: str = ""


_TIMED = Figure(
    liebenow_9_5.seconds,
    Size(phones=0, recordings=100, seeds=3),
    Size(phones=0, recordings=200, seeds=5),
    "phones",
)

FIGURES: Mapping[str, Figure] = {
    liebenow_9_3.NAME_A: Figure(
        lambda setup, full: liebenow_9_3.training_and_testing(setup), replace(_SOON, seeds=10)
    ),
    liebenow_9_3.NAME_B: Figure(liebenow_9_3.growing, varies="recordings"),
    liebenow_9_4.NAME: Figure(liebenow_9_4.reproduce),
    liebenow_9_5.NAME_A: _TIMED,
    liebenow_9_5.NAME_B: Figure(liebenow_9_5.traffic, _TIMED.soon, _TIMED.full, "phones"),
    liebenow_9_6.NAME: Figure(liebenow_9_6.reproduce),
    liebenow_10_1.NAME: Figure(
        liebenow_10_1.reproduce,
        Size(phones=500, recordings=20, seeds=3),
        Size(phones=500, recordings=100, seeds=10),
    ),
    growing_crowd.NAME: Figure(
        growing_crowd.reproduce,
        Size(phones=0, recordings=50, seeds=5),
        Size(phones=0, recordings=50, seeds=20),
        "phones",
    ),
    phone_unit.NAME: Figure(
        phone_unit.reproduce,
        Size(phones=0, recordings=20, seeds=3),
        Size(phones=0, recordings=20, seeds=20),
        "phones",
    ),
}
"""By the names of their commands."""
