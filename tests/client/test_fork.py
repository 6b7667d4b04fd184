"""A client that a fork carries into another process is refused there; its file stays as it is."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.phone_server import asking, serving
from support.recordings import NOISE, RATE
from support.stores import KEY, content, fill, open_file

from earshot_client import Client, Event, OtherProcessError, Phone, StoreUnavailableError
from earshot_client.encoder import default_encoder
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.messages import Wait

SERVER = "http://127.0.0.1:9"
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def forked(*calls: Callable[[], object]) -> tuple[str, ...]:
    """Return the name of the error that each call raises in a forked process; empty if none."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads is the subject
        child = os.fork()
    if not child:
        signal.alarm(120)  # rather than wait for a lock that nobody lets go
        said = tuple(raised(call) for call in calls)
        os.write(writing, msgspec.msgpack.encode(said))
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = msgspec.msgpack.decode(file.read(), type=tuple[str, ...])
    os.waitpid(child, 0)
    return said


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except BaseException as error:
        return type(error).__name__
    return ""


def opened(folder: Path) -> Client:
    return Client.open(folder / "phone.db", key=KEY, server=SERVER, invitation="welcome")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with opened(tmp_path) as client:
        client.phone.hear(NOISE, RATE)
        yield client


def uses(client: Client) -> dict[str, Callable[[], object]]:
    phone = client.phone
    return {
        "hear": lambda: phone.hear(NOISE, RATE),
        "label": lambda: phone.label(1, "train"),
        "recordings": phone.recordings,
        "forget": lambda: phone.forget(1),
        "forget all": phone.forget_all,
        "scene": lambda: phone.scene(NOISE, RATE),
        "poll": lambda: phone.poll,
        "ledger": lambda: phone.ledger,
        "expire": phone.expire,
        "leave phase": phone.leave_phase,
        "close phone": phone.close,
        "enrolled": lambda: client.enrolled,
        "enrol": client.enrol,
        "visit": client.visit,
        "step": lambda: client.step(NOW),
        "leave": client.leave,
        "ending": lambda: client.ending,
        "told": client.told,
        "refusal": lambda: client.refusal,
        "close": client.close,
        "end of a with block": lambda: client.__exit__(None, None, None),
    }


def test_every_use_in_a_forked_process_is_refused_by_name(client: Client, tmp_path: Path) -> None:
    calls = uses(client)
    assert dict(zip(calls, forked(*calls.values()), strict=True)) == dict.fromkeys(
        calls, "OtherProcessError"
    )
    client.phone.hear(NOISE, RATE)
    client.close()
    with opened(tmp_path) as again:
        assert [each.number for each in again.phone.recordings()] == [1, 2]


def test_a_refusal_does_not_wait_for_a_turn_that_a_fork_has_copied(client: Client) -> None:
    """Another thread is in a step and in a transaction, and does not exist in the child."""
    begun, done = threading.Event(), threading.Event()

    def busy() -> None:
        with client._in_turn(), client._store.transaction():
            begun.set()
            done.wait()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        begun.wait()
        calls = uses(client)
        assert set(forked(*calls.values())) == {"OtherProcessError"}
    finally:
        done.set()
        thread.join()


def test_nothing_goes_over_a_connection_that_a_fork_has_copied() -> None:
    """Even where the store is one of memory, which a fork copies, too."""
    script = asking(Wait(seconds=500.0))
    with serving(script):
        line = HttpTransport(script.url, Ed25519PrivateKey.generate())
        store = MemoryStore()
        client = Client(
            Phone(store, default_encoder()), store, lambda _: line, invitation="welcome"
        )
        assert client.visit().event is Event.WAITING
        before = len(script.requests)
        calls = (line.task, line.leave, line.close, client.visit, lambda: client.step(NOW))
        assert set(forked(*calls)) == {"OtherProcessError"}
        assert len(script.requests) == before
        assert client.visit().event is Event.WAITING
        assert script.connections == 1
        client.close()


def test_a_client_is_neither_copied_nor_pickled(client: Client) -> None:
    line = HttpTransport(SERVER, client._transport._key)
    for each in (client, client.phone._store, line):
        for way in (copy.deepcopy, pickle.dumps):
            with pytest.raises(OtherProcessError, match="cannot be copied or pickled"):
                way(each)
    for each in (client, line):
        with pytest.raises(OtherProcessError, match="cannot be copied or pickled"):
            copy.copy(each)


def test_a_forked_process_cannot_open_what_its_parent_has_open(
    client: Client, tmp_path: Path
) -> None:
    assert forked(lambda: opened(tmp_path)) == (StoreUnavailableError.__name__,)
    client.phone.hear(NOISE, RATE)
    client.close()
    (free,) = forked(lambda: opened(tmp_path).close())
    assert not free


def test_a_store_that_is_forgotten_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = open_file(path)
    fill(store)
    before = content(store)
    assert str(path) in {each.path for each in psutil.Process().open_files()}
    del store
    gc.collect()
    assert str(path) not in {each.path for each in psutil.Process().open_files()}
    with closing(open_file(path)) as again:
        assert content(again) == before
    del again
    assert str(path) not in {each.path for each in psutil.Process().open_files()}


IN_A_TRANSACTION = """
import gc, os, sys
from earshot_client.store.encrypted import EncryptedStore
store = EncryptedStore(sys.argv[1], bytes(range(32)), dimensions=3)
try:
    with store.transaction():
        store.append_ledger(b"third entry")
        store._file.rows("PRAGMA cache_spill = 1")
        store._file.rows("PRAGMA cache_size = 1")
        for number in range(200):
            store.put(f"{number}", bytes(1000))
        journal = os.stat(sys.argv[1] + "-journal").st_size
        assert journal > 0
        child = os.fork()
        if not child:
            sys.exit()
        assert os.waitpid(child, 0)[1] >> 8 == int(sys.argv[2])
        assert os.stat(sys.argv[1] + "-journal").st_size >= journal
        store.append_ledger(b"fourth entry")
finally:
    del store
    gc.collect()
"""


def test_a_forked_process_that_ends_undoes_nothing_of_its_parent(tmp_path: Path) -> None:
    """The child ends as Python does, which closes what was forgotten; the parent goes on."""
    path = tmp_path / "store"
    with closing(open_file(path)) as store:
        fill(store)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", IN_A_TRANSACTION, str(path), "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "OtherProcessError" in done.stderr  # of the child, whose transaction it is not
    with closing(open_file(path)) as store:
        assert store.ledger()[2:] == (b"third entry", b"fourth entry")
        assert store.get("199") == bytes(1000)
