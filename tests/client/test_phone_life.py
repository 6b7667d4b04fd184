"""A phone among others, and in everyday life."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.parameters import learning_parameters
from support.policies import without_budget
from support.recordings import CHOICES, POINTS
from support.steps import STEPS, Step

from earshot_client.encoder import default_encoder
from earshot_client.features import UnusableRecordingError
from earshot_client.labels import LabelHierarchy, UnknownLabelError
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import WrongKeyError
from earshot_client.store.memory import MemoryStore
from earshot_client.visits.outcome import Event, Visit
from earshot_client.visits.participation import Participation
from earshot_protocol.api import Refuse
from earshot_protocol.errors import (
    InvalidInputError,
    WrongStateError,
)
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Budget, Result
from earshot_protocol.rules import Rule
from earshot_protocol.wire import Answer, Matrix, Task
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.interface import HeardPoints

KEY = bytes(range(32))
CROWD = 8
GROUPS = LabelHierarchy({"bus": ("tram",), "park": ("garden",)})
PARAMETERS = learning_parameters(
    phones=CROWD,
    recordings=len(POINTS),
    labels=("bus", "park"),
    budget=Budget(clustering=20.0, selection=20.0, centroid_vote=2.0, label_vote=2.0),
)

# ------------------------------------------------------------------------------- among others


class Line:
    """A transport to a coordinator in the same process."""

    def __init__(self, coordinator: Coordinator, number: int) -> None:
        self.coordinator, self.number = coordinator, number
        self.sent: list[Answer] = []
        self.refused: list[Refuse] = []

    def task(self) -> Task:
        return self.coordinator.task_for(self.number)

    def send(self, answer: Answer) -> None:
        self.coordinator.accept(self.number, answer)
        self.sent.append(answer)

    def refuse(self, refusal: Refuse) -> None:
        self.refused.append(refusal)


POLICY = without_budget(least_phones=CROWD)


def visit(phone: Phone, line: Line) -> Visit:
    return Participation(phone, phone._store, line).visit(datetime(2026, 3, 1, 12))


def opened(folder: Path, number: int, encoder: str = "points") -> Phone:
    store = EncryptedStore(folder / str(number), KEY, dimensions=2)
    random = np.random.default_rng(number).bytes
    return Phone(store, HeardPoints(encoder, 2), POLICY, hierarchy=GROUPS, random=random)


def new_crowd(folder: Path) -> list[Phone]:
    """Phones that heard about the same, each in its encrypted file."""
    phones = [opened(folder, number) for number in range(CROWD)]
    for number, phone in enumerate(phones):
        jitter = np.random.default_rng(number).normal(0, 0.02, POINTS.shape)
        for point, choice in zip(POINTS + jitter, CHOICES, strict=True):
            recording = phone._store.add(point)
            if choice is not None:
                phone.label(recording, choice)
    return phones


def crowd_result(folder: Path, kill: bool) -> Result:
    """A phase of real phones in encrypted files, which `kill` closes and opens between any two."""
    random = [np.random.default_rng(seed).bytes for seed in range(CROWD)]
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), PARAMETERS, now=0.0)
    lines = [Line(coordinator, number) for number in range(CROWD)]
    phones = new_crowd(folder)
    for phone, source in zip(phones, random, strict=True):
        phone._memory = replace(phone._memory, random=source)
    for step in STEPS:
        assert coordinator.step == step
        for number in range(CROWD):
            if kill:
                phones[number].close()
                phones[number] = opened(folder, number)
                phones[number]._memory = replace(phones[number]._memory, random=random[number])
            answered = visit(phones[number], lines[number])
            assert (answered.event, answered.seconds) == (Event.ANSWERED, 0.0)
            waiting = visit(phones[number], lines[number])
            assert waiting.event is Event.WAITING
            assert 0 < waiting.seconds < PARAMETERS.step_seconds
        assert coordinator.advance(0.0)
    assert coordinator.step == Step.PUBLISHED
    for phone, line in zip(phones, lines, strict=True):
        assert visit(phone, line).event is Event.ENDED
        assert len(line.sent) == len(STEPS)
        assert phone.result == coordinator.result()
        booked = PARAMETERS.plan().expenses(0)
        assert phone.ledger.releases == tuple(each.release for each in booked)
        phone.close()
    return msgspec.structs.replace(coordinator.result(), phase=bytes(16))


def test_killed_between_any_two_tasks_the_phones_come_to_the_same(tmp_path: Path) -> None:
    for name in ("steady", "killed"):
        (tmp_path / name).mkdir()
    steady = crowd_result(tmp_path / "steady", kill=False)
    # A third candidate may have no name (-1); both environments have theirs.
    assert set(steady.labels) - {-1} == {0, 1}
    assert crowd_result(tmp_path / "killed", kill=True) == steady


@pytest.mark.parametrize("steps", [0, 1, 2, 5, len(STEPS)])
def test_another_encoder_starts_a_phone_anew_with_its_ledger(tmp_path: Path, steps: int) -> None:
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), PARAMETERS, now=0.0)
    lines = [Line(coordinator, number) for number in range(CROWD)]
    phones = new_crowd(tmp_path)
    for _ in range(steps):
        for phone, line in zip(phones, lines, strict=True):
            assert visit(phone, line).event is Event.ANSWERED
        coordinator.advance(0.0)
    visit(phones[0], lines[0])
    heard, paid = phones[0]._store.recordings(), phones[0].ledger.releases
    phones[0].close()
    # The same encoder changes nothing.
    with opened(tmp_path, 0) as phone:
        np.testing.assert_array_equal(phone._store.recordings()[0], heard[0])
        assert (phone.result is not None) == (steps == len(STEPS))
    better = msgspec.structs.replace(PARAMETERS, encoder="better")
    following = Coordinator.start(MemoryPhaseStore(), Optics(), better, now=0.0)
    with opened(tmp_path, 0, encoder="better") as phone:
        assert (len(phone._store.recordings()[0]), phone.result) == (0, None)
        assert phone.ledger.releases == paid
        if steps < len(STEPS) - 1:
            for other, line in zip(phones[1:], lines[1:], strict=True):
                visit(other, line)
            coordinator.advance(0.0)
            unknown = visit(phone, lines[0])  # of a phase that it no longer knows
            assert unknown.event is Event.TROUBLE
        sent = Line(following, 0)
        visit(phone, sent)
        assert len(sent.sent) == 1
        assert phone.ledger.releases[: len(paid)] == paid
        assert phone.ledger.releases_in(following.phase)
    for phone in phones[1:]:
        phone.close()


def test_what_a_server_may_not_ask_reaches_the_app() -> None:
    phone = Phone(MemoryStore(POINTS), HeardPoints("points", 2), Policy(least_phones=CROWD + 1))
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), PARAMETERS, now=0.0)
    line = Line(coordinator, 3)
    refused = visit(phone, line)
    assert refused.event is Event.REFUSED
    assert "least_phones" in refused.detail
    assert line.sent == []
    assert [each.rule for each in line.refused] == [Rule.LEAST_PHONES]


# ------------------------------------------------------------------------------- everyday life

RATE = 16_000


def chord(hertz: float, seed: int) -> np.ndarray:
    """A second of a few harmonics in faint noise: very unlike for unlike pitches."""
    time = np.arange(RATE) / RATE
    random = np.random.default_rng(seed)
    tones = sum(np.sin(2 * np.pi * hertz * k * time + random.uniform(0, 6)) for k in (1, 2, 3))
    return 0.1 * np.asarray(tones) + 0.01 * random.normal(size=RATE)


def test_it_hears_is_told_and_names_scenes(tmp_path: Path) -> None:
    encoder = default_encoder()
    with Phone.open(tmp_path / "phone", key=KEY) as phone:
        with pytest.raises(WrongStateError, match="take part"):
            phone.scene(chord(200, 0), RATE)
        low, high = (phone.hear(chord(hertz, 1), RATE) for hertz in (200, 1000))
        phone.label(low, "train")
        embeddings, choices = phone._store.recordings()
        assert choices == ("train", None)
        assert embeddings.shape == (2, 128)
        result = Result(
            phase=bytes(16),
            geometry=Geometry.SPHERICAL,
            centroids=Matrix.of(encoder.project(embeddings, 8)),
            labels=(1, -1),
            label_names=("park", "public transport"),
            centroid_votes=(9, 8),
            label_votes=((0, 9), (0, 0)),
            centroid_p_values=(0.0, 0.0),
            name_p_values=(0.01, 1.0),
            encoder=encoder.name,
            privacy=(),
        )
        phone.answer(result)
    with Phone.open(tmp_path / "phone", key=KEY) as phone:
        assert phone.scene(chord(205, 2), RATE) == "public transport"
        assert phone.scene(chord(990, 3), RATE) is None
        assert high != low


def test_a_file_opens_with_its_own_key_only(tmp_path: Path) -> None:
    Phone.open(tmp_path / "phone", key=KEY).close()
    with pytest.raises(WrongKeyError):
        Phone.open(tmp_path / "phone", key=bytes(32))


def test_useless_sound_and_unknown_labels_are_refused(tmp_path: Path) -> None:
    with Phone.open(tmp_path / "phone", key=KEY) as phone:
        for useless in (np.zeros(RATE), chord(200, 0)[: RATE // 2], np.full(RATE, np.nan)):
            with pytest.raises(UnusableRecordingError):
                phone.hear(useless, RATE)
        recording = phone.hear(chord(200, 0), RATE)
        with pytest.raises(UnknownLabelError, match="train"):
            phone.label(recording, "trian")
        with pytest.raises(InvalidInputError, match="no recording"):
            phone.label(recording + 1, "train")
        assert phone._store.recordings()[1] == (None,)
        assert len(phone._store.recordings()[0]) == 1
