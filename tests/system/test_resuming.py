"""The contract of everything that resumes: what is kept is kept, and what is not is named."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.full_disk import room_for
from support.kills import intercepted
from support.resumable import (
    FILES,
    ITEMS,
    JOURNALS,
    RUNS,
    SEVERAL,
    Making,
    Seen,
    made,
    refused,
)

from earshot_models.votes.tally.journal import OtherLabellingError
from earshot_protocol import journal
from earshot_protocol.errors import EarshotError, InvalidInputError
from earshot_protocol.keyed_randomness import KEY_BYTES
from earshot_studies.pate_aae.generators.checkpoint import (
    DamagedFileError,
    OtherTrainingError,
    write_arrays,
)

ALL = [made(item) for item in range(ITEMS)]
every_owner = pytest.mark.parametrize("owner", RUNS)
every_journal = pytest.mark.parametrize("owner", JOURNALS)


def whole(owner: str, folder: Path) -> tuple[Path, bytes]:
    """The file of an owner that has made all items, and its content."""
    folder.mkdir(exist_ok=True)
    assert RUNS[owner](folder, "a", ITEMS, made) == ALL
    path = folder / FILES[owner]
    return path, path.read_bytes()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """What became of each owner, by its name: one process loads and kills them all."""
    folder = tmp_path_factory.mktemp("killed")
    program = [sys.executable, "-m", "support.resumable", str(folder)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # S603: the program is ours.
    done = subprocess.run(program, env=paths, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    found: dict[str, Seen] = json.loads(done.stdout)
    return found


@every_owner
def test_a_process_killed_at_any_call_loses_the_item_under_way_alone(
    owner: str, seen: dict[str, Seen]
) -> None:
    assert seen[owner]["wrong"] == []
    assert seen[owner]["kills"] >= 5 * ITEMS


@every_owner
def test_what_is_kept_is_not_made_again(owner: str, tmp_path: Path) -> None:
    run, making = RUNS[owner], Making(tmp_path / "made")
    folder = tmp_path / "kept"
    folder.mkdir()

    def interrupted(item: int) -> int:
        if item == ITEMS - 1:
            raise KeyboardInterrupt
        return making(item)

    with pytest.raises(KeyboardInterrupt):
        run(folder, "a", ITEMS, interrupted)
    assert run(folder, "a", ITEMS, making) == ALL
    assert making.items == list(range(ITEMS))
    assert run(folder, "a", ITEMS, refused) == ALL


@every_journal
def test_a_file_that_ends_anywhere_goes_on_from_its_whole_lines(owner: str, tmp_path: Path) -> None:
    path, content = whole(owner, tmp_path / "kept")
    others = content.count(b"\n") - ITEMS
    lines = content.splitlines(keepends=True)
    ends = [sum(map(len, lines[:count])) for count in range(len(lines))]
    for size in sorted({0, *(end + more for end in ends for more in (0, 1, 7)), len(content) - 1}):
        path.write_bytes(content[:size])
        making = Making(tmp_path / f"made-{size}")
        assert RUNS[owner](path.parent, "a", ITEMS, making) == ALL
        kept = max(0, content[:size].count(b"\n") - others)
        assert making.items == list(range(kept, ITEMS)), size
        assert path.read_bytes() == content
    path.write_bytes(content + b'{"half a line')
    assert RUNS[owner](path.parent, "a", ITEMS, refused) == ALL
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("owner", "before", "line", "told"),
    [
        ("lines", ITEMS, b"", "line 4: not a number"),
        ("lines", 0, b"my notes", "line 1: not a number"),
        ("sweep", ITEMS, b"my notes", "line 4: not a row of a sweep; remove the line, or name"),
        ("sweep", ITEMS, b"{}", "line 4: not a row of a sweep; remove the line, or name"),
        ("sweep", 0, b"[]", "line 1: not a row of a sweep; remove the line, or name"),
        ("labelling", 1 + ITEMS, b"{}", "line 5: no block of a labelling; .* in another folder"),
        ("labelling", 1, b"my notes", "line 2: no block of a labelling; .* in another folder"),
        ("labelling", 0, b"no json", "line 1: no journal of a labelling; name another folder"),
        ("labelling", 0, b"{}", "line 1: no journal of a labelling; name another folder"),
    ],
)
def test_a_line_that_is_not_its_owners_is_named(
    owner: str, before: int, line: bytes, told: str, tmp_path: Path
) -> None:
    path, content = whole(owner, tmp_path / "kept")
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join((*lines[:before], line, b"\n", *lines[before:])))
    changed = path.read_bytes()
    with pytest.raises(InvalidInputError, match=f"{path}, {told}"):
        RUNS[owner](path.parent, "a", ITEMS, refused)
    assert path.read_bytes() == changed


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)


def headed(header: dict[str, Any]) -> Callable[[Path], None]:
    return lambda path: write_arrays(path, header, np.zeros(ITEMS, np.int32))


BEGUN = {"about": {"name": "a"}, "done": 1, "secret": "00" * KEY_BYTES}


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (flipped, "has changed since it was written"),
        (lambda path: os.truncate(path, path.stat().st_size - 1), "cut or changed"),
        (lambda path: path.write_bytes(b""), "is not a checkpoint, or of another version"),
        (headed({}), "is not a checkpoint"),
        (headed({"about": {"name": "a"}, "done": 1}), "is not a checkpoint"),
        (headed(BEGUN | {"secret": "no hex"}), "is not a checkpoint"),
        (headed(BEGUN | {"secret": "00"}), "is not a checkpoint"),
        (headed(BEGUN | {"done": "1"}), "is not a checkpoint"),
    ],
)
def test_a_damaged_checkpoint_is_named(
    damage: Callable[[Path], object], told: str, tmp_path: Path
) -> None:
    path, _ = whole("checkpoint", tmp_path)
    damage(path)
    changed = path.read_bytes()
    with pytest.raises(DamagedFileError, match=f"{path} .*{told}"):
        RUNS["checkpoint"](tmp_path, "a", ITEMS, refused)
    assert path.read_bytes() == changed


@every_journal
def test_a_second_writer_is_refused_until_the_first_is_done(owner: str, tmp_path: Path) -> None:
    path, content = whole(owner, tmp_path / "kept")
    with (
        journal.opened(path),
        pytest.raises(InvalidInputError, match="another run is writing it; wait for it, or name"),
    ):
        RUNS[owner](path.parent, "a", ITEMS, refused)
    assert path.read_bytes() == content
    assert RUNS[owner](path.parent, "a", ITEMS, refused) == ALL


@every_journal
def test_a_full_disk_is_named_and_leaves_whole_lines(owner: str, tmp_path: Path) -> None:
    path, content = whole(owner, tmp_path / "roomy")
    lines = content.splitlines(keepends=True)
    for count, line in enumerate(lines):
        before = b"".join(lines[:count])
        for size in (len(before), len(before) + len(line) // 2, len(before) + len(line) - 1):
            folder = tmp_path / f"full-{size}"
            folder.mkdir(exist_ok=True)
            with (
                room_for(size),
                pytest.raises(
                    InvalidInputError, match=r"cannot be written .*finished work is kept: make"
                ),
            ):
                RUNS[owner](folder, "a", ITEMS, made)
            assert (folder / path.name).read_bytes() == before
            assert RUNS[owner](folder, "a", ITEMS, made) == ALL
            assert (folder / path.name).read_bytes() == content


def test_a_journal_takes_lines_again_once_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with journal.opened(path) as kept:
        kept.append("one")
        with room_for(6), pytest.raises(InvalidInputError, match="cannot be written"):
            kept.append("two")
        kept.append("three")
    assert path.read_bytes() == b"one\nthree\n"


@pytest.mark.parametrize("owner", [owner for owner in RUNS if owner not in JOURNALS])
def test_a_full_disk_leaves_no_half_file(owner: str, tmp_path: Path) -> None:
    with room_for(5), pytest.raises(OSError, match="too large"):
        RUNS[owner](tmp_path, "a", ITEMS, made)
    assert list(tmp_path.iterdir()) == []
    assert RUNS[owner](tmp_path, "a", ITEMS, made) == ALL


@pytest.mark.parametrize(
    ("owner", "error", "told"),
    [
        (
            "labelling",
            OtherLabellingError,
            "begun with name 'a', not 'b'.* name another folder",
        ),
        (
            "checkpoint",
            OtherTrainingError,
            "name differ .*was 'a' and is 'b'.*choose another",
        ),
    ],
)
def test_another_identity_is_refused_by_what_differs(
    owner: str, error: type[EarshotError], told: str, tmp_path: Path
) -> None:
    path, content = whole(owner, tmp_path / "kept")
    with pytest.raises(error, match=told):
        RUNS[owner](path.parent, "b", ITEMS, refused)
    assert path.read_bytes() == content


@pytest.mark.parametrize("owner", SEVERAL)
def test_another_identity_is_kept_beside_the_first(owner: str, tmp_path: Path) -> None:
    run, making = RUNS[owner], Making(tmp_path / "made")
    folder = tmp_path / "kept"
    folder.mkdir()
    assert run(folder, "a", ITEMS, making) == run(folder, "b", ITEMS, making) == ALL
    assert making.items == [*range(ITEMS), *range(ITEMS)]
    assert run(folder, "a", ITEMS, refused) == run(folder, "b", ITEMS, refused) == ALL


def vanishing(folder: Path) -> Callable[[int], int]:
    """Makes items, and removes a folder once one is kept there."""

    def make(item: int) -> int:
        if item == 1:
            shutil.rmtree(folder)
        return made(item)

    return make


@every_owner
def test_a_folder_that_vanishes_is_noticed(owner: str, tmp_path: Path) -> None:
    folder, run = tmp_path / "kept", RUNS[owner]
    if owner.startswith("kept"):
        assert run(folder, "a", ITEMS, vanishing(folder)) == ALL
        assert len(list(folder.iterdir())) == ITEMS - 1
        return
    with pytest.raises(FileNotFoundError, match=str(folder)):
        run(folder, "a", ITEMS, made)
    folder.mkdir()
    error, told = (InvalidInputError, "was removed while it was being written.*another folder")
    if owner == "checkpoint":
        error, told = FileNotFoundError, str(folder)
    with pytest.raises(error, match=told):
        run(folder, "a", ITEMS, vanishing(folder))
    assert not folder.exists()


@every_journal
def test_a_line_and_its_file_are_on_the_disk_before_anybody_acts(
    owner: str, tmp_path: Path
) -> None:
    """A kill cannot tell a line in the system's memory from one on the disk; a power cut can."""
    told: list[tuple[str, str]] = []

    def noted(name: str, call: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        place = os.readlink(f"/proc/self/fd/{given[0]}")
        if not place.startswith("pipe:"):  # to a process of joblib's
            told.append((name, Path(place).name))
        return call(*given)

    def making(item: int) -> int:
        told.append(("made", str(item)))
        return made(item)

    with intercepted(noted):
        RUNS[owner](tmp_path, "a", ITEMS, making)
    kept = [("write", FILES[owner]), ("fsync", FILES[owner])]
    begun = [("fsync", tmp_path.name), *(kept if owner == "labelling" else ())]
    assert told == [
        *begun,
        *(each for item in range(ITEMS) for each in (("made", str(item)), *kept)),
    ]


@pytest.mark.parametrize(
    ("owner", "seen"),
    [("lines", 0o644), ("sweep", 0o644), ("labelling", 0o600), ("checkpoint", 0o600)],
)
def test_a_file_has_its_permissions_whatever_happens(owner: str, seen: int, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        path, _ = whole(owner, tmp_path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == seen
