"""Backups that somebody changed, digests included: nothing in them is done, or longer than them."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest
from support.full_disk import room_for

from earshot_server.backups import file
from earshot_server.backups.backing_up import back_up
from earshot_server.backups.file import DamagedBackupError, Manifest, opened
from earshot_server.backups.restoring import restore
from earshot_server.credentials import TOKEN_FILE, Credentials
from earshot_server.processes.embedded import EmbeddedPostgres
from earshot_server.records import AuditEntry
from earshot_server.store.database import Database
from earshot_server.store.operators import Accounts, Role
from earshot_server.store.registry import Registry

ODD = "Łódź, 東京\t\\N \\. '$$; --\n"


@pytest.fixture(scope="module")
def empty_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database without any table, as what is refused leaves it."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE left_empty")
        yield postgres.url.replace("/postgres?", "/left_empty?")
        connection.execute("DROP DATABASE left_empty WITH (FORCE)")


@pytest.fixture(scope="module")
def original(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A backup of a server with a phone, an operator and an entry in the log."""
    folder = tmp_path_factory.mktemp("original")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE original")
        url = postgres.url.replace("/postgres?", "/original?")
        with closing(Database(url)) as database:
            database.migrate()
            fill(database)
            back_up(folder / "backup", credentials(folder / "data"), url)
        connection.execute("DROP DATABASE original WITH (FORCE)")
    return (folder / "backup").read_bytes()


@pytest.fixture
def backup(original: bytes, tmp_path: Path) -> Path:
    (tmp_path / "backup").write_bytes(original)
    return tmp_path / "backup"


def fill(database: Database) -> None:
    Registry(database).enrol(bytes(32), bytes(16), 7, cohort=ODD)
    Accounts(database).add("olga", Role.ADMIN)
    Accounts(database).record("olga", ODD, detail="a" * 100_000)


def credentials(folder: Path) -> Path:
    Credentials.load_or_create(folder)
    return folder


def objects(url: str) -> list[tuple[object, ...]]:
    """Whatever is in the database besides rows."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT 'relation', relname, relkind::text, relchecks FROM pg_class"
            "  WHERE relnamespace = 'public'::regnamespace"
            " UNION ALL SELECT 'function', proname, prosrc, 0 FROM pg_proc"
            "  WHERE pronamespace = 'public'::regnamespace"
            " UNION ALL SELECT 'trigger', tgname, tgrelid::regclass::text, 0 FROM pg_trigger"
            "  WHERE NOT tgisinternal"
            " UNION ALL SELECT 'rule', rulename, ev_class::regclass::text, 0 FROM pg_rewrite"
            "  WHERE ev_class::regclass::text !~ '^(pg_|information_schema)'"
            " UNION ALL SELECT 'event', evtname, '', 0 FROM pg_event_trigger"
            " UNION ALL SELECT 'schema', nspname, '', 0 FROM pg_namespace"
            " ORDER BY 1, 2, 3"
        ).fetchall()


def refused(backup: Path, url: str, match: str = "") -> None:
    """It is refused by name, and leaves neither a folder nor a table; nothing long is written."""
    new = backup.with_name("new")
    with (
        room_for(backup.stat().st_size + 4096),
        pytest.raises(DamagedBackupError, match=match),
    ):
        restore(backup, new, url)
    assert not new.exists()
    assert not any(kind in ("relation", "function") for kind, *_ in objects(url))


# --------------------------------------------------------------------------------- what is done


def test_rows_come_back_as_they_were(
    own_database: Database, own_url: str, other_url: str, tmp_path: Path
) -> None:
    fill(own_database)
    back_up(tmp_path / "backup", credentials(tmp_path / "data"), own_url)
    restore(tmp_path / "backup", tmp_path / "new", other_url)
    with closing(Database(other_url)) as restored:
        for table in ("phones", "invitations", "operators", "credentials", "gatherings"):
            statement = f"SELECT t::text FROM {table} t"  # noqa: S608
            assert restored.query(statement) == own_database.query(statement)  # type: ignore[arg-type]
        mine, (added, *theirs) = Accounts(own_database).audit(), Accounts(restored).audit()
        assert tuple(theirs) == mine
        assert isinstance(added, AuditEntry)
        assert added.entry > 1_000_000


def test_nothing_but_rows_comes_along(
    postgres: EmbeddedPostgres, own_database: Database, own_url: str, other_url: str, tmp_path: Path
) -> None:
    """What only a superuser may do, wherever a dump could have it done."""
    marker = Path(postgres._socket_folder) / "marker"  # where PostgreSQL's account may write
    own_database.query(
        "CREATE FUNCTION evil() RETURNS void LANGUAGE plpgsql AS"
        f" $$ BEGIN COPY (SELECT 1) TO PROGRAM 'cat > {marker}'; END $$"  # type: ignore[arg-type]
    )
    own_database.query(
        "CREATE FUNCTION evil(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM evil(); RETURN $1; END $$"
    )
    own_database.query(
        "CREATE FUNCTION evil_trigger() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM evil(1); RETURN NEW; END $$"
    )
    for statement in (
        "CREATE INDEX evil_index ON phones (evil(phone))",
        "ALTER TABLE phones ADD CONSTRAINT evil_check CHECK (evil(phone) > 0)",
        "CREATE TRIGGER evil BEFORE INSERT ON audit EXECUTE FUNCTION evil_trigger()",
        "CREATE RULE evil AS ON INSERT TO tallies DO ALSO SELECT evil(1)",
        "CREATE VIEW evil_view AS SELECT evil(1)",
        "CREATE TABLE evil_table (x bigint DEFAULT evil(1))",
        "CREATE SCHEMA evil_schema",
    ):
        own_database.query(statement)  # type: ignore[arg-type]
    fill(own_database)
    marker.unlink()  # it was made: the functions work
    back_up(tmp_path / "backup", credentials(tmp_path / "data"), own_url)
    restore(tmp_path / "backup", tmp_path / "new", other_url)
    with closing(Database(other_url)) as restored:
        Registry(restored).enrol(bytes(range(32)), bytes(16), 7)
        Accounts(restored).record("olga", "does something")
    assert not marker.exists()
    assert not any("evil" in str(each) for each in objects(other_url))


# ----------------------------------------------------------------------------- what is no file


def tar(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for member, content in members:
            member.size = member.size or len(content)
            archive.addfile(member, io.BytesIO(content.ljust(member.size, b"\0")))
    return out.getvalue()


def member(name: str = TOKEN_FILE, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def old_sparse(size: int) -> bytes:
    """GNU's old header of a file with one byte of data at its end."""
    header = bytearray(member().tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"%011o\0" % 512
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:410] = b"%011o\0%011o\0" % (size - 512, 512)
    header[483:495] = b"%011o\0" % size
    return with_checksum(header) + bytes(512) + bytes(1024)


def with_size(field: bytes) -> bytes:
    header = bytearray(member().tobuf(tarfile.GNU_FORMAT))
    header[124:136] = field
    return with_checksum(header) + bytes(2048)


def with_checksum(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


GIGABYTE = 2**30
NO_FILES = {
    "old sparse": old_sparse(GIGABYTE),
    "pax sparse": tar(
        (
            member(
                pax_headers={
                    "GNU.sparse.major": "1",
                    "GNU.sparse.minor": "0",
                    "GNU.sparse.name": TOKEN_FILE,
                    "GNU.sparse.realsize": str(GIGABYTE),
                }
            ),
            b"1\n%d\n512\n" % (GIGABYTE - 512),
        ),
        format=tarfile.PAX_FORMAT,
    ),
    "pax size": tar((member(pax_headers={"size": str(GIGABYTE)}), b"x"), format=tarfile.PAX_FORMAT),
    "long name": tar((member("x" * 200), b"x")),
    "chain of long names": with_checksum(
        bytearray(member(type=tarfile.GNUTYPE_LONGNAME, size=0).tobuf(tarfile.GNU_FORMAT))
    )
    * 5000,
    "link": tar((member(type=tarfile.SYMTYPE, linkname="/etc/passwd"), b"")),
    "hard link": tar((member(type=tarfile.LNKTYPE, linkname="/etc/passwd"), b"")),
    "device": tar((member(type=tarfile.CHRTYPE, devmajor=1, devminor=5), b"")),
    "pipe": tar((member(type=tarfile.FIFOTYPE), b"")),
    "folder": tar((member(type=tarfile.DIRTYPE), b"")),
    "absolute": tar((member("/tmp/" + TOKEN_FILE), b"x")),  # noqa: S108
    "above": tar((member("../" + TOKEN_FILE), b"x")),
    "beside": tar((member("./" + TOKEN_FILE), b"x")),
    "dump": tar((member("database.dump"), b"PGDMP")),
    "left out": tar((member("schema_version.rows"), b"x")),
    "twice": tar((member(), b"x"), (member(), b"x")),
    "longer": with_size(b"%011o\0" % GIGABYTE),
    "longest": with_size(b"\x80" + b"\x7f" * 11),
    "negative": with_size(b"\xff" * 11 + b"\x00"),
    "no number": with_size(b"nine bytes\0\0"),
    "not text": tar((member("\udcff\udcfe"), b"x")),
    "empty": b"",
    "zeros": bytes(10_240),
}


SAID = {
    "twice": "holds operator.token twice",
    **dict.fromkeys(("longer", "longest", "negative"), "operator.token is cut off"),
    "no number": "invalid header",
    **dict.fromkeys(("empty", "zeros"), "is missing from it"),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_plain_file_of_a_backup_is_refused_before_anything_is_written(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "backup").write_bytes(NO_FILES[kind])
    with (
        room_for(4096),
        pytest.raises(DamagedBackupError, match=SAID.get(kind, "which no backup holds")),
    ):
        restore(tmp_path / "backup", tmp_path / "new", "postgresql://nobody@127.0.0.1:1/x")
    assert not (tmp_path / "new").exists()


# ---------------------------------------------------------------------------------- other rows


def changed(
    backup: Path,
    rows: dict[str, bytes] | None = None,
    files: dict[str, bytes] | None = None,
    **manifest: object,
) -> None:
    """Write it again with other contents, and the right digests."""
    with opened(backup) as whole:
        tables = {table: b"".join(whole.rows(table)) for table in whole.tables} | (rows or {})
        stated = msgspec.structs.replace(whole.manifest, **manifest)
        kept = whole.files | (files or {})
    file.write(backup, stated, kept, [(table, [content]) for table, content in tables.items()])


def copied(*fields: bytes | None) -> bytes:
    """One row, as COPY writes it."""
    row = len(fields).to_bytes(2, "big")
    for each in fields:
        row += b"\xff" * 4 if each is None else len(each).to_bytes(4, "big") + each
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + row + b"\xff\xff"


@pytest.mark.parametrize(
    ("table", "content"),
    [
        ("tallies", b"COPY tallies FROM PROGRAM 'id';\n"),
        ("tallies", b"\\! id\n1\tx\n\\.\n"),
        ("tallies", copied(b"x")),
        ("tallies", copied(bytes(8), b"x", b"y")),
        ("tallies", copied(bytes(8), b"\xff\xfe")),
        ("tallies", copied(bytes(8), b"\0")),
        ("tallies", copied(bytes(3), b"x")),
        ("tallies", copied(None, b"x")),
        ("tallies", copied(bytes(8), b"x")[:-8] + b"\x7f\xff\xff\xff"),
        ("tallies", copied(bytes(8), hashlib.shake_256(b"x").hexdigest(50_000).encode())),
        ("steps", copied(bytes(4), None, bytes(4), bytes(4), bytes(8), bytes(16), b"x")),
        ("operators", copied(bytes(8), b"eve", b"superuser", bytes(32))),
        ("phones", copied(b"", bytes(8), bytes(16), bytes(8), bytes(31))),
    ],
)
def test_rows_that_are_none_are_refused_by_the_name_of_their_table(
    table: str, content: bytes, empty_url: str, backup: Path
) -> None:
    changed(backup, {table: content})
    refused(backup, empty_url, match=f"{table}: ")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({"schema": 0}, "schema"),
        ({"schema": -3}, "schema"),
        ({"created": -1.0}, "created"),
        ({"created": 1e12}, "created"),
        ({"software": "1\0"}, "software"),
        ({"software": "x" * 101}, "software"),
        ({"columns": {}}, "its tables are not those"),
        ({"columns": {"phones": ('x") FROM PROGRAM $$id$$; --',)}}, "its tables are not those"),
        ({"numbers": {"phones_phone_seq": 2**63 - 1}}, "what is under way"),
        ({"numbers": {"phones_phone_seq": 2**64}}, "what is under way"),
        ({"numbers": {"phones_phone_seq": -1}}, "what is under way"),
    ],
)
def test_a_statement_of_something_else_is_refused(
    manifest: dict[str, object], said: str, empty_url: str, backup: Path
) -> None:
    changed(backup, **manifest)
    refused(backup, empty_url, match=said)


@pytest.mark.parametrize(
    "statement",
    [
        b'{"x": ' + b"[" * 60_000,
        b'{"x": ' + b'{"x": ' * 10_000,
        b'{"software": "\xff"}',
        b'{"numbers": {"\xff": 1}}',
        b'{"numbers": {"x": ' + b"9" * 60_000 + b"}}",
        b"\xff\xfe",
        b"",
    ],
)
def test_a_statement_that_cannot_be_read_is_refused(
    statement: bytes, empty_url: str, backup: Path
) -> None:
    with tarfile.open(backup) as archive:
        kept = {each.name: archive.extractfile(each) for each in archive}
        contents = {name: held.read() for name, held in kept.items() if held is not None}
    contents |= {"manifest.json": statement}
    del contents["SHA256SUMS"]
    sums = [f"{hashlib.sha256(held).hexdigest()}  {name}\n" for name, held in contents.items()]
    contents["SHA256SUMS"] = "".join(sums).encode()
    backup.write_bytes(tar(*((member(name), held) for name, held in contents.items())))
    refused(backup, empty_url, match="manifest.json: ")


def test_a_secret_that_is_none_is_refused(empty_url: str, backup: Path) -> None:
    changed(backup, files={TOKEN_FILE: bytes(2**17)})
    refused(backup, empty_url, match="operator.token has more than 65536 bytes")


def test_a_table_less_or_more_is_refused(empty_url: str, backup: Path) -> None:
    with opened(backup) as whole:
        manifest, files = whole.manifest, whole.files
        tables = {table: b"".join(whole.rows(table)) for table in whole.tables}
    assert isinstance(manifest, Manifest)
    del tables["audit"]
    file.write(backup, manifest, files, [(name, [rows]) for name, rows in tables.items()])
    refused(backup, empty_url, match="its tables are not those of schema")
