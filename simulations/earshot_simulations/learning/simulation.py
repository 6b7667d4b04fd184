"""One whole learning phase over simulated phones, each with its real cryptography."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import RemoteError
from earshot_protocol.messages import Matrix, Result, decode_answer, encode
from earshot_protocol.phase import STEPS, Step
from earshot_protocol.privacy.accounting import (
    CENTROID_VOTE,
    CLUSTER,
    LABEL_VOTE,
    SELECT,
    Release,
    phase_releases,
)
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.participant import Participant
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.engine.ideal import IdealAggregator, IdealParticipant
from earshot_simulations.engine.local import Job, Scenario, answer_all, peak_memory
from earshot_simulations.learning.run import Run, StepRecord
from earshot_simulations.learning.scoring import score
from earshot_simulations.learning.settings import BLOBS, SOUNDSCAPES, Settings, Summation
from earshot_simulations.populations import Blobs, Population, Recordings, SoundFolder, Soundscapes

Progress = Callable[[str, int, int], None]
"""Told what is going on, how many phones or recordings are done, and of how many."""

DISCOVER = "discover"
_RELEASED_IN = {
    Step.LOCAL_CENTROIDS: (CLUSTER, SELECT),
    Step.CENTROID_VOTE_MASK: (CENTROID_VOTE,),
    Step.LABEL_VOTE_MASK: (LABEL_VOTE,),
}
"""The step in which something leaves the phones, and which private steps it pays for."""
_PICTURED_POINTS = 4000
_PICTURED_PHONES = 200
_SIDES: dict[Summation, tuple[type[Participant], type[Aggregator]]] = {
    Summation.REAL: (Participant, Aggregator),
    Summation.IDEAL: (IdealParticipant, IdealAggregator),
}


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
        simulation = _Simulation(settings, population, progress)
        try:
            population.prepare()
            simulation.run()
        except KeyboardInterrupt:
            simulation.interrupted = f"interrupted in the step '{simulation.at}'"
        return simulation.record(time.perf_counter() - started)


def _open_population(settings: Settings, progress: Progress) -> Population:
    if settings.data == BLOBS:
        return Blobs(
            settings.phones,
            settings.recordings,
            settings.scenes,
            settings.labelled,
            settings.seed,
        )

    def hearing(done: int, total: int) -> None:
        progress("hear", done, total)

    if settings.data == SOUNDSCAPES:
        return Soundscapes(
            settings.phones,
            settings.recordings,
            settings.scenes,
            settings.labelled,
            settings.seed,
            dimensions=settings.dimensions,
            jobs=settings.jobs,
            progress=hearing,
        )
    return SoundFolder(
        Path(settings.data),
        settings.phones,
        settings.recordings,
        settings.labelled,
        settings.seed,
        dimensions=settings.dimensions,
        jobs=settings.jobs,
        progress=hearing,
    )


class _Simulation:
    """The state of one run."""

    def __init__(self, settings: Settings, population: Population, progress: Progress) -> None:
        self.settings = settings
        self.population = population
        self.progress = progress
        self.at = "hear"
        self.interrupted: str | None = None
        self.steps: list[StepRecord] = []
        self.notes: list[str] = []
        participant, aggregator = _SIDES[settings.summation]
        self._scenario = Scenario(population, settings.seed, participant)
        self._aggregator = aggregator
        self._coordinator: Coordinator | None = None
        self._states = dict.fromkeys(range(settings.phones), b"")
        self._peaks: dict[int, int] = {}

    def run(self) -> None:
        """All steps, until the phase is over."""
        dropouts = draw_dropouts(self.settings.phones, self.settings.dropout, self.settings.seed)
        self._coordinator = Coordinator.start(
            MemoryPhaseStore(),
            Optics(),
            self.settings.parameters(self.population),
            now=0.0,
            aggregator=self._aggregator,
        )
        for number, step in enumerate(STEPS, start=1):
            self.at = step
            self._step(self._coordinator, step, dropouts[step], float(number))
            if self._coordinator.step is Step.FAILED:
                self.interrupted = f"the phase failed: {self._coordinator.state.failure}"
                return

    def _step(
        self, coordinator: Coordinator, step: Step, dropped: tuple[int, ...], number: float
    ) -> None:
        """One step: the phones that vanish now are gone, all others answer, the step is closed."""
        for phone in dropped:
            del self._states[phone]
        asked = len(self._states) + len(dropped)
        began, server_began = time.perf_counter(), time.process_time()
        jobs = [
            Job(phone, state, encode(coordinator.task_for(phone)))
            for phone, state in self._states.items()
        ]
        server_cpu = time.process_time() - server_began
        phone_cpu, bytes_up, answered = 0.0, 0, 0
        self.progress(step, 0, len(jobs))
        for batch in answer_all(self._scenario, step, jobs, self.settings.jobs):
            self._peaks[batch.process] = batch.peak_memory
            server_began = time.process_time()
            for outcome in batch.outcomes:
                phone_cpu += outcome.cpu_seconds
                self._states[outcome.phone] = outcome.state
                if outcome.refusal:
                    self._note(f"phone {outcome.phone}, {step}: {outcome.refusal}")
                    continue
                try:
                    coordinator.accept(outcome.phone, decode_answer(outcome.answer))
                except RemoteError as error:
                    self._note(f"server, {step}: {error}")
                    continue
                bytes_up += len(outcome.answer)
                answered += 1
            server_cpu += time.process_time() - server_began
            self.progress(step, answered, len(jobs))
        seconds = time.perf_counter() - began
        began, server_began = time.perf_counter(), time.process_time()
        # The clock runs past the deadline: whoever has not answered by now is gone.
        coordinator.advance(number * 2 * coordinator.state.parameters.step_seconds)
        closing, closing_cpu = time.perf_counter() - began, time.process_time() - server_began
        discovers = step is Step.LOCAL_CENTROIDS
        self.steps.append(
            StepRecord(
                step=step.value,
                asked=asked,
                answered=answered,
                dropped=dropped,
                seconds=seconds + (0.0 if discovers else closing),
                phone_cpu_seconds=phone_cpu,
                server_cpu_seconds=server_cpu + (0.0 if discovers else closing_cpu),
                bytes_up=bytes_up,
                bytes_down=sum(len(job.task) for job in jobs),
            )
        )
        if discovers:
            self.steps.append(
                StepRecord(step=DISCOVER, seconds=closing, server_cpu_seconds=closing_cpu)
            )

    def _note(self, note: str) -> None:
        if len(self.notes) < 100:
            self.notes.append(note)

    # ----------------------------------------------------------------------------- the record

    def record(self, seconds: float) -> Run:
        """Everything that is known, whether or not the phase came to its end."""
        settings, population, coordinator = self.settings, self.population, self._coordinator
        state = coordinator.state if coordinator else None
        done = coordinator is not None and coordinator.step is Step.PUBLISHED
        heard = self._heard() if self.at != "hear" else None
        result = coordinator.result() if coordinator and done else None
        scores = (
            score(result, heard, population.held_out())
            if isinstance(result, Result) and heard
            else None
        )
        labels = len(population.labels)
        zeros = np.zeros(labels, dtype=np.int64)
        pictured = heard or Recordings(
            np.empty((0, population.dimensions), np.float32),
            np.empty(0, np.int16),
            np.empty(0, np.int16),
        )
        sample = slice(0, _PICTURED_POINTS)
        self._peaks[os.getpid()] = peak_memory()
        return Run(
            version=version("earshot"),
            configuration=_configuration(settings),
            population=population.name,
            phones=settings.phones,
            survivors=len(self._states),
            geometry=population.geometry,
            label_names=population.labels,
            scene_names=population.labels,
            points=pictured.points[sample],
            scenes=pictured.scenes[sample],
            local_centroids=state.local_centroids() if state else None,
            local_clusters=np.asarray(state.clusters if state else (), dtype=np.int64),
            global_centroids=_array(state.centroids if state else None),
            centroid_votes=_votes(state.centroid_votes if state else ()),
            top=np.asarray(state.top if state else (), dtype=np.int64),
            label_votes=_votes(state.label_votes if state else ()),
            labels=np.asarray(state.labels if state else (), dtype=np.int64),
            ari_train=scores.ari_train if scores else None,
            ari_test=scores.ari_test if scores else None,
            label_accuracy=scores.label_accuracy if scores else None,
            privacy=self._spent(),
            label_histogram=scores.published if scores else zeros,
            true_histogram=scores.true if scores else zeros,
            steps=tuple(self.steps),
            skipped=population.skipped,
            notes=(*self._reading(), *self.notes),
            interrupted=self.interrupted,
            peak_memory_mb=sum(self._peaks.values()) / 2**20,
            seconds=seconds,
        )

    def _spent(self) -> tuple[Release, ...]:
        """What has left the phones so far."""
        # A step that was interrupted counts in full: some phones may have answered.
        done = {record.step for record in self.steps if record.answered} | {self.at}
        released = {name for step, names in _RELEASED_IN.items() if step in done for name in names}
        parameters = self.settings.parameters(self.population)
        return tuple(r for r in phase_releases(parameters) if r.step in released)

    def _heard(self) -> Recordings:
        """What some phones heard: enough to score and to draw."""
        generator = np.random.default_rng([self.settings.seed, 0x5])
        some = generator.permutation(self.settings.phones)[:_PICTURED_PHONES]
        heard = [self.population.recordings(int(phone)) for phone in some]
        mixed = generator.permutation(sum(len(recordings.points) for recordings in heard))
        return Recordings(
            np.concatenate([recordings.points for recordings in heard])[mixed],
            np.concatenate([recordings.labels for recordings in heard])[mixed],
            np.concatenate([recordings.scenes for recordings in heard])[mixed],
        )

    def _reading(self) -> tuple[str, ...]:
        """What a reader should know before trusting the figures."""
        notes = []
        if self.settings.summation is Summation.IDEAL:
            notes.append("The secure sum was replaced by plain addition: nothing was protected.")
        if self.population.geometry == "spherical":
            notes.append(
                "The shipped encoder was trained without labels on synthesized scenes, four folds "
                "of ESC-10 and spoken digits: it flatters sound that it knows. "
                "The local route spends each phone's budget on that phone's recordings alone, "
                "which leaves little of the clustering at a realistic ε: read these figures as a "
                "baseline."
            )
        return tuple(notes)


def _configuration(settings: Settings) -> dict[str, object]:
    return {name: value for name, value in asdict(settings).items() if name != "budget"} | {
        "budget": {
            name: getattr(settings.budget, name) for name in settings.budget.__struct_fields__
        }
    }


def _array(matrix: Matrix | None) -> npt.NDArray[np.float32] | None:
    return None if matrix is None else matrix.array()


def _votes(votes: tuple[object, ...]) -> npt.NDArray[np.int64] | None:
    return np.asarray(votes, dtype=np.int64) if votes else None
