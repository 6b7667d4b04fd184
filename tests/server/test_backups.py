"""Backups: whole or refused, without sums under way, and a past that begins anew."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest
from support.command import earshot
from support.dashboard_records import gathering as gathering_record
from support.dashboard_records import running as running_record
from support.played_phase import PARAMETERS, PHONES, make_phones
from support.reading import record

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.messages import Failed
from earshot_protocol.wire import Ending
from earshot_server.backups import file
from earshot_server.backups.backing_up import back_up
from earshot_server.backups.file import DamagedBackupError, Manifest, opened
from earshot_server.backups.restoring import restore
from earshot_server.credentials import KEY_FILE, TOKEN_FILE, Credentials
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.set_back import SET_BACK, end_if_set_back
from earshot_server.phases.spending import released
from earshot_server.processes.address import Address, remembered
from earshot_server.processes.driver import Driver
from earshot_server.records import FAILED, RESTORED_REASON, STOPPED, STOPPED_REASON, PhaseRecord
from earshot_server.store import database as database_module
from earshot_server.store.database import Database, NewerSchemaError
from earshot_server.store.operators import Accounts
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.progress import PhaseProgress
from earshot_server.store.registry import Registry
from earshot_server.store.sessions import Sessions


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with credentials, beside an external database."""
    Credentials.load_or_create(tmp_path / "data")
    return tmp_path / "data"


def gather(database: Database, joining: int, seconds: float = 1000.0) -> bytes:
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, PARAMETERS, 10, database.now() + seconds)
    for _ in range(joining):
        registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 1000))
    return phase


def begin(database: Database) -> bytes:
    """A phase in its first step, which half of its phones have answered."""
    phase = gather(database, PHONES)
    assert Driver(database, Optics(), 1e6).turn() == 1
    coordinator = Coordinator(PostgresPhaseStore(database), Optics(), phase)
    for number, phone in list(make_phones().items())[: PHONES // 2]:
        answer = phone.answer(coordinator.task_for(number))
        assert answer is not None
        coordinator.accept(number, answer)
    return phase


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).fetchall()


# ----------------------------------------------------------------------------- what goes on


def test_what_was_under_way_ends_by_name_and_what_was_over_stays(
    own_database: Database, own_database_url: str, other_url: str, data: Path, tmp_path: Path
) -> None:
    running, waiting = begin(own_database), gather(own_database, 3)
    short = gather(own_database, 2, seconds=-1.0)
    Driver(own_database, Optics(), 1e6).turn()
    stopped = begin(own_database)
    Registry(own_database).stop(stopped, STOPPED_REASON)
    session = Sessions(own_database).begin(bytes(32))
    back_up(tmp_path / "backup", data, own_database_url)
    assert restore(tmp_path / "backup", tmp_path / "new", other_url) == 2

    with closing(Database(other_url)) as database:
        for phase in (running, waiting):
            found = record(database, phase)
            assert found.status == FAILED
            assert isinstance(found.ending, Failed)
            assert found.ending.reason.startswith(RESTORED_REASON)
            assert "sums may have been spent" in found.ending.reason
        assert "2 phones have joined" in str(record(database, short).ending)
        assert record(database, stopped).status == STOPPED
        store = PostgresPhaseStore(database)
        assert store.running() == ()
        coordinator = Coordinator(store, Optics(), running)
        assert all(isinstance(coordinator.task_for(phone), Ending) for phone in range(PHONES))
        assert Driver(database, Optics(), 1e6).turn() == 0
        assert PhaseProgress(database).failures()["restored"] == 2
        assert Sessions(database).token_hash(session) is None
        (entry,) = Accounts(database).audit()
        assert entry.action == "restore server"
        assert "phases that it ended: 2;" in entry.detail
        assert gather(database, 1)  # and the next phase gathers
    # The original was only read.
    assert record(own_database, running).ending is None


def test_a_database_that_was_set_back_ends_what_was_under_way_once(
    own_database: Database, data: Path
) -> None:
    """Where the operator says so before the start, and never without."""
    running, waiting = begin(own_database), gather(own_database, 3)
    assert end_if_set_back(own_database, data) == 0
    assert record(own_database, running).ending is None
    (data / SET_BACK).touch()
    assert end_if_set_back(own_database, data) == 2
    for phase in (running, waiting):
        ending = record(own_database, phase).ending
        assert isinstance(ending, Failed)
        assert ending.reason.startswith(f"{RESTORED_REASON} copy of its database: it may have")
    assert own_database.query("SELECT count(*) FROM snapshots WHERE snapshot <> ''") == [(0,)]
    assert Accounts(own_database).audit()[0].action == "restore server"
    assert Registry(own_database).enrol(os.urandom(32), bytes(16), 1000) > 1_000_000
    later = begin(own_database)
    assert end_if_set_back(own_database, data) == 0
    assert record(own_database, later).ending is None


def test_a_backup_holds_no_answer_and_no_sum_that_is_under_way(
    own_database: Database, own_database_url: str, other_url: str, data: Path, tmp_path: Path
) -> None:
    phase = begin(own_database)
    answers = rows(own_database_url, "SELECT answer FROM answers")
    assert len(answers) == PHONES // 2
    back_up(tmp_path / "backup", data, own_database_url)
    with opened(tmp_path / "backup") as backup:
        assert backup.tables.isdisjoint({"answers", "tasks", "snapshots"})
    content = (tmp_path / "backup").read_bytes()
    assert not any(answer in content for (answer,) in answers)
    restore(tmp_path / "backup", tmp_path / "new", other_url)
    assert rows(other_url, "SELECT phase FROM phases") == [(phase,)]
    assert rows(other_url, "SELECT count(*) FROM snapshots WHERE snapshot <> ''") == [(0,)]


def test_numbers_given_out_after_the_backup_are_not_given_out_again(
    own_database: Database, own_database_url: str, other_url: str, data: Path, tmp_path: Path
) -> None:
    before = Registry(own_database).enrol(os.urandom(32), bytes(16), 1000)
    back_up(tmp_path / "backup", data, own_database_url)
    after = [Registry(own_database).enrol(os.urandom(32), bytes(16), 1000) for _ in range(20)]
    restore(tmp_path / "backup", tmp_path / "new", other_url)
    with closing(Database(other_url)) as database:
        registry = Registry(database)
        assert registry.public_key(before) is not None
        assert registry.public_key(after[0]) is None
        assert registry.enrol(os.urandom(32), bytes(16), 1000) > max(after)


@pytest.mark.parametrize("found", [gathering_record(), running_record()])
def test_a_phase_that_may_have_gone_on_counts_as_spent_whole(found: PhaseRecord) -> None:
    reason = f"{RESTORED_REASON} backup of 1 Jan 2026, 00:00 UTC: it may have gone on since"
    ending = Failed(phase=found.phase, reason=reason)
    over = msgspec.structs.replace(found, status=FAILED, ending=ending)
    assert len(released(over)) == len(found.parameters.plan().releases())
    assert len(released(found)) < len(released(over))


# ------------------------------------------------------------------------- what is refused


def test_any_byte_of_a_backup_that_changes_is_noticed(tmp_path: Path) -> None:
    manifest = Manifest(software="0.1.0", schema=7, created=1e9, columns={"audit": ("entry",)})
    files = {TOKEN_FILE: b"token\n", KEY_FILE: os.urandom(70)}
    kept = [os.urandom(500), os.urandom(400)]
    file.write(tmp_path / "backup", manifest, files, [("audit", kept)])
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    content = (tmp_path / "backup").read_bytes()

    def read() -> tuple[Manifest, dict[str, bytes], bytes]:
        with opened(tmp_path / "changed") as backup:
            return backup.manifest, backup.files, b"".join(backup.rows("audit"))

    (tmp_path / "changed").write_bytes(content)
    whole = read()
    assert whole == (manifest, files, b"".join(kept))
    refused = 0
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / "changed").write_bytes(changed)
        try:
            # What fills a block after the end of a file is nobody's content.
            assert read() == whole
        except DamagedBackupError:
            refused += 1
    assert refused > sum(map(len, [*files.values(), *kept])) / 7
    for length in (0, 100, len(content) // 2, 4096):
        (tmp_path / "changed").write_bytes(content[:length])
        with pytest.raises(DamagedBackupError):
            read()


def test_a_folder_or_a_database_that_holds_something_is_refused(
    own_database: Database, own_database_url: str, other_url: str, data: Path, tmp_path: Path
) -> None:
    back_up(tmp_path / "backup", data, own_database_url)
    with pytest.raises(InvalidInputError, match=r"not empty: it holds invitation\.key"):
        restore(tmp_path / "backup", data, other_url)
    with pytest.raises(InvalidInputError, match="holds tables"):
        restore(tmp_path / "backup", tmp_path / "new", own_database_url)
    assert not (tmp_path / "new").exists()
    (tmp_path / "made").mkdir()
    content = bytearray((tmp_path / "backup").read_bytes())
    content[content.index(b"PGCOPY")] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(DamagedBackupError, match="digests"):
        restore(tmp_path / "damaged", tmp_path / "made", other_url)
    assert list((tmp_path / "made").iterdir()) == []
    assert rows(other_url, "SELECT FROM pg_tables WHERE schemaname = 'public'") == []


def test_an_older_schema_is_migrated_and_a_newer_one_refused(
    own_url: str, other_url: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = database_module._migrations()
    added = (len(present) + 1, "added", b"ALTER TABLE gatherings ADD added integer DEFAULT 7")
    with closing(Database(own_url)) as database:
        database.migrate()
        Registry(database).gather(bytes(16), PARAMETERS, 10, 0.0)
        back_up(tmp_path / "old", data, own_url)
    with monkeypatch.context() as newer:
        newer.setattr(database_module, "_migrations", lambda: [*present, added])
        assert restore(tmp_path / "old", tmp_path / "new", other_url) == 1
        with closing(Database(other_url)) as database:
            database.check()
            assert database.schema() == added[0]
            assert database.query("SELECT added FROM gatherings") == [(7,)]
            assert record(database, bytes(16)).status == FAILED
            database.query("INSERT INTO schema_version (version, name) VALUES (1000, 'later')")
    back_up(tmp_path / "newer", data, other_url)
    with pytest.raises(NewerSchemaError, match="schema 1000"):
        restore(tmp_path / "newer", tmp_path / "other", own_url)


# ----------------------------------------------------------------------------- the commands


def test_the_commands_say_what_they_did_and_replace_nothing_unasked(
    own_database: Database, own_database_url: str, other_url: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "backup"
    whose = ("--data", data, "--database", own_database_url)
    made = earshot("backup", out, *whose)
    assert (made.returncode, made.stderr) == (0, "")
    assert "guard it" in made.stdout
    again = earshot("backup", out, *whose)
    assert again.returncode == 2
    assert f"{out} exists" in again.stderr
    assert earshot("backup", out, *whose, "--overwrite").returncode == 0
    nowhere = earshot("backup", tmp_path / "nowhere" / "backup", *whose)
    assert nowhere.returncode == 2
    assert "cannot write" in nowhere.stderr
    begin(own_database)
    assert earshot("backup", out, *whose, "--overwrite").returncode == 0
    new = tmp_path / "new"
    into = ("--data", new, "--database", other_url, "--port", 8123)
    came = earshot("restore", out, *into)
    assert came.returncode == 0, came.stderr
    assert "1 phase under way in the backup ended" in came.stdout
    assert f"earshot serve --data {new}" in came.stdout
    assert remembered(new) == Address(port=8123)
    for name in (TOKEN_FILE, KEY_FILE):
        assert (new / name).read_bytes() == (data / name).read_bytes()
        assert (new / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("backup", "OUT", "--data", "NOTHING"), "holds no operator.token: give the server's"),
        (("backup", "OUT", "--data", "DATA"), "holds no database: give the server's --data"),
        (("backup", "OUT", "--data", "DATA", "--database", "URL"), "is not a server's"),
        (("restore", "NOTHING", "--data", "NEW"), "cannot read"),
        (("restore", "OTHER", "--data", "NEW"), "is not a whole backup"),
        (("restore", "OTHER", "--data", "NEW", "--port", "70000"), "--port 70000: must be"),
    ],
)
def test_mistakes_are_answered_by_what_would_be_right(
    arguments: tuple[str, ...], said: str, own_url: str, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "OTHER").write_text("something else")
    places = {"DATA": str(data), "URL": own_url}
    words = [
        places.get(word, str(tmp_path / word) if word[0].isupper() else word) for word in arguments
    ]
    run = earshot(*words)
    assert run.returncode == 2
    assert said in run.stderr
    assert not (tmp_path / "NEW").exists()
    assert not (tmp_path / "OUT").exists()
