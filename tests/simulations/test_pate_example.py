"""Votes to try: what is drawn, and the commands of the page on private votes, in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.command import earshot, ended
from support.documented import blocks, section

from earshot_models.votes import example

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "private-votes.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """The lines of a page that a shell runs, each whole, by programs of no folder."""
    whole = "".join(blocks(text, "sh")).replace("\\\n", "").replace(".venv/bin/", "")
    return [" ".join(line.split()) for line in whole.splitlines()]


def test_the_documented_commands_run_in_order_on_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installs, *shown = commands(section(PAGE, "Try it"))
    assert installs.startswith("pip install 'earshot-sensing[simulations]'")
    programs = [line.partition(" out/")[0].split(" --")[0] for line in shown]
    assert [" ".join(each.split()[:3]) for each in programs[:4]] == [
        f"earshot pate {name}" for name in ("example", "budget", "label", "student")
    ]
    monkeypatch.chdir(tmp_path)
    *ours, last = (shlex.split(line) for line in shown)
    for words in ours:
        assert words[0] == "earshot"
        run = earshot(*words[1:])
        assert run.returncode == 0, run.stderr
    program, *words = last
    assert program == "python"
    said = subprocess.check_output([sys.executable, *words], text=True)  # noqa: S603 - of the page
    alone, *_ = map(float, re.findall(r"a teacher alone \| (\d+)", _readme(tmp_path)))
    # Noise is drawn afresh: students are right about 93 % of the samples, with a deviation of 1 %.
    assert alone / 100 < 0.86 < float(said) < 1
    assert commands(_readme(tmp_path)) == shown[1:], "the README goes on where the page does"


def _readme(folder: Path) -> str:
    return (folder / "out" / "votes" / "README.md").read_text(encoding="utf-8")


def test_the_readme_says_how_often_teachers_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended(monkeypatch, "pate", "example", tmp_path / "votes", "--seed", 7) == 0
    votes, truth = (np.load(tmp_path / "votes" / f"{name}.npy") for name in ("votes", "truth"))
    right = [100 * float((each == truth).mean()) for each in votes]
    counts = [np.bincount(each, minlength=10) for each in votes.T]
    together = np.mean([each.argmax() == true for each, true in zip(counts, truth, strict=True)])
    page = (tmp_path / "votes" / "README.md").read_text(encoding="utf-8")
    shares = f"{np.mean(right):.0f} % ({min(right):.0f} to {max(right):.0f} %)"
    assert f"| a teacher alone | {shares} |" in page
    assert f"| the class with most votes, without noise | {100 * together:.0f} % |" in page
    assert 50 < min(right) < max(right) < 100 * together < 100
    assert "seed 7" in page


def test_a_seed_draws_the_same_votes_and_another_one_others() -> None:
    one, same, other = example.draw(3), example.draw(3), example.draw(4)
    for name in ("votes", "samples", "truth"):
        assert np.array_equal(getattr(one, name), getattr(same, name))
        assert not np.array_equal(getattr(one, name), getattr(other, name))


def test_teachers_differ_by_what_they_learned_and_fail_where_classes_are_near() -> None:
    drawn = example.draw(1)
    means = np.stack([drawn.samples[drawn.truth == each].mean(axis=0) for each in range(10)])
    apart = np.linalg.norm(means[:, None] - means, axis=2) + 99 * np.eye(10)
    wrong = np.zeros((10, 10))
    np.add.at(wrong, (np.broadcast_to(drawn.truth, drawn.votes.shape), drawn.votes), 1)
    np.fill_diagonal(wrong, 0)
    assert np.corrcoef(apart[wrong > 0], np.log(wrong[wrong > 0]))[0, 1] < -0.5
    pairs = [(drawn.votes[each] == drawn.votes[each + 1]).mean() for each in range(249)]
    assert max(pairs) < 0.95, "no two teachers are the same"


def test_a_folder_that_holds_something_is_replaced_when_asked_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert ended(monkeypatch, "pate", "example", tmp_path) == 2
    assert f"earshot: {tmp_path} is not empty: it holds mine.txt." in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.txt"]
    assert ended(monkeypatch, "pate", "example", tmp_path, "--overwrite") == 0
    assert {each.name for each in tmp_path.iterdir()} == {"mine.txt", *example.FILES}
    assert earshot("pate", "example", tmp_path / "new", "--seed", -1).returncode == 2
    assert not (tmp_path / "new").exists()
