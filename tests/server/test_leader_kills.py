"""A leader by two operators that is killed at every write, or whose database is: one total."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.killed_leader import LEADER, Stage, bereft, killed, lasting_database, moments
from support.kills import in_child
from support.points import HeardPoints
from support.policies import without_budget
from support.statistics_phase import PARAMETERS, counts

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.wire import encode
from earshot_server.processes.embedded import embedded
from earshot_server.proofs.engine import fastest
from earshot_server.records import PUBLISHED
from earshot_server.store.database import Database

# What is killed is a fork of this process. A test before these may have imported JAX, which then
# warns of every fork: its threads are not in the fork, where nothing needs them.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called.*JAX:RuntimeWarning"),
]

PHONES, CLASSES = 4, PARAMETERS.labels
EXACT = msgspec.structs.replace(PARAMETERS, phones=PHONES, summation=SummationName.TWO_OPERATORS)
NOISY = msgspec.structs.replace(EXACT, noise=5.5)
"""Noise of a dozen contacts: a total that is opened twice is another one."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Over a PostgreSQL that keeps what it has committed when it is killed."""
    fastest()  # or each fork would load the engine
    with lasting_database() as (url, folder):
        yield Stage(url, folder / "helper")


def a_phone(stage: Stage, number: int) -> Phone:
    """One that heard as many buses as its number says."""
    policy = without_budget(
        least_phones=3,
        leaders=(LEADER.public_key().public_bytes_raw(),),
        helpers=(stage.helper,),
    )
    store = MemoryStore(np.ones((number, 2), np.float32), [CLASSES[0]] * number)
    hierarchy = LabelHierarchy.flat(CLASSES)
    return Phone(store, HeardPoints("points", 2), policy, hierarchy=hierarchy)


Disturb = Callable[[Callable[[], object]], object]


class Game:
    """A phase from its gathering to its end, one of whose processes is disturbed."""

    def __init__(self, stage: Stage, parameters: object = EXACT) -> None:
        self.stage = stage
        self.phase = str(alone(partial(stage.gathered, parameters)))
        self.phones = {number: a_phone(stage, number) for number in range(PHONES)}
        self.answers = dict[int, bytes]()

    def play(self, process: str, disturb: Disturb) -> tuple[bool, object]:
        """Play on to the end; return whether that process was killed, and what it returned."""
        told: tuple[bool, object] = (False, None)
        for name in PROCESSES:
            run = self.run(name)
            if name == process:
                told = in_child(partial(disturb, run))
                if told[0]:
                    before = self.stage.seen(self.phase)
                    self.stage.wait_for_leases()
                    alone(run)
                    after = self.stage.seen(self.phase)
                    assert before.ending in ("", after.ending), "what was published has changed"
            else:
                alone(run)
        return told

    def run(self, process: str) -> Callable[[], None]:
        """What a process does, again and again if it is killed."""
        if process != "web":
            return partial(self.stage.driven, self.phase, PROCESSES[process])
        tasks = alone(partial(self.stage.tasks, self.phase, range(PHONES)))
        answers = self.answers
        for number, phone in self.phones.items():
            answer = phone.answer(decode_task(bytes.fromhex(tasks[str(number)])))
            assert answer is not None
            answers[number] = encode(answer)
        return partial(self.stage.taken, self.phase, answers)

    def check(self, *, exact: bool = True) -> None:
        """One total, which is that of plain addition, and nothing that should be gone."""
        seen = self.stage.seen(self.phase)
        assert seen.step == PUBLISHED
        ending = decode_task(bytes.fromhex(seen.ending))
        assert isinstance(ending, Statistics)
        if exact:
            assert counts(ending) == (sum(range(PHONES)), 0, 0, 0, 0)
        assert seen.steps == [[1, 1], [PHONES, PHONES], [1, 1]]
        assert seen.left == 0, "shares and tasks are erased"
        assert self.stage.keys() == []
        for phone in self.phones.values():
            assert [each["step"] for each in phone.ledger.export()] == ["histogram"] * 2


PROCESSES = {"first driver": "report", "web": "", "second driver": PUBLISHED}
"""Process → the step to which it drives; web workers take reports in between."""


def alone(run: Callable[[], object]) -> object:
    """Run in a process of its own, which lives."""
    killed, told = in_child(run)
    assert not killed
    return told


def every_moment(stage: Stage, process: str) -> list[tuple[int, str]]:
    """Each moment of an undisturbed phase, with its statement.

    Before a write, all is as after the one before, unless the helper or a phone has answered
    meanwhile: only then is there a moment of its own.
    """
    game = Game(stage)
    _, told = game.play(process, moments)
    game.check()
    found = [
        (number, f"{moment} {statement}")
        for number, moment, statement in told  # type: ignore[attr-defined]
        if moment == "after" or statement.startswith("WITH open")
    ]
    assert len(found) >= (8 if process == "web" else 25)
    return found


@pytest.mark.parametrize("process", PROCESSES)
def test_killed_at_any_write_its_phase_gives_one_total(stage: Stage, process: str) -> None:
    for number, moment in every_moment(stage, process):
        game = Game(stage)
        was_killed, _ = game.play(process, partial(killed, number=number))
        assert was_killed, moment
        game.check()


@pytest.mark.parametrize("process", PROCESSES)
def test_without_its_database_at_any_write_its_phase_gives_one_total(
    stage: Stage, process: str
) -> None:
    """PostgreSQL's process is killed, and the leader's lives: it does not know what was done."""
    for number, moment in every_moment(stage, process):
        game = Game(stage)
        was_killed, _ = game.play(process, partial(bereft, number=number))
        assert not was_killed, moment
        game.check()


def test_what_was_published_is_not_opened_again(stage: Stage) -> None:
    """With noise, of which another total would have another."""
    for number, moment in every_moment(stage, "second driver"):
        if moment.startswith("after COMMIT"):
            game = Game(stage, NOISY)
            assert game.play("second driver", partial(killed, number=number))[0]
            game.check(exact=False)


def put(there: Path, here: Path) -> None:
    """Copy a folder with the owners of its files, one of which is PostgreSQL's account."""
    subprocess.run(["cp", "-a", there, here], check=True)  # noqa: S603, S607 - our own


SET_BACK_TO = ("before the offer", "before the total", "before it was published")
"""Moments to which a leader is set back once its phase is published."""


@pytest.mark.parametrize("moment", SET_BACK_TO)
def test_a_leader_whose_disk_is_set_back_publishes_no_other_total(
    tmp_path: Path, moment: str
) -> None:
    """Its files are copied and put back; the helper and the phones have gone on."""
    folder, backup = tmp_path / "leader", tmp_path / "copy"
    with embedded(folder) as postgres:
        in_child(lambda: Database(postgres.url).migrate())
        game = Game(Stage(postgres.url, tmp_path / "helper"), NOISY)
        if moment == "before the offer":
            alone(partial(game.stage.driven, game.phase, "offer"))
        else:
            alone(game.run("first driver"))
            alone(game.run("web"))
        if moment == "before it was published":
            alone(partial(game.stage.driven, game.phase, "total"))
    put(folder, backup)
    with embedded(folder) as postgres:
        game.stage = Stage(postgres.url, tmp_path / "helper")
        for name in tuple(PROCESSES) if moment == SET_BACK_TO[0] else ("second driver",):
            alone(game.run(name))
        game.check(exact=False)
        first = game.stage.seen(game.phase).ending
    shutil.rmtree(folder)
    put(backup, folder)
    with embedded(folder) as postgres:
        game.stage = Stage(postgres.url, tmp_path / "helper")
        game.stage.wait_for_leases()
        # Phones have answered this sum, and say the same once more where they are asked again.
        if moment == SET_BACK_TO[0]:
            alone(game.run("first driver"))
            alone(partial(game.stage.taken, game.phase, game.answers))
        alone(game.run("second driver"))
        assert game.stage.seen(game.phase).ending == first
        for phone in game.phones.values():
            assert len(phone.ledger.export()) == 2
