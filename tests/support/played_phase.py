"""A learning phase that a test plays: twelve phones, two scenes, any store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache

import msgspec
import numpy as np

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.phases.learning import Budget, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.secure_sum import encoding, masks
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation
from earshot_protocol.secure_sum.messages import MaskedInput
from earshot_protocol.wire import Answer, Task
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.interface import PhaseStore
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.ideal import IDEAL
from support.parameters import learning_parameters
from support.points import HeardPoints
from support.policies import without_budget

PHONES = 12
CENTRES = np.array([[-0.6, -0.5], [0.6, 0.4]])
CLASSES = ("bus", "park")
PARAMETERS = learning_parameters(
    phones=PHONES,
    recordings=12,
    labels=CLASSES,
    local_centroids=2,
    top_local_centroids=2,
    top_global_centroids=2,
    centroid_votes=2,
    label_votes=2,
    dropout=0.25,
    budget=Budget(clustering=40.0, selection=40.0, centroid_vote=2.0, label_vote=2.0),
    step_seconds=100.0,
)
POLICY = without_budget(least_phones=3)


def make_phones(
    summation: Summation = BELL,
    labelled: bool = True,
    days: Sequence[date | None] | None = None,
) -> dict[int, Phone]:
    phones = {}
    for number in range(PHONES):
        random = np.random.default_rng([81, number])
        scenes = np.arange(12) % 2
        points = CENTRES[scenes] + random.normal(0, 0.05, (12, 2))
        choices = [CLASSES[scene] if labelled else None for scene in scenes]
        phones[number] = Phone(
            MemoryStore(points.astype(np.float32), choices, days),
            HeardPoints("points", 2),
            POLICY,
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=random.bytes,
            summation=summation,
        )
    return phones


def no_change(coordinator: Coordinator) -> Coordinator:
    return coordinator


@dataclass
class Play:
    """A phase that goes from step to step; `disturb` may put another coordinator in the place."""

    coordinator: Coordinator
    phones: Mapping[int, Phone]
    present: set[int] = field(default_factory=lambda: set(range(PHONES)))
    disturb: Callable[[Coordinator], Coordinator] = no_change
    now: float = 0.0

    def answer(self, number: int) -> Answer:
        answer = self.phones[number].answer(self.coordinator.task_for(number))
        assert answer is not None
        return answer

    def answer_all(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.coordinator.accept(number, self.answer(number))

    def step(self) -> None:
        """Half of the answers, a disturbance, the others, the end of the step, a disturbance."""
        order = sorted(self.present, key=lambda number: number * 5 % PHONES)
        self.answer_all(order[: len(order) // 2])
        self.coordinator = self.disturb(self.coordinator)
        self.answer_all(order[len(order) // 2 :])
        self.coordinator = self.disturb(self.coordinator)
        self.now += 1000.0
        assert self.coordinator.advance(self.now)
        self.coordinator = self.disturb(self.coordinator)

    def until(self, step: str) -> None:
        while self.coordinator.step != step:
            self.step()


def play(
    ideal: bool = False,
    parameters: Parameters = PARAMETERS,
    store: PhaseStore | None = None,
) -> Play:
    summation = IDEAL if ideal else BELL
    coordinator = Coordinator.start(
        store or MemoryPhaseStore(), Optics(), parameters, now=0.0, summation=summation
    )
    return Play(coordinator, make_phones(summation))


def stored(coordinator: Coordinator) -> MemoryPhaseStore:
    store = coordinator._store
    assert isinstance(store, MemoryPhaseStore)
    return store


def again(coordinator: Coordinator) -> Coordinator:
    """Another process's coordinator of the same phase."""
    return Coordinator(
        coordinator._store,
        Optics(),
        coordinator.phase,
        summation=coordinator._replaced,
    )


def outcome(coordinator: Coordinator) -> Result:
    """The result, under a name that all phases share."""
    result = coordinator.result()
    assert isinstance(result, Result)
    return msgspec.structs.replace(result, phase=bytes(16))


@cache
def undisturbed() -> Result:
    """Return what the phase publishes when nothing happens to it."""
    game = play()
    game.until("published")
    return outcome(game.coordinator)


def lied(game: Play, answer: Answer, values: np.ndarray) -> MaskedInput:
    """Return an input of these numbers for an ideal sum, in which inputs travel unmasked."""
    assert isinstance(answer, MaskedInput)
    state = game.coordinator.state
    part = state.parameters.plan().part(game.coordinator.step.partition(":")[0])
    assert isinstance(part, SecureSum)
    agreed = state.parameters.sum_parameters(part, state.shape(part.name))
    whole = np.asarray(values, dtype=np.int64).ravel() % 2**agreed.modulus_bits
    words = whole.astype(masks.word_type(agreed.modulus_bits))
    return msgspec.structs.replace(answer, vector=encoding.pack(words, agreed.modulus_bits))


def liar(game: Play, step: str, values: np.ndarray) -> None:
    """Play up to this step and in it, where phone 4 sends these numbers and all others do right."""
    game.until(step)
    game.coordinator.accept(4, lied(game, game.answer(4), values))
    game.present -= {4}
    game.step()
    game.present |= {4}


def deceive(game: Play, victim: int, task: Task) -> None:
    """Show one phone another task than all others, and play on until it is to put in a number."""
    answer = game.phones[victim].answer(task)
    assert answer is not None
    game.coordinator.accept(victim, answer)
    game.present -= {victim}
    game.step()
    game.coordinator.accept(victim, game.answer(victim))
    game.step()
