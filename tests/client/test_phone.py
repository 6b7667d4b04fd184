from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.endings import result
from support.parameters import learning_parameters
from support.phase_tasks import OTHER_PHASE, OTHER_SUM, PHASE, SUM, rounds, sent_input, sum_of
from support.points import HeardPoints
from support.recordings import CHOICES, POINTS
from support.refusing_phone import CountedBytes, everything_in, refuses

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import Store
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import (
    MalformedMessageError,
    RefusedError,
    RemoteError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.learning import (
    CENTROID_VOTE,
    CLUSTER,
    LABEL_VOTE,
    SELECT,
    Budget,
    Cluster,
    GlobalCentroids,
    LocalCentroids,
    PhaseParameters,
    Result,
    TopCentroids,
)
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation
from earshot_protocol.secure_sum.messages import (
    AdvertisedKeys,
    AdvertiseKeys,
)
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.wire import Matrix, Task
from earshot_simulations.engine.ideal import IDEAL

KEY = bytes(range(32))
CLASSES = ("bus", "park")
GROUPS = LabelHierarchy({"bus": ("tram",), "park": ("garden",), "office": ("desk",)})
CENTROIDS = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.9]], dtype=np.float32)
PARAMETERS = learning_parameters(
    phones=100,
    labels=CLASSES,
    local_centroids=3,
    top_local_centroids=2,
    top_global_centroids=len(CENTROIDS),
    centroid_votes=2,
    label_votes=2,
    dropout=0.1,
    corrupted=0.05,
    budget=Budget(clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.75),
)
EPSILON = 1.0 + 2 * 0.25 + 0.5 + 0.75


def make_phone(
    store: Store | None = None,
    policy: Policy | None = None,
    random: CountedBytes | None = None,
    summation: Summation = IDEAL,
) -> Phone:
    return Phone(
        MemoryStore(POINTS, CHOICES) if store is None else store,
        HeardPoints("points", 2),
        policy or Policy.per_recording(),
        hierarchy=GROUPS,
        random=random or CountedBytes(),
        summation=summation,
    )


@pytest.fixture
def phone() -> Phone:
    return make_phone()


def replaced(thing: msgspec.Struct, **changes: object) -> msgspec.Struct:
    return msgspec.structs.replace(thing, **changes)


def cluster(parameters: PhaseParameters = PARAMETERS, phase: bytes = PHASE) -> Cluster:
    return Cluster(phase=phase, index=7, parameters=parameters)


def first_vote(
    centroids: np.ndarray = CENTROIDS,
    phase: bytes = PHASE,
    sum_id: bytes = SUM,
    index: int = 7,
    parameters: SumParameters | None = None,
) -> GlobalCentroids:
    parameters = parameters or sum_of(PARAMETERS, CENTROID_VOTE, (len(centroids),))
    return GlobalCentroids(
        phase=phase,
        centroids=Matrix.of(centroids),
        opening=AdvertiseKeys(sum_id=sum_id, index=index, parameters=parameters),
    )


def second_vote(sum_id: bytes = SUM) -> TopCentroids:
    parameters = sum_of(PARAMETERS, LABEL_VOTE, (len(CENTROIDS), 2))
    return TopCentroids(
        phase=PHASE,
        centroids=Matrix.of(CENTROIDS),
        opening=AdvertiseKeys(sum_id=sum_id, index=7, parameters=parameters),
    )


RESULT = result(
    phase=PHASE,
    geometry=Geometry.EUCLIDEAN,
    centroids=Matrix.of(CENTROIDS),
    labels=(0, 1, -1),
    privacy=PARAMETERS.plan().releases(),
)
WHOLE_PHASE: tuple[Task, ...] = (
    cluster(),
    first_vote(),
    *rounds(),
    second_vote(OTHER_SUM),
    *rounds(OTHER_SUM),
    RESULT,
)


# ------------------------------------------------------------------------ answers and their price


def test_a_phone_goes_through_a_phase(phone: Phone) -> None:
    answers = [phone.answer(task) for task in WHOLE_PHASE]
    assert [type(answer).__name__ for answer in answers] == [
        "LocalCentroids",
        *("AdvertisedKeys", "SharedKeys", "MaskedInput", "Unmasked") * 2,
        "NoneType",
    ]
    published = answers[0]
    assert isinstance(published, LocalCentroids)
    assert (published.phase, published.sender) == (PHASE, 7)
    assert published.centroids.array().shape == (2, 2)
    assert phone.result == RESULT
    assert phone.ledger.releases == tuple(each.release for each in PARAMETERS.plan().expenses(0))


def test_the_same_task_gets_the_same_answer_and_costs_once() -> None:
    random = CountedBytes()
    phone = make_phone(random=random)
    paid = 0
    for task in WHOLE_PHASE[:-1]:
        first, drawn = phone.answer(task), random.drawn
        entries = len(phone.ledger.releases)
        for _ in range(2):
            assert phone.answer(task) == first
        assert phone.answer(Wait(seconds=3.0)) is None
        assert phone.answer(task) == first
        assert len(phone.ledger.releases) == entries
        assert random.drawn == drawn
        assert entries >= paid
        paid = entries
    assert paid == len(PARAMETERS.plan().releases())


def test_a_step_is_paid_for_when_its_answer_leaves_and_not_before(phone: Phone) -> None:
    paid = []
    for task in WHOLE_PHASE[:-1]:
        phone.answer(task)
        paid.append({release.step for release in phone.ledger.releases})
    local, first = {CLUSTER, SELECT}, {CENTROID_VOTE}
    everything = local | first | {LABEL_VOTE}
    assert paid == [
        *[local] * 3,
        *[local | first] * 4,
        *[everything] * 2,
    ]


def test_an_answer_that_was_lost_on_the_way_is_given_again_after_a_restart(tmp_path: Path) -> None:
    for task in WHOLE_PHASE[:-1]:
        with make_phone(EncryptedStore(tmp_path / "phone", KEY, dimensions=2)) as phone:
            lost = phone.answer(task)
        with make_phone(EncryptedStore(tmp_path / "phone", KEY, dimensions=2)) as phone:
            assert phone.answer(task) == lost


class Watched(MemoryStore):
    """A store whose outermost transaction may fail at its end, as on a full disk."""

    def __init__(self) -> None:
        super().__init__(POINTS, CHOICES)
        self.failing = False

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            yield
            if self.failing and self._depth == 1:
                raise OSError("the disk is full")


def test_no_answer_leaves_before_its_ledger_entry_is_kept() -> None:
    store = Watched()
    phone = make_phone(store)
    for task in WHOLE_PHASE[:-1]:
        before = everything_in(phone)
        store.failing = True
        with pytest.raises(OSError, match="full"):
            phone.answer(task)
        assert everything_in(phone) == before
        store.failing = False
        assert phone.answer(task) is not None
    assert phone.ledger.releases == tuple(each.release for each in PARAMETERS.plan().expenses(0))


def test_a_second_phase_is_paid_for_in_the_same_ledger(phone: Phone) -> None:
    for task in WHOLE_PHASE:
        phone.answer(task)
    phone.answer(cluster(phase=OTHER_PHASE))
    assert len(phone.ledger.releases) == 12
    assert {release.step for release in phone.ledger.releases_in(OTHER_PHASE)} == {CLUSTER, SELECT}


def test_a_lifetime_budget_ends(phone: Phone) -> None:
    phone = make_phone(policy=Policy.per_recording(largest_lifetime_epsilon=EPSILON + 1.4))
    for task in WHOLE_PHASE:
        phone.answer(task)
    refuses(phone, cluster(phase=OTHER_PHASE), RefusedError, "largest_lifetime_epsilon")


# ---------------------------------------------------------------------------------- its ballots


@dataclass
class Ballots:
    first: np.ndarray
    second: np.ndarray


def ballots(store: Store) -> Ballots:
    """What the phone voted for: what it sent, minus the noise that its bytes make."""
    random = CountedBytes()
    phone = make_phone(store, random=random)
    phone.answer(cluster())
    noises = []
    votes = (
        (CENTROID_VOTE, first_vote(), (3,)),
        (LABEL_VOTE, second_vote(OTHER_SUM), (3, 2)),
    )
    for vote, opening, shape in votes:
        again = CountedBytes()
        again(random.drawn)
        mechanism = PARAMETERS.plan().mechanisms[vote]
        assert isinstance(mechanism, BallotSum)
        assert mechanism.honest_survivors == 85
        noises.append(sent_input(phone, opening) - mechanism.noise_share(shape, again))
        assert random.drawn == again.drawn
    return Ballots(*noises)


def test_a_ballot_holds_the_nearest_centroids_and_the_labels_that_users_chose() -> None:
    cast = ballots(MemoryStore(POINTS, CHOICES))
    np.testing.assert_array_equal(cast.first, [1, 1, 0])
    np.testing.assert_array_equal(cast.second, [[1, 0], [0, 1], [0, 0]])


def test_a_phone_that_heard_nothing_takes_part_with_an_empty_ballot() -> None:
    cast = ballots(MemoryStore(np.empty((0, 2), dtype=np.float32)))
    assert not cast.first.any()
    assert not cast.second.any()


def test_labels_that_the_phase_does_not_ask_for_count_as_none() -> None:
    cast = ballots(MemoryStore(POINTS, ("desk", "office", "desk", "garden", None)))
    np.testing.assert_array_equal(cast.first, [1, 1, 0])
    np.testing.assert_array_equal(cast.second, [[0, 0], [0, 1], [0, 0]])


def test_a_choice_that_polls_no_longer_offer_does_not_silence_the_phone() -> None:
    """Else its silence would tell of that one recording."""
    cast = ballots(MemoryStore(POINTS, ("zeppelin", "tram", None, "garden", "zeppelin")))
    np.testing.assert_array_equal(cast.second, [[1, 0], [0, 1], [0, 0]])


def test_it_casts_no_more_votes_than_there_are_centroids() -> None:
    one = CENTROIDS[:1]
    phone = make_phone()
    phone.answer(cluster())
    answer = phone.answer(first_vote(one, parameters=sum_of(PARAMETERS, CENTROID_VOTE, (1,))))
    assert isinstance(answer, AdvertisedKeys)


# ------------------------------------------------------------------------------------- refusals


def test_a_second_clustering_in_one_phase_is_refused(phone: Phone) -> None:
    phone.answer(cluster())
    more = replaced(PARAMETERS, recordings=PARAMETERS.recordings + 1)
    assert isinstance(more, PhaseParameters)
    # Noise was drawn before the ledger was asked, so only the phone's memory is compared.
    before = everything_in(phone)
    with pytest.raises(RefusedError, match="released already"):
        phone.answer(cluster(more))
    assert everything_in(phone) == before


def weaker() -> dict[str, SumParameters]:
    """Sums that are not the one that the phase's parameters lead to."""
    right = sum_of(PARAMETERS, CENTROID_VOTE, (3,))
    return {
        "bound": choose(100, (3,), right.bound - 1, 0.1, 0.05),
        "larger bound": choose(100, (3,), right.bound * 2, 0.1, 0.05),
        "threshold": replaced(right, threshold=right.threshold - 1),
        "higher threshold": replaced(right, threshold=right.threshold + 1),
        "neighbours": choose(100, (3,), right.bound, 0.1, 0.05, neighbours=99),
        "shape": choose(100, (4,), right.bound, 0.1, 0.05),
        "shape of the other vote": choose(100, (3, 1), right.bound, 0.1, 0.05),
        "precision": choose(100, (3,), right.bound, 0.1, 0.05, precision=1),
        "security": choose(100, (3,), right.bound, 0.1, 0.05, statistical_security=30),
        "more security": choose(100, (3,), right.bound, 0.1, 0.05, statistical_security=50),
        "correctness": choose(100, (3,), right.bound, 0.1, 0.05, correctness=10),
        "phones": choose(101, (3,), right.bound, 0.1, 0.05),
        "dropout": choose(100, (3,), right.bound, 0.2, 0.05),
        "corrupted": choose(100, (3,), right.bound, 0.1, 0.0),
        "contradiction": replaced(right, length=4),
    }


@pytest.mark.parametrize("what", weaker())
def test_a_sum_that_is_not_the_one_expected_is_refused(phone: Phone, what: str) -> None:
    phone.answer(cluster())
    refuses(phone, first_vote(parameters=weaker()[what]), RefusedError, "sum|security|correctness")
    assert phone.answer(first_vote()) is not None


@pytest.mark.parametrize(
    "policy",
    [
        Policy.per_recording(least_statistical_security=41),
        Policy.per_recording(least_correctness=31),
    ],
)
def test_a_sum_that_is_too_weak_for_this_phone_is_refused_though_expected(policy: Policy) -> None:
    phone = make_phone(policy=policy)
    phone.answer(cluster())
    refuses(phone, first_vote(), RefusedError, "least_")


def test_its_number_does_not_change_within_a_phase(phone: Phone) -> None:
    phone.answer(cluster())
    refuses(phone, first_vote(index=8), RefusedError, "number was 7 and is 8")


@pytest.mark.parametrize(
    ("centroids", "error"),
    [
        (Matrix(3, 1, bytes(12)), RefusedError),
        (Matrix(1, 3, bytes(12)), RefusedError),
        (Matrix(0, 2, b""), RefusedError),
        (Matrix(3, 2, bytes(23)), MalformedMessageError),
        (Matrix(3, 2, np.full(6, np.nan, dtype="<f4").tobytes()), MalformedMessageError),
        (Matrix(3, 2, np.full(6, np.inf, dtype="<f4").tobytes()), MalformedMessageError),
    ],
)
@pytest.mark.parametrize("opening", [first_vote, second_vote])
def test_centroids_that_are_none_are_refused(
    phone: Phone, opening: type[first_vote], centroids: Matrix, error: type[RemoteError]
) -> None:
    phone.answer(cluster())
    task = msgspec.structs.replace(opening(), centroids=centroids)
    refuses(phone, task, error, "centroids|matrix")


def test_a_vote_of_a_phase_that_it_is_not_in_is_refused(phone: Phone) -> None:
    refuses(phone, first_vote(), UnexpectedMessageError, "not in")
    phone.answer(cluster())
    refuses(phone, first_vote(phase=OTHER_PHASE), UnexpectedMessageError, "not in")
    for task in rounds():
        refuses(phone, task, UnexpectedMessageError, "not in")


def test_a_vote_is_cast_once(phone: Phone) -> None:
    phone.answer(cluster())
    opened = phone.answer(first_vote())
    # As long as nothing has left, a server that lost its sum may open another.
    reopened = phone.answer(first_vote(sum_id=OTHER_SUM))
    assert isinstance(opened, AdvertisedKeys)
    assert isinstance(reopened, AdvertisedKeys)
    assert reopened.sum_id == OTHER_SUM
    share, mask, _ = rounds(OTHER_SUM)
    phone.answer(share)
    phone.answer(mask)
    refuses(phone, first_vote(sum_id=b"the third sum!!!"), RefusedError, "released already")
    refuses(phone, first_vote(), RefusedError, "released already")
    for sum_id in (SUM, OTHER_SUM):
        refuses(phone, first_vote(CENTROIDS[:2], sum_id=sum_id), RefusedError, "released already")
    for vote in (SUM, OTHER_SUM):
        refuses(phone, second_vote(vote), RefusedError, "begins only once")
    # The sum that was joined goes on, and the other vote too.
    assert phone.answer(rounds(OTHER_SUM)[2]) is not None
    assert phone.answer(second_vote(b"the fourth sum!!")) is not None


def test_real_participants_refuse_tasks_of_another_sum_or_stage() -> None:
    phone = make_phone(summation=BELL)
    phone.answer(cluster())
    phone.answer(first_vote())
    for task in rounds(OTHER_SUM):
        refuses(phone, task, UnexpectedMessageError, "another sum")
    for task in rounds()[1:]:
        refuses(phone, task, UnexpectedMessageError, "once")
    assert LABEL_VOTE not in {release.step for release in phone.ledger.releases}


# ---------------------------------------------------------------------------------- the end


def test_a_failed_phase_is_forgotten_and_its_price_is_not(phone: Phone) -> None:
    phone.answer(cluster())
    phone.answer(first_vote())
    assert phone.answer(Failed(phase=PHASE, reason="too few")) is None
    refuses(phone, rounds()[0], UnexpectedMessageError, "not in")
    refuses(phone, first_vote(), UnexpectedMessageError, "not in")
    assert len(phone.ledger.releases) == 4
    with pytest.raises(RefusedError, match="released already"):
        phone.answer(cluster())


@pytest.mark.parametrize(
    "end", [replaced(RESULT, phase=OTHER_PHASE), Failed(phase=OTHER_PHASE, reason="")]
)
def test_the_end_of_another_phase_does_not_end_this_one(phone: Phone, end: Task) -> None:
    phone.answer(cluster())
    opened = phone.answer(first_vote())
    assert phone.answer(end) is None
    assert phone.answer(first_vote()) == opened
    assert phone.answer(rounds()[0]) is not None


def test_a_result_reaches_a_phone_that_was_not_in_the_phase(phone: Phone) -> None:
    assert phone.result is None
    assert phone.answer(RESULT) is None
    assert phone.answer(RESULT) is None
    assert phone.result == RESULT
    newer = replaced(RESULT, phase=OTHER_PHASE, labels=(1, 0, 0))
    assert isinstance(newer, Result)
    phone.answer(newer)
    assert phone.result == newer


def test_a_closed_phone_answers_nothing(phone: Phone) -> None:
    phone.close()
    with pytest.raises(WrongStateError):
        phone.answer(cluster())
