from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from support.command import earshot as in_process

from earshot_client.command import SUB_COMMANDS


def earshot(*words: str, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the command as if some distributions were not installed."""
    installed = importlib.metadata.distribution

    def found(name: str) -> importlib.metadata.Distribution:
        if name in without:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed(name)

    with mock.patch.object(importlib.metadata, "distribution", found):
        return in_process(*words, COLUMNS="80")


def test_help_names_every_sub_command_and_what_it_needs_where_nothing_is_installed() -> None:
    shown, bare = earshot("--help"), earshot("--help", without=("cyclopts", "pyarrow", "numba"))
    for run, mark in ((shown, ""), (bare, ": not installed")):
        assert (run.returncode, run.stderr) == (0, "")
        assert max(map(len, run.stdout.splitlines())) <= 80
        said = " ".join(run.stdout.split())
        for name, command in SUB_COMMANDS.items():
            assert f" {name} {command.help} [{','.join(command.extras)}{mark}]" in said
    assert earshot().stdout == shown.stdout


def test_help_marks_only_the_commands_that_lack_something() -> None:
    said = " ".join(earshot("--help", without=("flask",)).stdout.split())
    assert "[server: not installed]" in said
    assert "[simulations,server: not installed]" in said
    assert "[phone]" in said


@pytest.mark.parametrize("without", [(), ("cyclopts",)])
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("srve", "srve; did you mean serve?"),
        ("simulat", "simulat; did you mean simulate?"),
        ("zzzz", "zzzz;"),
        ("", "'';"),
        ("zz\n\x1b", "'zz\\n\\x1b';"),
    ],
)
def test_a_command_that_does_not_exist_is_refused_by_name(
    word: str, said: str, without: tuple[str, ...]
) -> None:
    run = earshot(word, "--help", without=without)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"earshot: no such command: {said} `earshot --help` lists them\n"


def test_help_before_a_command_is_the_command_s() -> None:
    assert earshot("--help", "compare").stdout == earshot("compare", "--help").stdout != ""


def test_a_name_in_an_option_asks_for_no_further_extras() -> None:
    """`sitting` is a command below `bench`, and may be the name of a file."""
    run = earshot("bench", "secure-sum", "sitting", "--help", without=("playwright",))
    assert (run.returncode, run.stderr) == (0, "")


def test_the_version_is_shown() -> None:
    shown = earshot("--version")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.strip()[0].isdigit()
    assert earshot("--version", without=("cyclopts",)).stdout == shown.stdout


@pytest.mark.parametrize(
    ("without", "words", "said"),
    [
        (
            ("jinja2", "scikit-learn"),
            ("simulate", "--phones", "100"),
            "earshot simulate needs jinja2, scikit-learn, not installed here: {simulations}",
        ),
        # All extras of the command, also those that are there, and although cyclopts is missing.
        (
            ("cyclopts", "pyarrow"),
            ("sweep", "none.toml", "--out", "none"),
            "earshot sweep needs cyclopts, pyarrow, not installed here: {simulations,tables}",
        ),
        (
            ("flask", "playwright"),
            ("bench", "sitting", "--help"),
            "earshot bench needs playwright, flask, not installed here: "
            "{simulations,server,browsers}",
        ),
        (
            ("jax",),
            ("reproduce", "pate-aae", "--help"),
            "earshot reproduce needs jax, not installed here: "
            "{simulations,models,server,tables,dev}",
        ),
        (
            ("optax",),
            ("reproduce", "noisy-gradients", "--help"),
            "earshot reproduce needs optax, not installed here: "
            "{simulations,models,server,tables,dev}",
        ),
        (("flask",), ("serve",), "earshot serve needs flask, not installed here: {server}"),
    ],
)
def test_missing_extras_are_named_in_one_line_before_anything_starts(
    without: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    run = earshot(*words, without=without)
    command = re.sub(r"\{(.*)\}", r"pip install 'earshot-sensing[\1]'", said)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"earshot: {command}\n")


def test_votes_are_labelled_without_what_trains_their_teachers() -> None:
    run = earshot("pate", "label", "--help", without=("jax", "keras", "tensorflow"))
    assert (run.returncode, run.stderr) == (0, "")


def test_a_package_of_ours_that_is_missing_is_a_broken_installation() -> None:
    program = """
import sys
sys.argv = ["earshot", "simulate"]
sys.modules["earshot_simulations"] = None
from earshot_client.command import main
main()
"""
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "Traceback" in run.stderr


def test_a_mistake_is_one_line_and_exit_status_two() -> None:
    run = earshot("simulate", "--phones", "2")
    assert run.returncode == 2
    assert run.stderr.startswith("earshot: ")
    assert run.stderr.count("\n") == 1
    assert run.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--phones", "3000.5"), "--phones"),
        (("--phones", "1e3"), "--phones"),
        (("--cells", "2.5"), "--cells"),
        (("--discovery", "neither"), 'Invalid value "neither" for --discovery. Choose from: '),
        (("--heterogeneity.concentration", "x"), "--heterogeneity.concentration"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_option(
    words: tuple[str, ...], said: str
) -> None:
    run = earshot("simulate", *words)
    assert run.returncode == 2
    assert said in run.stderr


def test_options_are_read_as_their_types_say() -> None:
    words = ("--phones", "3", "--heterogeneity.concentration", "2", "--sums", "9", "--jobs", "1")
    run = earshot("simulate", *words, "--phones", "100")  # the last one counts
    assert (run.returncode, run.stdout) == (2, "")
    assert "sums=9" in run.stderr


@pytest.mark.parametrize("around", ["{}\r", " {}\n", "\ufeff{}", "{}\u200b \n"])
def test_what_an_editor_adds_to_a_variable_is_no_part_of_it(around: str, tmp_path: Path) -> None:
    words = ("phone", "--data", tmp_path / "phone", "--once", "--poll", around.format("5"))
    run = in_process(*words, EARSHOT_SERVER=around.format("https://a..example"))
    assert run.returncode == 2
    assert run.stderr.startswith("earshot: 'https://a..example' is not a URL")


def test_space_in_the_name_of_a_file_is_kept(tmp_path: Path) -> None:
    run = in_process("compare", f"{tmp_path}/run ", f"{tmp_path}/run ")
    assert run.stderr.startswith(f"earshot: {tmp_path}/run : there is no such file")


def test_what_a_file_says_moves_no_cursor_and_fills_no_screen(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    key = "\\u001b[2J" + "a" * 100_000
    file.write_text(f'[settings]\n"{key}" = 1\n', encoding="utf-8")
    run = in_process("simulate", "--config", file)
    assert run.returncode == 2
    assert run.stderr.startswith(f"earshot: {file}: ?[2Jaaa")
    assert len(run.stderr) < 5000
    assert run.stderr.count("\n") == 1
