"""Whatever fails on the way, a phase over HTTP publishes what an undisturbed one does.

Twelve phones whose noise is seeded take part through a proxy; each test disturbs the phase in its
own way and compares the whole result, votes included, with that of a phase in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.networked import Forward, Proxy, ServerProcess, await_, faithful
from support.played_phase import (
    CLASSES,
    PARAMETERS,
    PHONES,
    POLICY,
    make_phones,
    undisturbed,
)
from support.steps import STEPS, Step
from support.unsafe_postgres import UNSAFE

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.transport.http import HttpTransport, UnavailableError
from earshot_protocol.api import ANSWER, PROBLEM_PREFIX, TASK, Invite, Problem, StartPhase
from earshot_protocol.errors import UnexpectedMessageError
from earshot_protocol.messages import Wait
from earshot_protocol.phases.learning import Result
from earshot_protocol.wire import Answer, Task
from earshot_server.processes.embedded import EmbeddedPostgres, embedded
from earshot_simulations.engine.interface import HeardPoints

# Nobody vanishes in these tests: no step may end by its deadline, however slow the machine is.
SLOW = msgspec.structs.replace(PARAMETERS, step_seconds=3600.0)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    with embedded(tmp_path / "database", UNSAFE) as running:
        yield running


class Crowd:
    """Twelve phones that have joined a phase, in order, through a proxy."""

    def __init__(self, server: ServerProcess, proxy: Proxy, clock: Callable[[int], float]) -> None:
        self.server = server
        self.proxy = proxy
        self.phones: dict[int, Phone] = make_phones()
        client = server.operator()
        code = client.invite(Invite(uses=PHONES)).code
        self.phase = client.start(StartPhase(parameters=SLOW, anyway=True))
        self.lines = {
            number: HttpTransport(
                proxy.address,
                Ed25519PrivateKey.generate(),
                tries=600,
                clock=lambda number=number: clock(number),
                pause=lambda seconds: time.sleep(0.1),
            )
            for number in self.phones
        }
        for line in self.lines.values():
            line.enrol(code)
            assert isinstance(line.task(), Wait)

    def close(self) -> None:
        for line in self.lines.values():
            line.close()

    def task(self, number: int) -> Task:
        """The phone's next task, as soon as there is one."""
        found: list[Task] = []

        def asked() -> bool:
            found.append(self.lines[number].task())
            return not isinstance(found[-1], Wait)

        await_(asked, f"a task for phone {number}")
        return found[-1]

    def answer(self, number: int) -> Answer:
        answer = self.phones[number].answer(self.task(number))
        assert answer is not None
        return answer

    def turn(self, number: int) -> None:
        self.lines[number].send(self.answer(number))

    def play(self, disturb: Callable[[Step], None] = lambda step: None) -> Result:
        """All steps; a disturbance after half of the answers of each."""
        for step in STEPS:
            for number in range(PHONES // 2):
                self.turn(number)
            disturb(step)
            for number in range(PHONES // 2, PHONES):
                self.turn(number)
        return self.result()

    def result(self) -> Result:
        results = []
        for number, phone in self.phones.items():
            task = self.task(number)
            assert isinstance(task, Result), task
            assert phone.answer(task) is None
            assert phone.result == task
            results.append(msgspec.structs.replace(task, phase=bytes(16)))
        assert len({msgspec.msgpack.encode(result) for result in results}) == 1
        return results[0]


@pytest.fixture
def crowd(tmp_path: Path, postgres: EmbeddedPostgres) -> Iterator[Crowd]:
    server = ServerProcess(tmp_path / "server", postgres.url)
    with (
        server,
        Proxy(server.port).running() as proxy,
        closing(Crowd(server, proxy, lambda number: time.time())) as crowd,
    ):
        yield crowd


@pytest.mark.slow
def test_nothing_happens(crowd: Crowd) -> None:
    assert crowd.play() == undisturbed()


@pytest.mark.slow
def test_the_server_is_killed_in_every_step(crowd: Crowd) -> None:
    assert crowd.play(lambda step: crowd.server.restart()) == undisturbed()


@pytest.mark.slow
def test_the_server_is_killed_between_accept_and_acknowledge(crowd: Crowd) -> None:
    """The answer is durable, its phone does not know, and sends it again to the next server."""
    killed: list[str] = []

    def kill_after(path: str, forward: Forward) -> tuple[int, dict[str, str], bytes] | None:
        answered = forward()
        if path != ANSWER:
            return answered
        assert answered[0] == 204
        crowd.proxy.fault = faithful
        crowd.server.restart()
        killed.append(path)
        return None

    def disturb(step: Step) -> None:
        crowd.proxy.fault = kill_after

    assert crowd.play(disturb) == undisturbed()
    assert len(killed) == len(STEPS)


@pytest.mark.slow
def test_workers_are_killed(crowd: Crowd) -> None:
    killed: set[int] = set()

    def kill(step: Step) -> None:
        workers = crowd.server.workers()
        assert workers
        assert not killed & {each.pid for each in workers}
        for worker in workers:
            killed.add(worker.pid)
            worker.kill()
        psutil.wait_procs(workers, timeout=60)

    assert crowd.play(kill) == undisturbed()
    assert len(killed) >= len(STEPS)


SOME_STEPS = {Step.LOCAL_CENTROIDS, Step.CENTROID_VOTE_MASK, Step.LABEL_VOTE_UNMASK}


@pytest.mark.slow
def test_the_database_is_restarted(crowd: Crowd, postgres: EmbeddedPostgres) -> None:
    def restart(step: Step) -> None:
        if step not in SOME_STEPS:
            return
        postgres.stop(crash=True)
        line = HttpTransport(crowd.server.address, Ed25519PrivateKey.generate(), "1", tries=1)
        with closing(line), pytest.raises(UnavailableError, match="database"):
            line.task()
        postgres.start()

    assert crowd.play(restart) == undisturbed()


Reply = tuple[int, dict[str, str], bytes]


def closed_by_the_first(path: str, first: Reply, second: Reply) -> bool:
    """Whether the last answer to a step closed it before it came again, which is no mistake."""
    if path != ANSWER or (first[0], second[0]) != (204, 409):
        return False
    problem = msgspec.json.decode(second[2], type=Problem)
    assert problem.type == PROBLEM_PREFIX + "unexpected"
    return True


@pytest.mark.slow
def test_every_request_arrives_twice(crowd: Crowd) -> None:
    refused = 0

    def twice(path: str, forward: Forward) -> Reply | None:
        nonlocal refused
        first, second = forward(), forward()
        if closed_by_the_first(path, first, second):
            refused += 1
            return first
        # The second time, a phase that is over may already have been told of.
        assert first[0] == second[0]
        assert path == TASK or first[2] == second[2]
        return first

    crowd.proxy.fault = twice
    assert crowd.play() == undisturbed()
    assert refused <= len(STEPS)


@pytest.mark.slow
def test_every_second_response_is_lost(crowd: Crowd) -> None:
    lost: list[Reply] = []
    refused, seen = 0, 0

    def lose(path: str, forward: Forward) -> Reply | None:
        nonlocal refused, seen
        seen += 1
        answered = forward()
        if seen % 2 == 0:
            lost.append(answered)
            return None
        if lost and closed_by_the_first(path, lost[-1], answered):
            refused += 1
            return lost[-1]
        return answered

    crowd.proxy.fault = lose
    assert crowd.play() == undisturbed()
    assert len(lost) > len(STEPS) * PHONES
    assert refused <= len(STEPS)


@pytest.mark.slow
def test_answers_arrive_late_and_out_of_order(crowd: Crowd) -> None:
    """Each answer once more in every later step, from the last phone to the first."""
    past: list[tuple[int, Answer]] = []

    for _ in STEPS:
        answers = {number: crowd.answer(number) for number in range(PHONES)}
        for number, answer in past:
            with pytest.raises(UnexpectedMessageError):
                crowd.lines[number].send(answer)
        for number in reversed(range(PHONES)):
            crowd.lines[number].send(answers[number])
        past = [*past[-PHONES:], *answers.items()]
    assert crowd.result() == undisturbed()


@pytest.mark.slow
@pytest.mark.parametrize("skew", [-86_400.0, 86_400.0 * 400])
def test_clocks_are_wrong(tmp_path: Path, postgres: EmbeddedPostgres, skew: float) -> None:
    """Every phone's clock is off by its own amount, up to more than a year."""
    server = ServerProcess(tmp_path / "server", postgres.url)
    with server, Proxy(server.port).running() as proxy:
        clocks = Crowd(server, proxy, lambda number: time.time() + skew * number / PHONES)
        with closing(clocks) as crowd:
            assert crowd.play() == undisturbed()


@pytest.mark.slow
def test_stopped_in_good_order_it_goes_on_where_it_was(crowd: Crowd) -> None:
    def restart(step: Step) -> None:
        if step in SOME_STEPS:
            assert crowd.server.stop() == 0
            crowd.server.start()

    assert crowd.play(restart) == undisturbed()


@pytest.mark.slow
def test_phones_are_killed_and_resumed_in_every_round(crowd: Crowd, tmp_path: Path) -> None:
    """Each phone's process ends with every task it gets, every answer it makes and sends."""
    key = bytes(range(32))
    random = {number: phone._memory.random for number, phone in crowd.phones.items()}

    def path(number: int) -> Path:
        return tmp_path / f"phone-{number}.db"

    def revived(number: int) -> Phone:
        return Phone(
            EncryptedStore(path(number), key, dimensions=2),
            HeardPoints("points", 2),
            POLICY,
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=random[number],
        )

    for number, phone in crowd.phones.items():
        with closing(EncryptedStore(path(number), key, dimensions=2)) as store:
            for point, choice in zip(*phone._store.recordings(), strict=True):
                recording = store.add(point)
                if choice is not None:
                    store.label(recording, choice)
    for _ in STEPS:
        for number in range(PHONES):
            with revived(number) as phone:
                first = phone.answer(crowd.task(number))
            with revived(number) as phone:  # it died before it could send
                answer = phone.answer(crowd.task(number))
                assert answer == first
                assert answer is not None
                crowd.lines[number].send(answer)
            with revived(number):  # it died before it knew that the answer had arrived
                try:
                    crowd.lines[number].send(answer)
                except UnexpectedMessageError:
                    assert number == PHONES - 1  # whose answer was the last, and closed the step
    assert crowd.result() == undisturbed()
    with revived(0) as phone:
        steps = [entry["step"] for entry in phone.ledger.export()]
    assert sorted(steps) == sorted(2 * ["cluster", "select", "centroid vote", "label vote"])
