"""One whole phase over simulated phones, each with its real cryptography."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from earshot_client.encoder import encoder_path
from earshot_protocol import distribution
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation
from earshot_server.discovery.optics import Optics
from earshot_server.phases.costs import step_costs, together
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_server.phases.learning import LearningPhase
from earshot_simulations.adversary.attack import Attack, far_place
from earshot_simulations.adversary.success import Success, measure
from earshot_simulations.engine.course import Course, Progress
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import Engine, EngineError, Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.learning import settings as names
from earshot_simulations.learning.configuration import configuration
from earshot_simulations.learning.provenance import provenance
from earshot_simulations.learning.reading import reading
from earshot_simulations.learning.run import PHASE_FAILED, Run
from earshot_simulations.learning.scoring import score
from earshot_simulations.learning.settings import POLICIES, Settings
from earshot_simulations.populations import (
    Blobs,
    LiftedBlobs,
    Population,
    Recordings,
    SoundFolder,
    Soundscapes,
)
from earshot_simulations.populations.hearing import hearing_once

SUMMATIONS: Mapping[names.Summation, Summation] = {
    names.Summation.REAL: BELL,
    names.Summation.IDEAL: IDEAL,
}
"""Summations by their name in the settings."""

HEAR = "hear"
HEARD = ("phones", "recordings", "scenes", "data", "encoder", "heterogeneity", "seed")
"""Settings that decide what phones hear, but not its projection or the labelled part."""
_PICTURED_POINTS = 4000
_PICTURED_PHONES = 200


def _no_progress(what: str, done: int, total: int) -> None:
    """Ignore progress."""


def simulate(settings: Settings, progress: Progress = _no_progress) -> Run:
    """Run a phase from hearing to the published result.

    Ctrl-C, or a phase that fails, ends the run early; the `Run` holds everything that is finished.

    Args:
        settings: Settings of the simulation.
        progress: Callback for progress.

    Returns:
        Everything that a report needs.

    Raises:
        InvalidParametersError: if the settings cannot be simulated; before any work.
        InvalidInputError: if a folder has no usable recordings.
        ClusterError: if there is no such cluster, or it cannot run phones; before any work.
    """
    settings.check()
    started = time.perf_counter()
    # Closing, not entering: hearing on entering could not be interrupted.
    with ExitStack() as stack:
        start = stack.enter_context(_engines(settings))
        population = stack.enter_context(closing(open_population(settings, progress)))
        parameters = settings.parameters(population)
        parameters.check_feasible()
        interrupted, attack, origin = None, Attack(), dict[str, object]()
        try:
            origin = provenance(settings)
            population.prepare()
            attack = _attack(settings, population)
        except KeyboardInterrupt:
            interrupted = f"interrupted in the step '{HEAR}'"
        summation = SUMMATIONS[settings.summation]
        scenario = Scenario(
            population, settings.seed, summation, POLICIES[settings.agreement], attack
        )
        engine = stack.enter_context(start(scenario))
        course = Course(
            parameters,
            engine,
            summation,
            Optics(),
            settings.seed,
            progress,
            attack.dropouts(draw_dropouts(parameters, settings.seed), parameters.plan()),
        )
        try:
            if interrupted is None:
                course.run()
        except KeyboardInterrupt:
            interrupted = f"interrupted in the step '{course.at or HEAR}'"
        except EngineError as error:
            interrupted = f"interrupted in the step '{course.at}': {error}"
        if course.failure is not None:
            interrupted = PHASE_FAILED + course.failure
        plan, spent = parameters.plan(), course.spent()
        left = {release.step for release in spent}
        achieved = _achieved(attack, parameters, population, course)
        outcome = _outcome(settings, population, course)
        p_values = outcome.get("name_p_values", ())
        return Run(
            version=distribution.version(),
            configuration=configuration(settings),
            provenance=origin,
            population=population.name,
            phones=settings.phones,
            survivors=len(engine.present),
            label_names=population.labels,
            **outcome,
            adversary=achieved,
            privacy=spent,
            costs={name: cost for name, cost in step_costs(plan).items() if name in left},
            together=together(plan, left),
            steps=tuple(course.steps),
            skipped=population.skipped,
            notes=(*reading(settings, population, achieved, p_values), *course.notes),
            interrupted=interrupted,
            peak_memory_mb=engine.peak_memory() / 2**20,
            seconds=time.perf_counter() - started,
        )


def simulate_routes(
    asked: Mapping[names.Discovery, Settings], progress: Progress = _no_progress
) -> dict[names.Discovery, Run]:
    """Run the phases of several routes one after the other; one crowd hears once for all of them.

    Each has the result of `simulate` for its settings, bit for bit. Ctrl-C, or an engine that
    breaks, ends the run under way early, and no further one is begun; a phase that fails does not
    stop the next.

    Args:
        asked: Settings of each route, in order.
        progress: Callback for progress, with the route before the name of a step.

    Raises:
        InvalidParametersError, InvalidInputError, ClusterError: as `simulate`, for any of them
            before any work.
    """
    if len(asked) == 1:
        return {route: simulate(settings, progress) for route, settings in asked.items()}
    for settings in asked.values():
        settings.check()
        with closing(open_population(settings)) as population:
            settings.parameters(population).check_feasible()
    runs: dict[names.Discovery, Run] = {}
    with hearing_once():
        try:
            for route, settings in asked.items():
                runs[route] = simulate(settings, partial(_of_route, progress, route))
                if runs[route].stopped:
                    break
        except KeyboardInterrupt:  # between two runs
            if not runs:
                raise
    return runs


def _of_route(progress: Progress, route: str, what: str, done: int, total: int) -> None:
    progress(what if what == HEAR else f"{route}, {what}", done, total)


@contextmanager
def _engines(settings: Settings) -> Iterator[Callable[[Scenario], Engine]]:
    """Yield the function that starts the settings' engine, connected to its cluster if any."""
    if settings.engine is names.Engine.LOCAL:
        yield lambda scenario: LocalEngine(scenario, settings.jobs)
        return
    from earshot_simulations.engine.cluster import connected
    from earshot_simulations.engine.ray import RayEngine

    with connected(settings.address, settings.jobs) as cluster:
        yield lambda scenario: RayEngine(scenario, cluster)


def _attack(settings: Settings, population: Population) -> Attack:
    """Return the corrupted phones and their target."""
    adversary = settings.adversary
    members = adversary.members(settings.phones, settings.seed)
    if not any(members.values()):
        return Attack()
    vote = GRID if settings.discovery is names.Discovery.SECURE_SUM else 1
    return Attack(members, far_place(population, settings.seed), settings.recordings, vote)


def _achieved(
    attack: Attack, parameters: Parameters, population: Population, course: Course
) -> Success | None:
    """Return the success of the adversary; None if there was none."""
    if not attack.corrupted:
        return None
    refused = sum(course.refused[phone] for phone in attack.corrupted)
    expected = parameters.corrupted * parameters.phones
    result = course.coordinator.result() if course.coordinator.step == PUBLISHED else None
    published = result if isinstance(result, NamedCentroids) else None
    return measure(attack, expected, refused, published, population.held_out().points)


def open_population(settings: Settings, progress: Progress = _no_progress) -> Population:
    """Return the phones that the settings name, which the caller prepares and closes."""
    phones, recordings, scenes = settings.phones, settings.recordings, settings.scenes
    labelled, seed, differ = settings.labelled, settings.seed, settings.heterogeneity
    if settings.data == names.BLOBS:
        blobs = LiftedBlobs if settings.discovery is names.Discovery.SECURE_SUM else Blobs
        return blobs(phones, recordings, scenes, labelled, seed, differ)
    sound = settings.projected, settings.jobs, partial(progress, HEAR)
    how: dict[str, Any] = {"heterogeneity": differ}
    how["encoder"] = None if settings.encoder is None else encoder_path(settings.encoder)
    if settings.data == names.SOUNDSCAPES:
        return Soundscapes(phones, recordings, scenes, labelled, seed, *sound, **how)
    return SoundFolder(Path(settings.data), phones, recordings, labelled, seed, *sound, **how)


def _outcome(settings: Settings, population: Population, course: Course) -> dict[str, Any]:
    """Return what phones heard, published and voted so far, as fields of a `Run`."""
    state = course.coordinator.state
    if not course.at:
        return {"points": np.empty((0, population.dimensions), np.float32)}
    sample = heard_by_some(settings, population)
    outcome: dict[str, Any] = {
        "points": sample.points[:_PICTURED_POINTS],
        "scenes": sample.scenes[:_PICTURED_POINTS],
    }
    if isinstance(state, LearningPhase):
        outcome |= _learned(state)
    if isinstance(state, DiscoveryPhase):
        outcome |= _discovered(state)
    result = course.coordinator.result() if state.step == PUBLISHED else None
    if isinstance(result, NamedCentroids):
        outcome |= vars(score(result, sample, population.held_out()))
    return outcome


def _learned(state: LearningPhase) -> dict[str, Any]:
    outcome: dict[str, Any] = {"local_centroids": state.local_centroids()}
    if state.centroids is not None:
        outcome["local_clusters"] = np.asarray(state.clusters, dtype=np.int64)
        outcome["global_centroids"] = state.centroids.array()
    if state.centroid_votes:
        outcome["centroid_votes"] = np.asarray(state.centroid_votes)
        outcome["top"] = np.asarray(state.top)
        outcome["centroid_p_values"] = state.centroid_p_values
    return outcome | _named(state)


def _discovered(state: DiscoveryPhase) -> dict[str, Any]:
    return {
        "start_centroids": state.parameters.start.centroids(),
        "global_centroids": state.cells(),
        "moved": np.asarray(state.moved, dtype=np.bool_),
        "top": np.arange(len(state.cells())),
    } | _named(state)


def _named(state: LearningPhase | DiscoveryPhase) -> dict[str, Any]:
    if not state.label_votes:
        return {}
    return {
        "label_votes": np.asarray(state.label_votes),
        "labels": np.asarray(state.labels),
        "name_p_values": state.name_p_values,
    }


def heard_by_some(settings: Settings, population: Population) -> Recordings:
    """Return the recordings of some phones: enough to score and to draw."""
    generator = np.random.default_rng([settings.seed, 0x5])
    some = generator.permutation(settings.phones)[:_PICTURED_PHONES]
    sample = [population.recordings(int(phone)) for phone in some]
    mixed = generator.permutation(sum(len(recordings.points) for recordings in sample))
    return Recordings(*(np.concatenate(column)[mixed] for column in zip(*sample, strict=True)))
