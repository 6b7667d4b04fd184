"""A phone's part in a labelling phase: its ballots, its weight, and how it retires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.endings import labelled, result
from support.parameters import labelling_parameters
from support.phase_tasks import numbered, opening, sent_input
from support.points import AGREES, HeardPoints

from earshot_client.labels import LabelHierarchy
from earshot_client.phases.memory import Memory
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.voters import NearestRecordings
from earshot_protocol.errors import EarshotError, InvalidInputError, RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.labelling import (
    CHECK,
    VOTES,
    CheckLabels,
    Labelled,
    LabellingParameters,
    LabelSamples,
)
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.privacy.accounting import epsilon_at
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.wire import Matrix
from earshot_simulations.engine.ideal import IDEAL

CLASSES = ("bus", "park")
DAY = 86_400.0
PARAMETERS = labelling_parameters(labels=CLASSES, votes_noise=20.0, check_noise=20.0)
SAMPLES = PARAMETERS.samples.rows


@dataclass(frozen=True)
class Model:
    given: Sequence[str | None]
    classes: tuple[str, ...] = CLASSES

    def answers(self, samples: np.ndarray) -> Sequence[str | None]:
        assert samples.dtype == np.float32
        assert np.allclose(np.linalg.norm(samples, axis=1), 1)
        return self.given


class Life:
    """A phone through the years: it may be killed at any point, and its noise is known."""

    def __init__(self, voter: Model | None, policy: Policy = AGREES, *heard: Any) -> None:
        self.store = MemoryStore(*heard)
        self.voter, self.policy = voter, policy
        self.now = 0.0
        self._own, self._known = (np.random.default_rng(3) for _ in range(2))
        self.reborn()

    def reborn(self) -> None:
        """As after a crash: whatever it knows is in its store."""
        self.phone = Phone(
            self.store,
            HeardPoints("points", 2),
            self.policy,
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=self._own.bytes,
            summation=IDEAL,
            clock=lambda: self.now,
            uptime=lambda: self.now,
            voter=self.voter,
        )

    def input(self, task: SumPartTask, parameters: LabellingParameters, part: str) -> np.ndarray:
        """What it puts into a sum, without its noise."""
        noisy = sent_input(self.phone, task)
        summed = parameters.plan().part(part)
        assert isinstance(summed, SecureSum)
        return noisy - summed.mechanism.noise_share(noisy.shape, self._known.bytes)

    def votes(self, number: int, parameters: LabellingParameters = PARAMETERS) -> np.ndarray:
        return self.input(first(number, parameters), parameters, VOTES)

    def agreement(self, number: int, parameters: LabellingParameters = PARAMETERS) -> np.ndarray:
        return self.input(second(number, parameters), parameters, CHECK)[:, 0]

    def spent(self, unit: Unit = Unit.PHONE, delta: float = 1e-4) -> float:
        return epsilon_at(delta, self.phone.ledger.expenses_of(unit))


def advertise(parameters: LabellingParameters, part: str, number: int) -> AdvertiseKeys:
    shape = (parameters.samples.rows, len(parameters.labels) if part == VOTES else 1)
    return opening(parameters, part, shape, numbered(number)[8:] + part.encode().ljust(8), 3)


def first(number: int = 1, parameters: LabellingParameters = PARAMETERS) -> LabelSamples:
    return LabelSamples(
        phase=numbered(number),
        parameters=parameters,
        opening=advertise(parameters, VOTES, number),
    )


def second(
    number: int = 1,
    parameters: LabellingParameters = PARAMETERS,
    proposed: tuple[int, ...] = (0, 1, 0),
) -> CheckLabels:
    return CheckLabels(
        phase=numbered(number), proposed=proposed, opening=advertise(parameters, CHECK, number)
    )


# ----------------------------------------------------------------------------------- its ballots


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*CLASSES, None]), min_size=SAMPLES, max_size=SAMPLES))
def test_a_model_s_answers_are_its_ballot_and_what_it_agrees_with(
    answers: list[str | None],
) -> None:
    life = Life(Model(answers))
    votes = [[float(answer == name) for name in CLASSES] for answer in answers]
    assert life.votes(1).tolist() == votes
    agrees = [answer == CLASSES[label] for answer, label in zip(answers, (0, 1, 0), strict=True)]
    assert life.agreement(1).tolist() == agrees


def test_classes_that_the_phase_does_not_ask_for_abstain() -> None:
    model = Model(("attic", "park", "bus"), classes=("attic", "bus", "park"))
    assert Life(model).votes(1).tolist() == [[0, 0], [0, 1], [1, 0]]


def test_a_choice_of_the_phase_counts_as_its_label() -> None:
    choices = (("tram",), ())
    hierarchy = LabelHierarchy(dict(zip(CLASSES, choices, strict=True)))
    agreed = msgspec.structs.replace(PARAMETERS, hierarchy=hierarchy.digest)
    life = Life(Model(("tram", "park", None), classes=("tram", "park")))
    task = msgspec.structs.replace(first(1, agreed), choices=choices)
    assert life.input(task, agreed, VOTES).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_a_model_of_another_class_list_abstains_and_says_which_are_asked_for() -> None:
    life = Life(Model(("oak", "elm", "oak"), classes=("oak", "elm")))
    assert not life.votes(1).any()
    assert life.phone.shortfall == (
        "takes part without votes: its model knows oak, elm; the phase asks for bus, park"
    )
    life = Life(FULL)
    life.votes(1)
    assert life.phone.shortfall == ""
    life = Life(None)
    life.votes(1)
    assert life.phone.shortfall == "takes part without recordings"


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (Model(("bus", "park")), "2 answers for 3 samples"),
        (Model(("bus", "park", "attic")), "'attic', not one of its classes: bus, park"),
    ],
)
def test_a_model_that_breaks_its_word_is_named_and_nothing_is_spent(
    model: Model, match: str
) -> None:
    life = Life(model)
    with pytest.raises(InvalidInputError, match=match):
        life.phone.answer(first())
    assert life.phone.ledger.releases == ()


def test_without_a_model_labelled_recordings_vote_on_what_is_like_them() -> None:
    points = np.array(
        [[1.0, 0.01], [1.0, -0.01], [0.01, 1.0], [-0.01, 1.0], [0.7, 0.7]], np.float32
    )
    life = Life(None, AGREES, points, ["bus", None, "park", "park", None])
    assert life.votes(1).tolist() == [[1, 0], [0, 1], [0, 0]], "the third is like none of them"


@pytest.mark.parametrize("choices", [None, [None, None]])
def test_a_phone_that_knows_nothing_abstains_and_takes_part_all_the_same(choices: Any) -> None:
    life = Life(None, AGREES, *([] if choices is None else [np.eye(2, dtype=np.float32), choices]))
    assert not life.votes(1).any()
    assert not life.agreement(1).any()
    steps = [each.step for each in life.phone.ledger.releases if each.unit is Unit.PHONE]
    assert steps == [VOTES, CHECK]
    assert life.spent() > 0, "what it was asked for may tell of it, whatever it answered"


def test_neighbours_are_few_near_and_the_most_frequent_wins() -> None:
    angles = np.radians([0, 1, 2, 3, 4, 5, 6, 90])
    points = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    labels = ("a", "b", "b", "b", "a", "a", "a", "c")
    voter = NearestRecordings.of(points, labels)
    at = np.radians([0.0, 6.0, 90.0, 45.0, 180.0])
    samples = np.column_stack([np.cos(at), np.sin(at)]).astype(np.float32)
    # Of the five nearest to 0°, three say b; around 6° a has three; 45° and 180° are far from all.
    assert voter.answers(samples) == ["b", "a", "c", None, None]
    assert voter.classes == ("a", "b", "c")


# ------------------------------------------------------------------------ its weight, and its end


HEAVY = msgspec.structs.replace(PARAMETERS, largest_weight=3)
FULL = Model(("bus", "park", "bus"))


def price(weight: int, phases: int, delta: float = 1e-4, unit: Unit = Unit.PHONE) -> float:
    paid = [each for each in HEAVY.expenses(weight) if each.release.unit is unit]
    return epsilon_at(delta, paid * phases)


def test_it_makes_as_many_votes_as_its_budget_holds_until_it_retires() -> None:
    limit = (price(3, 1) + price(3, 2)) / 2
    life = Life(FULL, Policy(largest_yearly_phone_epsilon=limit))
    weights = []
    for number in range(1, 8):
        votes, agreement = life.votes(number, HEAVY), life.agreement(number, HEAVY)
        (weight,) = {int(each) for each in votes.sum(axis=1)}
        assert agreement.tolist() == [weight] * SAMPLES
        weights.append(weight)
        assert life.spent() <= limit * (1 + 1e-9)
    assert weights[0] == 3
    assert weights == sorted(weights, reverse=True)
    assert set(weights) > {3, 0}, "it grows lighter before it retires"
    # What it retired with stays as it is, and the steps of further phases are entered as nothing.
    last = life.phone.ledger.releases[-4:]
    assert {(each.epsilon, each.delta) for each in last} == {(0.0, 0.0)}
    life.now = 367 * DAY
    assert life.votes(9, HEAVY).sum() == 3 * SAMPLES, "a year later it has a budget again"


def test_the_ledger_has_what_its_own_weight_costs() -> None:
    limit = price(2, 1) * 1.001
    life = Life(FULL, Policy(largest_phone_epsilon=limit, largest_phone_delta=1e-4))
    assert life.votes(1, HEAVY).sum() == 2 * SAMPLES
    life.agreement(1, HEAVY)
    assert life.phone.ledger.releases == tuple(each.release for each in HEAVY.expenses(2))
    events = [each.event for each in HEAVY.expenses(2)]
    assert [event for _, event in life.phone.ledger.events] == events


def test_a_phone_that_is_killed_between_the_sums_keeps_its_weight() -> None:
    limit = (price(3, 1) + price(3, 2)) / 2
    life = Life(FULL, Policy(largest_yearly_phone_epsilon=limit))
    for number in (1, 2):
        life.votes(number, HEAVY)
        life.agreement(number, HEAVY)
    life.now = 350 * DAY
    light = int(life.votes(3, HEAVY).sum()) // SAMPLES
    assert light < 3
    life.reborn()
    life.now = 370 * DAY  # its budget would hold three votes again
    assert life.agreement(3, HEAVY).tolist() == [light] * SAMPLES


@pytest.mark.parametrize("weight", [0, 1])
def test_a_sum_is_answered_once_by_a_phone_of_any_weight(weight: int) -> None:
    limit = price(1, 1) * (2.0 if weight else 1.0001)
    life = Life(FULL, Policy(largest_yearly_phone_epsilon=limit))
    light = msgspec.structs.replace(HEAVY, largest_weight=1)
    for number in range(1, 3 - weight):
        life.votes(number, light)
        life.agreement(number, light)
    assert life.votes(5, light).sum() == weight * SAMPLES
    again = first(5, light)
    other = msgspec.structs.replace(again.opening, sum_id=b"another sum's id")
    with pytest.raises(RefusedError) as refused:
        life.phone.answer(msgspec.structs.replace(again, opening=other))
    assert refused.value.rule is Rule.REPEATED


def test_it_does_not_tell_that_it_has_retired() -> None:
    """The same number of bytes in every round, and no refusal."""
    light = msgspec.structs.replace(HEAVY, largest_weight=1)
    limit = price(1, 1) * 1.0001
    life = Life(FULL, Policy(largest_yearly_phone_epsilon=limit))
    assert life.votes(1, light).sum() == SAMPLES
    life.agreement(1, light)
    assert not life.votes(2, light).any()
    assert not life.agreement(2, light).any()
    assert life.spent() == pytest.approx(price(1, 1))


def test_what_a_fresh_phone_could_not_bear_is_refused_by_name() -> None:
    life = Life(FULL, Policy(largest_phone_epsilon=price(1, 1) / 2, largest_phone_delta=1e-4))
    with pytest.raises(RefusedError, match=r"ε of the phase per phone") as refused:
        life.phone.answer(first(1, HEAVY))
    assert refused.value.rule is Rule.LARGEST_PHONE_EPSILON
    assert life.phone.ledger.releases == ()


def test_a_phone_whose_limits_were_lowered_sits_out_and_spends_nothing() -> None:
    life = Life(FULL)
    life.votes(1)
    life.agreement(1)
    spent = life.spent()
    life.policy = Policy(largest_lifetime_phone_epsilon=spent / 2)
    life.reborn()
    with pytest.raises(RefusedError):  # even one vote of a fresh phone is more than it agrees to
        life.phone.answer(first(2))
    life.policy = Policy(largest_lifetime_phone_epsilon=spent * 1.0001)
    life.reborn()
    assert not life.votes(2).any()
    assert life.spent() == pytest.approx(spent)


def test_the_weight_follows_from_the_ledger_and_the_day_alone() -> None:
    limit = (price(3, 1) + price(3, 2)) / 2
    policy = Policy(largest_yearly_phone_epsilon=limit)
    lives = [
        Life(Model((None, None, None)), policy),
        Life(FULL, policy, np.eye(2, dtype=np.float32), ["bus", "park"]),
    ]
    for life in lives:
        for number in (1, 2):
            life.votes(number, HEAVY)
            life.agreement(number, HEAVY)
    today = date(1970, 1, 1)
    weights = {policy.weight(HEAVY, life.phone.ledger, today) for life in lives}
    assert len(weights) == 1


# -------------------------------------------------------------------------- what does not fit it


@pytest.mark.parametrize("proposed", [(0, 1), (0, 1, 2), (0, 1, 0, 1)])
def test_a_check_of_something_else_is_refused(proposed: tuple[int, ...]) -> None:
    life = Life(FULL)
    life.votes(1)
    with pytest.raises(RefusedError, match="this phase has 3 samples and 2 labels"):
        life.phone.answer(second(proposed=proposed))
    assert life.agreement(1).tolist() == [1, 1, 1], "and it goes on with what fits"


def test_a_check_of_a_phase_that_it_is_not_in_is_refused() -> None:
    with pytest.raises(EarshotError, match="a phase that this phone is not in"):
        Life(FULL).phone.answer(second())


# ------------------------------------------------------------------------------ what it keeps


def answered(**changes: Any) -> Labelled:
    own = {
        "phase": numbered(8),
        "centroids": Matrix.of(np.array([[0.0, 1.0], [-1.0, 0.0]])),
        "labels": (1, -1),
        "label_votes": ((0, 90), (4, 3)),
        "agreement": (88, 2),
        "threshold": 50.0,
        "name_p_values": (1e-9, 1.0),
    }
    return labelled(**own | changes)


FOUND = result(
    phase=numbered(7), labels=(0, -1, -1), name_p_values=(1e-9, 1.0, 1.0), encoder="points"
)


EVERYWHERE = np.array([[1.0, 0.1], [0.1, 1.0], [-1.0, 0.1]], np.float32)


def names(life: Life) -> list[str | None]:
    memory: Memory = life.phone._memory
    assert memory.places is not None
    return memory.places.nearest(EVERYWHERE)


def test_what_was_found_unnamed_has_the_name_that_was_given_since() -> None:
    life = Life(FULL)
    life.phone.answer(FOUND)
    assert names(life) == ["bus", None, None]
    life.phone.answer(answered())
    assert names(life) == ["bus", "park", None]
    assert (life.phone.result, life.phone.labelled) == (FOUND, answered())
    life.phone.answer(msgspec.structs.replace(FOUND, phase=numbered(9)))
    assert names(life) == ["bus", None, None], "a newer result stands alone"


def test_samples_alone_name_scenes_too_and_those_that_do_not_compare_do_not() -> None:
    life = Life(FULL)
    life.phone.answer(answered())
    assert names(life) == ["park", "park", None]
    life.phone.answer(answered(encoder="another", label_names=("x", "y")))
    assert names(life) == ["park", "park", None], "of another encoder it names nothing here"
    plane = msgspec.structs.replace(FOUND, geometry=Geometry.EUCLIDEAN)
    life.phone.answer(plane)
    life.phone.answer(answered())
    assert names(life) == ["bus", None, None], "distances of two kinds do not compare"
