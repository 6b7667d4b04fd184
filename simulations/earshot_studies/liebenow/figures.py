"""Figures from simulations of whole phases: the thesis's, and three of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from earshot_studies.kit.outcome import Reproduction
from earshot_studies.liebenow import accuracy, crowds, figure_9_5, names, section_10_1
from earshot_studies.liebenow.contenders import ReproductionSetup, SimulationSize

_SOON = SimulationSize(phones=300, recordings=100, seeds=5)
_LARGE = SimulationSize(phones=1000, recordings=200, seeds=20)


@dataclass(frozen=True)
class Figure:
    """A figure and its sizes.

    Attributes:
        make: Function of a setup, and of whether to measure at many points.
        soon: Size by default, which takes minutes on two cores.
        full: Size with --full, which takes hours.
    """

    make: Callable[[ReproductionSetup, bool], Reproduction]
    soon: SimulationSize = _SOON
    full: SimulationSize = _LARGE


_TIMED = Figure(
    figure_9_5.seconds,
    SimulationSize(phones=0, recordings=100, seeds=3),
    SimulationSize(phones=0, recordings=200, seeds=5),
)

FIGURES: Mapping[str, Figure] = {
    accuracy.HEARD: Figure(
        lambda setup, full: accuracy.training_and_testing(setup), replace(_SOON, seeds=10)
    ),
    accuracy.GROWING: Figure(accuracy.growing),
    accuracy.NAMING: Figure(accuracy.naming),
    figure_9_5.NAME_A: _TIMED,
    figure_9_5.NAME_B: Figure(figure_9_5.traffic, _TIMED.soon, _TIMED.full),
    accuracy.PRIVACY: Figure(accuracy.privacy),
    section_10_1.NAME: Figure(
        section_10_1.reproduce,
        SimulationSize(phones=500, recordings=20, seeds=3),
        SimulationSize(phones=500, recordings=100, seeds=10),
    ),
    crowds.GROWING_CROWD: Figure(
        crowds.growing_crowd,
        SimulationSize(phones=0, recordings=50, seeds=5),
        SimulationSize(phones=0, recordings=50, seeds=20),
    ),
    crowds.PHONE_UNIT: Figure(
        crowds.phone_unit,
        SimulationSize(phones=0, recordings=20, seeds=3),
        SimulationSize(phones=0, recordings=20, seeds=20),
    ),
    names.NAME: Figure(
        names.names,
        SimulationSize(phones=0, recordings=20, seeds=3),
        SimulationSize(phones=0, recordings=20, seeds=20),
    ),
}
"""Figures by the names of their commands."""
