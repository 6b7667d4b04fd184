"""A phone that leaves is forgotten by the server, and forgets its name and key."""

from __future__ import annotations

import numpy as np
import pytest
from support.phone_server import HangUp, PhoneServer, Reply, serving
from support.played_phase import PARAMETERS, POLICY
from support.points import HeardPoints

from earshot_client.client import Client
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.enrolment import NotEnrolledError, signing_key
from earshot_client.transport.http import HttpTransport, UnavailableError
from earshot_protocol.api import ENROL, LEAVE, Leave, decode_body
from earshot_protocol.phases.learning import Cluster


class Forgetful:
    """Answers a server's phones; deletes who leaves, and may lose what it says then."""

    def __init__(self) -> None:
        self.server = PhoneServer(self.reply)
        self.loses = 0

    def reply(self, path: str, name: str, body: bytes) -> Reply:
        assert path == LEAVE
        decode_body(body, "application/msgpack", Leave)
        del self.server.keys[name]
        if self.loses:
            self.loses -= 1
            raise HangUp
        return Reply(status=204)


def client_of(store: MemoryStore, server: PhoneServer) -> Client:
    phone = Phone(store, HeardPoints("points", 2), POLICY)
    return Client(
        phone,
        store,
        lambda kept: HttpTransport(
            server.url, signing_key(kept), tries=3, pause=lambda seconds: None
        ),
        invitation="welcome",
    )


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_phone_leaves_once_whatever_response_is_lost(lost: int) -> None:
    forgetful, store = Forgetful(), MemoryStore()
    forgetful.loses = lost
    with serving(forgetful.server) as server:
        client = client_of(store, server)
        client.enrol()
        client.leave()
        assert server.keys == {}
        assert not client.enrolled
        with pytest.raises(NotEnrolledError, match="nothing to leave"):
            client.leave()
        client.close()


def test_a_phone_that_comes_back_has_another_key() -> None:
    store = MemoryStore()
    with serving(Forgetful().server) as server:
        client = client_of(store, server)
        client.enrol()
        (before,) = server.keys.values()
        client.leave()
        name = client.enrol()
        assert server.keys[name] != before
        # What is kept is what the server was told.
        assert signing_key(store).public_key().public_bytes_raw() == server.keys[name]
        client.close()


def test_what_is_under_way_is_forgotten_and_what_was_heard_and_spent_is_not() -> None:
    random = np.random.default_rng(7)
    store = MemoryStore(random.normal(0, 0.1, (12, 2)).astype(np.float32), [None] * 12)
    with serving(Forgetful().server) as server:
        client = client_of(store, server)
        client.enrol()
        client.phone.answer(Cluster(phase=bytes(16), index=0, parameters=PARAMETERS))
        spent = client.phone.ledger.export()
        assert spent
        assert store.get("membership")
        client.leave()
        for value in ("membership", "sum", "answered", "signing key", "enrolled as"):
            assert store.get(value) is None or value == "signing key"
        assert client.phone.ledger.export() == spent
        assert len(store.recordings()[0]) == 12
        client.close()


def test_nothing_changes_while_the_server_is_away() -> None:
    store = MemoryStore()
    forgetful = Forgetful()
    with serving(forgetful.server) as server:
        client = client_of(store, server)
        name = client.enrol()
        key = signing_key(store).private_bytes_raw()
        server.trap = lambda path, body: None if path == ENROL else Reply(status=503)
        with pytest.raises(UnavailableError):
            client.leave()
        assert client.enrolled
        assert signing_key(store).private_bytes_raw() == key
        assert name in server.keys
        # A clock that is wrong says nothing of whether the server knows the phone.
        server.trap = lambda path, body: None
        server.clock = lambda: 4e9
        client.leave()
        assert server.keys == {}
        client.close()
