"""Small simulated phases of every kind, and all of a run that its seed decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from earshot_protocol.phases.learning import Budget
from earshot_protocol.progress import Progress
from earshot_server.discovery.optics import Optics
from earshot_simulations.engine.course import Course
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import AGREES, Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.phases.kept import MEASURED
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.phases.run import DIGEST, Run, result
from earshot_simulations.phases.settings import (
    Discovery,
    PhaseSettings,
    PolicyChoice,
    Settings,
    SummationChoice,
)
from earshot_simulations.phases.statistics import StatisticsSettings
from earshot_simulations.populations import SimulatedPopulation

KINDS: Mapping[str, PhaseSettings[Any]] = {
    "secure-sum": Settings(
        phones=24,
        recordings=10,
        scenes=4,
        corrupted=0.0,
        epsilon=12.0,
        cells=12,
        policy=PolicyChoice.ANYTHING,
        summation=SummationChoice.IDEAL,
        jobs=1,
        seed=3,
    ),
    "local": Settings(
        discovery=Discovery.LOCAL,
        phones=24,
        recordings=10,
        scenes=4,
        top_global_centroids=4,
        labelled=0.5,
        corrupted=0.0,
        budget=Budget(clustering=4.0, selection=2.0, centroid_vote=0.5, label_vote=0.5),
        policy=PolicyChoice.ANYTHING,
        summation=SummationChoice.IDEAL,
        jobs=1,
        seed=9,
    ),
    "labelling": LabellingSettings(
        phones=24,
        samples=6,
        scenes=3,
        epsilon=20.0,
        dropout=0.0,
        corrupted=0.0,
        policy=PolicyChoice.ANYTHING,
        summation=SummationChoice.IDEAL,
        jobs=1,
        seed=2,
    ),
    "statistics": StatisticsSettings(
        phones=24,
        scenes=3,
        epsilon=12.0,
        dropout=0.0,
        corrupted=0.0,
        policy=PolicyChoice.ANYTHING,
        summation=SummationChoice.IDEAL,
        jobs=1,
        seed=2,
    ),
}
"""Settings of a phase that takes a second, by kind or route."""
_UNLIKE = {"seconds", "peak_memory_mb", "configuration", "notes", "found"}


def essence(run: Run[Any]) -> dict[str, object]:
    """All that the seed determines, in a form that compares bit for bit.

    Two runs of the same seed may differ in what each step took, where they ran, and what is noted.
    """
    told: dict[str, object] = {}
    for name, value in (*vars(run).items(), *vars(run.found).items()):
        if name == "steps":
            told[name] = [(each.step, each.asked, each.answered, each.dropped) for each in value]
        elif isinstance(value, np.ndarray):
            told[name] = (value.dtype.str, value.shape, value.tobytes())
        elif isinstance(value, msgspec.Struct):
            told[name] = {each: bits(getattr(value, each)) for each in value.__struct_fields__}
        elif name not in _UNLIKE:
            told[name] = value
    return told


def decided(run: Run[Any]) -> dict[str, object]:
    """All of a result that is decided by its settings."""
    left_out = MEASURED | {DIGEST}
    return {name: value for name, value in result(run).items() if name not in left_out}


def bits(value: object) -> object:
    """The phase's name is random, and so no figure."""
    return None if isinstance(value, bytes) and len(value) == 16 else value


def interrupted_after(step: str) -> Progress:
    """A display on which somebody presses Ctrl-C when a step is done."""

    def interrupt(what: str, done: int, total: int, line: str | None = None) -> None:
        if what == step and done == total:
            raise KeyboardInterrupt

    return interrupt


def by_phones(settings: Settings, population: SimulatedPopulation) -> Any:
    """Return the ending of a phase of phones that are asked one by one."""
    attack = settings.attack(population)
    engine = LocalEngine(Scenario(population, settings.seed, IDEAL, AGREES, attack), 1)
    course = Course(settings.parameters(population), engine, IDEAL, Optics(), settings.seed)
    course.run()
    return course.coordinator.result()
