from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from support.stores import DIMENSIONS, KEY, VOICE, content, fill, open_file

from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import (
    DamagedStoreError,
    LostLedgerError,
    NewerStoreError,
    StoreUnavailableError,
    WrongKeyError,
)
from earshot_client.store.memory import MemoryStore
from earshot_client.store.recovery import recover_ledger
from earshot_client.store.sealed_file import SCHEMA_VERSION
from earshot_protocol.errors import InvalidInputError, LocalError
from earshot_protocol.privacy.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with recordings, a value and a ledger."""
    file = tmp_path / "filled"
    with contextlib.closing(open_file(file)) as store:
        fill(store)
    return file


def rows_of(path: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous = OFF")  # what a test damages needs to reach no disk
        return database.execute(statement, values).fetchall()


def open_and_read(path: Path, key: bytes = KEY) -> tuple[Any, ...]:
    with contextlib.closing(open_file(path, key)) as store:
        return content(store)


def test_the_file_keeps_everything_and_is_for_its_owner_only(path: Path) -> None:
    embeddings, choices, state, _, ledger = open_and_read(path)
    assert embeddings == [VOICE.tolist(), (-VOICE).tolist()]
    assert (choices, state) == (("café", None), b"some state")
    assert ledger == (b"first entry", b"second entry")
    path.chmod(0o644)
    open_and_read(path)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_new_file_has_the_schema_of_the_first_release(path: Path) -> None:
    """Another number takes a migration, and a test of files that 0.1.0 wrote."""
    open_file(path).close()
    assert rows_of(path, "PRAGMA user_version") == [(1,)]


def test_embeddings_of_128_numbers_are_the_default(tmp_path: Path) -> None:
    with contextlib.closing(EncryptedStore(tmp_path / "store", KEY)) as store:
        assert store.recordings()[0].shape == (0, 128)
    assert MemoryStore().recordings()[0].shape == (0, 128)
    with pytest.raises(InvalidInputError, match="128 dimensions, not 3"):
        open_file(tmp_path / "store")


@pytest.mark.parametrize("dimensions", [-1, 0, 2**16])
def test_rows_of_no_length_or_too_long_are_refused(tmp_path: Path, dimensions: int) -> None:
    with pytest.raises(InvalidInputError, match=f"dimensions={dimensions}"):
        EncryptedStore(tmp_path / "store", KEY, dimensions=dimensions)
    assert not list(tmp_path.iterdir())


def test_damage_that_sqlite_finds_is_named_before_anything_is_read(path: Path) -> None:
    free_pages = 36  # where the file format counts them: one is claimed, and none is there
    with path.open("r+b") as file:
        file.seek(free_pages)
        file.write((1).to_bytes(4, "big"))
    with pytest.raises(DamagedStoreError, match="the file is damaged"):
        open_file(path)


def test_another_key_is_refused_and_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    for wrong in (bytes(32), KEY[:-1] + b"\0"):
        with pytest.raises(WrongKeyError):
            open_file(path, wrong)
    assert path.read_bytes() == before
    for bad in (b"", KEY[:-1], KEY + b"\0"):
        with pytest.raises(InvalidInputError, match="32 are needed"):
            open_file(path, bad)
    assert issubclass(WrongKeyError, LocalError)


def is_open(path: Path) -> bool:
    return str(path) in {each.path for each in psutil.Process().open_files()}


def test_a_store_that_does_not_open_is_closed_though_its_error_is_kept(path: Path) -> None:
    """An error holds the frames that it came through, and so the store."""
    with pytest.raises(WrongKeyError) as _kept:
        open_file(path, bytes(32))
    assert not is_open(path)
    with contextlib.closing(open_file(path)) as store:
        content(store)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailableError) as _in_use:
            open_file(path)
    assert not is_open(path)
    rows_of(path, "DELETE FROM ledger")
    with pytest.raises(LostLedgerError) as _lost:
        open_file(path)
    assert not is_open(path)


def test_no_plaintext_reaches_the_file_or_its_journal(tmp_path: Path) -> None:
    file = tmp_path / "store"
    secret = np.arange(1001, 1129, dtype=np.float32)
    needles = {
        "embedding": secret.tobytes()[:8],
        "choice": b"recognisable choice",
        "value": b"recognisable value",
        "entry": b"recognisable entry",
        "key": KEY,
        "key's half": KEY[:16],
    }
    seen = b""
    with contextlib.closing(EncryptedStore(file, KEY)) as store:
        for _ in range(2):
            with store.transaction():
                number = store.add(secret)
                store.label(number, "recognisable choice")
                store.put("state", b"recognisable value" * 200_000)
                store.append_ledger(b"recognisable entry")
                seen += b"".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))
            store.forget(number)
            store.delete("state")
            seen += b"".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))
    # The value does not fit SQLite's cache, so the journal of old pages was written as well.
    assert b"CREATE TABLE recordings" in seen
    assert b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" in seen, "no journal"
    assert [what for what, needle in needles.items() if needle in seen] == []


def test_equal_recordings_look_different_and_all_have_one_length(path: Path) -> None:
    with contextlib.closing(open_file(path)) as store:
        for choice in (None, "a", "🚆" * 64):
            number = store.add(VOICE, None if choice == "a" else date(2026, 3, 2))
            if choice:
                store.label(number, choice)
        store.mark_counted([number])
    sealed = [row for (row,) in rows_of(path, "SELECT sealed FROM recordings")]
    assert len({len(row) for row in sealed}) == 1
    assert len({row[:12] for row in sealed}) == len(sealed) == 5
    assert len({row[12:28] for row in sealed}) == 5


def test_what_is_forgotten_leaves_the_file(path: Path) -> None:
    ((sealed,),) = rows_of(path, "SELECT sealed FROM recordings WHERE id = 1")
    assert sealed in path.read_bytes()
    with contextlib.closing(open_file(path)) as store:
        store.forget(1)
    assert b"".join(each.read_bytes() for each in path.parent.iterdir()).count(sealed[-40:]) == 0


@pytest.mark.parametrize("table", ["recordings", "named_values", "ledger", "ledger_length"])
def test_every_changed_byte_of_a_sealed_row_is_noticed(path: Path, table: str) -> None:
    row_name = "name" if table == "named_values" else "id"
    ((row, sealed), *_) = rows_of(path, f"SELECT {row_name}, sealed FROM {table}")  # noqa: S608
    statement = f"UPDATE {table} SET sealed = ? WHERE {row_name} = ?"  # noqa: S608
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1 << place % 8
        rows_of(path, statement, bytes(changed), row)
        with pytest.raises(DamagedStoreError, match=f"of {table} is damaged"):
            open_file(path)
    for other in (b"", sealed[:11], sealed[:-1], sealed + b"\0", "text", 5):
        rows_of(path, statement, other, row)
        with pytest.raises(DamagedStoreError, match=f"of {table} is damaged"):
            open_file(path)
    rows_of(path, statement, sealed, row)
    open_and_read(path)


def test_a_row_changed_while_the_store_is_open_is_noticed(path: Path) -> None:
    with contextlib.closing(open_file(path)) as store:
        store._file.rows("UPDATE recordings SET sealed = zeroblob(length(sealed)) WHERE id = 1")
        store._file.rows("UPDATE named_values SET sealed = zeroblob(length(sealed))")
        for call in (store.recordings, lambda: store.label(1, "rain"), lambda: store.get("state")):
            with pytest.raises(DamagedStoreError):
                call()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE recordings SET id = 3 - id + 10",
        "UPDATE recordings SET sealed = (SELECT sealed FROM recordings WHERE id = 2)",
        "UPDATE ledger SET sealed = (SELECT sealed FROM ledger WHERE id = 1)",
        "UPDATE ledger SET sealed = (SELECT sealed FROM recordings WHERE id = 1) WHERE id = 1",
        "UPDATE named_values SET name = 'other'",
        "UPDATE named_values SET sealed = (SELECT sealed FROM ledger WHERE id = 1)",
        "DELETE FROM ledger WHERE id = 1",
        "DELETE FROM ledger WHERE id = 2",
        "DELETE FROM ledger",
        "INSERT INTO ledger SELECT 3, sealed FROM ledger WHERE id = 2",
        "DELETE FROM ledger_length",
        "DELETE FROM header",
        "UPDATE header SET content = zeroblob(length(content))",
        "DROP TABLE recordings",
        "ALTER TABLE ledger RENAME TO other",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 0",
    ],
)
def test_rows_that_were_moved_or_removed_are_noticed(path: Path, statement: str) -> None:
    rows_of(path, statement)
    with pytest.raises(DamagedStoreError):
        open_file(path)


def test_rows_of_another_store_under_the_same_key_are_noticed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with contextlib.closing(open_file(other)) as store:
        fill(store)
    ((sealed,),) = rows_of(other, "SELECT sealed FROM named_values")
    rows_of(path, "UPDATE named_values SET sealed = ?", sealed)
    with pytest.raises(DamagedStoreError, match="named_values"):
        open_file(path)


def test_a_changed_header_is_damage_or_another_key_but_never_another_store(path: Path) -> None:
    ((header,),) = rows_of(path, "SELECT content FROM header")
    for place in range(len(header)):
        changed = bytearray(header)
        changed[place] ^= 1
        rows_of(path, "UPDATE header SET content = ?", bytes(changed))
        with pytest.raises(DamagedStoreError, match="header"):
            open_file(path)
    # Whoever also mends the checksum still cannot pretend other dimensions.
    forged = header[:32] + b"\x04" + header[33:-32]
    forged += hashlib.sha256(forged).digest()
    rows_of(path, "UPDATE header SET content = ?", forged)
    with pytest.raises(WrongKeyError):
        EncryptedStore(path, KEY, dimensions=4)


def test_any_damage_to_the_file_is_named_or_harmless(path: Path) -> None:
    original = path.read_bytes()
    expected = open_and_read(path)
    random = np.random.default_rng(5)

    def is_noticed(damaged: bytes) -> bool:
        path.write_bytes(damaged)
        try:
            assert open_and_read(path) == expected
        except (DamagedStoreError, NewerStoreError):
            return True
        return False

    # The file's own header, its schema, every copy of a value's name, and anywhere.
    places = {*range(100), *random.integers(0, len(original), 200).tolist()}
    places.update(range(original.index(b"CREATE TABLE header") - 30, 4096))
    names = [found.start() for found in re.finditer(b"state", original)]
    places.update(name + letter for name in names for letter in range(5))
    assert names
    noticed = 0
    for place in sorted(places):
        changed = bytearray(original)
        changed[place] ^= 1 << int(random.integers(8))
        noticed += is_noticed(bytes(changed))
    assert noticed > 50
    assert all(is_noticed(original[:length]) for length in (1, 99, 100, 4095, 4096, 8192))
    # The last byte may be a zero, which is what SQLite reads where a page ends early.
    is_noticed(original[:-1])
    path.write_bytes(random.bytes(8192))
    with pytest.raises(DamagedStoreError, match="not a store"):
        open_file(path)


def test_a_store_of_a_newer_version_is_left_alone(path: Path) -> None:
    rows_of(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(NewerStoreError, match="update it"):
        open_file(path)
    assert path.read_bytes() == before


def test_threads_share_an_open_store_and_see_whole_transactions(tmp_path: Path) -> None:
    seen: list[int] = []
    with contextlib.closing(open_file(tmp_path / "store")) as store:
        inside, looking = threading.Event(), threading.Event()

        def look() -> None:
            assert inside.wait(60)
            looking.set()
            seen.append(len(store.descriptions()))

        thread = threading.Thread(target=look)
        thread.start()
        with store.transaction():
            store.add(VOICE)
            inside.set()
            assert looking.wait(60)
            store.add(VOICE)
        thread.join(60)
        assert seen == [2]

        def fill_up() -> None:
            for _ in range(20):
                with store.transaction():
                    store.append_ledger(b"entry")
                    store.add(VOICE)

        threads = [threading.Thread(target=fill_up) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(store.ledger()) == 80
        assert len(store.descriptions()) == 82


def test_another_database_is_not_taken_for_a_store(tmp_path: Path) -> None:
    file = tmp_path / "diary"
    rows_of(file, "CREATE TABLE diary (day TEXT)")
    before = file.read_bytes()
    with pytest.raises(DamagedStoreError, match="not a store"):
        open_file(file)
    assert file.read_bytes() == before


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "no folder" / "store"):
        with pytest.raises(StoreUnavailableError):
            open_file(place)
    assert stat.S_IMODE(tmp_path.stat().st_mode) != 0o600


LOST = {
    "nothing": b"",
    "zeros": bytes(8192),
    "a few zeros": bytes(100),
    "half a page": None,
}


@pytest.mark.parametrize("what", LOST)
def test_a_file_whose_content_is_lost_is_no_new_store(path: Path, what: str) -> None:
    content = LOST[what]
    before = path.read_bytes()[:2048] if content is None else content
    path.write_bytes(before)
    with pytest.raises(LostLedgerError, match="recover"):
        open_file(path)
    assert path.read_bytes() == before
    recovery = recover_ledger(path, KEY, dimensions=3)
    assert recovery.lost
    assert recovery.aside is not None
    assert recovery.aside.name == f"{path.name}.damaged-1"
    assert recovery.aside.read_bytes() == before
    with contextlib.closing(open_file(path)) as store:
        assert Ledger(store.ledger()).releases[-1].epsilon == float("inf")


def test_a_link_is_followed_and_one_to_nothing_is_no_new_store(path: Path) -> None:
    link, nowhere = path.with_name("link"), path.with_name("nowhere")
    link.symlink_to(path)
    assert open_and_read(link) == open_and_read(path)
    nowhere.symlink_to(path.with_name("missing"))
    with pytest.raises(StoreUnavailableError, match="not a file"):
        open_file(nowhere)


def test_a_file_that_could_not_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(StoreUnavailableError, match="No space left"):
        open_file(tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("refusal", [PermissionError(1, "not permitted"), OSError(38, "unknown")])
def test_a_store_opens_where_the_file_system_keeps_no_permissions(
    refusal: OSError, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise refusal

    before = open_and_read(path)
    monkeypatch.setattr(os, "chmod", refuse)
    assert open_and_read(path) == before
    open_file(path.with_name("new")).close()


def killed_at(at: int, change: Callable[[], object]) -> bool:
    """Change something in a process that is killed before its step with that number."""
    child = os.fork()
    if not child:
        done = 0

        def counted(do: Callable[..., Any]) -> Callable[..., Any]:
            def step(*given: Any, **more: Any) -> Any:
                nonlocal done
                done += 1
                if done == at:
                    os._exit(9)
                return do(*given, **more)

            return step

        with pytest.MonkeyPatch.context() as patch:
            for name in ("open", "fsync", "rename", "replace", "unlink"):
                patch.setattr(os, name, counted(getattr(os, name)))
            change()
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.slow
def test_whenever_it_is_killed_while_it_is_made_a_store_opens(tmp_path: Path) -> None:
    path, at = tmp_path / "store", 1
    while killed_at(at, lambda: open_file(path)):
        for _ in range(2):
            open_file(path).close()
        path.unlink()
        at += 1
    assert at > 5
    with contextlib.closing(open_file(path)) as store:
        assert store.ledger() == ()


@pytest.mark.slow
def test_whenever_a_recovery_is_killed_no_budget_is_free(path: Path) -> None:
    damaged, at = os.urandom(9000), 1
    path.write_bytes(damaged)
    while killed_at(at, lambda: recover_ledger(path, KEY, dimensions=DIMENSIONS)):
        if path.read_bytes() != damaged:  # else the damaged file is still there
            assert lost(path)
            path.write_bytes(damaged)
        at += 1
    assert at > 10
    assert lost(path)
    copies = list(path.parent.glob("filled.damaged-*[0-9]"))
    assert copies
    assert all(each.read_bytes() == damaged for each in copies)
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in copies)


def lost(path: Path) -> bool:
    with contextlib.closing(open_file(path)) as store:
        return [each["epsilon"] for each in Ledger(store.ledger()).export()] == [float("inf")] * 2


def test_of_many_that_make_a_file_at_once_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "store"
    program = "store.append_ledger(b'entry'); print(len(store.ledger()))"
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: run(program, path), range(4)))
    for each in done:
        assert each.returncode == 0 or "open elsewhere" in each.stderr, each.stderr
    entries = sum(each.returncode == 0 for each in done)
    assert entries >= 1
    assert len(open_file(path).ledger()) == entries
    assert [each.name for each in tmp_path.iterdir() if "journal" not in each.name] == ["store"]


def run(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    lines = f"""
import os, sys
import numpy as np
from earshot_client.store.encrypted import EncryptedStore
store = EncryptedStore(sys.argv[1], bytes(range(32)), dimensions=3)
{program}
"""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", lines, str(path)], capture_output=True, text=True, check=False
    )


def test_an_open_store_is_not_opened_again(path: Path) -> None:
    with contextlib.closing(open_file(path)) as store:
        with pytest.raises(StoreUnavailableError, match="open elsewhere"):
            open_file(path)
        assert "StoreUnavailableError" in run("", path).stderr
        store.put("b", b"still writable")
    assert open_and_read(path)[3] == b"still writable"


def test_a_crash_within_a_transaction_leaves_nothing(path: Path) -> None:
    expected = open_and_read(path)
    before = path.read_bytes()
    # Values larger than SQLite's cache reach the file before the commit.
    crash = """
with store.transaction():
    store.append_ledger(b"third entry")
    store.add(np.ones(3))
    store.label(1, "rain")
    for number in range(8):
        store.put(f"large {number}", bytes(10**6))
    os._exit(7)
"""
    assert run(crash, path).returncode == 7
    assert len(path.read_bytes()) > len(before) + 10**6
    assert open_and_read(path) == expected
    with contextlib.closing(open_file(path)) as store:
        assert store.get("large 0") is None


def test_what_was_committed_survives_a_crash(path: Path) -> None:
    done = """
with store.transaction():
    store.put("b", b"answer")
    store.append_ledger(b"third entry")
os._exit(7)
"""
    assert run(done, path).returncode == 7
    _, _, _, answer, ledger = open_and_read(path)
    assert (answer, ledger[2:]) == (b"answer", (b"third entry",))


def test_a_full_disk_is_named_and_changes_nothing(path: Path) -> None:
    expected = open_and_read(path)
    with contextlib.closing(open_file(path)) as store:
        store._file.rows("PRAGMA max_page_count = 20")

        def change_too_much() -> None:
            with store.transaction():
                store.append_ledger(b"third entry")
                store.put("b", bytes(10**6))

        with pytest.raises(StoreUnavailableError, match="disk"):
            change_too_much()
        assert content(store) == expected
        store.append_ledger(b"third entry")
    assert open_and_read(path)[4] == (*expected[4], b"third entry")


def test_commits_are_durable_and_deletions_overwrite(path: Path) -> None:
    with contextlib.closing(open_file(path)) as store:
        settings = {
            name: store._file.rows(f"PRAGMA {name}")[0][0]
            for name in ("synchronous", "secure_delete", "journal_mode", "locking_mode")
        }
    assert settings == {
        "synchronous": 2,
        "secure_delete": 1,
        "journal_mode": "truncate",
        "locking_mode": "exclusive",
    }
