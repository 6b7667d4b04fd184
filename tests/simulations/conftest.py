"""A run that never happened, whose every number is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from support import command, undrawn
from support.steps import STEPS

from earshot_protocol.privacy.accounting import Release, total
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.engine.course import SimulatedStep
from earshot_simulations.phases.environments import EnvironmentFindings
from earshot_simulations.phases.local import CentroidFindings
from earshot_simulations.phases.run import Run
from earshot_simulations.populations import Skipped

NAMES = ("bus", "park", "office")
CENTRES = 10.0 * np.eye(3, 128)
"""One per scene."""


def run_of(found: type[EnvironmentFindings], **values: Any) -> Run[EnvironmentFindings]:
    """A run that found something on one route; values are fields of either."""
    own = {each.name for each in fields(found)}
    told = {name: value for name, value in values.items() if name in own}
    rest = {name: value for name, value in values.items() if name not in own}
    return Run(found=found(**told), **rest)


def example_run(
    dimensions: int = 2, found: type[EnvironmentFindings] = CentroidFindings, **changes: object
) -> Run[EnvironmentFindings]:
    """Three scenes, four global centroids of which three are kept, eight phones that vanish."""
    random = np.random.default_rng(7)
    centres = CENTRES[:, :dimensions].astype(np.float32)
    scenes = np.repeat(np.arange(3), 20)
    places = np.vstack([centres, centres.sum(axis=0)])
    clusters = np.array([0, 0, 1, 1, 2, 2, -1])
    steps = [
        SimulatedStep(
            step=step.value,
            asked=100 - number,
            answered=99 - number,
            dropped=(70 + number,),
            seconds=0.5,
            phone_cpu_seconds=0.99 - 0.01 * number,
            server_cpu_seconds=0.25,
            bytes_up=1_000 * (99 - number),
            bytes_down=2_000 * (99 - number),
        )
        for number, step in enumerate(STEPS[:8])
    ]
    steps.insert(1, SimulatedStep(step="discover", seconds=2.0, server_cpu_seconds=1.75))
    values: dict[str, object] = {
        "version": "1.2.3",
        "population": "blobs",
        "phones": 100,
        "survivors": 92,
        "label_names": NAMES,
        "points": (centres[scenes] + random.normal(0, 1, (60, dimensions))).astype(np.float32),
        "scenes": scenes,
        "configuration": {
            "phones": 100,
            "data": "my sounds",
            "seed": 5,
            "budget": {"label_vote": 0.5},
        },
        "local_centroids": np.vstack([centres[[0, 0, 1, 1, 2, 2]], centres[:1] + 1000]),
        "local_clusters": clusters,
        "global_centroids": places,
        "centroid_votes": np.array([40, 50, 30, -2]),
        "top": np.array([1, 0, 2]),
        "label_votes": np.array([[1, 30, -4], [25, 0, 2], [0, 0, 0]]),
        "labels": np.array([1, 0, -1]),
        "centroid_p_values": (0.0, 0.0001, 0.002),
        "name_p_values": (0.004, 0.02, 1.0),
        "ari_train": 0.91,
        "ari_test": 0.92,
        "label_accuracy": 0.971,
        "privacy": (
            Release("clustering", Unit.RECORDING, 1.5, 0.0, "Lloyd"),
            Release("clustering", Unit.PHONE, 300.0, 0.0, "Lloyd"),
            Release("label vote", Unit.RECORDING, 1.0, 1e-6, "ballots"),
            Release("label vote", Unit.PHONE, 2.0, 3e-6, "ballots"),
        ),
        "label_histogram": np.array([19, 41, 0]),
        "true_histogram": np.array([20, 20, 20]),
        "steps": tuple(steps),
        "skipped": (
            Skipped("a.wav", "silent"),
            Skipped("b.wav", "short"),
            Skipped("c.wav", "short"),
        ),
        "peak_memory_mb": 321.0,
        "seconds": 6.5,
    }
    if found is not CentroidFindings:
        for each in {each.name for each in fields(CentroidFindings)} - {
            each.name for each in fields(found)
        }:
            values.pop(each, None)
    values |= changes
    releases: Any = values["privacy"]
    return run_of(found, **{"together": total(releases), **values})


@pytest.fixture
def make_run() -> Callable[..., Run]:
    return example_run


@pytest.fixture
def cut_short() -> Callable[[int], Run]:
    """The run as it looks when it ended after so many of: heard, published, found, first vote."""
    later: tuple[dict[str, object], ...] = (
        {"points": np.empty((0, 2), np.float32), "scenes": np.empty(0, np.int16), "steps": ()},
        {"local_centroids": None, "local_clusters": np.empty(0, np.int64)},
        {"global_centroids": None, "local_clusters": np.empty(0, np.int64)},
        {"centroid_votes": None, "top": np.empty(0, np.int64)},
        {
            "label_votes": None,
            "labels": np.empty(0, np.int64),
            "ari_train": None,
            "ari_test": None,
            "label_accuracy": None,
            "privacy": (),
            "label_histogram": np.zeros(3, np.int64),
            "true_histogram": np.zeros(3, np.int64),
            "interrupted": "too few phones stayed",
        },
    )

    def cut(stage: int) -> Run:
        changes: dict[str, object] = {}
        for missing in later[stage:]:
            changes |= missing
        return example_run(**changes)

    return cut


@pytest.fixture(scope="module")
def module_without_pictures() -> Iterator[None]:
    """In reports that are written while the module's tests run."""
    with undrawn.undrawn():
        yield


@pytest.fixture
def no_pictures() -> Iterator[None]:
    """In reports that this test has written."""
    with undrawn.undrawn():
        yield


@pytest.fixture
def earshot() -> command.Earshot:
    """The command, as its entry point runs it."""

    def run(*words: object) -> tuple[int, str, str]:
        done = command.earshot(*words)
        return done.returncode, done.stdout, done.stderr

    return run
