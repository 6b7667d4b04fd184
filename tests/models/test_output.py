"""Where commands write: refused before any work where somebody would lose something."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot_models.commands.output import prepare_folder
from earshot_protocol.errors import InvalidInputError

FILES = ("a.json", "b.html")


def test_a_new_folder_and_an_empty_one_are_made_ready(tmp_path: Path) -> None:
    prepare_folder(tmp_path / "new" / "folder", FILES, overwrite=False)
    prepare_folder(tmp_path / "new" / "folder", FILES, overwrite=False)
    assert list((tmp_path / "new" / "folder").iterdir()) == []


@pytest.mark.parametrize("held", ["a.json", "notes.txt", ".hidden"])
def test_a_folder_that_holds_something_is_refused_by_name_and_left_alone(
    tmp_path: Path, held: str
) -> None:
    (tmp_path / held).write_text("precious")
    with pytest.raises(
        InvalidInputError, match=r"a\.json and b\.html there and nothing else"
    ) as told:
        prepare_folder(tmp_path, FILES, overwrite=False)
    assert str(tmp_path) in str(told.value)
    assert held in str(told.value)
    prepare_folder(tmp_path, FILES, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == [held]
    assert (tmp_path / held).read_text() == "precious"


def test_many_files_are_not_all_named(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number:02}.txt").touch()
    with pytest.raises(InvalidInputError, match=r"00\.txt, 01\.txt, 02\.txt, …\. "):
        prepare_folder(tmp_path, FILES, overwrite=False)


def test_what_an_interrupted_run_left_is_gone_on_from(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    prepare_folder(tmp_path, FILES, overwrite=False, resumes=["checkpoint"])
    (tmp_path / "a.json").touch()
    with pytest.raises(InvalidInputError, match=r"it holds a\.json"):
        prepare_folder(tmp_path, FILES, overwrite=False, resumes=["checkpoint"])


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_file_is_no_folder(tmp_path: Path, below: str, overwrite: bool) -> None:
    file = tmp_path / "results.txt"
    file.write_text("precious")
    with pytest.raises(InvalidInputError, match=r"results\.txt is a file; name a folder"):
        prepare_folder(file / below, FILES, overwrite)
    assert file.read_text() == "precious"


def test_a_folder_that_takes_nothing_is_named() -> None:
    for place in ("/proc/x", "/proc/self"):
        with pytest.raises(InvalidInputError, match=f"--out {place}: nothing can be written"):
            prepare_folder(Path(place), FILES, overwrite=True)
