"""One whole phase of any kind over simulated phones, each with real cryptography."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from earshot_client.encoder import Encoder, encoder_path
from earshot_protocol import distribution
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.progress import Progress, silent
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_server.discovery.optics import Optics
from earshot_server.phases.costs import step_costs, together
from earshot_simulations.adversary.attack import Attack, Attacks
from earshot_simulations.adversary.success import Success, measure
from earshot_simulations.engine.course import Course, SimulatedStep
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import Engine, EngineError, Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.engine.operators import SIMULATED, SimulatedOperators
from earshot_simulations.own_code import OwnCodeError
from earshot_simulations.phases import settings as names
from earshot_simulations.phases.environments import EnvironmentFindings
from earshot_simulations.phases.own import BY_PHONES, OF_SETTINGS, Own, OwnClustering
from earshot_simulations.phases.run import PHASE_FAILED, PhaseFindings, Run
from earshot_simulations.phases.settings import POLICIES, PhaseSettings, Settings
from earshot_simulations.populations import (
    PooledSoundscapes,
    Population,
    SimulatedPopulation,
    SoundFolder,
    Soundscapes,
)
from earshot_simulations.populations.embedded import HEAR
from earshot_simulations.populations.hearing import hearing_once
from earshot_simulations.populations.own import OwnPopulation
from earshot_simulations.populations.own_encoder import OwnEncoder

HEARD = ("phones", "recordings", "scenes", "data", "pool", "encoder", "heterogeneity", "seed")
"""Settings that determine what phones hear, without its projection and the labelled part."""

_ELSEWHERE = 2
"""Processes of a cluster, at least: phones run in others than this one."""
F = TypeVar("F", bound=PhaseFindings)


def simulate(
    settings: PhaseSettings[F],
    progress: Progress = silent,
    *,
    population: Population | None = None,
    clustering: CentroidDiscovery | None = None,
    attack: Attack | None = None,
    encoder: Encoder | None = None,
    after_step: Callable[[SimulatedStep], None] | None = None,
) -> Run[F]:
    """Run a phase from hearing to the published result.

    Ctrl-C or a failed phase ends the run early; the `Run` then has the results so far.

    Args:
        settings: Settings of the simulation.
        progress: Callback for progress.
        population: Phones of one's own, and what they hear, in place of `settings.data`.
        clustering: Clustering of one's own on the local route, in place of OPTICS.
        attack: Attack of one's own, besides those of `settings.adversary`.
        encoder: Encoder of one's own for soundscapes or a folder of sound, in place of
            `settings.encoder`.
        after_step: Callback that receives the record of each step once it is over: every round of
            every secure sum, and the server's own. Its exceptions are raised to the caller, except
            KeyboardInterrupt, which ends the run as Ctrl-C does.

    Returns:
        The run, with the privacy spent, its steps, and the result's scores and arrays in `found`.

    Raises:
        InvalidParametersError: The settings cannot be simulated; raised before any work.
        InvalidInputError: A folder has no usable recordings, or a file of vectors cannot be used.
        ClusterError: There is no such cluster, or it cannot run phones; raised before any work.
        MissingExtraError: The settings need an extra that is not installed; raised before any work.
        OwnCodeError: Something of one's own raised, or returned what cannot be used.
    """
    own = Own(population, clustering, attack, encoder)
    settings.check(own)
    here = settings.engine is names.EngineChoice.LOCAL
    own.check_copies(settings.jobs if here else _ELSEWHERE, BY_PHONES)
    started = time.perf_counter()
    # Not `with population`: hearing on entering could not be interrupted.
    with ExitStack() as stack:
        start = stack.enter_context(_engines(settings))
        settings, crowd = opened(settings, progress, own)
        stack.enter_context(closing(crowd))
        parameters = settings.parameters(crowd)
        parameters.check_feasible()
        interrupted, attacks, origin = None, Attacks(), dict[str, object]()
        try:
            origin = settings.provenance(own)
            crowd.prepare()
            attacks = settings.attack(crowd).joined(own.attack, crowd, settings.seed)
        except KeyboardInterrupt:
            interrupted = f"interrupted in the step '{HEAR}'"
        ideal = settings.summation is names.SummationChoice.IDEAL
        summation = IDEAL if ideal else SIMULATED[settings.summation.protocol]
        policy = POLICIES[settings.agreement]
        operators = SimulatedOperators(settings.seed)
        if settings.summation.protocol.by_operators:
            keys = operators.keys
            policy = replace(policy, leaders=(keys.identity,), helpers=(keys.helper,))
        scenario = Scenario(crowd, settings.seed, summation, policy, attacks)
        led = replace(summation, aggregator=operators.keys)
        engine = stack.enter_context(start(scenario))
        course = Course(
            parameters,
            engine,
            led if settings.summation.protocol.by_operators else summation,
            _clustering(own),
            settings.seed,
            progress,
            attacks.dropouts(
                draw_dropouts(parameters, settings.seed), parameters.plan(), parameters.phones
            ),
            after_step,
            operators.answer,
        )
        try:
            if interrupted is None:
                course.run()
        except KeyboardInterrupt:
            interrupted = f"interrupted in the step '{course.at or HEAR}'"
        except EngineError as error:
            interrupted = f"interrupted in the step '{course.at}': {error}"
        except OwnCodeError as error:
            raise OwnCodeError(f"{error} (in the step '{course.at}')") from error
        if course.failure is not None:
            interrupted = PHASE_FAILED + course.failure
        plan, spent = parameters.plan(), course.spent()
        left = {release.step for release in spent}
        achieved = _achieved(attacks, parameters, crowd, course)
        found = settings.found(crowd, course)
        return Run(
            version=distribution.version(),
            # The paths hold from any folder, so that the run can be repeated from any.
            configuration=names.placed(_used(settings, crowd, own), os.getcwd()),
            provenance=origin,
            population=crowd.name,
            phones=settings.phones,
            survivors=len(engine.present),
            found=found,
            adversary=achieved,
            privacy=spent,
            costs={name: cost for name, cost in step_costs(plan).items() if name in left},
            together=dict.fromkeys(Unit, Cost(math.inf, 1.0))
            if settings.noiseless
            else together(plan, left),
            steps=tuple(course.steps),
            skipped=crowd.skipped,
            is_known=settings.is_known(crowd.encoder),
            notes=(
                *filter(None, [crowd.unheard]),
                *own.notes(crowd),
                *settings.notes(crowd, achieved, found),
                *(() if settings.noiseless else settings.summation.notes),
                *course.notes,
            ),
            interrupted=interrupted,
            peak_memory_mb=engine.peak_memory() / 2**20,
            seconds=time.perf_counter() - started,
        )


def simulate_routes(
    asked: Mapping[names.Discovery, Settings], progress: Progress = silent
) -> dict[names.Discovery, Run[EnvironmentFindings]]:
    """Run the phases of several routes one after the other; one crowd hears once for all of them.

    Each has the result of `simulate` for its settings, bit for bit. Ctrl-C or a broken engine ends
    the current run early and prevents further ones; a failed phase does not.

    Args:
        asked: Settings of each route, in order.
        progress: Callback for progress, with the route before the name of a step.

    Raises:
        InvalidParametersError, InvalidInputError, ClusterError: Some phase cannot be simulated, as
            for `simulate`; raised before any work.
    """
    if len(asked) == 1:
        return {route: simulate(settings, progress) for route, settings in asked.items()}
    for settings in asked.values():
        settings.check()
        over, population = opened(settings)
        with closing(population):
            over.parameters(population).check_feasible()
    runs: dict[names.Discovery, Run[EnvironmentFindings]] = {}
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
def _engines(settings: PhaseSettings[Any]) -> Iterator[Callable[[Scenario], Engine]]:
    """Yield a function that starts the settings' engine, connected to its cluster if any."""
    if settings.engine is names.EngineChoice.LOCAL:
        yield lambda scenario: LocalEngine(scenario, settings.jobs)
        return
    from earshot_simulations.engine.cluster import connected
    from earshot_simulations.engine.ray import RayEngine

    with connected(settings.address, settings.jobs) as cluster:
        yield lambda scenario: RayEngine(scenario, cluster)


def _achieved(
    attacks: Attacks, parameters: Parameters, population: SimulatedPopulation, course: Course
) -> Success | None:
    """Return the success of the adversary; None if there was none."""
    if not attacks.corrupted:
        return None
    refused = sum(course.refused[phone] for phone in attacks.corrupted)
    expected = parameters.corrupted * parameters.phones
    result = course.coordinator.result() if course.coordinator.step == PUBLISHED else None
    published = result if isinstance(result, NamedCentroids) else None
    return measure(attacks, expected, refused, published, population.held_out())


def _clustering(own: Own) -> CentroidDiscovery:
    usual = Optics()
    return usual if own.clustering is None else OwnClustering(own.clustering, usual.allowed)


def _used(
    settings: PhaseSettings[Any], population: SimulatedPopulation, own: Own
) -> dict[str, object]:
    """Return the settings that a run used, without those that its own population replaced."""
    unused: tuple[str, ...] = ()
    if isinstance(population, OwnPopulation):
        unused = names.replaced(own.population is None)
    held = settings.configuration()
    return {name: held[name] for name in held if name not in unused}


def opened(
    settings: PhaseSettings[F],
    progress: Progress = silent,
    own: Own = OF_SETTINGS,
    *,
    hold_out: bool = True,
) -> tuple[PhaseSettings[F], SimulatedPopulation]:
    """Return phones, which the caller prepares and closes, and the settings of a phase over them.

    Args:
        settings: Settings of the phase.
        progress: Callback for progress.
        own: Things of the caller's own that take part.
        hold_out: Whether some clips of a folder of sound are held out.

    Raises:
        InvalidParametersError, InvalidInputError: They do not fit together, as for `simulate`.
    """
    over, population = settings.over(own)
    if population is not None:
        return over, population
    encoder = None if own.encoder is None else OwnEncoder(own.encoder)
    return over, open_population(over, progress, encoder, hold_out=hold_out)


def open_population(
    settings: PhaseSettings[Any],
    progress: Progress = silent,
    encoder: OwnEncoder | None = None,
    *,
    hold_out: bool = True,
) -> SimulatedPopulation:
    """Return the phones that settings of generated data or of sound name, as `opened`."""
    phones, recordings, scenes = settings.phones, settings.recordings, settings.scenes
    labelled, seed, differ = settings.labelled, settings.seed, settings.heterogeneity
    if settings.data == names.BLOBS:
        return settings.blobs(phones, recordings, scenes, labelled, seed, differ)
    sound = settings.projected, settings.jobs, progress
    how: dict[str, Any] = {"heterogeneity": differ}
    how["encoder"] = encoder if settings.encoder is None else encoder_path(settings.encoder)
    if settings.data == names.SOUNDSCAPES:
        generated = (phones, recordings, scenes, labelled, seed, *sound)
        if settings.pool is not None:
            return PooledSoundscapes(settings.pool, *generated, **how)
        return Soundscapes(*generated, **how)
    crowd = (phones, recordings, labelled, seed, *sound)
    return SoundFolder(Path(settings.data), *crowd, **how, hold_out=hold_out)
