"""The helper's secrets: one key file a sum, in a folder of their own that nobody copies.

A sum is answered once because its key is gone afterwards. A copy of the folder would bring keys
back, so backups and snapshots have to leave it out; a folder that was copied is not opened.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY, made_whole, replace_file, to_disk
from earshot_server.helper.book import Secret

TAG, README, MARK = "CACHEDIR.TAG", "README", "mark"
_KEY_BYTES, _DIGEST_BYTES, _MARK_BYTES = 32, 32, 16
# The first line is what programs look for (https://bford.info/cachedir/).
_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# Never back this folder up: README says why.
"""
_README = b"""Never back this folder up, never copy it, never take a snapshot of it.

It holds the keys of sums that are not answered yet, and they are erased so that each sum is
answered once. Whoever brings an erased key back can have a sum answered twice, and the difference
of two answers may be what one phone sent. Backups of the folder above are welcome without this one:
restored from them, the helper gives no total for sums that were open, and says so.

Where the folder was copied, moved to another disk, or given other owners or permissions, the helper
does not start. Remove it then: sums that were open end without a total, and nothing else is lost.
"""

_log = logging.getLogger(__name__)


class KeyFolderError(LocalError):
    """The folder of keys is open to others, or is not the one that the database was used with."""


class KeyFolder:
    """Folder of the secrets of open sums.

    Changes are durable when a method returns; whoever makes them holds the database's lock.
    Methods raise `OSError` where the disk does.

    Args:
        path: Path of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make the folder, with what keeps it out of backups and a new mark, where it is missing.

        Raises:
            KeyFolderError: The folder is open to other users.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        if self.path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyFolderError(f"{self.path} is open to other users: chmod 700 {self.path}")
        for name, content in ((TAG, _TAG), (README, _README), (MARK, os.urandom(_MARK_BYTES))):
            if not (self.path / name).exists():
                with made_whole(self.path / name) as draft:
                    draft.write_bytes(content)

    def mark(self) -> tuple[bytes, int]:
        """Return what only this folder has: a random mark, and when its file last changed, in ns.

        No copy has both, as no program can set that time. Only a snapshot of the disk has.
        """
        mark = self.path / MARK
        return mark.read_bytes(), mark.stat().st_ctime_ns

    def keep(self, sum_id: bytes, secret: Secret) -> None:
        """Keep the secret of a sum, in place of one that no record belongs to."""
        content = secret.key + secret.noise
        digest = hashlib.sha256(sum_id + content).digest()
        replace_file(self._file(sum_id), digest + content, OWNER_ONLY)

    def secret(self, sum_id: bytes) -> Secret | None:
        """Return the secret of a sum; None if it is gone or damaged."""
        try:
            content = self._file(sum_id).read_bytes()
        except FileNotFoundError:
            return None
        digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if not hmac.compare_digest(digest, hashlib.sha256(sum_id + content).digest()):
            _log.error("the key of sum %s is damaged, so it gets no total", sum_id.hex())
            return None
        return Secret(content[:_KEY_BYTES], content[_KEY_BYTES:])

    def erase(self, sum_id: bytes) -> None:
        """Erase the secret of a sum, if it is still there."""
        self._file(sum_id).unlink(missing_ok=True)
        # Another process may have removed the file, and not be done with the folder yet.
        to_disk(self.path)

    def erase_others(self, open_sums: Collection[bytes]) -> int:
        """Erase all but the secrets of these sums, and return how many files that were."""
        others = self.others(open_sums)
        for other in others:  # drafts of a process that was killed are among them
            with suppress(FileNotFoundError):
                other.unlink()
        to_disk(self.path)
        return len(others)

    def others(self, open_sums: Collection[bytes]) -> list[Path]:
        """Return all files but the secrets of these sums, and what belongs to the folder."""
        kept = {TAG, README, MARK} | {self._file(sum_id).name for sum_id in open_sums}
        return [each for each in self.path.iterdir() if each.name not in kept]

    def has(self, sum_id: bytes) -> bool:
        """Return whether there is a secret of this sum."""
        return self._file(sum_id).exists()

    def _file(self, sum_id: bytes) -> Path:
        return self.path / f"{sum_id.hex()}.key"
