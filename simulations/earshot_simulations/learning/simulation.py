"""One whole learning phase over simulated phones, each with its real cryptography."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from earshot_protocol import distribution
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation
from earshot_server.discovery.interface import Discovery
from earshot_server.discovery.optics import Optics
from earshot_server.phases.learning import LearningPhase
from earshot_simulations.engine.course import Course, Progress
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.learning import settings as names
from earshot_simulations.learning.run import Run
from earshot_simulations.learning.scoring import score
from earshot_simulations.learning.settings import Settings
from earshot_simulations.populations import Blobs, Population, Recordings, SoundFolder, Soundscapes

SUMMATIONS: Mapping[names.Summation, Summation] = {
    names.Summation.REAL: BELL,
    names.Summation.IDEAL: IDEAL,
}
DISCOVERIES: Mapping[names.Discovery, type[Discovery]] = {names.Discovery.LOCAL: Optics}
ENGINES: Mapping[names.Engine, type[LocalEngine]] = {names.Engine.LOCAL: LocalEngine}
"""What the settings name."""

HEAR = "hear"
_PICTURED_POINTS = 4000
_PICTURED_PHONES = 200


def simulate(settings: Settings, progress: Progress = lambda what, done, total: None) -> Run:
    """Run a learning phase from hearing to the published result.

    Ctrl-C, or a phase that fails, ends the run early; what is finished is in the `Run`.

    Args:
        settings: what to simulate.
        progress: called as work goes on.

    Returns:
        Everything that a report needs.

    Raises:
        InvalidParametersError: settings that cannot be simulated; before any work.
        InvalidInputError: a folder without usable recordings.
    """
    settings.check()
    started = time.perf_counter()
    # Closing, not entering: what is heard on entering could not be interrupted.
    with closing(_open_population(settings, progress)) as population:
        summation = SUMMATIONS[settings.summation]
        scenario = Scenario(population, settings.seed, summation)
        engine = ENGINES[settings.engine](scenario, settings.jobs)
        course = Course(
            settings.parameters(population),
            engine,
            summation,
            DISCOVERIES[settings.discovery](),
            settings.seed,
            progress,
        )
        interrupted = None
        try:
            population.prepare()
            course.run()
        except KeyboardInterrupt:
            interrupted = f"interrupted in the step '{course.at or HEAR}'"
        if course.failure is not None:
            interrupted = f"the phase failed: {course.failure}"
        return Run(
            version=distribution.version(),
            configuration=_configuration(settings),
            population=population.name,
            phones=settings.phones,
            survivors=len(engine.present),
            label_names=population.labels,
            **_outcome(settings, population, course),
            privacy=course.spent(),
            steps=tuple(course.steps),
            skipped=population.skipped,
            notes=(*_reading(settings, population), *course.notes),
            interrupted=interrupted,
            peak_memory_mb=engine.peak_memory() / 2**20,
            seconds=time.perf_counter() - started,
        )


def _open_population(settings: Settings, progress: Progress) -> Population:
    phones, recordings, scenes = settings.phones, settings.recordings, settings.scenes
    labelled, seed = settings.labelled, settings.seed
    if settings.data == names.BLOBS:
        return Blobs(phones, recordings, scenes, labelled, seed)
    sound = settings.dimensions, settings.jobs, partial(progress, HEAR)
    if settings.data == names.SOUNDSCAPES:
        return Soundscapes(phones, recordings, scenes, labelled, seed, *sound)
    return SoundFolder(Path(settings.data), phones, recordings, labelled, seed, *sound)


def _outcome(settings: Settings, population: Population, course: Course) -> dict[str, Any]:
    """What phones heard, published and voted, as far as the phase came, as fields of a `Run`."""
    state = course.coordinator.state
    if not course.at or not isinstance(state, LearningPhase):
        return {"points": np.empty((0, population.dimensions), np.float32)}
    sample = _heard(settings, population)
    outcome: dict[str, Any] = {
        "points": sample.points[:_PICTURED_POINTS],
        "scenes": sample.scenes[:_PICTURED_POINTS],
        "local_centroids": state.local_centroids(),
    }
    if state.centroids is not None:
        outcome["local_clusters"] = np.asarray(state.clusters, dtype=np.int64)
        outcome["global_centroids"] = state.centroids.array()
    if state.centroid_votes:
        outcome["centroid_votes"] = np.asarray(state.centroid_votes)
        outcome["top"] = np.asarray(state.top)
    if state.label_votes:
        outcome["label_votes"] = np.asarray(state.label_votes)
        outcome["labels"] = np.asarray(state.labels)
    result = course.coordinator.result() if state.step == PUBLISHED else None
    if isinstance(result, Result):
        outcome |= vars(score(result, sample, population.held_out()))
    return outcome


def _heard(settings: Settings, population: Population) -> Recordings:
    """What some phones heard: enough to score and to draw."""
    generator = np.random.default_rng([settings.seed, 0x5])
    some = generator.permutation(settings.phones)[:_PICTURED_PHONES]
    sample = [population.recordings(int(phone)) for phone in some]
    mixed = generator.permutation(sum(len(recordings.points) for recordings in sample))
    return Recordings(*(np.concatenate(column)[mixed] for column in zip(*sample, strict=True)))


def _reading(settings: Settings, population: Population) -> list[str]:
    """What a reader should know before trusting the figures."""
    notes = []
    if settings.summation is names.Summation.IDEAL:
        notes.append("The secure sum was replaced by plain addition: nothing was protected.")
    if population.geometry is Geometry.SPHERICAL:
        notes.append(
            "The shipped encoder was trained without labels on synthesized scenes, four folds "
            "of ESC-10 and spoken digits: it flatters sound that it knows. "
            "The local route spends each phone's budget on that phone's recordings alone, "
            "which leaves little of the clustering at a realistic ε: read these figures as a "
            "baseline."
        )
    return notes


def _configuration(settings: Settings) -> dict[str, object]:
    configuration = asdict(settings)
    del configuration["budget"]
    return configuration | {"budget": msgspec.structs.asdict(settings.budget)}
