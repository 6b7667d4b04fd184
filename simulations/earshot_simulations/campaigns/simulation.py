"""A campaign over simulated phones: the same plan, coordinator, phones, ledgers and policies.

Phones live on from phase to phase. A phase opens at the moment from which it may, and takes no
time: nothing is late, and each day of a ledger is that of the plan.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import encoder_path
from earshot_client.policy import Policy
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters, hierarchy_of
from earshot_protocol.phases.places import AgreedPlaces, Places
from earshot_protocol.phases.plan import PUBLISHED, SecureSum
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.progress import Progress, silent
from earshot_protocol.wire import encode
from earshot_server.campaigns.campaign import Campaign
from earshot_server.campaigns.plan import CampaignPlan, Planning, planned
from earshot_server.campaigns.schedule import PhaseKind, PlannedPhase, midnight
from earshot_server.campaigns.slots import Slot, SlotState, of_slot, phase_identifier
from earshot_server.campaigns.weekly_sum import histogram
from earshot_server.discovery.optics import Optics
from earshot_server.phases.options import PhaseOptions
from earshot_simulations.campaigns.findings import CampaignRun, WeekFound, entries_of, spent_by
from earshot_simulations.campaigns.kept import KeptCampaign
from earshot_simulations.campaigns.life import Life, PresentPhones
from earshot_simulations.campaigns.settings import CampaignSettings, CampaignSummation
from earshot_simulations.engine.course import Course
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.engine.operators import SIMULATED, SimulatedOperators
from earshot_simulations.phases.settings import BLOBS, SOUNDSCAPES, Settings
from earshot_simulations.phases.simulation import opened
from earshot_simulations.populations import Heterogeneity, SimulatedPopulation
from earshot_simulations.populations.interface import Recordings
from earshot_simulations.populations.population import UNLABELLED
from earshot_simulations.populations.vectors import is_vectors

_POOLED_PHONES = 50
_SEEDS, _DROPOUTS = 0xCA4, 0xCA5
_ALIKE = 1e6
"""Concentration at which every phone of the pool hears every scene."""
MAP_EPSILON = 1.5
"""Cost ε of the discovery that stands for the map that a campaign's file names."""
PHASE = "phase"
"""Name of the progress of a campaign."""


def simulate_campaign(
    campaign: Campaign,
    settings: CampaignSettings = CampaignSettings(),  # noqa: B008 - it cannot be changed
    folder: Path | None = None,
    progress: Progress = silent,
    after_phase: Callable[[Slot], None] | None = None,
) -> CampaignRun:
    """Live through a campaign.

    Args:
        campaign: The campaign.
        settings: Phones, what they hear, and how that changes.
        folder: Existing folder that keeps what there is after each phase. A run that was
            interrupted goes on from there, and ends as it would have otherwise, bit for bit (where
            keys come from the operating system, in its results). None to keep nothing.
        progress: Callback for progress.
        after_phase: Callback that receives what became of each phase, once it is over.

    Returns:
        The run, with what became of every planned phase.

    Raises:
        InvalidParametersError: The campaign cannot be planned or simulated with these settings.
        InvalidInputError: Sound or the file of factors cannot be used, or the folder keeps another
            simulation.
    """
    settings.check(campaign)
    if settings.phones is not None:
        expected = msgspec.structs.replace(campaign.expected, phones=settings.phones)
        campaign = msgspec.structs.replace(campaign, expected=expected)
    plan = planned(campaign)
    _, source = opened(_source(campaign, settings), progress, hold_out=False)
    with closing(source):
        scenes = _labels_of(source, campaign.labels, settings)
        source.prepare()
        pool = _pool(source)
        life = Life(campaign, settings, pool, scenes)
        return _Simulation(plan, settings, life, source, folder).run(progress, after_phase)


def _source(campaign: Campaign, settings: CampaignSettings) -> Settings:
    """Return settings of the population from which the pool is taken."""
    vectors, labels = is_vectors(settings.data), len(campaign.labels)
    common: dict[str, Any] = {"data": settings.data, "seed": settings.seed, "jobs": settings.jobs}
    if vectors:
        return Settings(**common)
    encoder = None if settings.encoder is None else str(encoder_path(settings.encoder))
    return Settings(
        **common,
        phones=_POOLED_PHONES,
        recordings=max(1, settings.pool * labels // _POOLED_PHONES),
        scenes=min(labels, 20) if settings.data == BLOBS else 10,
        pool=settings.pool if settings.data == SOUNDSCAPES else None,
        labelled=0.0,
        encoder=encoder,
        heterogeneity=Heterogeneity(concentration=_ALIKE),
    )


def _labels_of(
    source: SimulatedPopulation, labels: tuple[str, ...], settings: CampaignSettings
) -> NDArray[np.int64]:
    """Return the campaign's label of each scene, as its index.

    Raises:
        InvalidParametersError: There is sound of a scene that the campaign does not count.
    """
    # Blobs have no names of their own.
    names = labels[: len(source.labels)] if settings.data == BLOBS else source.labels
    unknown = [name for name in names if name not in labels]
    if unknown:
        raise InvalidParametersError(
            f"labels: the sound of {settings.data} is of {', '.join(names)}, and the campaign "
            f"counts {', '.join(labels)}: add {', '.join(unknown)} to its labels"
        )
    return np.array([labels.index(name) for name in names], dtype=np.int64)


def _pool(source: SimulatedPopulation) -> Recordings:
    """Return all recordings of known scenes."""
    heard = [source.recordings(phone) for phone in range(source.phones)]
    points, scenes = (
        np.concatenate([getattr(each, name) for each in heard]) for name in ("points", "scenes")
    )
    known = np.flatnonzero(scenes >= 0)
    return Recordings(points[known], scenes[known], scenes[known])


@dataclass
class _State:
    """What there is after a phase, and what the next one needs.

    Attributes:
        slots: What became of the phases so far.
        weeks: Truth and error of the weeks so far.
        places: Places of the newest map; None without one.
        map: Identifier of its discovery.
        mapped: Moment at which that ended.
        refusals: Number of refusals by phones, by reason.
    """

    slots: list[Slot] = field(default_factory=list)
    weeks: list[WeekFound] = field(default_factory=list)
    places: AgreedPlaces | None = None
    map: str = ""
    mapped: datetime | None = None
    refusals: dict[str, int] = field(default_factory=dict)


class _Simulation:
    """A campaign under way."""

    def __init__(
        self,
        plan: CampaignPlan,
        settings: CampaignSettings,
        life: Life,
        source: SimulatedPopulation,
        folder: Path | None,
    ) -> None:
        self._plan, self._settings, self._life, self._source = plan, settings, life, source
        self._campaign = plan.campaign
        self._planning = Planning(plan.campaign)
        self._hierarchy: LabelHierarchy = hierarchy_of(
            self._campaign.labels, self._campaign.choices
        )
        self._kept = None if folder is None else KeptCampaign(folder, plan, settings)
        self._state = _State()

    def run(self, progress: Progress, after_phase: Callable[[Slot], None] | None) -> CampaignRun:
        """Live through all phases that are left."""
        began, phases = time.perf_counter(), self._plan.phases
        while self._life.week < 0:
            self._life.live()
        first = self._scenario(self._life.present(self._source), 0.0, 0)
        with LocalEngine(first, self._settings.jobs) as engine:
            self._resume(engine)
            if self._campaign.map and not self._state.map:
                self._find_first_map()
            for place in range(len(self._state.slots), len(phases)):
                progress(PHASE, place, len(phases))
                self._phase(engine, phases[place], place)
                if self._kept is not None:
                    self._kept.keep(self._state, engine.states())
                if after_phase is not None:
                    after_phase(self._state.slots[-1])
            progress(PHASE, len(phases), len(phases))
            return self._run(engine, began)

    def _resume(self, engine: LocalEngine) -> None:
        """Go on from what the folder keeps."""
        found = None if self._kept is None else self._kept.read(_State)
        if found is None:
            return
        self._state, states = found
        while self._life.week < self._elapsed(len(self._state.slots) - 1):
            self._life.live()
        engine.restore(states)

    def _elapsed(self, place: int) -> int:
        """Return the number of weeks that have passed when a phase opens."""
        return (self._plan.phases[place].opens.date() - self._campaign.begins).days // 7

    def _run(self, engine: LocalEngine, began: float) -> CampaignRun:
        return CampaignRun(
            plan=self._plan,
            settings=self._settings,
            slots=tuple(self._state.slots),
            weeks=tuple(self._state.weeks),
            spent=spent_by(engine.states(), self._life.joined, self._plan),
            refusals=self._state.refusals,
            map_found=self._state.places is not None
            and any(label != UNLABELLED for label in self._state.places.labels),
            seconds=time.perf_counter() - began,
            peak_memory_mb=engine.peak_memory() / 2**20,
        )

    # ------------------------------------------------------------------------------- a phase

    def _phase(self, engine: LocalEngine, phase: PlannedPhase, place: int) -> None:
        """Live up to the moment at which a phase opens, and run it."""
        gone: list[NDArray[np.int64]] = []
        while self._life.week < self._elapsed(place):
            gone.append(self._life.live())
        if any(len(each) for each in gone):
            states = engine.states()
            for phone in np.concatenate(gone).tolist():
                states.pop(phone, None)
            engine.restore(states)
        crowd = self._life.present(self._source)
        identifier = phase_identifier(self._plan.digest, phase.kind, phase.number, 1)
        parameters = self._parameters(phase, crowd)
        course = self._course(engine, parameters, crowd, identifier, phase.opens, place)
        course.run()
        self._end(engine, course)
        self._note(course)
        result = course.coordinator.result() if course.coordinator.step == PUBLISHED else None
        if isinstance(result, NamedCentroids):
            self._adopt(result, identifier, phase.opens)
        counted = result if isinstance(result, Statistics) else None
        self._state.slots.append(
            Slot(
                planned=phase,
                state=SlotState.FAILED if result is None else SlotState.PUBLISHED,
                attempts=1,
                phase=identifier.hex(),
                reason=course.failure or "",
                opened=phase.opens,
                ended=phase.opens,
                enrolled=crowd.phones,
                map=self._state.map,
                mapped=self._state.mapped,
                result=counted,
            )
        )
        if phase.kind is PhaseKind.STATISTICS:
            self._state.weeks.append(self._found(course, parameters, phase.number, counted))

    def _parameters(self, phase: PlannedPhase, crowd: PresentPhones) -> Parameters:
        if phase.since is not None and phase.until is not None:
            asked = self._planning.confusion_week if self._lacks_matrix(phase) else None
            week = asked or self._planning.week
            return of_slot(week, phase.since, phase.until, self._state.places, crowd.phones)
        if self._campaign.discovery is None:
            raise ValueError("a discovery of a campaign without discoveries")
        return self._discovery(crowd, self._campaign.discovery.epsilon)

    def _lacks_matrix(self, phase: PlannedPhase) -> bool:
        """Return whether a phase is to have a confusion matrix that its map lacks."""
        return (
            phase.confusion
            and bool(self._state.map)
            and not any(
                slot.planned.confusion and slot.map == self._state.map and slot.result is not None
                for slot in self._state.slots
            )
        )

    def _discovery(self, crowd: PresentPhones, epsilon: float) -> Parameters:
        campaign = self._campaign
        options = PhaseOptions(
            phones=crowd.phones,
            epsilon=epsilon,
            delta=self._planning.week.delta,
            labels=campaign.labels,
            choices=campaign.choices,
            dropout=campaign.sum.dropout,
            corrupted=campaign.sum.corrupted,
            summation=campaign.sum.summation,
        )
        found = options.discovery_parameters(crowd.encoder, crowd.start)
        return msgspec.structs.replace(found, step_seconds=self._planning.week.step_seconds)

    def _scenario(self, crowd: PresentPhones, moment: float, place: int) -> Scenario:
        ideal = self._settings.summation is CampaignSummation.IDEAL
        summation = IDEAL if ideal else SIMULATED[self._campaign.sum.summation]
        return Scenario(crowd, self._seed(place), summation, Policy(), moment=moment, lasting=True)

    def _seed(self, place: int) -> int:
        """Return the seed of a phase: of its noise, its graphs and its dropouts."""
        drawn = np.random.SeedSequence([self._settings.seed, _SEEDS, place])
        return int(drawn.generate_state(1)[0])

    def _course(
        self,
        engine: LocalEngine,
        parameters: Parameters,
        crowd: PresentPhones,
        identifier: bytes,
        opens: datetime,
        place: int,
    ) -> Course:
        moment, seed = opens.timestamp(), self._seed(place)
        scenario = self._scenario(crowd, moment, place)
        led, helper = scenario.summation, None
        if self._campaign.sum.summation.by_operators:
            operators = SimulatedOperators(seed, moment)
            keys = operators.keys
            policy = replace(scenario.policy, leaders=(keys.identity,), helpers=(keys.helper,))
            scenario = replace(scenario, policy=policy)
            led, helper = replace(scenario.summation, aggregator=keys), operators.answer
        engine.begin(scenario)
        return Course(
            parameters,
            engine,
            led,
            Optics(),
            seed,
            dropouts=self._dropouts(parameters, seed),
            helper=helper,
            phase=identifier,
            began=moment,
        )

    def _dropouts(self, parameters: Parameters, seed: int) -> dict[str, tuple[int, ...]]:
        """Draw the phones that vanish, each before a step drawn from all."""
        generator = np.random.default_rng([seed, _DROPOUTS])
        count = int(self._settings.dropout * parameters.phones)
        vanishing = generator.choice(parameters.phones, count, replace=False)
        steps = parameters.plan().steps
        drawn = generator.integers(len(steps), size=count)
        return {
            step.name: tuple(sorted(vanishing[drawn == number].tolist()))
            for number, step in enumerate(steps)
        }

    def _end(self, engine: LocalEngine, course: Course) -> None:
        """Let the phones that are left have the result."""
        number = len(course.coordinator.state.parameters.plan().steps)
        ending = encode(course.coordinator.task_for(0))

        def tasks() -> Iterator[tuple[int, bytes]]:
            for phone in sorted(engine.present):
                yield phone, ending

        for _ in engine.answer(number, tasks()):
            pass

    def _note(self, course: Course) -> None:
        counted = Counter(self._state.refusals) + Counter(course.declined.values())
        self._state.refusals = dict(sorted(counted.items()))

    def _adopt(self, result: NamedCentroids, identifier: bytes, moment: datetime) -> None:
        self._state.places = AgreedPlaces.of(
            Places.of(result), self._source.encoder, self._hierarchy
        )
        self._state.map, self._state.mapped = identifier.hex(), moment

    def _find_first_map(self) -> None:
        """Find the map that the file names, by phones that are not those of the campaign."""
        moment = midnight(self._campaign.begins)
        crowd = self._life.present(self._source)
        place = len(self._plan.phases)
        scenario = self._scenario(crowd, moment.timestamp(), place)
        identifier = bytes.fromhex(self._campaign.map)
        with LocalEngine(scenario, self._settings.jobs) as engine:
            parameters = self._discovery(crowd, MAP_EPSILON)
            course = self._course(engine, parameters, crowd, identifier, moment, place)
            course.run()
            self._note(course)
        if course.failure is not None:
            raise InvalidInputError(
                f"map: the discovery that stands for it failed: {course.failure}"
            )
        result = course.coordinator.result()
        if isinstance(result, NamedCentroids):
            self._adopt(result, identifier, moment)

    # ---------------------------------------------------------------------------- the truth

    def _found(
        self, course: Course, parameters: Parameters, number: int, result: Statistics | None
    ) -> WeekFound:
        """Return the truth of a week beside what was published."""
        week, phones = self._life.of_week(number), self._life.phones
        names = self._campaign.labels
        labels = len(names)
        came = np.zeros(phones, dtype=np.bool_)
        came[self._came(course)] = True
        entries = entries_of(week.recordings, self._state.places, names)
        of_those = came[week.phones]
        counts = np.zeros((phones, 2 * labels + 1))
        np.add.at(counts, (week.phones, entries), 1.0)
        lengths = np.maximum(self._plan.contacts, np.linalg.norm(counts, axis=1))
        projected = counts * (self._plan.contacts / lengths)[:, None]
        scenes = week.recordings.scenes.astype(np.int64)
        unlabelled = week.recordings.labels == UNLABELLED
        named = unlabelled & (entries < 2 * labels)
        right = named & (entries - labels == scenes)
        return WeekFound(
            number=number,
            phones=int(came.sum()),
            true=_counted(scenes[of_those], labels),
            everybody=_counted(scenes, labels),
            exact=tuple(projected[came].sum(axis=0).tolist()),
            published=() if result is None else (*result.labelled, *result.named, result.unknown),
            deviation=0.0 if result is None else result.deviation,
            named=int(named[of_those].sum()),
            named_right=int(right[of_those].sum()),
            has_map=self._state.places is not None,
        )

    def _came(self, course: Course) -> list[int]:
        """Return the phones whose counts were added up."""
        gone = set(course.declined) | set(course.refused)
        part = histogram(self._planning.week)
        last = _input_step(course.coordinator.state.parameters, part)
        for step in course.steps[: last + 1]:
            gone.update(step.dropped)
        return [phone for phone in range(self._life.phones) if phone not in gone]


def _input_step(parameters: Parameters, part: SecureSum) -> int:
    """Return the number of the step in which phones send their counts."""
    steps = parameters.plan().steps
    return next(
        number
        for number, step in enumerate(steps)
        if any(name in part.mechanisms for name in step.releases)
    )


def _counted(scenes: NDArray[np.int64], labels: int) -> tuple[int, ...]:
    return tuple(np.bincount(scenes, minlength=labels).tolist())
