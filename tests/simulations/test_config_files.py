"""Settings of one run from a file: a sweep's TOML or a kept run, under the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from support.command import Earshot

from earshot_simulations import Settings
from earshot_simulations.commands import simulate as command
from earshot_simulations.phases.kept import results_differing
from earshot_simulations.phases.settings import Discovery
from earshot_simulations.sweeps.plan import read as read_sweep

TINY = """
[settings]
phones = 24
recordings = 10
scenes = 3
corrupted = 0
policy = "anything"
summation = "ideal"
jobs = 1
"""
WORDS = (
    *("--phones", 24, "--recordings", 10, "--scenes", 3, "--corrupted", 0, "--jobs", 1),
    *("--policy", "anything", "--summation", "ideal"),
)

pytestmark = pytest.mark.usefixtures("module_without_pictures")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of the runs that a command would do."""
    found: list[Settings] = []

    def end(each: dict[Any, Settings], *rest: object) -> None:
        found.extend(each.values())
        raise SystemExit

    monkeypatch.setattr(command, "_run_and_write", end)
    return found


def written(folder: Path, text: str) -> Path:
    file = folder / "run.toml"
    file.write_text(text)
    return file


def result_in(folder: Path) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((folder / "result.json").read_bytes())
    return figures


@pytest.mark.parametrize(
    "options",
    [
        ("--epsilon", 3.7, "--heterogeneity.concentration", 0.1 + 0.2, "--dropout", 0.1),
        (
            "--discovery",
            "local",
            "--budget",
            "clustering=8,selection=4,centroid-vote=2,label-vote=1",
        ),
        ("--discovery", "local", "--top-global-centroids", 4, "--selection-method", "gumbel"),
    ],
)
def test_a_run_from_its_own_result_has_the_same_figures(
    options: tuple[object, ...], tmp_path: Path, earshot: Earshot
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    status, _, err = earshot("simulate", *WORDS, "--seed", 3, *options, "--out", first)
    assert status == 0, err
    status, _, err = earshot(
        *("simulate", "--config", first / "result.json", "--jobs", 1, "--out", second)
    )
    assert status == 0, err
    then, now = result_in(first), result_in(second)
    assert then.pop("digest") != now.pop("digest")  # of times and memory
    assert then["configuration"] == now["configuration"]
    assert results_differing(then, now) == {}


def test_a_file_says_what_the_options_say(
    tmp_path: Path, earshot: Earshot, asked: list[Settings]
) -> None:
    text = TINY + "seed = 3\nepsilon = 1.1\nheterogeneity.quantity_skew = 0.2\nlabelled = 1\n"
    earshot("simulate", "--config", written(tmp_path, text))
    options = ("--seed", 3, "--epsilon", 1.1, "--heterogeneity.quantity-skew", 0.2, "--labelled", 1)
    earshot("simulate", *WORDS, *options)
    assert asked[0] == asked[1] != Settings()


def test_the_command_line_wins_with_defaults_and_with_the_other_of_two(
    tmp_path: Path, earshot: Earshot, asked: list[Settings]
) -> None:
    file = written(tmp_path, TINY + "epsilon = 3\nheterogeneity.concentration = 2\n")
    words = ("simulate", "--config", file, "--phones", Settings().phones)
    earshot(*words, "--heterogeneity.quantity-skew", 1)
    assert asked[0].phones == Settings().phones
    assert asked[0].recordings == 10
    assert (asked[0].heterogeneity.concentration, asked[0].heterogeneity.quantity_skew) == (2, 1)
    budget = "clustering=1,selection=1,centroid-vote=1,label-vote=1"
    earshot(*words, "--discovery", "local", "--budget", budget)  # in place of the file's epsilon
    assert (asked[1].discovery, asked[1].epsilon) == (Discovery.LOCAL, None)
    assert asked[1].budget is not None
    assert asked[1].budget.clustering == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[settings]\nphonse = 3", "run.toml: phonse: there is no such setting; did you mean phon"),
        ('[settings]\nphones = "x"', "run.toml: phones: expected `int`, got `str`"),
        ("[settings]\nphones = 2.5", "run.toml: phones: expected `int`, got `float`"),
        ("[settings]\nadversary.lies = 1", "run.toml: adversary.lies: there is no such setting"),
        ('[settings]\nsummation = "none"', "run.toml: summation: "),
        (
            "[grid]\nphones = [3]",
            "run.toml: grid: a run takes a file of [settings] alone; earshot sw",
        ),
        (
            "phones = 3",
            "run.toml: phones: a run takes a file of [settings] alone; its settings stand",
        ),
        ("settings = 3", "run.toml: settings=3: must be a table"),
        ("phones", "run.toml: is not TOML"),
        (
            '[settings]\ndiscovery = "secure-sum"\nclustering_runs = 3',
            "--clustering-runs: not for --discovery secure-sum, but for --discovery local",
        ),
    ],
)
def test_what_a_file_may_not_say_is_named(
    text: str, said: str, tmp_path: Path, earshot: Earshot, asked: list[Settings]
) -> None:
    status, out, err = earshot("simulate", "--config", written(tmp_path, text))
    assert (status, out, asked) == (2, "", [])
    assert said in err
    assert err.count("\n") == 1


def test_a_config_beside_a_repetition_and_a_missing_one_are_refused(
    tmp_path: Path, earshot: Earshot
) -> None:
    file = written(tmp_path, TINY)
    status, _, err = earshot("simulate", "--config", file, "--repeat", tmp_path)
    assert (status, err.partition(",")[0]) == (2, "earshot: --config: not with --repeat")
    status, _, err = earshot("simulate", "--config", tmp_path / "none.toml")
    assert (status, "none.toml: there is no such file" in err) == (2, True)


# ------------------------------------------------------------------------- paths from anywhere


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with sound in it."""
    for name, hertz in (("low", 200), ("high", 2000)):
        folder = tmp_path / "project" / "sound" / name
        folder.mkdir(parents=True)
        for take in (1, 2):
            wave = 0.3 * np.sin(2 * np.pi * (hertz + take) * np.arange(32_000) / 16_000)
            soundfile.write(folder / f"{take}.wav", wave, 16_000)
    return tmp_path / "project"


def test_paths_in_a_file_are_relative_to_it(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    earshot: Earshot,
    asked: list[Settings],
) -> None:
    """Whatever the working directory is; names of what is no file stay names."""
    monkeypatch.chdir(project.parent)
    heard = TINY.replace("jobs = 1", 'encoder = "contrast-3"\ndata = "sound"')
    earshot("simulate", "--config", written(project, heard.replace("scenes = 3\n", "")))
    sweep = project / "sweep.toml"
    sweep.write_text(TINY.replace("jobs = 1", "") + '[grid]\ndata = ["sound", "soundscapes"]')
    plan = read_sweep(Path("project/sweep.toml"))
    assert [Path(asked[0].data), asked[0].encoder] == [project / "sound", "contrast-3"]
    assert [arm.phases[0].data for arm in plan.arms] == ["project/sound", "soundscapes"]
    monkeypatch.chdir(project)
    plan = read_sweep(Path("sweep.toml"))
    assert [arm.labels["data"] for arm in plan.arms] == ["sound", "soundscapes"]


@pytest.mark.slow
def test_a_run_is_repeated_from_another_folder_and_with_sound_that_moved(
    project: Path, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    monkeypatch.chdir(project)
    words = [*WORDS[:4], *WORDS[6:]]  # scenes are the classes of the folder
    status, _, err = earshot("simulate", *words, "--data", "sound", "--out", "run")
    assert status == 0, err
    monkeypatch.chdir("/")
    repeat = ("simulate", "--repeat", project / "run", "--jobs", 1)
    status, out, err = earshot(*repeat)
    assert (status, "the same, bit for bit" in out) == (0, True), err
    moved = shutil.move(project / "sound", project / "moved")
    status, _, err = earshot(*repeat)
    assert (status, f"{project / 'sound'}" in err, "--data" in err) == (2, True, True)
    status, out, err = earshot(*repeat, "--data", moved)
    assert (status, "the same, bit for bit" in out) == (0, True), err
    (Path(moved) / "low" / "1.wav").rename(Path(moved) / "low" / "3.wav")
    status, _, err = earshot(*repeat, "--data", moved)
    assert (status, "is not that of the run" in err) == (2, True)
