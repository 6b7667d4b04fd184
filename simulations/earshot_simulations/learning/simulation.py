"""One whole learning phase over simulated phones, each with its real cryptography."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation
from earshot_protocol.wire import Matrix
from earshot_server.discovery.interface import Discovery
from earshot_server.discovery.optics import Optics
from earshot_server.phases.learning import LearningPhase
from earshot_simulations.engine.course import Course, Progress
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import Engine, Scenario
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
        simulation = _Simulation(settings, population, progress)
        try:
            population.prepare()
            simulation.run()
        except KeyboardInterrupt:
            simulation.interrupted = f"interrupted in the step '{simulation.at}'"
        return simulation.record(time.perf_counter() - started)


def _open_population(settings: Settings, progress: Progress) -> Population:
    phones, recordings, scenes = settings.phones, settings.recordings, settings.scenes
    labelled, seed = settings.labelled, settings.seed
    if settings.data == names.BLOBS:
        return Blobs(phones, recordings, scenes, labelled, seed)
    sound = settings.dimensions, settings.jobs, partial(progress, HEAR)
    if settings.data == names.SOUNDSCAPES:
        return Soundscapes(phones, recordings, scenes, labelled, seed, *sound)
    return SoundFolder(Path(settings.data), phones, recordings, labelled, seed, *sound)


class _Simulation:
    """The state of one run."""

    def __init__(self, settings: Settings, population: Population, progress: Progress) -> None:
        self.settings = settings
        self.population = population
        self.progress = progress
        self.interrupted: str | None = None
        self._summation = SUMMATIONS[settings.summation]
        scenario = Scenario(population, settings.seed, self._summation)
        self._engine: Engine = ENGINES[settings.engine](scenario, settings.jobs)
        self._course: Course | None = None

    @property
    def at(self) -> str:
        """What is under way."""
        return self._course.at if self._course else HEAR

    def run(self) -> None:
        """All steps, until the phase is over."""
        self._course = Course(
            self.settings.parameters(self.population),
            self._engine,
            self._summation,
            DISCOVERIES[self.settings.discovery](),
            self.settings.seed,
            self.progress,
        )
        self._course.run()
        if self._course.failure is not None:
            self.interrupted = f"the phase failed: {self._course.failure}"

    # ----------------------------------------------------------------------------- the record

    def record(self, seconds: float) -> Run:
        """Everything that is known, whether or not the phase came to its end."""
        settings, population, course = self.settings, self.population, self._course
        state = course.coordinator.state if course else None
        state = state if isinstance(state, LearningPhase) else None
        heard = self._heard() if course else None
        done = state is not None and state.step == PUBLISHED
        result = course.coordinator.result() if course and done else None
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
        return Run(
            version=version("earshot"),
            configuration=_configuration(settings),
            population=population.name,
            phones=settings.phones,
            survivors=len(self._engine.present),
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
            steps=tuple(course.steps) if course else (),
            skipped=population.skipped,
            notes=(*self._reading(), *(course.notes if course else ())),
            interrupted=self.interrupted,
            peak_memory_mb=self._engine.peak_memory() / 2**20,
            seconds=seconds,
        )

    def _spent(self) -> tuple[Release, ...]:
        """What has left the phones so far."""
        if self._course is None:
            return ()
        # A step that was interrupted counts in full: some phones may have answered.
        done = {record.step for record in self._course.steps if record.answered} | {self.at}
        plan = self.settings.parameters(self.population).plan()
        left = {name for step in plan.steps if step.name in done for name in step.releases}
        return tuple(release for release in plan.releases() if release.step in left)

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
        if self.settings.summation is names.Summation.IDEAL:
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
