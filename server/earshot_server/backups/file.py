"""File of a backup: a tar of the database's rows, the data folder's files, and their digests.

`tar xf FILE && sha256sum -c SHA256SUMS` reads it anywhere. The digests detect damage, not
deliberate changes. The reader here therefore accepts only regular files, and checks their names and
sizes. Nothing is compressed, so that no file is longer than the backup itself.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import msgspec

from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY, replacement
from earshot_server.backups.rows import KEPT
from earshot_server.credentials import KEY_FILE, LEADER_FILE, TOKEN_FILE
from earshot_server.processes.address import ADDRESS_FILE

FOLDER_FILES = (TOKEN_FILE, KEY_FILE, LEADER_FILE, ADDRESS_FILE)
"""Files of the data folder that are backed up."""
_MANIFEST = "manifest.json"
_SUMS = "SHA256SUMS"
_SMALL = {_MANIFEST, _SUMS, *FOLDER_FILES}
_SMALL_BYTES = 2**16
"""Largest size of each of these, in bytes."""
_ROWS = {f"{table}.rows": table for table in KEPT}
NEEDED = {_MANIFEST, TOKEN_FILE, KEY_FILE, _SUMS}
"""Files that every backup contains."""
_CHUNK = 2**20
_LATEST = 253_402_300_799.0
"""The last second of the year 9999."""


class DamagedBackupError(LocalError):
    """The file is not a complete backup, or its content is damaged."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a backup's content.

    Attributes:
        software: Version of this software that wrote it.
        schema: Version of the database's schema.
        created: Time at which it was begun, in seconds since 1970 on the database's clock.
        columns: Names of each table's columns, in the order of its rows.
        numbers: Last number that each sequence had given out.
    """

    software: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z.!+_-]{1,100}\Z")]
    schema: Annotated[int, msgspec.Meta(ge=1)]
    created: Annotated[float, msgspec.Meta(ge=0.0, le=_LATEST)]
    columns: dict[str, tuple[str, ...]] = {}
    numbers: dict[str, int] = {}


class _Member(NamedTuple):
    """Position of a file in a backup: its offset and size, in bytes."""

    begin: int
    size: int


def write(
    path: Path,
    manifest: Manifest,
    files: Mapping[str, bytes],
    tables: Iterable[tuple[str, Iterable[bytes]]],
) -> None:
    """Write a backup atomically, readable only by its owner.

    Args:
        path: Path of the backup; its folder exists.
        manifest: Description of its content.
        files: Contents of the data folder's files, by name.
        tables: Rows of each table, in pieces.
    """
    sums: dict[str, str] = {}
    # In this format the header itself can hold sizes beyond 8 GiB.
    with (
        replacement(path, OWNER_ONLY) as draft,
        tarfile.open(draft, "w", format=tarfile.GNU_FORMAT) as archive,
    ):

        def add(name: str, content: IO[bytes]) -> None:
            member = tarfile.TarInfo(name)
            member.size = content.seek(0, io.SEEK_END)
            member.mode, member.mtime = OWNER_ONLY, int(manifest.created)
            content.seek(0)
            archive.addfile(member, content)

        for table, pieces in tables:
            digest = hashlib.sha256()
            with tempfile.TemporaryFile(dir=path.absolute().parent) as rows:
                for piece in pieces:
                    digest.update(piece)
                    rows.write(piece)
                add(f"{table}.rows", rows)
            sums[f"{table}.rows"] = digest.hexdigest()
        for name, content in {_MANIFEST: _formatted(manifest), **files}.items():
            add(name, io.BytesIO(content))
            sums[name] = hashlib.sha256(content).hexdigest()
        lines = (f"{digest}  {name}\n" for name, digest in sums.items())
        add(_SUMS, io.BytesIO("".join(lines).encode()))


def _formatted(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest))


class Backup:
    """Open backup that is complete and whose digests have been verified.

    Attributes:
        manifest: Description of its content.
        files: Contents of the data folder's files, by name.
        tables: Tables whose rows it contains.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        self._file = file
        self._members = dict(_members(file, size))
        missing = NEEDED - self._members.keys()
        if missing:
            raise DamagedBackupError(f"{', '.join(sorted(missing))} is missing from it")
        small = {name: self._content(name) for name in self._members.keys() & _SMALL}
        sums = {name: self._sum(name) for name in self._members if name != _SUMS}
        if _stated(small[_SUMS]) != sums:
            raise DamagedBackupError("its digests do not match its content")
        try:
            self.manifest = msgspec.json.decode(small[_MANIFEST], type=Manifest)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise DamagedBackupError(f"{_MANIFEST}: {error}") from error
        self.files = {name: small[name] for name in FOLDER_FILES if name in small}
        self.tables = frozenset(_ROWS[name] for name in self._members if name in _ROWS)

    def rows(self, table: str) -> Iterator[bytes]:
        """Yield the rows of a table, piece by piece."""
        return self._pieces(f"{table}.rows")

    def _content(self, name: str) -> bytes:
        if self._members[name].size > _SMALL_BYTES:
            raise DamagedBackupError(f"its {name} has more than {_SMALL_BYTES} bytes")
        return b"".join(self._pieces(name))

    def _sum(self, name: str) -> str:
        digest = hashlib.sha256()
        for piece in self._pieces(name):
            digest.update(piece)
        return digest.hexdigest()

    def _pieces(self, name: str) -> Iterator[bytes]:
        begin, left = self._members[name]
        self._file.seek(begin)
        while left and (piece := self._file.read(min(left, _CHUNK))):
            left -= len(piece)
            yield piece


@contextmanager
def opened(path: Path) -> Iterator[Backup]:
    """Open a backup and verify every digest.

    Args:
        path: Path of the backup.

    Raises:
        DamagedBackupError: The file cannot be read, or is not a complete, undamaged backup.
    """
    with ExitStack() as stack:
        try:
            backup = Backup(stack.enter_context(path.open("rb")))
        except OSError as error:
            raise DamagedBackupError(f"cannot read {path}: {error.strerror}") from error
        except (DamagedBackupError, tarfile.TarError) as error:
            raise damaged(path, str(error)) from error
        yield backup


def damaged(path: Path, why: str) -> DamagedBackupError:
    """Return the error for a damaged backup."""
    return DamagedBackupError(f"{path} is not a whole backup: {why}; take another one")


def _members(file: IO[bytes], size: int) -> Iterator[tuple[str, _Member]]:
    """Yield the files in a tar of `size` bytes; refuse every other kind of member.

    So there are no links, devices, sparse files, or extended headers.
    """
    seen = set[str]()
    while (header := file.read(tarfile.BLOCKSIZE)).strip(b"\0"):
        found = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        if found.type != tarfile.REGTYPE or found.name not in {*_SMALL, *_ROWS}:
            raise DamagedBackupError(f"it holds {found.name!r}, which no backup holds")
        if found.name in seen:
            raise DamagedBackupError(f"it holds {found.name} twice")
        seen.add(found.name)
        begin = file.tell()
        if not 0 <= found.size <= size - begin:
            raise DamagedBackupError(f"its {found.name} is cut off")
        yield found.name, _Member(begin, found.size)
        file.seek(begin + -(-found.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)


def _stated(content: bytes) -> dict[str, str]:
    """Parse the digests in `SHA256SUMS`, by name."""
    found: dict[str, str] = {}
    with suppress(ValueError):
        for line in content.decode("ascii").splitlines():
            digest, name = line.split("  ")
            found[name] = digest
    return found
