from __future__ import annotations

import subprocess
import sys

import pytest


def earshot(*words: str, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command; `without` is a module that cannot be imported."""
    program = f"""
import sys
sys.argv = ["earshot", *{words!r}]
if {without!r}:
    sys.modules[{without!r}] = None
from earshot_client.command import main
main()
"""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


def test_help_names_every_sub_command() -> None:
    shown = earshot("--help")
    assert shown.returncode == 0
    assert "simulate" in shown.stdout
    assert "bench" in shown.stdout


def test_the_version_is_shown() -> None:
    shown = earshot("--version")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.strip()[0].isdigit()


@pytest.mark.parametrize(
    ("without", "words", "extra"),
    [
        ("cyclopts", ("--help",), "phone"),
        ("earshot_simulations", ("simulate",), None),
        pytest.param(
            "sklearn",
            ("simulate", "--phones", "100", "--recordings", "5"),
            "simulations",
            marks=pytest.mark.slow,
        ),
        ("joblib", ("simulate", "--phones", "100", "--recordings", "5"), "simulations"),
    ],
)
def test_a_missing_extra_is_named(without: str, words: tuple[str, ...], extra: str | None) -> None:
    run = earshot(*words, without=without)
    assert run.returncode == 1
    if extra is None:  # a package of ours that is missing is no missing extra, but a broken install
        assert "Traceback" in run.stderr
    else:
        assert f"pip install 'earshot-sensing[{extra}]'" in run.stderr
        assert "Traceback" not in run.stderr


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
