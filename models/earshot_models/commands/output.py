"""Folders that commands write their results to: checked before any work, never emptied."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path

from earshot_protocol.errors import InvalidInputError

_MOST_NAMED = 3


def prepare_folder(
    folder: Path | None,
    writes: Collection[str],
    overwrite: bool,
    resumes: Collection[str] = (),
    named: str = "--out ",
) -> None:
    """Make the output folder; refuse one whose files would be overwritten.

    Args:
        folder: Path of the folder, which is made if it does not exist; None to write nothing.
        writes: Names of the files that will be written or replaced; others stay.
        overwrite: Whether the folder may have other content.
        resumes: Names of the files from which an interrupted run continues.
        named: Option that names the folder, as a prefix of messages; empty for an argument.

    Raises:
        InvalidInputError: The folder is not empty, cannot be made or is not writable; or
            `overwrite` is given without a folder.
    """
    if folder is None:
        if overwrite:
            raise InvalidInputError("--overwrite: replaces files in --out; add --out FOLDER")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = sorted(entry.name for entry in folder.iterdir())
        with tempfile.TemporaryFile(dir=folder):
            pass  # an existing folder may not be writable
    except (FileExistsError, NotADirectoryError):
        parts = (folder.absolute(), *folder.absolute().parents)
        file = next((part for part in parts if part.exists() and not part.is_dir()), folder)
        raise InvalidInputError(f"{named}{folder}: {file} is a file; name a folder") from None
    except OSError as error:
        raise InvalidInputError(
            f"{named}{folder}: nothing can be written there ({error.strerror}); name another folder"
        ) from error
    others = [name for name in held if name not in resumes]
    if others and not overwrite:
        first = ", ".join(others[:_MOST_NAMED]) + (", …" if len(others) > _MOST_NAMED else "")
        raise InvalidInputError(
            f"{named}{folder} is not empty: it holds {first}. Name a new folder, or add "
            f"--overwrite to replace {' and '.join(writes)} there and nothing else"
        )
