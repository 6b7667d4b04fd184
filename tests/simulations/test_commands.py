from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.steps import STEPS

from earshot_client.command import main
from earshot_protocol.progress import Progress
from earshot_server.dashboard import wording
from earshot_server.phases.options import Discovery
from earshot_simulations.commands import simulate as command
from earshot_simulations.phases import simulation
from earshot_simulations.phases.kept import read
from earshot_simulations.phases.route_options import OPTIONS

HEAVY = {"joblib", "matplotlib", "scipy", "sklearn", "soundfile", "soxr"}
FIELDS = {
    "phones",
    "survivors",
    "seed",
    "ari_train",
    "ari_test",
    "label_accuracy",
    "global_centroids",
    "top_global_centroids",
    "privacy",
    "seconds",
    "bytes_up_per_phone",
    "bytes_down_per_phone",
    "peak_memory_mb",
    "version",
}
"""Of result.json, as the design promises them."""
SMALL = (
    *("--phones", "24", "--recordings", "10", "--scenes", "3", "--jobs", "1", "--seed", "3"),
    *("--corrupted", "0", "--policy", "anything"),  # fewer phones than any would join
    *("--discovery", "local"),
)
BUDGET = "clustering=4,selection=2,centroid-vote=1,label-vote=1"


def python(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A fresh interpreter in a process group of its own, as a terminal starts one."""
    # S603: the program is written in this file.
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def earshot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `earshot …`."""
    monkeypatch.setattr(sys, "argv", ["earshot", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    written = capsys.readouterr()
    status = left.value.code
    return (0 if status is None else int(status)), written.out, written.err


LIST_MODULES = """
import sys
from earshot_client.command import main
sys.argv = ["earshot", *sys.argv[1:]]
try:
    main()
finally:
    print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "shown", "ours"),
    [
        (("--help",), "simulate", {"earshot_client", "earshot_protocol"}),
        (("--version",), "0.", {"earshot_client", "earshot_protocol"}),
        (("simulate", "--help"), "--summation", None),
        (("bench", "--help"), "secure-sum", None),
    ],
)
def test_help_loads_nothing_that_takes_long(
    arguments: tuple[str, ...], shown: str, ours: set[str] | None
) -> None:
    process = python(LIST_MODULES, *arguments)
    out, err = process.communicate(timeout=60)
    loaded = set(err.split())
    assert process.returncode == 0, err
    assert shown in out
    assert not loaded & HEAVY
    assert "earshot_client" in loaded
    if ours is not None:
        assert {name for name in loaded if name.startswith("earshot")} == ours


# ------------------------------------------------------------------------------------- a whole run


def test_json_is_the_only_thing_on_standard_output_and_is_what_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "run"
    status, out, err = earshot(
        monkeypatch, capsys, "simulate", *SMALL, "--budget", BUDGET, "--out", folder, "--json"
    )
    assert status == 0
    told = json.loads(out)
    assert out.startswith("{")
    assert set(told) >= FIELDS
    assert told == json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "result.json"]
    assert all(step in err for step in STEPS)

    assert (told["phones"], told["survivors"], told["seed"]) == (24, 24, 3)
    assert told["interrupted"] is None
    added = [each for each in told["privacy"]["releases"] if each["unit"] == "recording"]
    assert math.fsum(each["epsilon"] for each in added) == pytest.approx(4 + 2 * 2 + 1 + 1)
    assert set(told["privacy"]) == {"releases", "together"}
    assert {release["unit"] for release in told["privacy"]["releases"]} == {"recording", "phone"}
    assert {"step", "unit", "epsilon", "delta", "mechanism"} == set(told["privacy"]["releases"][0])
    steps = {step.value for step in STEPS}
    for per_phone in ("bytes_up_per_phone", "bytes_down_per_phone"):
        assert {step for step, count in told[per_phone].items() if count > 0} == steps
    assert steps < set(told["seconds"]["steps"])
    assert told["seconds"]["total"] > 0
    assert 0 < told["label_accuracy"] <= 1


def test_without_json_there_is_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = earshot(monkeypatch, capsys, "simulate", *SMALL, "--out", tmp_path)
    assert status == 0
    lines = dict(line.rsplit(maxsplit=1) for line in out.splitlines())
    assert lines["phones"] == lines["survivors"] == "24"
    assert 0 <= float(lines["label accuracy"]) <= 1
    assert lines["report"] == str(tmp_path / "report.html")
    told = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    together = told["privacy"]["together"]
    for unit in ("recording", "phone"):
        (line,) = (each for each in out.splitlines() if each.startswith(f"ε per {unit} "))
        assert f" {wording.real(together[unit]['epsilon'])} at δ = " in line


def test_options_reach_the_simulation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {
        "phones": 24,
        "recordings": 9,
        "scenes": 2,
        "labelled": 0.75,
        "dropout": 0.1,
        "corrupted": 0.05,
        "policy": "anything",
        "summation": "ideal",
        "discovery": "local",
        "jobs": 1,
        "seed": 4,
        "local-centroids": 5,
        "top-local-centroids": 3,
        "top-global-centroids": 4,
        "centroid-votes": 2,
        "label-votes": 4,
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    _, out, _ = earshot(monkeypatch, capsys, "simulate", *arguments, "--budget", BUDGET, "--json")
    configuration = json.loads(out)["configuration"]
    for name, value in options.items():
        assert configuration[name.replace("-", "_")] == value
    assert configuration["budget"] == {
        "clustering": 4.0,
        "selection": 2.0,
        "centroid_vote": 1.0,
        "label_vote": 1.0,
    }


# -------------------------------------------------------------------------------------- mistakes

MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "too many lost": (("--dropout", "0.6", "--corrupted", "0.5"), "below 1"),
    "too many lost for a graph": (("--dropout", "0.5"), "is accepted"),
    "too few phones": (("--phones", "2"), "phones=2"),
    "budget of zero": (("--budget", BUDGET.replace("=4", "=0")), "positive"),
    "negative budget": (("--budget", BUDGET.replace("=4", "=-4")), "positive"),
    "budget too small for a vote": (("--budget", BUDGET[:-1] + "1e-6"), "at least 0.000122"),
    "unknown budget": (("--budget", BUDGET + ",other=1"), "clustering=ε"),
    "missing budget": (("--budget", "clustering=1"), "label-vote=ε"),
    "budget without numbers": (("--budget", BUDGET.replace("=4", "=much")), "clustering=much"),
    "more votes than candidates": (("--centroid-votes", "11"), "centroid_votes=11"),
    "more labels than candidates": (("--label-votes", "11"), "label_votes=11"),
    "more published than computed": (("--top-local-centroids", "7"), "top_local_centroids=7"),
    "empty folder": (("--data", "{empty}", "--scenes", "10"), "holds no sound"),
    "no folder": (("--data", "{empty}/nowhere", "--scenes", "10"), "there is no folder"),
    "file for data": (("--data", "{file}", "--scenes", "10"), "is a file; expected"),
    "file for results": (("--out", "{file}"), "name a folder"),
    "below a file": (("--out", "{file}/deeper"), "name a folder"),
    "folder that takes nothing": (("--out", "/proc/x"), "nothing can be written there"),
    "folder in use": (("--out", "{used}"), "notes.txt. Name a new folder, or add --overwrite"),
    "blobs need no encoder": (("--encoder", "{file}"), "points already"),
    "no encoder": (("--data", "soundscapes", "--encoder", "{file}"), "encoder"),
    "a thousand jobs": (("--jobs", "1000"), "jobs=1000: must be a whole number, from 1 to"),
    "unknown difference": (("--heterogeneity.skew", "1"), "--heterogeneity.skew"),
    "difference out of range": (("--heterogeneity.concentration", "nan"), "concentration=nan"),
    "unknown attack": (("--adversary.magic", "1"), "--adversary.magic"),
    "attack by more than all": (("--adversary.garbage", "1.5"), "garbage=1.5"),
    "attack by nobody knows": (("--adversary.garbage", "some"), "some"),
    "policy of phones as they come": (("--policy", "default"), "least_phones"),
    "negative seed": (("--seed", "-1"), "seed=-1"),
    "labelled twice": (("--labelled", "2"), "labelled=2.0"),
    "no jobs": (("--jobs", "0"), "jobs=0"),
    "too many scenes": (("--scenes", "21"), "at most 20"),
    "too many dimensions": (("--data", "soundscapes", "--dimensions", "129"), "128"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_exit_status_2_before_any_work(
    mistake: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("in the way")
    options, message = MISTAKES[mistake]
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").write_text("mine")
    places = {name: tmp_path / name for name in ("empty", "file", "used")}
    given = [option.format(**places) for option in options]

    def work(*arguments: object) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr(simulation.Course, "run", work)
    monkeypatch.setattr(simulation, "Run", work)
    # A later option replaces an earlier one.
    status, out, err = earshot(monkeypatch, capsys, "simulate", *SMALL, *given, "--json")
    assert (status, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("earshot: ")
    assert message in lines[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "used"]


@pytest.mark.slow
def test_a_run_is_replaced_only_where_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("simulate", *SMALL, "--summation", "ideal", "--out", tmp_path / "run")
    assert earshot(monkeypatch, capsys, *command)[0] == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    (tmp_path / "run" / "mine.txt").write_text("precious")
    other = (*command, "--seed", "4")
    status, _, err = earshot(monkeypatch, capsys, *other)
    assert status == 2
    assert f"--out {tmp_path / 'run'} is not empty" in err
    for name, content in before.items():
        assert (tmp_path / "run" / name).read_bytes() == content
    assert earshot(monkeypatch, capsys, *other, "--overwrite")[0] == 0
    assert json.loads((tmp_path / "run" / "result.json").read_text())["seed"] == 4
    assert (tmp_path / "run" / "mine.txt").read_text() == "precious"


NUMBERS = ("nan", "inf", "-inf", "-1", "1e300")


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize("option", ["labelled", "dropout", "corrupted"])
def test_a_fraction_that_is_none_is_one_line(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = earshot(monkeypatch, capsys, "simulate", f"--{option}", value)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert f"{option}={float(value)}" in err


@pytest.mark.parametrize("value", ["-1", "0", "1" + 30 * "0"])
@pytest.mark.parametrize(
    "option",
    [
        *("phones", "recordings", "scenes", "jobs", "dimensions", "local-centroids"),
        *("top-local-centroids", "top-global-centroids", "centroid-votes", "label-votes"),
    ],
)
def test_a_count_that_is_none_is_one_line(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = option.replace("-", "_") in OPTIONS[Discovery.LOCAL]
    route = ("--discovery", "local") if own else ()
    status, out, err = earshot(monkeypatch, capsys, "simulate", f"--{option}", value, *route)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert option.replace("-", "_") in err


@pytest.mark.parametrize(
    "words", [("--local-centroids", "5"), ("--budget", BUDGET), ("--selection-method", "gumbel")]
)
def test_no_option_takes_another_route_unasked(
    words: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = earshot(monkeypatch, capsys, "simulate", *words)
    assert (status, out) == (2, "")
    assert f"{words[0]}: not for --discovery secure-sum, but for --discovery local" in err


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ((), ("--epsilon", "inf")),
        (("--discovery", "local"), ("--budget", "none")),
        pytest.param((), ("--budget", "none"), marks=pytest.mark.slow),
        pytest.param(("--discovery", "local"), ("--epsilon", "inf"), marks=pytest.mark.slow),
    ],
)
def test_a_phase_without_noise_says_everywhere_that_nothing_is_protected(
    route: tuple[str, ...],
    words: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = (*SMALL[:-2], *route, *words, "--summation", "ideal", "--out", tmp_path)
    status, out, _ = earshot(monkeypatch, capsys, "simulate", *options)
    assert status == 0
    assert "privacy                no noise: nothing is protected\n" in out
    assert "ε per" not in out
    told = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert told["configuration"]["discovery"] == (route[-1] if route else "secure-sum")
    assert told["configuration"]["epsilon"] == "inf"
    assert told["notes"][0] == "No noise: nothing is protected."
    assert told["privacy"]["together"]["phone"]["epsilon"] is None
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "; no noise: nothing is protected." in page
    assert "Every ε is infinite." in page
    assert re.search(r"ε per phone \(zero-out\)</dt><dd>∞</dd>", page)
    assert "--epsilon inf" in page
    # What the file holds repeats the run.
    assert read(tmp_path).settings.epsilon == math.inf
    assert earshot(monkeypatch, capsys, "simulate", "--repeat", tmp_path, "--jobs", 1)[0] == 0


BENCHMARKS = (
    *(("secure-sum", "--dropout", value) for value in NUMBERS),
    *(("secure-sum", "--corrupted", value) for value in NUMBERS),
    *(("secure-sum", "--phones", value) for value in ("-1", "1", "9" * 20)),
    *(("secure-sum", "--length", value) for value in ("-1", "0", "9" * 20)),
    *(("secure-sum", "--neighbours", value) for value in ("-1", "0", "9" * 20)),
    *(("api", "--dropout", value) for value in NUMBERS),
    *(("api", "--step-seconds", value) for value in ("nan", "inf", "-1", "0")),
    *(("api", "--phones", value) for value in ("-1", "1", "9" * 20)),
    *(("api", "--workers", value) for value in ("-1", "0", "5000")),
    *(("api", "--processes", value) for value in ("-1", "0", "1000")),
    ("api", "--seed", "-1"),
)


@pytest.mark.parametrize("words", BENCHMARKS, ids=" ".join)
def test_a_benchmark_that_cannot_be_run_is_one_line(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = earshot(monkeypatch, capsys, "bench", *words)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert words[1].removeprefix("--").replace("-", "_") in err


def test_a_choice_that_there_is_not_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, value in (("--summation", "magic"), ("--discovery", "magic"), ("--phones", "few")):
        status, out, err = earshot(monkeypatch, capsys, "simulate", option, value)
        assert (status, out) == (2, "")
        assert option in err
        assert "Traceback" not in err


# ------------------------------------------------------------------------------------ interrupts


@pytest.mark.parametrize("stop", [STEPS[0], STEPS[4], STEPS[-1]])
def test_an_interrupted_run_writes_what_it_has(
    stop: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = command.shown

    @contextlib.contextmanager
    def interrupting() -> Iterator[Progress]:
        """The progress display, and somebody at the keyboard."""
        with shown() as progress:

            def interrupt(what: str, done: int, total: int) -> None:
                progress(what, done, total)
                if what == stop and done:
                    raise KeyboardInterrupt

            yield interrupt

    monkeypatch.setattr(command, "shown", interrupting)
    status, out, err = earshot(monkeypatch, capsys, "simulate", *SMALL, "--out", tmp_path, "--json")
    assert status == 1
    told = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert told == json.loads(out)
    assert stop in told["interrupted"]
    assert told["ari_test"] is None
    assert stop in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Traceback" not in err


SAY_STEPS = """
import contextlib
import sys
from earshot_client.command import main
from earshot_simulations.commands import simulate as command

@contextlib.contextmanager
def shown():
    yield lambda what, done, total: print(what, done, file=sys.stderr, flush=True)

command.shown = shown
sys.argv = ["earshot", "simulate", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
def test_control_c_ends_a_run_in_two_processes_quietly(tmp_path: Path) -> None:
    process = python(
        SAY_STEPS,
        *("--phones", "600", "--recordings", "20", "--jobs", "2", "--json", "--out", str(tmp_path)),
        *("--discovery", "local"),
    )
    assert process.stderr is not None
    said = ""
    while not said.startswith(STEPS[2]):
        said = process.stderr.readline()
        assert said, "the run ended before it was interrupted"
    # A terminal tells the whole group, the processes that answer for phones included.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    told = json.loads(out)
    assert told["interrupted"].startswith("interrupted in the step 'centroid vote")
    assert told == json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert (tmp_path / "report.html").exists()
    assert "Traceback" not in err
    assert "KeyboardInterrupt" not in err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "this machine has no room for that"),
        (MemoryError("too much"), "this machine has no room for that simulation: too much"),
        (PermissionError(errno.EACCES, "Permission denied", "a"), "that simulation has failed: "),
    ],
)
def test_only_a_machine_without_room_is_said_to_have_none(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(simulation, "simulate_routes", failing)
    status, out, err = earshot(monkeypatch, capsys, "simulate", *SMALL)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1].startswith(f"earshot: {said}")
