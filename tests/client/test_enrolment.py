from __future__ import annotations

import dataclasses
import os
import stat
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from support.phone_server import HangUp, PhoneServer, Reply, serving

from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.key_file import KeyFileError, key_in
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.enrolment import (
    NotEnrolledError,
    enrol,
    is_enrolled,
    leave,
    signing_key,
)
from earshot_client.transport.http import HttpTransport, InvitationRefusedError, UnavailableError
from earshot_protocol.errors import MalformedMessageError

KEY = bytes(range(32))


def nothing(path: str, phone: str, body: bytes) -> Reply:
    raise AssertionError("a phone that enrols asks for nothing else")


def transport_of(store: MemoryStore | EncryptedStore, server: PhoneServer) -> HttpTransport:
    return HttpTransport(server.url, signing_key(store), tries=1)


def test_a_phone_has_one_key_which_no_other_has() -> None:
    stores = [MemoryStore() for _ in range(3)]
    keys = [signing_key(store).private_bytes_raw() for store in stores]
    assert len(set(keys)) == 3
    assert [signing_key(store).private_bytes_raw() for store in stores] == keys


def test_key_and_name_are_on_disk_and_nobody_reads_them_there(tmp_path: Path) -> None:
    path = tmp_path / "phone.db"
    with serving(PhoneServer(nothing)) as server:
        store = EncryptedStore(path, KEY)
        key = signing_key(store)
        with closing(transport_of(store, server)) as transport:
            name = enrol(store, transport, "welcome")
        store.close()
        content = path.read_bytes()
        assert key.private_bytes_raw() not in content
        assert key.public_key().public_bytes_raw() not in content
        store = EncryptedStore(path, KEY)
        with closing(transport_of(store, server)) as transport:
            assert enrol(store, transport, None) == name == transport.phone
        store.close()
        assert len(server.requests) == 1
        assert server.keys == {name: key.public_key().public_bytes_raw()}


def test_killed_before_it_heard_its_name_a_phone_uses_no_second_invitation() -> None:
    with serving(PhoneServer(nothing)) as server:
        store = MemoryStore()
        handle = server.handle

        def lose_the_response(*request: object) -> Reply:
            handle(*request)  # type: ignore[arg-type]
            raise HangUp

        server.handle = lose_the_response  # type: ignore[method-assign]
        with closing(transport_of(store, server)) as transport, pytest.raises(UnavailableError):
            enrol(store, transport, "welcome")
        assert len(server.keys) == 1
        server.handle = handle  # type: ignore[method-assign]
        with closing(transport_of(store, server)) as transport:
            assert {enrol(store, transport, "welcome")} == set(server.keys)


@pytest.mark.parametrize("name", ["7\r\nX: 1", "a b", "", "7\n", "é", "a" * 65, '7";alg="x'])
def test_a_name_that_cannot_stand_in_a_request_is_refused_and_never_kept(name: str) -> None:
    with serving(PhoneServer(nothing)) as server:
        store = MemoryStore()
        handle = server.handle

        def give_a_bad_name(*request: object) -> Reply:
            given = handle(*request)  # type: ignore[arg-type]
            return dataclasses.replace(given, body=msgspec.msgpack.encode({"phone": name}))

        server.handle = give_a_bad_name  # type: ignore[method-assign]
        with (
            closing(transport_of(store, server)) as transport,
            pytest.raises(MalformedMessageError),
        ):
            enrol(store, transport, "welcome")
        server.handle = handle  # type: ignore[method-assign]
        assert not is_enrolled(store)
        with closing(transport_of(store, server)) as transport:
            with pytest.raises(NotEnrolledError):
                leave(store, transport)
            with pytest.raises(NotEnrolledError):
                enrol(store, transport, None)
            assert {enrol(store, transport, "welcome")} == set(server.keys)
        assert is_enrolled(store)


def test_without_a_good_invitation_a_new_phone_stays_out() -> None:
    with serving(PhoneServer(nothing)) as server:
        store = MemoryStore()
        with closing(transport_of(store, server)) as transport:
            with pytest.raises(NotEnrolledError, match="invitation"):
                enrol(store, transport, None)
            assert server.requests == []
            with pytest.raises(InvitationRefusedError):
                enrol(store, transport, "forged")
            with pytest.raises(NotEnrolledError):
                enrol(store, transport, None)
            assert enrol(store, transport, "welcome") == "1"


# ------------------------------------------------------------------------------------ the key file


def test_the_key_file_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key"
    old = os.umask(0)
    try:
        key = key_in(path, may_create=True)
    finally:
        os.umask(old)
    assert len(key) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key_in(path, may_create=True) == key == key_in(path, may_create=False)
    assert key_in(tmp_path / "other", may_create=True) != key
    assert sorted(each.name for each in tmp_path.iterdir()) == ["key", "other"]


def test_what_a_killed_process_left_is_no_key(tmp_path: Path) -> None:
    half = tmp_path / f".key.{os.getpid()}-1"
    half.write_bytes(b"half")
    os.utime(half, (0, 0))
    key = key_in(tmp_path / "key", may_create=True)
    assert [each.name for each in tmp_path.iterdir()] == ["key"]
    assert len(key) == 32


def test_a_key_that_is_lost_damaged_or_known_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(KeyFileError, match="cannot be read"):
        key_in(path, may_create=False)
    assert not path.exists()
    with pytest.raises(KeyFileError, match="cannot be made"):
        key_in(tmp_path / "nowhere" / "key", may_create=True)
    for size in (0, 31, 33):
        path.write_bytes(bytes(size))
        path.chmod(0o600)
        with pytest.raises(KeyFileError, match="32 bytes"):
            key_in(path, may_create=True)
    path.write_bytes(bytes(32))
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        with pytest.raises(KeyFileError, match="chmod 600"):
            key_in(path, may_create=True)
