"""What changed lately: `python -m support.changed` runs the slow tests nearest to it.

A checkout need not know what it will be merged into, nor have much history or any. So "lately" is

1. since the commit that is given, or else
2. since the branch left `main`, here or on `origin`, or else (on `main` itself)
3. since the newest commit that is a day older than `HEAD`, along first parents: what lands within
   a day is one change, and so is a merged branch of any age. Where history is shorter than a day,
   since the oldest commit there is.

What is not committed counts too. Where git tells nothing, everything has changed. Whoever asks
sets a limit of time, so that a wide answer costs no more than a narrow one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

DAY = 24 * 3600
MAINS = ("main", "origin/main", "origin/HEAD")
FOLDERS = {
    "protocol": "protocol/earshot_protocol",
    "client": "client/earshot_client",
    "server": "server/earshot_server",
    "models": "models/earshot_models",
    "simulations": "simulations/earshot_simulations",
    "studies": "simulations/earshot_studies",
    "web": "client/web",
    "system": "deploy",
}
"""A folder of tests, and the folder that it tests; those that others import come first."""


class Changes:
    """What changed since a commit.

    Args:
        root: folder of the repository, or one that is none.
        since: name of the commit; by default the rule above finds it.
    """

    def __init__(self, root: Path, since: str = "") -> None:
        self._root = root
        self._base = self._commit(since) if since else self._found()
        if since and not self._base:
            raise SystemExit(f"--since={since}: git knows no such commit")

    def __str__(self) -> str:
        if not self._base:
            return "git tells no former commit, so everything counts as changed"
        return f"changed since {self._git('log', '-1', '--format=%h (%cs)', self._base).strip()}"

    def files(self) -> list[str]:
        """Paths from the root, sorted; those that are gone included."""
        if not self._base:
            paths = (path for path in self._root.rglob("*") if path.is_file())
            inside = (path.relative_to(self._root) for path in paths)
            return sorted(path.as_posix() for path in inside if not path.parts[0].startswith("."))
        names = self._git("diff", "--relative", "--name-only", "--no-renames", self._base)
        return sorted({*names.splitlines(), *self._untracked()})

    def lines(self, texts: Mapping[str, str]) -> dict[str, set[int]]:
        """Numbers of the lines that changed, of files that have any.

        Args:
            texts: what files hold now, by their paths from the root.
        """
        whole = {path: set(range(1, text.count("\n") + 2)) for path, text in texts.items()}
        if not self._base:
            return whole
        changed = {path: whole[path] for path in self._untracked() if path in whole}
        path = ""
        plain = ("--relative", "--unified=0", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/")
        for line in self._git("diff", *plain, self._base, "--", *texts).splitlines():
            if line.startswith("+++ "):
                path = line.removeprefix("+++ b/")
            elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
                first, lines = int(found[1]), int(found[2] or 1)
                changed.setdefault(path, set()).update(range(first, first + lines))
        return {path: lines for path, lines in changed.items() if lines}

    def _found(self) -> str:
        for main in MAINS:
            fork = self._git("merge-base", "HEAD", main).strip()
            if fork and fork != self._commit("HEAD"):
                return fork
        now = self._git("log", "-1", "--format=%ct").strip()
        before = f"--before={int(now or 0) - DAY}"
        older = self._git("rev-list", "-1", "--first-parent", before, "HEAD").strip()
        oldest = self._git("rev-list", "--first-parent", "HEAD").split()[-1:]
        found = older or "".join(oldest)
        return "" if found == self._commit("HEAD") else found

    def _commit(self, name: str) -> str:
        return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()

    def _untracked(self) -> list[str]:
        return self._git("ls-files", "--others", "--exclude-standard").splitlines()

    def _git(self, *words: str) -> str:
        command = ["git", "-c", "core.quotePath=false", *words]
        try:
            run = subprocess.run(  # noqa: S603 - our words
                command, check=False, capture_output=True, text=True, cwd=self._root
            )
        except OSError:
            return ""
        return run.stdout if run.returncode == 0 else ""


def nearest(changed: Sequence[str], tests: Mapping[str, str]) -> list[str]:
    """Those of some test files that what changed concerns, nearest first.

    First the test files that changed themselves, then those that import a changed module, then
    the others in the folders of changed packages; among equals, the lower layer's.

    Args:
        changed: paths of the files that changed.
        tests: texts of the test files to choose from, by path.
    """
    modules = [path for path in changed if path.endswith(".py") and not path.startswith("tests/")]
    modules += [path for path in changed if path.startswith("tests/support/")]
    packages = {name for name, folder in FOLDERS.items() if _any_under(folder, changed)}
    packages |= {name for name in FOLDERS if f"tests/{name}/conftest.py" in changed}

    def distance(test: str) -> int | None:
        if test in changed:
            return 0
        if any(imports(tests[test], module) for module in modules):
            return 1
        return 2 if test.split("/")[1] in packages else None

    layers = list(FOLDERS)
    near = [
        (far, layers.index(test.split("/")[1]), test)
        for test in tests
        if (far := distance(test)) is not None
    ]
    return [test for _, _, test in sorted(near)]


def imports(text: str, path: str) -> bool:
    """Whether a file's text imports a module of this path, or something out of it."""
    module = path.removesuffix(".py").replace("/", ".").partition(".")[2]
    package, _, name = module.rpartition(".")
    out_of = rf"from {re.escape(package)} import (\([^)]*|.*)\b{name}\b"
    return bool(re.search(rf"\b{re.escape(module)}\b|{out_of}", text))


def _any_under(folder: str, paths: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for path in paths)


def slow_tests(root: Path) -> dict[str, str]:
    """Texts of the test files in which a test is marked slow, by path from the root."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in sorted((root / "tests").rglob("test_*.py"))
    }
    return {path: text for path, text in texts.items() if "mark.slow" in text}


def main() -> int:
    """Run slow tests of what changed, nearest first; begin no file after so many minutes."""
    parser = argparse.ArgumentParser(prog="changed", description=main.__doc__)
    parser.add_argument("--since", default="", help="commit; by default found as the module says")
    parser.add_argument("--minutes", type=float, required=True, help="after which no file begins")
    parser.add_argument("pytest", nargs="*", help="words for pytest")
    given = parser.parse_args()
    root = Path.cwd()
    changes = Changes(root, given.since)
    files = nearest(changes.files(), slow_tests(root))
    print(f"{len(files)} files with slow tests are near what {changes}.", flush=True)
    if not files:
        return 0
    seconds = f"--begin-within={60 * given.minutes}"
    # The selection is this, whatever the words before it select.
    command = [sys.executable, "-m", "pytest", *given.pytest, "-m", "slow", seconds, *files]
    done = subprocess.run(command, check=False)  # noqa: S603 - our words
    nothing = pytest.ExitCode.NO_TESTS_COLLECTED  # late from the start, or no test but its name
    return 0 if done.returncode == nothing else done.returncode


if __name__ == "__main__":
    sys.exit(main())
