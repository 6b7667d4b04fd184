"""Phones that lie to two operators over HTTP, and helpers: each is named, and nothing else is lost.

Leader and PostgreSQL are processes of their own, and so is a helper that does not lie. Among twelve
honest phones is one for every lie of `support.liars`, which lies in each sum of a phase.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.helper_server import helper_running
from support.liars import LIES, told
from support.lying_helper import SPOILED, signed, without_the_first
from support.networked import ServerProcess, await_
from support.operators import total_of
from support.parameters import labelling_parameters, learning_parameters, statistics_parameters
from support.points import AGREES, HeardPoints
from support.served_helper import ServedHelper, down

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import MESSAGEPACK, Invite, StartPhase
from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import Budget, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import Outcome, SumPartTask
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.two_operators.messages import AddUp, Offer, SendReport
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.wire import Answer, Ending, Matrix, Task
from earshot_server.credentials import Credentials
from earshot_server.helper.helper import Helper
from earshot_server.phases.statistics import steps

pytestmark = pytest.mark.slow

HONEST = 12
LIARS = dict(enumerate(LIES, start=HONEST))
CROWD = HONEST + len(LIARS)
CLASSES = ("bus", "park")
SCENES = np.array([[1.0, 0.1], [0.1, 1.0], [-1.0, -1.0]])
AT_LAST = "a changed seal"
"""What a liar whose report is refused at once sends after it: only the helper finds that out."""


@dataclass(frozen=True)
class Served:
    """A leader and a helper, and the policy of phones that agree to both."""

    server: ServerProcess
    policy: Policy


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("leader")
    leader = bytes.fromhex(Credentials.load_or_create(folder, leads=True).leader)
    with (
        helper_running(tmp_path_factory.mktemp("helper") / "data", leader) as helper,
        ServerProcess(
            folder, None, "--helper", helper.address, "--helper-key", helper.identity.hex()
        ) as server,
    ):
        yield Served(server, replace(AGREES, leaders=(leader,), helpers=(helper.identity,)))


def phones(
    policy: Policy, scenes: Callable[[int], Sequence[int]], many: int = CROWD
) -> list[Phone]:
    """Phones that have recorded these scenes, under their labels."""
    made = []
    for number in range(many):
        heard = list(scenes(number))
        noise = np.random.default_rng([91, number]).normal(0, 0.02, (len(heard), 2))
        store = MemoryStore(
            (SCENES[heard] + noise).astype(np.float32),
            [CLASSES[scene] if scene < len(CLASSES) else None for scene in heard],
        )
        hierarchy = LabelHierarchy.flat(CLASSES)
        made.append(Phone(store, HeardPoints("points", 2), policy, hierarchy=hierarchy))
    return made


class Crowd:
    """Phones of one phase, in the order of their numbers, from its gathering to its ending."""

    def __init__(
        self,
        server: ServerProcess,
        parameters: Parameters,
        phones: list[Phone],
        liars: Mapping[int, str] = LIARS,
    ) -> None:
        self.server = server
        self.phones = phones
        self.liars = liars
        self.lines = [HttpTransport(server.address, Ed25519PrivateKey.generate()) for _ in phones]
        self.inputs: dict[str, list[npt.NDArray[np.int64]]] = defaultdict(list)
        """Of honest phones, by sum."""
        self.offers: dict[str, Offer] = {}
        self.refused: dict[tuple[str, int], str] = {}
        """What a phone was told to its lie at once, by sum and phone."""
        self.endings: dict[int, Ending] = {}
        self.logged = server.log.stat().st_size
        operator = server.operator()
        code = operator.invite(Invite(uses=len(phones))).code
        self.phase = operator.start(StartPhase(parameters=parameters, anyway=True))
        for line in self.lines:
            line.enrol(code)
            news = line.task()
            if isinstance(news, Outcome):  # what an earlier test published
                line._known = lambda known=(news.phase,): known
                line.task()

    def play(self) -> Ending:
        """Let all phones visit until each has the ending, which is the same."""
        until = time.monotonic() + 300.0
        while len(self.endings) < len(self.phones):
            assert time.monotonic() < until, self.server.operator().phase(self.phase)
            for number, line in enumerate(self.lines):
                if number not in self.endings:
                    task = line.task()
                    if isinstance(task, Wait):
                        break  # so do all after it
                    self.visit(number, task)
            else:
                continue
            time.sleep(0.05)
        for line in self.lines:
            line.close()
        assert len({msgspec.msgpack.encode(each) for each in self.endings.values()}) == 1
        return self.endings[0]

    def visit(self, number: int, task: Task) -> None:
        if isinstance(task, Ending):
            self.phones[number].answer(task)
            self.endings[number] = task
            return
        opening = task.opening if isinstance(task, SumPartTask) else None
        if number in self.liars and isinstance(opening, SendReport):
            self.lie(opening)
            return
        with mock.patch.object(
            ReportingParticipant,
            "__init__",
            autospec=True,
            side_effect=ReportingParticipant.__init__,
        ) as made:
            answer = self.phones[number].answer(task)
        assert answer is not None
        for call in made.call_args_list:
            _, begun, vector, *_ = call.args
            self.inputs[begun.sum_id.hex()].append(vector)
        self.lines[number].send(answer)

    def lie(self, opening: SendReport) -> None:
        assert opening.offer is not None
        offer, number = opening.offer.offer, opening.index
        self.offers[offer.sum_id.hex()] = offer
        report = told(offer, number, self.liars[number])
        if report is not None:
            try:
                self.lines[number].send(report)
            except MalformedMessageError as error:
                self.refused[offer.sum_id.hex(), number] = str(error)
            else:
                return
        last = told(offer, number, AT_LAST)
        assert last is not None
        self.lines[number].send(last)

    def check(self) -> None:
        """All liars are named, those whom the leader refused at once to themselves."""
        log = self.server.log.read_text()[self.logged :]
        named = re.findall(r"is left out: phone (\d+): the helper cannot count", log)
        assert sorted(map(int, named)) == sorted(list(LIARS) * len(self.offers))
        for (_, number), said in self.refused.items():
            # What exceeds the largest message is refused by its field, before anything reads it.
            assert f"phone {number}: " in said or "`bytes` of length <=" in said
        for sum_id in self.offers:
            at_once = {LIARS[number] for each, number in self.refused if each == sum_id}
            assert at_once >= {
                "another part of the leader",
                "another blind for the leader",
                "an entry that is the prime",
                "a short share",
                "a share of another length",
                "half a public share",
                "a report of another sum",
                "nothing but chance",
            }
            assert "another part of the helper" not in at_once, "which the helper alone sees"

    def total(self, number: int) -> npt.NDArray[np.int64]:
        """What the inputs of honest phones add up to in a sum, by plain addition."""
        inputs = list(self.inputs.values())[number]
        assert len(inputs) == len(self.phones) - len(self.liars)
        return np.sum(inputs, axis=0)


def contacts(crowd: int, dropout: float = 0.9) -> StatisticsParameters:
    """A count of contacts without noise."""
    return statistics_parameters(
        phones=crowd,
        labels=CLASSES,
        contacts=12,
        noise=1e-6,
        dropout=dropout,
        corrupted=0.05,
        step_seconds=3600.0,
        summation=SummationName.TWO_OPERATORS,
    )


def same(sums: Iterable[Iterable[int]]) -> list[list[int]]:
    return [list(each) for each in sums]


def test_of_counts_of_contacts_those_of_liars_are_left_out(served: Served) -> None:
    parameters = contacts(CROWD)
    crowd = Crowd(
        served.server, parameters, phones(served.policy, lambda number: [0] * 3 + [1] * number)
    )
    result = crowd.play()
    assert isinstance(result, Statistics)
    assert {type(offer.parameters.proof) for offer in crowd.offers.values()} == {Norm}
    crowd.check()
    assert result.phones == HONEST
    expected = crowd.total(0)[: len(CLASSES)] / steps(parameters)
    assert list(result.labelled) == expected.tolist()


def test_of_both_votes_of_a_learning_phase_those_of_liars_are_left_out(served: Served) -> None:
    """Of candidates each phone may keep all, so ones alone are valid; of names it may not."""
    parameters = learning_parameters(
        phones=CROWD,
        recordings=12,
        labels=CLASSES,
        local_centroids=2,
        top_local_centroids=2,
        top_global_centroids=64,
        centroid_votes=64,
        label_votes=1,
        dropout=0.9,
        corrupted=0.05,
        budget=Budget(clustering=60.0, selection=60.0, centroid_vote=300.0, label_vote=300.0),
        step_seconds=3600.0,
        summation=SummationName.TWO_OPERATORS,
    )
    crowd = Crowd(served.server, parameters, phones(served.policy, lambda number: [0, 1] * 6))
    result = crowd.play()
    assert isinstance(result, Result)
    candidates, names = (offer.parameters for offer in crowd.offers.values())
    assert candidates.proof == Counts(1, candidates.length, candidates.length)
    assert names.proof == Counts(1, 1, names.length)
    assert names.length > 1
    crowd.check()
    assert sorted(result.centroid_votes) == sorted(crowd.total(0))[-len(result.centroid_votes) :]
    assert same(result.label_votes) == crowd.total(1).tolist()


@pytest.mark.parametrize("weight", [1, 3])
def test_of_votes_on_samples_and_their_check_those_of_liars_are_left_out(
    served: Served, weight: int
) -> None:
    samples = np.array([[1.0, 0.1], [0.2, 2.0], [-1.0, -1.0]])
    parameters = labelling_parameters(
        phones=CROWD,
        labels=CLASSES,
        samples=Matrix.of(samples),
        largest_weight=weight,
        votes_noise=1e-6,
        check_noise=1e-6,
        threshold=float(weight * HONEST - 1),
        dropout=0.9,
        corrupted=0.05,
        step_seconds=3600.0,
        summation=SummationName.TWO_OPERATORS,
    )
    crowd = Crowd(
        served.server,
        parameters,
        phones(served.policy, lambda number: [0, 0, *[1] * (number % 4 < 3)]),
    )
    result = crowd.play()
    assert isinstance(result, Labelled)
    width = weight.bit_length()
    proofs = [offer.parameters.proof for offer in crowd.offers.values()]
    assert proofs == [Counts(width, weight, len(CLASSES)), Counts(width, weight, 1)]
    crowd.check()
    assert same(result.label_votes) == crowd.total(0).tolist()
    assert list(result.agreement) == crowd.total(1).ravel().tolist()
    assert crowd.total(0).max() > weight


# ----------------------------------------------------------------------------------------- helpers

FEW = 8


@dataclass(frozen=True)
class Bent(Served):
    """A leader whose helper answers as a test says."""

    helper: ServedHelper

    def crowd(self) -> Crowd:
        """A few phones, none of which lies, in a count that spares one of them."""
        made = phones(self.policy, lambda number: [0] * (number + 1), FEW)
        return Crowd(self.server, contacts(FEW, dropout=0.2), made, {})


@pytest.fixture(scope="module")
def bent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bent]:
    folder = tmp_path_factory.mktemp("leader")
    leader = bytes.fromhex(Credentials.load_or_create(folder, leads=True).leader)
    with (
        ServedHelper().running() as helper,
        ServerProcess(
            folder, None, "--helper", helper.address, "--helper-key", helper.key
        ) as server,
    ):
        helper.leaders = frozenset({leader})
        policy = replace(AGREES, leaders=(leader,), helpers=(bytes.fromhex(helper.key),))
        yield Bent(server, policy, helper)


@pytest.fixture
def bending(bent: Bent) -> Iterator[Bent]:
    yield bent
    bent.helper.bend, bent.helper.trouble = Helper.answer, None


def of_totals(bend: Callable[[Helper, AddUp], Answer]) -> Callable[[Helper, Task], Answer]:
    """A helper whose offers are honest."""
    return lambda helper, task: (
        bend(helper, task) if isinstance(task, AddUp) else helper.answer(task)
    )


@pytest.mark.parametrize(
    "name",
    [
        "another verifier share",
        "a verifier share too few",
        "an honest report refused, whose share is in the total",
        "a report refused that nobody listed",
    ],
)
def test_a_helper_that_lies_about_a_report_ends_the_phase_by_name(bending: Bent, name: str) -> None:
    change, says = SPOILED[name]

    def lie(helper: Helper, task: AddUp) -> Answer:
        record = helper._book.record(task.sum_id)
        assert record is not None
        honest, agreed = total_of(helper.answer(task)), record.terms.parameters
        return signed(bending.helper.identity, honest, change(task, honest, agreed))

    bending.helper.bend = of_totals(lie)
    crowd = bending.crowd()
    ending = crowd.play()
    assert isinstance(ending, Failed), ending
    assert says in ending.reason
    assert says in bending.server.operator().phase(crowd.phase).failure


def test_a_helper_that_refuses_an_honest_phone_costs_that_phone_alone(bending: Bent) -> None:
    bending.helper.bend = of_totals(without_the_first)
    crowd = bending.crowd()
    result = crowd.play()
    assert isinstance(result, Statistics)
    assert result.phones == FEW - 1
    log = bending.server.log.read_text()[crowd.logged :]
    (named,) = re.findall(r"is left out: phone (\d+): the helper cannot count", log)
    (inputs,) = crowd.inputs.values()
    others = [each for phone, each in enumerate(inputs) if phone != int(named)]
    expected = np.sum(others, axis=0)[: len(CLASSES)] / steps(contacts(FEW))
    assert list(result.labelled) == expected.tolist()


def changed(**changes: Any) -> Callable[[Bent], None]:
    """Its totals say something else, and it has signed that."""

    def begin(bent: Bent) -> None:
        bent.helper.bend = of_totals(
            lambda helper, task: signed(
                bent.helper.identity, total_of(helper.answer(task)), changes
            )
        )

    return begin


def unsigned(bent: Bent) -> None:
    bent.helper.bend = of_totals(
        lambda helper, task: signed(Ed25519PrivateKey.generate(), total_of(helper.answer(task)), {})
    )


def answering(status: int, media: str, content: bytes) -> Callable[[Bent], None]:
    def begin(bent: Bent) -> None:
        bent.helper.trouble = lambda path: (status, media, content)

    return begin


def absent(bent: Bent) -> None:
    bent.helper.trouble = down


def slow(bent: Bent) -> None:
    """Slower than the driver's turns and than many retries would be."""

    def wait(helper: Helper, task: AddUp) -> Answer:
        time.sleep(5.0)
        return helper.answer(task)

    bent.helper.bend = of_totals(wait)


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        pytest.param(changed(sum_id=bytes(16)), "wrong_answer", id="of another sum"),
        pytest.param(changed(offer=bytes(32)), "wrong_answer", id="of another offer"),
        pytest.param(changed(reports=bytes(32)), "wrong_answer", id="of another list"),
        pytest.param(changed(refused=bytes(32)), "wrong_answer", id="that refuses one twice"),
        pytest.param(unsigned, "wrong_answer", id="of somebody else"),
        pytest.param(answering(200, MESSAGEPACK, b"garbage"), "wrong_answer", id="of garbage"),
        pytest.param(answering(200, MESSAGEPACK, bytes(2**25)), "wrong_answer", id="without end"),
        pytest.param(answering(502, "text/html", b"<p>"), "unavailable", id="of a proxy"),
        pytest.param(absent, "unreachable", id="that does not come"),
        pytest.param(slow, "", id="that comes late"),
    ],
)
def test_a_total_costs_a_phase_its_time_alone(
    bending: Bent, begin: Callable[[Bent], None], reason: str
) -> None:
    """The phase waits and names the reason; then the helper is as it should be, and all count."""
    crowd, operator = bending.crowd(), bending.server.operator()

    def seen() -> str:
        view = operator.phase(crowd.phase)
        return view.helper.reason if view.helper else ""

    await_(lambda: operator.phase(crowd.phase).step.endswith(": report"), "an offer", 120)
    begin(bending)
    for number, line in enumerate(crowd.lines):
        crowd.visit(number, line.task())
    if reason:
        await_(lambda: seen() == reason, reason, 120)
        bending.helper.bend, bending.helper.trouble = Helper.answer, None
    result = crowd.play()
    assert isinstance(result, Statistics)
    assert result.phones == FEW
    expected = crowd.total(0)[: len(CLASSES)] / steps(contacts(FEW))
    assert list(result.labelled) == expected.tolist()
