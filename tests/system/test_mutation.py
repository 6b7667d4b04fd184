"""The driver of `make mutants` over a package of a few lines, whose weak test we know."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from support.mutation import judge
from support.mutation.driver import PLACES, Mutation
from support.mutation.operators import CHECK, LIMIT, LIMITS, RANDOMNESS, Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """\
import functools
import os
import subprocess
import sys

LARGEST = 3


@functools.cache
def cached(n: int) -> int:
    return n + 1


def token(random=os.urandom) -> bytes:
    return random(8)


def checked(n: int) -> int:
    if n > LARGEST:
        raise ValueError(n)
    return n


def weak(n: int) -> int:
    if n < 0:
        raise ValueError(n)
    return n


def told() -> int:
    program = "import small.code; print(small.code.inner())"
    return int(subprocess.check_output([sys.executable, "-c", program]))


def inner() -> int:
    return 4 * 2
"""
TESTS = """\
import pytest
from small import code


@pytest.fixture(scope="module")
def made():
    return code.weak(2)


def test_made(made):
    assert made == 2


def test_cached_first():
    assert code.cached(2) > 0


def test_cached():
    assert code.cached(2) == 3


def test_token():
    assert code.token() != bytes(8) and len(code.token()) == 8


def test_checked():
    assert code.checked(3) == 3
    with pytest.raises(ValueError):
        code.checked(4)


def test_told():
    assert code.told() == 8
    assert code.inner() > 0


def test_broken():
    assert code.weak(0) == 1
"""
PROFILE = """\
from hypothesis import settings

settings.register_profile("quick", max_examples=5)
"""
LISTED = """
[[mutant]]
path = "product/small/code.py"
function = "weak"
line = "if n < 0:"
change = "if n < 0: raise ValueError(n) → pass"
reason = "nobody asks"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of one module and one test file."""
    folder = tmp_path_factory.mktemp("mutation")
    for path, text in {
        "product/small/__init__.py": "",
        "product/small/code.py": SOURCE,
        "tests/small/test_code.py": TESTS,
        "equivalent.toml": "",
        "tests/conftest.py": PROFILE,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n',
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return folder


def run(folder: Path, *arguments: object) -> tuple[int, str]:
    """The exit status, and what is printed."""
    program = (
        "import sys; from pathlib import Path\n"
        "from support.mutation.driver import Mutation, Places\n"
        "places = Places(['product'], ['product/small'], ['tests/small'], 'equivalent.toml')\n"
        f"sys.exit(Mutation(Path.cwd(), places, Path('out'), 1).run{arguments!r})"
    )
    paths = os.pathsep.join([str(ROOT / "tests"), str(folder / "product")])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    # S603: the program is written a few lines from here.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.slow
def test_it_finds_what_no_test_notices_and_nothing_else(folder: Path) -> None:
    status, printed = run(folder, None, 1000)
    living = [line for line in printed.splitlines() if line.startswith("lives")]
    assert status == 1
    assert {line.partition(" in ")[2].partition(":")[0] for line in living} == {"weak"}, printed
    line = SOURCE.splitlines().index("    if n < 0:") + 1
    assert f"dropped check: product/small/code.py:{line} in weak" in printed
    assert "tests/small/test_code.py::test_broken" in printed
    kept = (folder / "out/results.jsonl").read_text("utf-8")
    results = [json.loads(line) for line in kept.splitlines()]
    killers = {line["key"].split("\t")[1]: line["killer"] for line in results if line["killer"]}
    assert killers["inner"] == "tests/small/test_code.py::test_told"  # in a process of its own
    assert killers["cached"] == "tests/small/test_code.py::test_cached"  # not the first to call it
    assert "tests/small/test_code.py::test_broken" not in killers.values()


@pytest.mark.slow
def test_results_resume_until_a_test_changes(folder: Path) -> None:
    before = (folder / "out/results.jsonl").read_text("utf-8")
    (folder / "equivalent.toml").write_text(LISTED, "utf-8")
    run(folder, None, 1000)
    assert (folder / "out/results.jsonl").read_text("utf-8") == before
    tests = folder / "tests/small/test_code.py"
    raises = "\n\ndef test_weak():\n    with pytest.raises(ValueError):\n        code.weak(-1)\n"
    tests.write_text(TESTS + raises, "utf-8")
    status, printed = run(folder, None, 1000)
    assert status == 1, "an equivalent mutant that dies is stale"
    assert "listed, and is not there or dies: product/small/code.py\tweak" in printed


@pytest.mark.slow
def test_no_mutant_is_judged_when_the_minutes_are_over(folder: Path, tmp_path: Path) -> None:
    late = tmp_path / "late"
    shutil.copytree(folder, late, ignore=shutil.ignore_patterns("out"))
    (late / "equivalent.toml").write_text("", "utf-8")
    status, printed = run(late, 1e-9, 1000)
    assert status == 0
    assert list((late / "out").glob("baseline-*.json"))
    assert not (late / "out/results.jsonl").exists()
    (columns, total, *_) = printed.splitlines()[-4:]
    assert (columns.split()[-2:], total.split()[:2]) == (["reached", "reach"], ["in", "all"])


@pytest.mark.slow
def test_of_changed_lines_what_no_near_test_notices_is_judged_by_all(
    folder: Path, tmp_path: Path
) -> None:
    late = tmp_path / "late"
    shutil.copytree(folder, late, ignore=shutil.ignore_patterns("out"))
    (late / "equivalent.toml").write_text("", "utf-8")
    (late / "tests/small/test_code.py").write_text(TESTS, "utf-8")
    far = "import importlib, pytest\ncode = importlib.import_module('small' + '.code')\n"
    far += "def test_far():\n    with pytest.raises(ValueError):\n        code.weak(-1)\n"
    (late / "tests/small/test_far.py").write_text(far, "utf-8")
    lines = SOURCE.splitlines()
    changed = {lines.index(line) + 1 for line in ("    if n < 0:", "    return 4 * 2")}
    status, printed = run(late, None, 1000, "", "", {"product/small/code.py": changed})
    kept = (late / "out/results.jsonl").read_text("utf-8")
    results = [json.loads(line) for line in kept.splitlines()]
    assert {line["key"].split("\t")[1] for line in results} == {"weak", "inner"}
    by_kind = {line["key"].split("\t")[3]: line["killer"] for line in results}
    assert by_kind["if n < 0: raise ValueError(n) → pass"] == "tests/small/test_far.py::test_far"
    assert next(iter(by_kind.values())).startswith("tests/small/test_code.py"), "near ones first"
    assert "lives, dropped check" not in printed
    assert status == 0


@pytest.mark.slow
def test_where_no_line_changed_no_test_is_run(folder: Path, tmp_path: Path) -> None:
    late = tmp_path / "late"
    shutil.copytree(folder, late, ignore=shutil.ignore_patterns("out"))
    (late / "equivalent.toml").write_text("", "utf-8")
    status, _ = run(late, None, 1000, "", "", {})
    assert status == 0
    assert not list((late / "out").iterdir())


@pytest.mark.slow
def test_an_entry_for_what_is_not_there_is_stale(folder: Path) -> None:
    (folder / "equivalent.toml").write_text(LISTED.replace("n < 0", "n < 7"), "utf-8")
    status, printed = run(folder, None, 1000)
    assert status == 1
    assert "listed, and is not there or dies" in printed


def test_every_listed_mutant_is_in_the_code_and_listed_once(tmp_path: Path) -> None:
    """A line that changes takes its entry with it, long before all mutants are judged."""
    mutation = Mutation(ROOT, PLACES, tmp_path, 1)
    assert mutation.gone() == []
    assert len(set(mutation.listed)) == len(mutation.listed) > 100


def changes(text: str, path: str = "code.py") -> list[tuple[str, str]]:
    return [(each.kind, each.change) for each in mutants_of(path, text)]


@pytest.mark.parametrize(
    ("line", "kind", "mutated"),
    [
        ("def f(random=os.urandom): pass", RANDOMNESS, "def f(random=bytes): pass"),
        ("nonce = os.urandom(12)", RANDOMNESS, "nonce = bytes(12)"),
        ("noise = draw(self._random)", RANDOMNESS, "noise = draw(bytes)"),
        ("k = Key.generate()", RANDOMNESS, "k = Key.from_private_bytes(bytes(32))"),
        ("checks.whole('n', n)", CHECK, "pass"),
        ("self._check_window(a)", CHECK, "pass"),
        ("if n:\n    raise E", CHECK, "pass\n"),
        ("try: f()\nexcept E: raise G", CHECK, "try: f()\nexcept E: pass"),
        ("f('ε', a <= b)", "comparison", "f('ε', a < b)"),
        ("a = b is not c", "comparison", "a = b is c"),
        ("a = (b) + c", "arithmetic", "a = (b) - c"),
        ("a += b", "arithmetic", "a -= b"),
        ("a = b and c", "dropped operand", "a = ((c))"),
        ("a = not b", "dropped not", "a = (b)"),
        ("N = 3", "constant", "N = (3 + 1)"),
        ("def f(n=3): pass", "constant", "def f(n=(3 + 1)): pass"),
        ("store.delete(n)", "deleted statement", "pass"),
        ("self.n = m", "deleted statement", "pass"),
        ("del held[n]", "deleted statement", "pass"),
    ],
)
def test_every_kind_of_mistake_is_made(line: str, kind: str, mutated: str) -> None:
    made = [each.applied(line) for each in mutants_of("code.py", line) if each.kind == kind]
    assert mutated in made


@pytest.mark.parametrize(
    ("line", "loosened"),
    [
        ("largest_epsilon: float = 3.0", "(2 * 3.0)"),
        ("least_threshold: int = 2", "(2 // 2)"),
        ("least_corrupted: float = 0.05", "(0.05 / 2)"),
        ("any_delta: bool = False", "True"),
    ],
)
def test_limits_are_loosened_and_not_tightened(line: str, loosened: str) -> None:
    text = f"class Limits:\n    {line}\n"
    found: list[Mutant] = mutants_of("phases/acceptance.py", text)
    assert [each.put for each in found if each.kind == LIMIT] == [loosened]
    assert all(each.at_import for each in found)


def test_lines_stay_where_they_were_and_types_are_left_alone() -> None:
    text = "a: int | None = f(\n    b\n    + c,\n)\nstore.put(\n    d,\n)\nlast()\n"
    for each in mutants_of("code.py", text):
        assert each.applied(text).splitlines()[7] == ("pass" if each.line == "last()" else "last()")
    assert not [kind for kind, change in changes("def f(a: int | None) -> str | None: pass")]


def test_the_size_that_is_left_is_no_number() -> None:
    """NumPy takes −2 as it takes −1, so no test can tell."""
    found = [change for _, change in changes("a = b.reshape(-1, 2)\nc = b.sum(-1)\n")]
    assert found == ["2 → (2 + 1)", "1 → (1 + 1)"]
    assert np.arange(4).reshape(-2, 2).tolist() == [[0, 1], [2, 3]]


def test_classes_of_published_limits_are_where_they_are_looked_for() -> None:
    """A class that gets another name must not take its limits out of the list of mutants."""
    root = Path(__file__).parents[2]
    for file, name in LIMITS.items():
        texts = [
            path.read_text("utf-8")
            for package in ("protocol", "client")
            for path in (root / package).rglob(file)
        ]
        assert any(f"class {name}(" in text or f"class {name}:" in text for text in texts), name


@pytest.mark.parametrize("ignores", [(), (signal.SIGQUIT,)])
def test_servers_of_a_judged_mutant_end_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignores: tuple[signal.Signals, ...]
) -> None:
    def serve() -> None:
        os.setsid()
        for each in ignores:
            signal.signal(each, signal.SIG_IGN)
        (tmp_path / "server").write_text(str(os.getpid()))
        time.sleep(60)

    def run() -> int:
        if os.fork() == 0:
            serve()
        while not (tmp_path / "server").exists():
            time.sleep(0.01)
        return 1

    monkeypatch.setattr(judge, "_SHUTDOWN", 0.2)
    assert judge.in_a_fork(run) == judge.KILLED
    assert not psutil.pid_exists(int((tmp_path / "server").read_text()))
