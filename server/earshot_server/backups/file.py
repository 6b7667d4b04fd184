"""File of a backup: a tar of the database's dump, the data folder's files, and their digests.

`tar xf FILE && sha256sum -c SHA256SUMS` reads it anywhere. The digests find damage, and not what
somebody changed on purpose.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY, replacement
from earshot_server.credentials import KEY_FILE, LEADER_FILE, TOKEN_FILE
from earshot_server.processes.address import ADDRESS_FILE

FOLDER_FILES = (TOKEN_FILE, KEY_FILE, LEADER_FILE, ADDRESS_FILE)
"""Files of the data folder that a backup holds."""
DUMP = "database.dump"
_MANIFEST = "manifest.json"
_SUMS = "SHA256SUMS"
NEEDED = {_MANIFEST, TOKEN_FILE, KEY_FILE, DUMP, _SUMS}
"""Files without which a backup is not whole."""
_CHUNK = 2**20


class DamagedBackupError(LocalError):
    """The file is not a whole backup, or what it holds is not what was backed up."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Statement of what a backup holds.

    Attributes:
        software: Version of this software that made it.
        schema: Schema of the database.
        postgresql: Major version of the PostgreSQL that was dumped.
        created: Time at which it was begun, in seconds since 1970 on the database's clock.
    """

    software: str
    schema: int
    postgresql: int
    created: float


def write(path: Path, manifest: Manifest, files: Mapping[str, bytes], dump: IO[bytes]) -> None:
    """Write a backup, whole or not at all, for its owner alone.

    Args:
        path: Path of the backup; its folder exists.
        manifest: Statement of what it holds.
        files: Contents of the data folder's files, by name.
        dump: Dump of the database, from its beginning.
    """
    small = {_MANIFEST: msgspec.json.format(msgspec.json.encode(manifest)), **files}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in small.items()}
    sums[DUMP] = _copied(dump, None)
    small[_SUMS] = "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()
    size = dump.seek(0, io.SEEK_END)
    dump.seek(0)
    with replacement(path, OWNER_ONLY) as draft, tarfile.open(draft, "w") as archive:
        for name, content in small.items():
            archive.addfile(_member(name, len(content), manifest), io.BytesIO(content))
        archive.addfile(_member(DUMP, size, manifest), dump)


def _member(name: str, size: int, manifest: Manifest) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, OWNER_ONLY, int(manifest.created)
    return member


def unpack(path: Path, folder: Path) -> Manifest:
    """Read a backup into a folder, for its owner alone, and compare every digest.

    Args:
        path: Path of the backup.
        folder: Empty folder.

    Returns:
        The statement of what it holds. The files lie in the folder as they were backed up, the dump
        beside them as `DUMP`.

    Raises:
        DamagedBackupError: It is not a whole backup.
    """
    sums: dict[str, str] = {}
    try:
        file = path.open("rb")
    except OSError as error:
        raise DamagedBackupError(f"cannot read {path}: {error.strerror}") from error
    try:
        with file, tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                if not member.isreg() or member.name not in {*NEEDED, *FOLDER_FILES}:
                    raise _damaged(path, f"it holds {member.name!r}, which no backup holds")
                content = archive.extractfile(member)
                sums[member.name] = _unpacked(content, folder / member.name) if content else ""
    except tarfile.TarError as error:
        raise _damaged(path, str(error)) from error
    missing = NEEDED - sums.keys()
    if missing:
        raise _damaged(path, f"{', '.join(sorted(missing))} is missing from it")
    del sums[_SUMS]
    if _sums(folder / _SUMS) != sums:
        raise _damaged(path, "its digests are not those of its content")
    try:
        manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        raise _damaged(path, f"{_MANIFEST}: {error}") from error
    for name in (_MANIFEST, _SUMS):
        (folder / name).unlink()
    return manifest


def _unpacked(content: IO[bytes], place: Path) -> str:
    """Write a member and return its digest."""
    place.touch(OWNER_ONLY)
    with place.open("wb") as file:
        return _copied(content, file)


def _copied(content: IO[bytes], out: IO[bytes] | None) -> str:
    """Return the digest of all that follows, and write it where somebody wants it."""
    digest = hashlib.sha256()
    while chunk := content.read(_CHUNK):
        digest.update(chunk)
        if out is not None:
            out.write(chunk)
    return digest.hexdigest()


def _sums(path: Path) -> dict[str, str]:
    """Return the digests that the backup states, by name."""
    found: dict[str, str] = {}
    with suppress(ValueError):
        for line in path.read_text(encoding="ascii").splitlines():
            digest, name = line.split("  ")
            found[name] = digest
    return found


def _damaged(path: Path, why: str) -> DamagedBackupError:
    return DamagedBackupError(f"{path} is not a whole backup: {why}; take another one")
