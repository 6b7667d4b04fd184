"""What counts as changed lately, and which slow tests are nearest to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.changed import DAY, FOLDERS, Changes, nearest

NOW = 1_700_000_000


class Repository:
    """One of the test's own, on `main`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str, when: int = NOW) -> str:
        environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{who}_NAME": "somebody", f"GIT_{who}_EMAIL": "a@example.org"}
            environment[f"GIT_{who}_DATE"] = f"{when} +0000"
        done = subprocess.run(  # noqa: S603
            ["git", *words],  # noqa: S607
            cwd=self.root,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, name: str, text: str = "one\n") -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, "utf-8")

    def commit(self, name: str, *, ago: int = 0, text: str = "one\n") -> str:
        """Commit a file, so many seconds before now."""
        self.write(name, text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", name, when=NOW - ago)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_on_main_it_is_what_was_committed_within_a_day(repository: Repository) -> None:
    repository.commit("old", ago=3 * DAY)
    repository.commit("older than a day", ago=DAY + 1)
    repository.commit("first", ago=DAY - 1)
    repository.commit("last")
    assert Changes(repository.root).files() == ["first", "last"]


def test_a_merged_branch_counts_however_old_it_is(repository: Repository) -> None:
    repository.commit("old", ago=3 * DAY)
    repository.git("switch", "--quiet", "--create", "branch")
    repository.commit("on the branch", ago=2 * DAY)
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message", "merge", "branch")
    assert Changes(repository.root).files() == ["on the branch"]


def test_on_a_branch_it_is_what_main_lacks_and_what_is_not_committed(
    repository: Repository,
) -> None:
    repository.commit("common")
    repository.commit(".gitignore", text="ignored\n")
    repository.git("switch", "--quiet", "--create", "branch")
    repository.commit("on the branch", ago=9 * DAY)
    for name in ("common", "new", "ignored"):
        repository.write(name, "other\n")
    assert Changes(repository.root).files() == ["common", "new", "on the branch"]


def test_a_commit_can_be_given(repository: Repository) -> None:
    repository.commit("old", ago=3 * DAY)
    old = repository.commit("given", ago=2 * DAY)
    repository.commit("new")
    assert Changes(repository.root, "HEAD~1").files() == ["new"]
    assert Changes(repository.root, f"{old}~1").files() == ["given", "new"]


def test_of_a_history_shorter_than_a_day_the_oldest_commit_is_the_former(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for number in range(4):
        repository.commit(str(number), ago=4 - number)
    shallow = tmp_path_factory.mktemp("shallow")
    repository.git("clone", "--quiet", "--depth=3", f"file://{repository.root}", str(shallow))
    subprocess.run(["git", "remote", "remove", "origin"], cwd=shallow, check=True)  # noqa: S607
    assert Changes(shallow).files() == ["2", "3"]


@pytest.mark.parametrize("known", ["no commit", "one commit", "no git"])
def test_where_git_tells_nothing_everything_has_changed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    repository.write("deep/file", "a\nb")
    if known == "one commit":
        repository.commit("deep/file", text="a\nb")
    if known == "no git":
        monkeypatch.setenv("PATH", os.devnull)
    changes = Changes(repository.root)
    assert changes.files() == ["deep/file"]
    assert changes.lines({"deep/file": "a\nb"}) == {"deep/file": {1, 2}}
    assert "everything" in str(changes)


def test_lines_are_those_of_the_file_as_it_is_now(repository: Repository) -> None:
    repository.commit("file", ago=2 * DAY, text="a\nb\nc\nd\n")
    repository.commit("gone", ago=2 * DAY)
    repository.commit("file", text="a\nB\nc\nd\ne\n")
    repository.write("new", "n\n")
    repository.write("other", "o\n")
    texts = {"file": "a\nB\nc\nd\ne\n", "new": "n\n"}
    assert Changes(repository.root).lines(texts) == {"file": {2, 5}, "new": {1, 2}}


def test_nearest_are_changed_tests_then_importing_ones_then_those_of_the_package() -> None:
    tests = {
        "tests/server/test_far.py": "",
        "tests/client/test_beside.py": "from earshot_client import phone",
        "tests/system/test_importing.py": "from earshot_client.store import sqlite",
        "tests/client/test_importing.py": "import earshot_client.store.sqlite",
        "tests/server/test_support.py": "from support.kills import killed",
        "tests/web/test_changed.py": "",
    }
    changed = [
        "client/earshot_client/store/sqlite.py",
        "docs/privacy.md",
        "tests/support/kills.py",
        "tests/web/test_changed.py",
    ]
    assert nearest(changed, tests) == [
        "tests/web/test_changed.py",
        "tests/client/test_importing.py",
        "tests/server/test_support.py",
        "tests/system/test_importing.py",
        "tests/client/test_beside.py",
    ]
    assert nearest(["README.md"], tests) == []


def test_every_folder_of_tests_tests_a_folder() -> None:
    root = Path(__file__).parents[2]
    assert {path.parent.name for path in root.glob("tests/*/test_*.py")} == {*FOLDERS}
    assert all((root / folder).is_dir() for folder in FOLDERS.values())


def test_a_commit_that_git_does_not_know_is_refused(repository: Repository) -> None:
    repository.commit("first")
    with pytest.raises(SystemExit, match="--since=frist: git knows no such commit"):
        Changes(repository.root, "frist")


def test_a_tree_within_another_repository_and_any_settings_of_diff(repository: Repository) -> None:
    first = repository.commit("tree/first.py", ago=3 * DAY)
    repository.git("config", "diff.noprefix", "true")
    repository.commit("tree/first.py", text="one\ntwo\n")
    found = Changes(repository.root / "tree", first)
    assert found.files() == ["first.py"]
    assert found.lines({"first.py": "one\ntwo\n"}) == {"first.py": {2}}
