"""Phases as a server of some months has them, written by hand, and an archive that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.messages import Failed
from earshot_protocol.phases.discovery import LABELS as LABELLED
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import CENTROID_VOTE, LABEL_VOTE, Budget, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.places import UNNAMED, Places
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.privacy.laws import NoiseLaw, SkellamNoise
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.privacy.significance import (
    answer_p_values,
    are_clear,
    count_p_values,
    name_p_values,
)
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import Matrix
from earshot_server.discovery.prototypes import prototypes
from earshot_server.records import (
    FAILED,
    GATHERING,
    PUBLISHED,
    RUNNING,
    STOPPED,
    STOPPED_REASON,
    PhaseRecord,
    StepRecord,
)
from earshot_server.store.archive import ServerCounts
from support.parameters import (
    discovery_parameters,
    labelling_parameters,
    learning_parameters,
    statistics_parameters,
)
from support.steps import STATISTICS_STEPS, STEPS, Step

NOW = 1_790_000_000.0
"""21 September 2026, 14:13:20 UTC."""
DAY = 86_400.0
LABELS = (
    *("public transport", "car", "street", "nature", "gastronomy", "home"),
    *("office", "shop", "event", "workshop", "sport"),
)
LEARNING = learning_parameters(
    phones=200,
    recordings=100,  # so many that the price per phone promises nothing
    dimensions=8,
    geometry=Geometry.SPHERICAL,
    encoder=DEFAULT_ENCODER,
    labels=LABELS,
    top_global_centroids=8,
    centroid_votes=3,
    label_votes=3,
    dropout=0.2,
    corrupted=0.05,
    budget=Budget(clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.5),
)
DISCOVERING = discovery_parameters(
    phones=200,
    labels=LABELS,
    encoder=DEFAULT_ENCODER,
    start=CentroidSet.of(np.random.default_rng(45).normal(0, 1, (10, 32))),
    sums=2,
    cells_noise=4.0,
    labels_noise=4.4,
    dropout=0.2,
    corrupted=0.05,
)
LABELLING = labelling_parameters(
    phones=200,
    labels=LABELS,
    encoder=DEFAULT_ENCODER,
    samples=Matrix.of(np.random.default_rng(47).normal(0, 1, (12, 8))),
    votes_noise=11.0,
    check_noise=12.0,
    threshold=40.0,
    dropout=0.2,
    corrupted=0.05,
)
COUNTING = statistics_parameters(phones=200, labels=LABELS, noise=2.5, dropout=0.2, corrupted=0.05)


@dataclass
class HandMadeArchive:
    """What the dashboard reads, without a database."""

    records: Sequence[PhaseRecord]
    enrolled: int = 214

    def phases(self, limit: int = 100) -> tuple[PhaseRecord, ...]:
        return tuple(self.records[:limit])

    def phase(self, phase: bytes) -> PhaseRecord | None:
        return next((record for record in self.records if record.phase == phase), None)

    def phases_of(self, campaign: bytes) -> tuple[PhaseRecord, ...]:
        """All of them, as if they were one campaign's."""
        return tuple(self.records)

    def counts(self) -> ServerCounts:
        return ServerCounts(self.enrolled, 48_300_000)


def name_of(number: int) -> bytes:
    return bytes([number]) * 3 + bytes(range(13))


def history(
    steps: Sequence[str], answers: Sequence[int], joined: int, began: float, seconds: float
) -> tuple[StepRecord, ...]:
    """One closed step per count of answers; each asks the phones that answered the one before."""
    expected = (joined, *answers)
    return tuple(
        StepRecord(
            number,
            step,
            expected[number],
            answered,
            began + number * seconds,
            began + (number + 1) * seconds,
        )
        for number, (step, answered) in enumerate(zip(steps, answers, strict=False))
    )


def record(
    number: int,
    status: str,
    parameters: Parameters = LEARNING,
    *,
    joined: int = 200,
    steps: tuple[StepRecord, ...] = (),
    ending: Result | Discovered | Statistics | Failed | None = None,
    created: float = NOW - DAY,
    finished: float | None = None,
    step: str | None = None,
    deadline: float | None = None,
    least: int = 120,
) -> PhaseRecord:
    return PhaseRecord(
        phase=name_of(number),
        parameters=parameters,
        status=status,
        created=created,
        finished=finished,
        wanted=parameters.phones,
        least=least,
        joined=joined,
        gather_until=created + 2 * DAY,
        step=step or status,
        deadline=deadline,
        steps=steps,
        ending=ending,
    )


def result(number: int, environments: int = 8, labels: Sequence[str] = LABELS) -> Result:
    """Environments on a ring of eight dimensions; the last one, and perhaps more, are unnamed."""
    random = np.random.default_rng([44, number])
    centroids = random.normal(0, 1, (environments, LEARNING.dimensions))
    named = [int(place) for place in random.integers(0, min(6, len(labels)), environments - 1)]
    votes = random.integers(-9, 10, (environments, len(labels)))
    votes[-1] = -abs(votes[-1])
    for row, label in enumerate(named):
        votes[row, label] += 70 - 6 * row
    winners = [*votes[:-1].argmax(axis=1).tolist(), -1]
    centroid_votes = tuple(130 - 15 * place for place in range(environments))
    parts = {part.name: part.mechanism.noise(183) for part in LEARNING.plan().parts[1:]}
    p_values = name_p_values(votes, parts[LABEL_VOTE])
    clear = are_clear(p_values, environments)
    return Result(
        phase=name_of(number),
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(centroids),
        labels=tuple(np.where(clear, winners, -1).tolist()),
        label_names=tuple(labels),
        centroid_votes=centroid_votes,
        label_votes=tuple(map(tuple, votes.tolist())),
        centroid_p_values=count_p_values(centroid_votes, parts[CENTROID_VOTE], environments),
        name_p_values=p_values,
        encoder=DEFAULT_ENCODER,
        privacy=LEARNING.plan().releases(),
    )


def published_learning(number: int, finished: float, environments: int = 8) -> PhaseRecord:
    answers = (192, 190, 190, 188, 186, 186, 185, 183, 183)
    return record(
        number,
        PUBLISHED,
        steps=history(STEPS, answers, 200, finished - DAY, DAY / 9),
        ending=result(number, environments),
        created=finished - 1.5 * DAY,
        finished=finished,
    )


def empty_learning(number: int, finished: float) -> PhaseRecord:
    """No environment has a name that stands clear of the noise."""
    made = msgspec.structs.replace(result(number), labels=(-1,) * 8, name_p_values=(1.0,) * 8)
    return msgspec.structs.replace(published_learning(number, finished), ending=made)


def published_statistics(number: int, finished: float, *, shift: int = 0) -> PhaseRecord:
    contacts = [612, 233, 418, 150, 371, 502, 344, 205, 96, 14, -11]
    counts = [count + shift * (place - 4) for place, count in enumerate(contacts)]
    # A third of them is labelled.
    labelled = [count / 3 for count in counts]
    step = unit_steps(COUNTING.entries) / COUNTING.contacts
    noise = COUNTING.plan().parts[0].mechanism.noise(186)
    entries = [*labelled, *(2 * count for count in labelled), 150.0]
    p_values = count_p_values([round(step * each) for each in entries], noise)
    return record(
        number,
        PUBLISHED,
        COUNTING,
        steps=history(STATISTICS_STEPS, (190, 188, 186, 184), 200, finished - DAY, DAY / 4),
        ending=Statistics(
            phase=name_of(number),
            label_names=LABELS,
            labelled=tuple(labelled),
            named=tuple(2 * count for count in labelled),
            unknown=150.0,
            labelled_p_values=p_values[: len(LABELS)],
            named_p_values=p_values[len(LABELS) : -1],
            unknown_p_value=p_values[-1],
            deviation=noise.deviation / step,
            contacts=COUNTING.contacts,
            phones=186,
            privacy=COUNTING.plan().releases(),
        ),
        created=finished - 1.5 * DAY,
        finished=finished,
    )


def discovered(
    number: int,
    length: float = 60.0,
    *,
    radius: float | None = 0.5,
    refused: float = 0.35,
) -> Discovered:
    """Eleven labels, of which the last four may be noise, and ten cells.

    The first two cells are near home's prototype, five near one of other labels; the eighth is a
    kind of place that nobody named, and the last two are where nobody is.
    """
    random = np.random.default_rng([46, number])
    shape, noise = (len(LABELS), 32), sum_noise(DISCOVERING, LABELLED, 183).deviation
    places = unit_rows(random.normal(0, 1, (12, 32)))
    heard = np.zeros(len(LABELS))
    heard[[5, 0, 1, 2, 3, 4, 6]] = length + 15 - 4 * np.array([0, 4, 5, 6, 7, 8, 9])
    steps = GRID
    total = heard[:, None] * places[:11] * steps + random.normal(0, noise, shape)
    cells = places[[5, 5, 0, 1, 2, 3, 4, 11, 7, 8]] + random.normal(0, 0.02, (10, 32))
    whole = np.column_stack([np.rint(total), heard]).astype(np.int64)
    found = prototypes(whole, noise, unit_rows(cells))
    ending = Discovered(
        phase=name_of(number),
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(found.directions),
        labels=tuple(range(len(LABELS))),
        choices=("",) * len(LABELS),
        label_names=LABELS,
        name_p_values=tuple(found.p_values.tolist()),
        lengths=tuple((found.lengths / steps).tolist()),
        cells=Matrix.of(unit_rows(cells)),
        moved=(*(True,) * 8, *(False,) * 2),
        cell_lengths=(31.0, 25.0, 55.5, 50.0, 44.0, 41.0, 37.0, 12.4, 0.0, 0.0),
        cell_prototypes=(),
        radius=radius,
        refused=refused,
        encoder=DEFAULT_ENCODER,
        privacy=DISCOVERING.plan().releases(),
    )
    return with_owners(ending)


def with_owners(found: Discovered) -> Discovered:
    """Give each cell the nearest prototype within the radius."""
    owners = Places.of(found).within(found.cells.array())
    return msgspec.structs.replace(
        found, cell_prototypes=tuple(UNNAMED if owner is None else owner for owner in owners)
    )


def sum_noise(parameters: Parameters, name: str, inputs: int) -> NoiseLaw:
    part = parameters.plan().part(name)
    assert isinstance(part, SecureSum)
    return part.mechanism.noise(inputs)


def published_discovery(number: int, finished: float, length: float = 60.0) -> PhaseRecord:
    return _discovery(number, finished, DISCOVERING, discovered(number, length))


def empty_discovery(number: int, finished: float) -> PhaseRecord:
    """Neither a label nor a cell stands clear of the noise."""
    made = msgspec.structs.replace(
        discovered(number),
        name_p_values=(1.0,) * len(LABELS),
        moved=(False,) * 10,
        cell_lengths=(0.0,) * 10,
    )
    return _discovery(number, finished, DISCOVERING, made)


def _discovery(
    number: int, finished: float, parameters: DiscoveryParameters, ending: Discovered
) -> PhaseRecord:
    steps = [step.name for step in parameters.plan().steps]
    answers = (192, 190, 190, 189, 188, 187, 186, 185, 185, 184, 183, 183)
    return record(
        number,
        PUBLISHED,
        parameters,
        steps=history(steps, answers, 200, finished - DAY, DAY / 12),
        ending=ending,
        created=finished - 1.5 * DAY,
        finished=finished,
    )


def labelled(number: int) -> Labelled:
    """Twelve samples: nine clear answers, two that may be noise, and one without an answer."""
    random = np.random.default_rng([48, number])
    votes = random.integers(-9, 10, (12, len(LABELS)))
    true = (*(150, 140, 130, 120, 110, 100, 95, 90, 85), 52, 50, 5)
    for row, count in enumerate(true):
        votes[row, row % 5] += count
    agreement = [*(148, 143, 128, 121, 113, 99, 92, 93, 86), 44, 41, 8]
    laws = [SkellamNoise(noise**2 * 184 / LABELLING.noise_survivors) for noise in (11.0, 12.0)]
    winners = votes.argmax(axis=1).tolist()
    return Labelled(
        phase=name_of(number),
        geometry=Geometry.SPHERICAL,
        centroids=LABELLING.samples,
        labels=tuple(w if a >= 40 else -1 for w, a in zip(winners, agreement, strict=True)),
        label_names=LABELS,
        label_votes=tuple(map(tuple, votes.tolist())),
        agreement=tuple(agreement),
        threshold=40.0,
        name_p_values=answer_p_values(votes, agreement, *laws),
        encoder=DEFAULT_ENCODER,
        privacy=LABELLING.plan().releases(),
    )


def published_labelling(number: int, finished: float) -> PhaseRecord:
    steps = [step.name for step in LABELLING.plan().steps]
    return record(
        number,
        PUBLISHED,
        LABELLING,
        steps=history(
            steps, (192, 190, 184, 184, 184, 184, 184, 183), 200, finished - DAY, DAY / 8
        ),
        ending=labelled(number),
        created=finished - 1.5 * DAY,
        finished=finished,
    )


def running(number: int = 1, answered: int = 131) -> PhaseRecord:
    began = NOW - 0.5 * DAY
    before = history(STEPS, (192, 190, 190), 200, began, 3600.0)
    opened = began + 3 * 3600.0
    present = StepRecord(3, Step.CENTROID_VOTE_MASK, 190, answered, opened, None)
    return record(
        number,
        RUNNING,
        steps=(*before, present),
        created=NOW - DAY,
        step=Step.CENTROID_VOTE_MASK,
        deadline=opened + DAY,
    )


def gathering(number: int = 2) -> PhaseRecord:
    return record(number, GATHERING, COUNTING, joined=64, created=NOW - 0.4 * DAY)


def too_few(number: int = 3) -> PhaseRecord:
    """Lost too many phones in its third step."""
    finished = NOW - 9 * DAY
    reason = "131 of 200 phones answered the round 'share keys'; at least 160 are needed"
    return record(
        number,
        FAILED,
        steps=history(STEPS, (192, 187, 131), 200, finished - 3 * DAY, DAY),
        ending=Failed(phase=name_of(number), reason=reason),
        created=finished - 4 * DAY,
        finished=finished,
    )


def never_started(number: int = 4) -> PhaseRecord:
    finished = NOW - 20 * DAY
    reason = "37 phones have joined in time; at least 120 are needed"
    return record(
        number,
        FAILED,
        joined=37,
        ending=Failed(phase=name_of(number), reason=reason),
        created=finished - 2 * DAY,
        finished=finished,
    )


def stopped(number: int = 5, *, asked: bool = False) -> PhaseRecord:
    """Stopped by an operator while it gathered, or after its first step."""
    finished = NOW - 2 * DAY
    return record(
        number,
        STOPPED,
        steps=history(STEPS, (192,), 200, finished - DAY, DAY) if asked else (),
        joined=200 if asked else 37,
        ending=Failed(phase=name_of(number), reason=STOPPED_REASON),
        created=finished - 1.5 * DAY,
        finished=finished,
    )


def some_months() -> tuple[PhaseRecord, ...]:
    """Newest first: two phases under way, failures, and results of half a year."""
    learned = [published_learning(10 + i, NOW - (3 + 30 * i) * DAY, 8 - i % 3) for i in range(6)]
    counted = [
        published_statistics(30 + i, NOW - (5 + 30 * i) * DAY, shift=24 * i) for i in range(6)
    ]
    over = [*learned, *counted, too_few(), never_started()]
    over.sort(key=lambda phase: -phase.created)
    return (gathering(), running(), *over)
