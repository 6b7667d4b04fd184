"""Books of a helper: their contract, and what a disk, a backup and another helper do to one."""

from __future__ import annotations

import hashlib
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.full_disk import room_for
from support.killed_helper import opened
from support.operators import (
    NOW,
    WINDOW,
    Operators,
    another_list,
    entries,
    inputs_of,
    listed,
    request,
    terms,
    total_of,
)

from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.privacy.sum_noise import WholeLaplace
from earshot_protocol.two_operators.leader import PATIENCE, Leader
from earshot_protocol.two_operators.messages import AddUp, MakeOffer
from earshot_protocol.two_operators.refusals import HelperRefusalError, LateListError
from earshot_protocol.wire import Task, encode
from earshot_server.credentials import CredentialsError, new_key
from earshot_server.helper import database
from earshot_server.helper.book import Book, MemoryBook, Record, Secret, TakenError
from earshot_server.helper.database import (
    SCHEMA,
    SCHEMA_VERSION,
    HelperDatabase,
    HelperDatabaseError,
)
from earshot_server.helper.folder import HelperFolder, HelperFolderError
from earshot_server.helper.keys import KeyFolderError
from earshot_server.helper.sqlite_book import KEPT_AFTER, KeptByHelper
from earshot_server.store.database import DatabaseUnavailableError, NewerSchemaError

SECRET = Secret(b"k" * 32, b"n" * 80)
AGREED = terms(noise=WholeLaplace.of(20.0))
LATE = NOW + WINDOW + PATIENCE + 1


@pytest.fixture(params=["memory", "disk"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """Both kinds."""
    if request.param == "memory":
        yield MemoryBook()
        return
    with opened(tmp_path / "helper") as folder:
        yield folder.book


def record_of(operators: Operators, offered: float = NOW) -> tuple[bytes, Record]:
    """A record that some helper made, and its sum."""
    memory = MemoryBook()
    operators.book, operators.now = memory, offered
    asked = request(operators.begin(AGREED))
    operators.helper.answer(asked)
    record = memory.record(asked.sum_id)
    assert record is not None
    return asked.sum_id, record


# ---------------------------------------------------------------------------------------- contract


def test_a_sum_is_offered_once(book: Book) -> None:
    sum_id, record = record_of(Operators())
    assert book.record(sum_id) is None
    assert book.secret(sum_id) is None
    book.offer(sum_id, record, SECRET)
    with pytest.raises(TakenError, match="has been offered"):
        book.offer(sum_id, record, Secret(bytes(32), b""))
    assert book.record(sum_id) == record
    assert book.secret(sum_id) == SECRET


def test_a_sum_is_answered_once_and_its_secret_goes(book: Book) -> None:
    sum_id, record = record_of(Operators())
    book.offer(sum_id, record, SECRET)
    book.answer(sum_id, b"list", b"total", NOW + 1)
    assert book.secret(sum_id) is None
    for _ in range(2):
        with pytest.raises(TakenError, match="has been answered"):
            book.answer(sum_id, b"other", b"other", NOW + 2)
        kept = book.record(sum_id)
        assert kept is not None
        assert (kept.reports, kept.answered, kept.total) == (b"list", NOW + 1, b"total")
        book.erase(sum_id)  # twice is harmless


def test_offers_are_counted_for_each_leader(book: Book) -> None:
    one, other = Operators(), Operators()
    for operators, offered in ((one, NOW), (one, NOW + 10), (other, NOW + 5)):
        book.offer(*record_of(operators, offered), SECRET)
    assert book.offers_since(one.keys.identity, NOW) == 2
    assert book.offers_since(one.keys.identity, NOW + 1) == 1
    assert book.offers_since(one.keys.identity, NOW + 11) == 0
    assert book.offers_since(other.keys.identity, NOW) == 1


# -------------------------------------------------------------------------------------- the folder


def test_keys_are_for_the_owner_alone_and_for_no_backup(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        folder.book.offer(*record_of(Operators()), SECRET)
        keys = tmp_path / "keys"
        assert stat.S_IMODE(keys.stat().st_mode) == 0o700
        for file in (*keys.iterdir(), tmp_path / "helper.key", tmp_path / "helper.db"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        tag = (keys / "CACHEDIR.TAG").read_bytes()
        assert tag.startswith(b"Signature: 8a477f597d28d172789f06886806bc55")
        assert "Never back this folder up" in (keys / "README").read_text()
    keys.chmod(0o750)
    with pytest.raises(KeyFolderError, match="open to other users: chmod 700"), opened(tmp_path):
        pass


def test_a_start_erases_what_is_late_and_what_has_no_record(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        (early, late) = (record_of(Operators(), offered) for offered in (NOW, NOW + 100))
        for each in (early, late):
            folder.book.offer(*each, SECRET)
    keys = tmp_path / "keys"
    for name in (f"{'0' * 32}.key", ".0000.12-34.key"):
        (keys / name).write_bytes(b"left over")
    with opened(tmp_path, LATE):
        assert {each.name for each in keys.iterdir()} == {
            *("CACHEDIR.TAG", "README"),
            f"{late[0].hex()}.key",
        }
    with opened(tmp_path, LATE + 100) as folder:
        assert folder.book.counts(LATE + 100) == (0, 0, 2)
        assert len(list(keys.iterdir())) == 2


def test_a_helper_that_goes_on_erases_what_is_late(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        sum_id, record = record_of(Operators())
        folder.book.offer(sum_id, record, SECRET)
        folder.tidy(LATE - 2)
        assert folder.book.secret(sum_id) == SECRET
        folder.tidy(LATE)
        assert folder.book.secret(sum_id) is None


def test_a_damaged_key_is_none(tmp_path: Path) -> None:
    """Noise of zeros would protect nobody."""
    with opened(tmp_path) as folder:
        sum_id, record = record_of(Operators())
        folder.book.offer(sum_id, record, SECRET)
        file = tmp_path / "keys" / f"{sum_id.hex()}.key"
        whole = file.read_bytes()
        for damaged in (whole[:-1], whole[:-8] + bytes(8), b""):
            file.write_bytes(damaged)
            assert folder.book.secret(sum_id) is None
        file.write_bytes(whole)
        assert folder.book.secret(sum_id) == SECRET
        other = bytes(16)
        file.rename(file.with_name(f"{other.hex()}.key"))
        assert folder.book.secret(other) is None


def test_a_full_disk_offers_nothing_and_leaves_no_key(tmp_path: Path) -> None:
    operators = Operators()
    large = request(operators.begin(terms(shape=(2**16,))))
    with opened(tmp_path) as folder:
        operators.book = folder.book
        with (
            room_for(2**17),
            pytest.raises(DatabaseUnavailableError, match="cannot be read or written"),
        ):
            operators.helper.answer(large)
        assert folder.book.record(large.sum_id) is None
        assert len(list((tmp_path / "keys").iterdir())) == 2
        operators.helper.answer(large)


# -------------------------------------------------------------------------- what is kept no longer


def due(path: Path) -> tuple[Operators, AddUp]:
    """A sum whose list may come."""
    operators, leader = begun(path)
    return operators, listed(leader)


def begun(path: Path) -> tuple[Operators, Leader]:
    """The same, with its leader."""
    operators = Operators()
    with opened(path) as folder:
        operators.book = folder.book
        leader, _ = operators.collected(inputs_of(range(15)), parameters=AGREED)
        return operators, leader


def answered(path: Path, operators: Operators, task: Task) -> bytes:
    with opened(path, operators.now) as folder:
        operators.book = folder.book
        return encode(operators.helper.answer(task))


def refusal(path: Path, operators: Operators, task: Task) -> str:
    """The name of what it says instead of an answer."""
    with pytest.raises(HelperRefusalError) as caught:
        answered(path, operators, task)
    assert not caught.value.again
    return caught.value.name


def asked_for(operators: Operators, leader: Leader, **changes: object) -> MakeOffer:
    """The request with which a sum began, or another one for the same sum."""
    return operators.signed(msgspec.structs.replace(leader._signed_request(), **changes))


def on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.glob("helper.db*"))


def test_a_total_is_dropped_a_day_after_its_time_and_its_sum_stays_spent(tmp_path: Path) -> None:
    operators, leader = begun(tmp_path)
    task, asked = listed(leader), asked_for(operators, leader)
    other = another_list(operators, task, b"".join(entries(task)[1:]))
    answer = answered(tmp_path, operators, task)
    total = total_of(decode_helper_answer(answer)).total
    with opened(tmp_path) as folder:
        before = folder.book.record(task.sum_id)
        assert before is not None
        until = before.answer_until
        assert until == NOW + WINDOW + PATIENCE
        folder.tidy(until + KEPT_AFTER - 1)
    assert total in on_disk(tmp_path)
    assert answered(tmp_path, operators, asked) == before.offer
    operators.now = until + KEPT_AFTER - 1
    assert answered(tmp_path, operators, task) == answer  # a leader that lost it
    operators.now = until + KEPT_AFTER + 1
    with opened(tmp_path, operators.now) as folder:
        folder.tidy(operators.now)
        # It may be looked for in the files while the helper runs.
        content = on_disk(tmp_path)
        assert total not in content
        assert before.offer is not None
        assert before.offer not in content
        kept = folder.book.record(task.sum_id)
        assert kept == replace(before, offer=None, total=None)
        assert folder.book.counts(operators.now) == (0, 1, 0)
        assert folder.book.offers_since(operators.keys.identity, NOW) == 1
    for moment in (operators.now, NOW + WINDOW + 1):  # a clock put back brings nothing back
        operators.now = moment
        assert refusal(tmp_path, operators, task) == "late"
        assert refusal(tmp_path, operators, other) == "already_answered"
        assert refusal(tmp_path, operators, asked) == "late"
        assert (
            refusal(tmp_path, operators, asked_for(operators, leader, patience=1.0))
            == "unknown_sum"
        )
        with opened(tmp_path, moment) as folder:
            with pytest.raises(TakenError, match="has been offered"):
                folder.book.offer(task.sum_id, before, SECRET)
            with pytest.raises(TakenError, match="has been answered"):
                folder.book.answer(task.sum_id, b"other", b"other", moment)
            assert folder.book.record(task.sum_id) == kept
            assert folder.book.secret(task.sum_id) is None


def test_a_sum_that_was_never_answered_is_spent_too(tmp_path: Path) -> None:
    operators, leader = begun(tmp_path)
    task, asked = listed(leader), asked_for(operators, leader)
    with opened(tmp_path, LATE + KEPT_AFTER) as folder:
        folder.tidy(LATE + KEPT_AFTER)
        kept = folder.book.record(task.sum_id)
        assert kept is not None
        assert (kept.offer, kept.reports, kept.total) == (None, None, None)
        assert folder.book.counts(LATE + KEPT_AFTER) == (0, 0, 1)
        made = folder.book._keys.keep(task.sum_id, SECRET)  # as by a snapshot of the disk
        folder.database.change("UPDATE sums SET made = ?", made)
        operators.book, operators.now = folder.book, NOW + WINDOW + 1
        for message in (task, asked):
            with pytest.raises(LateListError):
                operators.helper.answer(message)
        with pytest.raises(TakenError, match="has been answered"):
            folder.book.answer(task.sum_id, b"list", b"total", operators.now)


def test_a_total_that_a_backup_brings_back_is_dropped_again(tmp_path: Path) -> None:
    operators, task = due(tmp_path / "helper")
    answered(tmp_path / "helper", operators, task)
    shutil.copytree(tmp_path / "helper", tmp_path / "new", ignore=shutil.ignore_patterns("keys"))
    operators.now = LATE + KEPT_AFTER
    with opened(tmp_path / "new", operators.now) as folder:
        assert folder.book.kept(operators.now)["totals"].count == 1
        folder.tidy(operators.now)
        assert folder.book.kept(operators.now)["totals"] == KeptByHelper(0, None)
    assert refusal(tmp_path / "new", operators, task) == "late"


def test_what_is_kept_is_told_with_the_time_of_the_oldest(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        book = folder.book
        assert set(book.kept(NOW).values()) == {KeptByHelper(0, None)}
        sums = [record_of(Operators(), NOW + 10 * number) for number in range(3)]
        for each in sums:
            book.offer(*each, SECRET)
        book.answer(sums[0][0], b"list", b"total", NOW + 50)
        book.answer(sums[1][0], b"list", b"total", NOW + 40)
        assert book.kept(NOW) == {
            "keys": KeptByHelper(1, NOW + 20),
            "totals": KeptByHelper(2, NOW + 40),
            "sums": KeptByHelper(3, NOW),
        }
        assert (book.late_keys(NOW), book.late_keys(LATE + 20)) == (0, 1)
        assert book.kept(LATE + 20)["keys"] == KeptByHelper(0, None)
        folder.tidy(LATE + KEPT_AFTER)
        assert book.kept(LATE) == {
            "keys": KeptByHelper(0, None),
            "totals": KeptByHelper(1, NOW + 40),
            "sums": KeptByHelper(3, NOW),
        }
        assert book.late_keys(LATE + 20) == 0


def test_a_full_disk_keeps_no_key_from_being_erased(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        for offered in (NOW - KEPT_AFTER - 2, NOW):
            folder.book.offer(*record_of(Operators(), offered), SECRET)
        with room_for(0), pytest.raises(DatabaseUnavailableError):
            folder.tidy(LATE)
        assert folder.book.late_keys(LATE) == 0
        assert folder.book.kept(LATE)["sums"].count == 2


# ------------------------------------------------------------------------------- what was restored


def check_no_answer(path: Path, operators: Operators, task: AddUp) -> None:
    """Neither list gets one, and it says why."""
    for reports in (task.reports, b"".join(entries(task)[1:])):
        with pytest.raises(LateListError, match=f"the key of sum {task.sum_id.hex()} is gone"):
            answered(path, operators, another_list(operators, task, reports))
    with opened(path, operators.now) as folder:
        assert folder.book.counts(operators.now) == (0, 0, 1)


def test_a_database_restored_from_before_the_answer_gives_no_second_one(tmp_path: Path) -> None:
    operators, task = due(tmp_path / "helper")
    shutil.copy2(tmp_path / "helper" / "helper.db", tmp_path / "backup.db")
    answered(tmp_path / "helper", operators, task)
    for file in (tmp_path / "helper").glob("helper.db*"):
        file.unlink()
    shutil.copy2(tmp_path / "backup.db", tmp_path / "helper" / "helper.db")
    check_no_answer(tmp_path / "helper", operators, task)


def test_a_backup_without_the_keys_ends_open_sums_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    operators, task = due(tmp_path / "helper")
    without = shutil.ignore_patterns("keys")
    shutil.copytree(tmp_path / "helper", tmp_path / "restored", ignore=without)
    check_no_answer(tmp_path / "restored", operators, task)
    assert "the folder of keys is new: 1 sums get no total" in caplog.text


@pytest.mark.parametrize("place", ["elsewhere", "in place"])
def test_a_backup_with_the_keys_is_refused_until_they_are_removed(
    tmp_path: Path, place: str
) -> None:
    """A copy may have been made before the answer; nothing in it says that there was one."""
    path, backup = tmp_path / "helper", tmp_path / "backup"
    operators, task = due(path)
    shutil.copytree(path, backup)
    answered(path, operators, task)
    if place == "in place":
        shutil.rmtree(path)
        shutil.copytree(backup, path)
    else:
        path = backup
    for _ in range(2):
        with pytest.raises(KeyFolderError, match=r"is a copy.*Remove the folder"):
            answered(path, operators, task)
    shutil.rmtree(path / "keys")
    check_no_answer(path, operators, task)


def test_a_folder_that_was_renamed_is_still_the_same(tmp_path: Path) -> None:
    operators, task = due(tmp_path / "helper")
    (tmp_path / "helper").rename(tmp_path / "renamed")
    answered(tmp_path / "renamed", operators, task)


def test_keys_of_another_helper_are_of_no_use(tmp_path: Path) -> None:
    operators, task = due(tmp_path / "one")
    due(tmp_path / "other")
    shutil.rmtree(tmp_path / "one" / "keys")
    (tmp_path / "other" / "keys").rename(tmp_path / "one" / "keys")
    check_no_answer(tmp_path / "one", operators, task)
    assert not list((tmp_path / "one" / "keys").glob("*.key"))


def test_without_its_database_a_helper_offers_anew_under_another_key(tmp_path: Path) -> None:
    operators = Operators()
    asked = request(operators.begin(AGREED))
    with opened(tmp_path) as folder:
        operators.book = folder.book
        first = encode(operators.helper.answer(asked))
        old = folder.book.secret(asked.sum_id)
    for file in tmp_path.glob("helper.db*"):
        file.unlink()
    with opened(tmp_path) as folder:
        assert folder.book.secret(asked.sum_id) is None
        operators.book = folder.book
        assert encode(operators.helper.answer(asked)) != first
        assert folder.book.secret(asked.sum_id) != old


# ---------------------------------------------------------------------------------- what is damaged


@pytest.mark.parametrize("missing", ["helper.key", "operator.token", "helper.db"])
def test_a_folder_without_a_helper_is_named(tmp_path: Path, missing: str) -> None:
    with opened(tmp_path):
        pass
    (tmp_path / missing).unlink()
    with pytest.raises(HelperFolderError, match=rf"holds no helper \({missing}.*helper init"):
        HelperFolder.open(tmp_path)


def test_another_key_than_the_database_s_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        known = folder.identity.public_key().public_bytes_raw().hex()
    (tmp_path / "helper.key").write_bytes(new_key())
    with pytest.raises(HelperFolderError, match=f"is not the key of .*helper {known}"):
        HelperFolder.open(tmp_path)
    (tmp_path / "helper.key").write_bytes(b"-----BEGIN")
    with pytest.raises(CredentialsError, match=r"holds no Ed25519.*restore it"):
        HelperFolder.open(tmp_path)
    (tmp_path / "helper.key").chmod(0o644)
    with pytest.raises(CredentialsError, match="open to other users: chmod 600"):
        HelperFolder.open(tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "helper.db"
    path.write_bytes(b"no database " * 1000)
    with pytest.raises(HelperDatabaseError, match="not a helper's database"):
        HelperDatabase(path)
    path.write_bytes(b"")
    with pytest.raises(HelperDatabaseError, match="or its content is lost"):
        HelperDatabase(path)
    with pytest.raises(DatabaseUnavailableError, match="cannot be read"):
        HelperDatabase(tmp_path / "missing.db")


def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    path, identity = tmp_path / "helper.db", Ed25519PrivateKey.generate().public_key()
    HelperDatabase.make(path, identity.public_bytes_raw())
    with closing(HelperDatabase(path)) as present:
        present.change(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    words = f"version {SCHEMA_VERSION + 1}; this software reads {SCHEMA_VERSION}: update it"
    with pytest.raises(NewerSchemaError, match=words):
        HelperDatabase(path)


def test_a_schema_has_a_version_of_its_own() -> None:
    """Who changes the schema gives it the next version, and both to this test."""
    digest = hashlib.sha256("\n".join(SCHEMA).encode()).hexdigest()
    assert (SCHEMA_VERSION, digest[:16]) == (1, "faeb3368e5503a9a")


def test_a_database_of_another_schema_is_refused_and_its_helper_keeps_its_key(
    tmp_path: Path,
) -> None:
    """Whatever its version says."""
    with opened(tmp_path) as folder:
        identity = folder.identity.public_key().public_bytes_raw()
        folder.database.change("ALTER TABLE sums RENAME COLUMN digest TO summary")
        with pytest.raises(DatabaseUnavailableError, match="has another schema"):
            folder.book.check()
    with pytest.raises(HelperDatabaseError, match=r"another schema.*move helper\.db and .*init"):
        HelperFolder.open(tmp_path)
    for file in tmp_path.glob("helper.db*"):
        file.rename(file.with_name(f"old-{file.name}"))
    (tmp_path / "keys").rename(tmp_path / "old-keys")
    with opened(tmp_path) as folder:
        assert folder.identity.public_key().public_bytes_raw() == identity
        folder.book.check()
        folder.book.write()


def test_what_another_process_holds_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.05)
    sum_id, record = record_of(Operators())
    with opened(tmp_path) as one, opened(tmp_path) as other:
        with one.database.transaction(), pytest.raises(DatabaseUnavailableError, match="locked"):
            other.book.offer(sum_id, record, SECRET)
        other.book.offer(sum_id, record, SECRET)
        assert one.book.secret(sum_id) == SECRET


def test_commits_reach_the_disk(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        assert folder.database.rows("PRAGMA synchronous") == [(2,)]  # FULL
        assert folder.database.rows("PRAGMA journal_mode") == [("wal",)]
