"""One whole labelling phase over simulated phones, each with its real cryptography."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np

from earshot_client.voters import NearestRecordings
from earshot_protocol import distribution
from earshot_protocol.errors import WrongStateError
from earshot_protocol.phases.labelling import Labelled, LabellingParameters
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_server.discovery.optics import Optics
from earshot_server.phases.costs import step_costs, together
from earshot_simulations.engine.course import Course, Progress, StepRecord
from earshot_simulations.engine.interface import Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.labelling.settings import Settings
from earshot_simulations.phases.run import plain
from earshot_simulations.phases.settings import POLICIES
from earshot_simulations.phases.simulation import SUMMATIONS, open_population
from earshot_simulations.populations import Population, Recordings

_ASKED_ALONE = 200
"""Number of phones whose own labels are scored one by one."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The accuracy of labels; shares are of all samples.

    Attributes:
        answered: Share of samples that enough phones agree on.
        right: Share of answered samples with the true label; None without any.
        clear: Share of samples whose answer stands clear of the noise.
        clear_right: Share of clear samples with the true label; None without any.
        proposed_right: Share of samples whose label with the most noisy votes is true, answered or
            not.
        alone: Share of samples that a phone labels correctly by itself, on average over some
            phones.
        best_alone: Share of samples that the best of these phones labels correctly.
    """

    answered: float
    right: float | None
    clear: float
    clear_right: float | None
    proposed_right: float
    alone: float
    best_alone: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that `result.json` and `report.html` say about one simulated labelling phase.

    Attributes:
        settings: Settings of the simulation.
        parameters: Parameters of the phase.
        population: Phones and their recordings, in words.
        scenes: True label of each sample, as an index into the labels.
        outcome: Published result; None if the phase failed.
        scores: Scores of the outcome; None if the phase failed.
        survivors: Phones that stayed to the end.
        costs: Cost of each private step.
        together: Cost of all private steps together.
        steps: Records of the steps, in order.
        failure: Reason why the phase failed; None if it did not.
        notes: Refusals by phones and by the server.
        peak_memory_mb: Largest resident memory, in megabytes, as in `learning.run.Run`.
        seconds: Wall-clock time of the simulation, in seconds.
    """

    settings: Settings
    parameters: LabellingParameters
    population: str
    scenes: tuple[int, ...]
    outcome: Labelled | None
    scores: Scores | None
    survivors: int
    costs: Mapping[str, Mapping[Unit, Cost]]
    together: Mapping[Unit, Cost]
    steps: tuple[StepRecord, ...]
    failure: str | None
    notes: tuple[str, ...]
    peak_memory_mb: float
    seconds: float


def simulate(settings: Settings, progress: Progress = lambda what, done, total: None) -> Run:
    """Run a labelling phase from hearing to the published answers, and score them.

    Raises:
        InvalidParametersError: if the settings cannot be simulated; before any work.
        InvalidInputError: if a folder has no usable recordings.
    """
    settings.check()
    started = time.perf_counter()
    with ExitStack() as stack:
        population = stack.enter_context(closing(open_population(settings.heard, progress)))
        population.prepare()
        samples = settings.chosen(population)
        parameters = settings.parameters(population, samples)
        summation = SUMMATIONS[settings.summation]
        scenario = Scenario(population, settings.seed, summation, POLICIES[settings.policy])
        engine = stack.enter_context(LocalEngine(scenario, settings.jobs))
        course = Course(parameters, engine, summation, Optics(), settings.seed, progress)
        course.run()
        outcome = None
        if course.coordinator.step == PUBLISHED:
            published = course.coordinator.result()
            if not isinstance(published, Labelled):
                raise WrongStateError(f"a labelling phase published a {type(published).__name__}")
            outcome = published
        plan = parameters.plan()
        return Run(
            settings=settings,
            parameters=parameters,
            population=f"{population.name}, {settings.phones} phones",
            scenes=tuple(samples.scenes.tolist()),
            outcome=outcome,
            scores=None if outcome is None else score(outcome, samples, population),
            survivors=len(engine.present),
            costs=step_costs(plan),
            together=together(plan),
            steps=tuple(course.steps),
            failure=course.failure,
            notes=course.notes,
            peak_memory_mb=engine.peak_memory() / 2**20,
            seconds=time.perf_counter() - started,
        )


def score(outcome: Labelled, samples: Recordings, population: Population) -> Scores:
    """Score the published labels, beside those of phones alone."""
    labels, truth = np.array(outcome.labels), samples.scenes
    answered = labels >= 0
    clear = np.array([name is not None for name in outcome.names])
    proposed = np.array(outcome.label_votes).argmax(axis=1)
    alone = [
        _alone(population, phone, samples) for phone in range(min(population.phones, _ASKED_ALONE))
    ]
    return Scores(
        answered=float(answered.mean()),
        right=_share(labels[answered] == truth[answered]),
        clear=float(clear.mean()),
        clear_right=_share(labels[clear] == truth[clear]),
        proposed_right=float((proposed == truth).mean()),
        alone=float(np.mean(alone)),
        best_alone=float(np.max(alone)),
    )


def _alone(population: Population, phone: int, samples: Recordings) -> float:
    """Return the share of samples that a phone labels correctly by its own recordings."""
    heard = population.recordings(phone)
    names = (*population.labels, None)  # index -1, unlabelled, yields None
    labels = [names[label] for label in heard.labels.tolist()]
    answers = NearestRecordings.of(heard.points, labels).answers(samples.points)
    truth = [population.labels[scene] for scene in samples.scenes]
    return float(np.mean([given == true for given, true in zip(answers, truth, strict=True)]))


def _share(right: Any) -> float | None:
    return float(right.mean()) if len(right) else None


def result(run: Run) -> dict[str, Any]:
    """Return the run as in `result.json`, in plain Python types."""
    described: dict[str, object] = {
        "version": distribution.version(),
        "failure": run.failure,
        "phones": run.settings.phones,
        "survivors": run.survivors,
        "scores": None if run.scores is None else asdict(run.scores),
        "threshold": run.parameters.threshold,
        "votes_noise": run.parameters.votes_noise,
        "check_noise": run.parameters.check_noise,
        "samples": _samples(run),
        "privacy": {
            "releases": msgspec.to_builtins(run.parameters.plan().releases()),
            "together": {
                unit.value: {"epsilon": cost.epsilon, "delta": cost.delta}
                for unit, cost in run.together.items()
            },
        },
        "seconds": {
            "steps": {step.step: step.seconds for step in run.steps},
            "total": run.seconds,
        },
        "bytes_up_per_phone": {step.step: step.per_phone(step.bytes_up) for step in run.steps},
        "answered_by_step": {step.step: step.answered for step in run.steps},
        "peak_memory_mb": run.peak_memory_mb,
        "configuration": asdict(run.settings),
        "notes": run.notes,
    }
    return {name: plain(value) for name, value in described.items()}


def _samples(run: Run) -> list[dict[str, object]]:
    found, names = run.outcome, run.parameters.labels
    if found is None:
        return []
    return [
        {
            "truth": names[scene],
            "answer": names[found.labels[row]] if found.labels[row] >= 0 else None,
            "name": found.names[row],
            "agreement": found.agreement[row],
            "p_value": found.name_p_values[row],
            "votes": dict(zip(names, found.label_votes[row], strict=True)),
        }
        for row, scene in enumerate(run.scenes)
    ]
