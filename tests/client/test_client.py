"""The one object of an app: enrols once, visits, tells; from any thread, whenever it is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.parameters import learning_parameters
from support.phase_tasks import numbered
from support.phone_server import PhoneServer, Reply, asking, problem, serving
from support.policies import without_budget
from support.recordings import NOISE, RATE

import earshot_client
from earshot_client import (
    Client,
    DamagedStoreError,
    Event,
    InvitationRefusedError,
    NotEnrolledError,
    Policy,
    StoreUnavailableError,
    When,
    WrongKeyError,
    encoder,
)
from earshot_client.client import MOST_STEPS
from earshot_client.encoder import default_encoder
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.api import ANSWER, ENROL, TASK
from earshot_protocol.errors import InvalidInputError, WrongStateError
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.wire import Task

Opening = Callable[..., Client]
KEY = bytes(range(32))
PER_RECORDING = Policy.per_recording()
WAIT = Wait(seconds=500.0)
PARAMETERS = learning_parameters(phones=100, encoder=DEFAULT_ENCODER, corrupted=0.05)


def cluster(number: int, phones: int = 100) -> Cluster:
    parameters = msgspec.structs.replace(PARAMETERS, phones=phones)
    return Cluster(phase=numbered(number), index=1, parameters=parameters)


def failed(number: int) -> Failed:
    return Failed(phase=numbered(number), reason="only 2 phones joined")


@pytest.fixture
def open_client(tmp_path: Path) -> Iterator[Opening]:
    opened: list[Client] = []

    def make(script: PhoneServer | None = None, **options: object) -> Client:
        url = "http://127.0.0.1:9" if script is None else script.url
        given = {"invitation": "welcome", "key": KEY, "server": url, "policy": PER_RECORDING}
        given |= options
        opened.append(Client.open(tmp_path / "phone.db", **given))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for client in opened:
        client.close()


# ------------------------------------------------------------------------------- what is exported


def test_everything_an_app_needs_is_named_in_one_place() -> None:
    assert sorted(earshot_client.__all__) == sorted(earshot_client._PLACES)
    for name in earshot_client.__all__:
        assert getattr(earshot_client, name).__name__ == name
    assert dir(earshot_client) == earshot_client.__all__
    with pytest.raises(AttributeError, match="no attribute 'Clinet'"):
        _ = earshot_client.Clinet


def test_the_types_of_screens_are_those_that_a_client_gives(open_client: Opening) -> None:
    client = open_client()
    ledger = client.phone.ledger
    assert isinstance(ledger, earshot_client.Ledger)
    standing = Policy().standing(ledger, client.phone.today)
    assert all(isinstance(each, earshot_client.Standing) for each in standing)
    assert earshot_client.Encoder is encoder.Encoder


def test_importing_the_client_loads_nothing_before_it_is_used(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"  # what measures the coverage is there already
        "heavy = {'numpy', 'cryptography', 'msgspec', 'sqlite3', 'ssl', 'http', 'email'}\n"
        "from earshot_client import Client, Event, Visit\n"
        "loaded = sys.modules.keys() - before\n"
        "assert not heavy & loaded, heavy & loaded\n"
        "assert sum(name.startswith('earshot_') for name in loaded) <= 12, sorted(loaded)\n"
        f"Client.open({str(tmp_path / 'phone.db')!r}, key=bytes(32), server='https://there').close()\n"
        "assert heavy <= sys.modules.keys()"
    )
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


# ------------------------------------------------------------------------------------- one visit


def test_a_visit_enrols_once_and_does_whatever_the_server_needs(open_client: Opening) -> None:
    script = asking(cluster(1), failed(1), WAIT)
    with serving(script):
        client = open_client(script)
        assert not client.enrolled
        client.phone.hear(NOISE, RATE)
        visit = client.visit()
        assert (visit.event, visit.seconds) == (Event.WAITING, 500.0)
        assert [path for path, _ in script.requests] == [ENROL, TASK, ANSWER, TASK, TASK]
        assert len(client.phone.ledger.export()) > 0
        assert client.enrolled
        client.close()
        again = open_client(script, invitation=None)
        assert again.enrol() == "1"
        assert again.visit().event is Event.WAITING
        assert script.asked(ENROL) == 1


def test_an_ending_is_told_once_however_often_the_app_is_started(open_client: Opening) -> None:
    script = asking(WAIT, failed(7), WAIT)
    with serving(script):
        for _ in range(2):
            with open_client(script) as client:
                client.visit()
        with open_client(script) as client:
            assert client.ending == {
                "type": "failed",
                "phase": numbered(7).hex(),
                "reason": "only 2 phones joined",
            }
            client.told()
        with open_client(script) as client:
            assert client.ending is None


def test_a_refusal_is_known_until_the_phone_takes_part_again(open_client: Opening) -> None:
    script = asking(cluster(1, phones=99), WAIT, cluster(2), WAIT)
    with serving(script):
        with open_client(script) as client:
            assert client.refusal is None
            visit = client.visit()
            assert visit.event is Event.REFUSED
            assert client.refusal == visit.detail
            assert "least_phones" in visit.detail
        with open_client(script) as client:
            assert client.visit().event is Event.WAITING
            assert client.refusal == visit.detail
            client.visit()
            assert client.refusal is None
        assert script.asked(ANSWER) == 1


def test_the_policy_is_the_apps(open_client: Opening) -> None:
    script = asking(cluster(1), WAIT)
    with serving(script):
        client = open_client(script, policy=Policy.per_recording(least_phones=1000))
        assert "at least 1000" in client.visit().detail


@pytest.mark.parametrize("first", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_server_that_never_stops_asking_is_left_for_a_while(
    open_client: Opening, first: int
) -> None:
    tasks = map(failed if first else cluster, range(1, MOST_STEPS + 2))
    script = asking(*tasks)
    policy = without_budget()
    with serving(script):
        visit = open_client(script, policy=policy).visit()
    assert (visit.event, visit.seconds) == (Event.TROUBLE, 60.0)
    assert script.asked(TASK) == MOST_STEPS


def test_a_server_that_has_nothing_to_do_cannot_keep_a_phone_busy(open_client: Opening) -> None:
    script = asking(Wait(seconds=0.0))
    with serving(script):
        client = open_client(script)
        visit = client.visit()
        assert (visit.event, visit.seconds) == (Event.WAITING, 1.0)
        assert script.asked(TASK) == 1


# ------------------------------------------------------------------------------- what is in the way


def test_a_new_phone_without_an_invitation_says_so(open_client: Opening) -> None:
    with pytest.raises(NotEnrolledError, match="invitation"):
        open_client(invitation=None, condition=When(lambda: False, "busy")).visit()


def test_the_condition_is_asked_before_the_server_is(open_client: Opening) -> None:
    script, charging = asking(WAIT), [False]
    with serving(script):
        client = open_client(script, condition=When(lambda: charging[0], "not charging"))
        assert client.visit().detail == "not charging"
        assert script.requests == []
        charging[0] = True
        assert client.visit().event is Event.WAITING
        charging[0] = False
        assert client.visit().event is Event.POSTPONED


def test_an_invitation_that_is_refused_is_told_and_another_one_serves(open_client: Opening) -> None:
    script = asking(WAIT)
    with serving(script):
        with open_client(script, invitation="stale") as client:
            with pytest.raises(InvitationRefusedError, match="not an invitation code"):
                client.visit()
            assert not client.enrolled
        assert open_client(script).visit().event is Event.WAITING


def test_a_server_in_trouble_while_a_phone_enrols_is_visited_again(open_client: Opening) -> None:
    script = asking(WAIT)
    replies = iter(
        [
            Reply(b"", 503, fields={"Retry-After": "900"}),
            problem(500, "internal", "see the log"),
        ]
    )
    script.trap = lambda path, body: next(replies, None)
    with serving(script):
        client = open_client(script)
        visits = [client.visit() for _ in range(3)]
    assert [visit.event for visit in visits] == [Event.TROUBLE, Event.TROUBLE, Event.WAITING]
    assert [visit.seconds for visit in visits] == [900.0, 30.0, 500.0]
    assert script.asked(ENROL) == 3


def test_what_is_wrong_with_the_file_is_named_and_nothing_stays_open(
    open_client: Opening, tmp_path: Path
) -> None:
    client = open_client()
    with pytest.raises(StoreUnavailableError, match="open elsewhere"):
        open_client()
    client.close()
    with pytest.raises(WrongKeyError):
        open_client(key=bytes(32))
    for options in ({"server": "http://earshot.example"}, {"keep_days": 0}):
        with pytest.raises(InvalidInputError):
            open_client(**options)
    open_client().close()
    (tmp_path / "phone.db").write_bytes(b"diary" * 2000)
    with pytest.raises(DamagedStoreError):
        open_client()


# ------------------------------------------------------------------------------------- threads


class Slow(PhoneServer):
    """A server that keeps a phone waiting for its task."""

    def __init__(self, *tasks: Task) -> None:
        super().__init__(asking(*tasks).reply, self.keep_waiting)
        self.asked_for, self.go_on = threading.Event(), threading.Event()

    def keep_waiting(self, path: str, body: bytes) -> Reply | None:
        if path == TASK:
            self.asked_for.set()
            assert self.go_on.wait(60)
        return None


def test_while_one_thread_visits_others_hear_label_and_come_back_at_once(
    open_client: Opening,
) -> None:
    script = Slow(cluster(1), WAIT)
    seen: list[Event] = []
    with serving(script):
        client = open_client(script)
        worker = threading.Thread(target=lambda: seen.append(client.visit().event))
        worker.start()
        assert script.asked_for.wait(60)
        recording = client.phone.hear(NOISE, RATE)
        client.phone.label(recording, "train")
        assert [each.choice for each in client.phone.recordings()] == ["train"]
        second = client.visit()
        assert (second.event, second.detail) == (Event.POSTPONED, "another visit is under way")
        assert second.seconds > 0
        assert client.refusal is None
        script.go_on.set()
        worker.join(60)
    assert seen == [Event.WAITING]
    assert script.asked(ANSWER) == 1


def test_closing_waits_for_the_step_that_is_under_way(open_client: Opening) -> None:
    script = Slow(cluster(1), cluster(2), WAIT)
    with serving(script):
        client = open_client(script)
        seen: list[Event] = []
        worker = threading.Thread(target=lambda: seen.append(client.visit().event))
        worker.start()
        assert script.asked_for.wait(60)
        closer = threading.Thread(target=client.close)
        closer.start()
        while not client._closing:
            time.sleep(0.001)
        assert closer.is_alive()
        script.go_on.set()
        closer.join(60)
        worker.join(60)
    assert seen == [Event.ANSWERED]
    with pytest.raises(WrongStateError, match="closed"):
        client.phone.recordings()


def test_threads_that_share_an_encoder_get_their_own_embeddings() -> None:
    random = np.random.default_rng(2)
    sounds = [random.normal(0, 0.1, (size, RATE)).astype(np.float32) for size in (1, 2, 3, 1)]
    encoder = default_encoder()
    assert isinstance(encoder, LiteRtEncoder)
    alone = [encoder.embed(sound) for sound in sounds]
    together: dict[int, list[np.ndarray]] = {}

    def embed(number: int) -> None:
        together[number] = [encoder.embed(sounds[number]) for _ in range(8)]

    threads = [threading.Thread(target=embed, args=(number,)) for number in range(len(sounds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for number, expected in enumerate(alone):
        for got in together[number]:
            np.testing.assert_array_equal(got, expected)


def test_a_client_is_made_of_any_phone_and_line(tmp_path: Path) -> None:
    script = asking(WAIT)
    store = MemoryStore()
    with serving(script):
        from earshot_client.transport.enrolment import signing_key
        from earshot_client.transport.http import HttpTransport

        with Client(
            Phone(store, default_encoder()),
            store,
            lambda kept: HttpTransport(script.url, signing_key(kept)),
            invitation="welcome",
            longest_pause=20.0,
        ) as client:
            assert client.visit().seconds == 20.0
            assert client.step(datetime.now().astimezone()).event is Event.WAITING
