"""Parts of long lists, stored in files until the request for the total."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from earshot_protocol.files import OWNER_ONLY, replace_file
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.refusals import WrongListError
from earshot_protocol.two_operators.sizes import list_bytes
from earshot_protocol.two_operators.transport import LARGEST_PART, ListPart
from earshot_server.helper.database import named_errors


class ListParts:
    """Folder of parts, for any number of threads and processes.

    Methods raise `DatabaseUnavailableError` while the disk cannot be read or written.

    Args:
        path: Path of the folder; it is created with the first part.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, part: ListPart, parameters: TwoOperatorParameters) -> None:
        """Store a part of a list; it is durable when this returns.

        A first part that differs from the stored one begins the list anew, and a part that is not
        full ends it.

        Args:
            part: Part sent by the leader of the sum.
            parameters: Parameters of that sum; a list has at most one report for each phone.

        Raises:
            WrongListError: With this part, the list would have more reports than that.
        """
        size = part.number * LARGEST_PART + len(part.entries)
        largest = list_bytes(parameters)
        if size > largest:
            raise WrongListError(
                f"a list of {size} bytes; {parameters.phones} phones make at most {largest}"
            )
        folder = self._folder(part.sum_id)
        with named_errors():
            if part.number == 0 and _content(folder / "0") != part.entries:
                shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if len(part.entries) < LARGEST_PART:
                for later in _numbers(folder):
                    if later > part.number:
                        (folder / str(later)).unlink(missing_ok=True)
            replace_file(folder / str(part.number), part.entries, OWNER_ONLY)

    def gathered(self, sum_id: bytes) -> bytes:
        """Return the entries of all stored parts, up to the first that is missing."""
        folder = self._folder(sum_id)
        entries = bytearray()
        with named_errors():
            for number, present in enumerate(sorted(_numbers(folder))):
                if number != present:
                    break
                entries += _content(folder / str(number))
        return bytes(entries)

    def drop(self, sum_id: bytes) -> None:
        """Delete the parts of a sum's list."""
        shutil.rmtree(self._folder(sum_id), ignore_errors=True)

    def drop_others(self, sums: Collection[bytes]) -> None:
        """Delete the parts of all lists except those of these sums."""
        kept = {sum_id.hex() for sum_id in sums}
        with named_errors(), suppress(FileNotFoundError):
            for folder in self._path.iterdir():
                if folder.name not in kept:
                    shutil.rmtree(folder, ignore_errors=True)

    def _folder(self, sum_id: bytes) -> Path:
        return self._path / sum_id.hex()


def _numbers(folder: Path) -> list[int]:
    """Return the numbers of the parts in a folder, ignoring drafts of a killed process."""
    try:
        return [int(each.name) for each in folder.iterdir() if each.name.isdecimal()]
    except FileNotFoundError:
        return []


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
