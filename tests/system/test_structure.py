"""What the import linter cannot see: weight at run time, metadata, and the shape of the tree."""

from __future__ import annotations

import ast
import contextlib
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.documented import prose

from earshot_protocol import distribution

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "earshot_protocol": ROOT / "protocol",
    "earshot_client": ROOT / "client",
    "earshot_server": ROOT / "server",
    "earshot_models": ROOT / "models",
    "earshot_simulations": ROOT / "simulations",
    "earshot_studies": ROOT / "simulations",
}
PRODUCT = sorted(path for folder in {*PACKAGES.values()} for path in folder.rglob("*.py"))
SOURCES = sorted((*PRODUCT, *(ROOT / "tests").rglob("*.py")))
PAGES = sorted(
    (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("simulations/*/*/README.md"),
    )
)
"""Decision records stay as they were written."""
CORE = {"numpy", "cryptography", "msgspec"}
WIDEST_LINE = 100
"""Columns of prose in a page."""
REPETITION = 10
"""Lines of code that may not stand in two packages."""


def imported_names(path: Path) -> set[str]:
    """Top-level names of every absolute import in the file, those inside functions included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds once it has run the statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    # S603: the program is written a few lines from here.
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_fresh_interpreter_reports_what_it_loaded() -> None:
    assert "earshot_protocol" in modules_after("import earshot_protocol")
    assert "msgspec" in modules_after("import msgspec")


@pytest.mark.parametrize("package", ["earshot_protocol", "earshot_client"])
def test_importing_every_module_of_the_core_loads_nothing_heavy(package: str) -> None:
    folder = PACKAGES[package]
    modules = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in (folder / package).rglob("*.py")
        if path.stem not in {"__init__", "__main__"} and path.parent.name != "commands"
    ]
    loaded = modules_after("\n".join(f"import {name}" for name in [package, *modules]))
    heavy = {"joblib", "matplotlib", "rich", "scipy", "sklearn", "soxr", "cyclopts"}
    assert not loaded & (heavy | {"sounddevice", "soundfile"})


def test_the_phone_command_loads_nothing_heavy_but_the_command_line() -> None:
    loaded = modules_after("import earshot_client.commands.phone")
    heavy = {"joblib", "matplotlib", "rich", "scipy", "sklearn", "soxr"}
    assert "cyclopts" in loaded
    assert not loaded & (heavy | {"sounddevice", "soundfile"})


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("earshot_protocol", CORE | {"earshot_protocol"}),
        ("earshot_client", CORE | {"earshot_client", "earshot_protocol"}),
    ],
)
def test_the_core_names_no_other_dependency(package: str, allowed: set[str]) -> None:
    extra = {  # what the extras `phone` and `microphone` bring, and where alone it is used
        "command.py": {"cyclopts"},
        "commands/help_columns.py": {"cyclopts", "rich"},  # rich comes with cyclopts
        "commands/phone.py": {"cyclopts"},
        "commands/ledger.py": {"cyclopts"},
        "lite_rt_encoder.py": {"ai_edge_litert"},
        "sound_reading.py": {"soundfile"},
        "microphone.py": {"sounddevice"},
        "overriding.py": {"typing_extensions"},  # for type checkers alone
        "prio3/xof.py": {"Cryptodome"},  # the extra `proofs`, loaded where it is used
    }
    folder = PACKAGES[package] / package
    for path in folder.rglob("*.py"):
        place = path.relative_to(folder).as_posix()
        strangers = imported_names(path) - allowed - extra.get(place, set())
        assert strangers <= sys.stdlib_module_names, f"{path} imports {sorted(strangers)}"


def test_core_dependencies_are_exactly_three() -> None:
    requirements = metadata.requires(distribution.NAME) or []
    core = [line for line in requirements if "extra ==" not in line]
    assert {re.split(r"[^A-Za-z0-9_.-]", line)[0] for line in core} == CORE


def test_every_package_is_marked_as_typed() -> None:
    for package, folder in PACKAGES.items():
        assert (folder / package / "__init__.py").is_file()
        assert (folder / package / "py.typed").is_file(), f"{package} has no py.typed"


def opened_by_locale(code: str) -> list[str]:
    """Calls that read or write text in whatever encoding the machine is set to."""
    found: list[str] = []
    if re.search(r"open\(|_text\(|text=|newlines=", code) is None:
        return found  # most files, which need not be parsed
    for call in (each for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        given = {keyword.arg for keyword in call.keywords}
        built_in = isinstance(call.func, ast.Name) or ast.unparse(call.func) == "os.fdopen"
        # A path is opened with a mode or nothing; methods of ours of this name take other things.
        words = [*call.args[1 if built_in else 0 :], *(each.value for each in call.keywords)]
        modes = [str(each.value) for each in words if isinstance(each, ast.Constant)]
        ours = call.args and not modes and not built_in
        is_open = (
            name in ("open", "fdopen") and not ours and ast.unparse(call.func) != "tarfile.open"
        )
        is_text = is_open and not any("b" in mode for mode in modes)
        if (is_text or name in ("read_text", "write_text")) and "encoding" not in given:
            found.append(ast.unparse(call))
        if given & {"text", "universal_newlines"}:
            found.append(ast.unparse(call))
    return found


def test_no_file_s_encoding_is_left_to_the_machine() -> None:
    deployed = sorted((ROOT / "deploy").rglob("*.py"))
    assert deployed
    found = {path: opened_by_locale(path.read_text("utf-8")) for path in (*PRODUCT, *deployed)}
    assert {path: calls for path, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "call",
    [
        "open(place)",
        "open(place, 'w')",
        "os.fdopen(handle)",
        "path.open()",
        "path.open('a')",
        "path.read_text()",
        "path.write_text(content)",
        "subprocess.run(words, text=True)",
    ],
)
def test_an_encoding_that_is_left_out_is_noticed(call: str) -> None:
    assert opened_by_locale(call) == [call]


def test_no_test_lies_where_it_is_not_looked_for() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    places = [ROOT / name for name in settings["tool"]["pytest"]["ini_options"]["testpaths"]]
    tests = set((ROOT / "tests").rglob("test_*.py"))
    assert tests == {path for place in places for path in place.rglob("test_*.py")}


def test_no_file_is_called_utils() -> None:
    assert SOURCES
    assert not [path for path in SOURCES if path.stem in {"util", "utils", "helpers", "misc"}]


def too_wide(page: str) -> list[str]:
    """Lines of prose that could be broken; tables, headings, code and what is made may be wide."""
    written = re.sub(r"^<!-- (?!end).*?^<!-- end -->$", "", prose(page), flags=re.M | re.S)
    parts = [part.splitlines() for part in written.split("\n\n")]
    lines = [
        line
        for part in parts
        if not all(line.startswith("    ") for line in part)
        for line in part
        if len(line) > WIDEST_LINE and not line.startswith(("|", "#"))
    ]
    return [line for line in lines if len(re.sub(r"^ *[-\d.]+ |`[^`]+`", "", line).split()) > 1]


def test_no_line_of_a_page_is_too_wide_to_read() -> None:
    assert {path.name for path in PAGES} >= {"README.md", "CHANGELOG.md", "protocol.md"}
    found = {path: wide for path in PAGES if (wide := too_wide(path.read_text(encoding="utf-8")))}
    assert found == {}


WORDS, SPAN = "a word and another " * 6, f"`earshot {'--option ' * 12}`"


@pytest.mark.parametrize("line", [WORDS, f"- {WORDS}", f"{WORDS}{SPAN}", f"One.\n    {WORDS}"])
def test_a_line_that_is_too_wide_is_noticed(line: str) -> None:
    assert too_wide(f"# Title\n\n{line}\n") == [line.splitlines()[-1]]


@pytest.mark.parametrize(
    "part",
    [
        f"# {WORDS}",
        f"| {WORDS} |",
        f"```sh\n{WORDS}\n```",
        f"One:\n\n    {WORDS}",
        f"<!-- made -->\n{WORDS}\n<!-- end -->",
        f"- {SPAN}",
    ],
)
def test_a_line_that_cannot_be_broken_may_be_wide(part: str) -> None:
    assert too_wide(f"Words.\n\n{part}\n\nWords.\n") == []


def code_lines(path: Path) -> list[str]:
    """Without imports, docstrings, comments and what is punctuation alone."""
    text = path.read_text(encoding="utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = (
        line.partition("  #")[0].strip()
        for number, line in enumerate(text.splitlines(), start=1)
        if number not in left_out
    )
    return [line for line in lines if re.search(r"\w", line) and not line.startswith("#")]


def test_no_ten_lines_stand_in_two_packages() -> None:
    places: dict[tuple[str, ...], set[str]] = {}
    for path in PRODUCT:
        lines = code_lines(path)
        for at in range(len(lines) - REPETITION + 1):
            package = path.relative_to(ROOT).parts[0]
            places.setdefault(tuple(lines[at : at + REPETITION]), set()).add(package)
    assert len(places) > 1000
    assert [lines for lines, packages in places.items() if len(packages) > 1] == []


def test_nothing_is_left_out_of_the_coverage_or_of_the_import_contracts() -> None:
    assert [path for path in PRODUCT if "pragma: no cover" in path.read_text("utf-8")] == []
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    assert len(contracts) >= 4
    assert not any("ignore_imports" in contract for contract in contracts)


def test_the_lock_pins_every_version_and_names_no_place() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = [line for line in lock.splitlines() if line and line[0] not in "# "]
    assert len(entries) > len(CORE)
    assert all(
        re.match(r"[a-z0-9-]+(\[[a-z,-]+\])?==[0-9][^ ]*( ; .+)? \\$", line) for line in entries
    )
    assert "/" not in lock


def test_a_server_comes_with_what_verifies_proofs() -> None:
    """Leader and helper alike: a phase would end without it, after phones have spent budgets."""
    lock = (ROOT / "deploy/requirements.lock").read_text(encoding="utf-8")
    assert re.search(r"^pycryptodomex==", lock, re.MULTILINE)


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "deploy/requirements.lock", "simulations/requirements.lock"]
)
def test_what_packages_ask_for_with_an_extra_is_pinned_with_it(lock: str) -> None:
    """Or pip takes its newest version, which has no hash, as soon as there is a newer one."""
    pinned = [
        Requirement(line.removesuffix(" \\"))
        for line in (ROOT / lock).read_text(encoding="utf-8").splitlines()
        if line and line[0] not in "# "
    ]
    extras = {each.name: each.extras for each in pinned}
    asked: dict[str, set[str]] = {}
    for name in extras:
        with contextlib.suppress(metadata.PackageNotFoundError):
            for line in metadata.requires(name) or ():
                each = Requirement(line)
                if each.marker is None or each.marker.evaluate({"extra": ""}):
                    asked.setdefault(canonicalize_name(each.name), set()).update(each.extras)
    assert len(asked) > 20
    assert {name: more for name, more in asked.items() if more - extras.get(name, set())} == {}
