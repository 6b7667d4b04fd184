"""A simulated labelling phase: scored against the truth, written down, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command import earshot

from earshot_simulations.phases.labelling import LabelFindings, LabellingSettings
from earshot_simulations.phases.run import Run
from earshot_simulations.phases.settings import PolicyChoice, SummationChoice
from earshot_simulations.phases.simulation import simulate

SMALL = LabellingSettings(
    phones=100,
    samples=12,
    scenes=4,
    epsilon=20.0,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=5,
)


@pytest.fixture(scope="module")
def run() -> Run[LabelFindings]:
    return simulate(SMALL)


def test_a_crowd_labels_what_its_phones_do_not_know_alone(run: Run[LabelFindings]) -> None:
    scores = run.found.scores
    assert scores is not None
    assert run.interrupted is None
    assert run.survivors == 95
    assert scores.answered >= 0.75
    assert scores.right == 1.0
    assert scores.alone < 0.7 < scores.answered


def test_scores_are_counted_over_the_samples_that_they_are_of(run: Run[LabelFindings]) -> None:
    assert run.found.scores is not None
    assert run.found.published is not None
    names, labels = run.found.published.names, run.found.published.labels
    right = [label == scene for label, scene in zip(labels, run.found.truth, strict=True)]
    assert run.found.scores.answered == pytest.approx(sum(label >= 0 for label in labels) / 12)
    assert run.found.scores.clear == pytest.approx(sum(name is not None for name in names) / 12)
    answered = [r for r, label in zip(right, labels, strict=True) if label >= 0]
    assert run.found.scores.right == pytest.approx(sum(answered) / len(answered))


def test_noise_that_drowns_the_votes_answers_hardly_anything_and_says_so() -> None:
    drowned = simulate(
        LabellingSettings(
            **{**vars(SMALL), "epsilon": 0.3, "samples": 40, "policy": PolicyChoice.DEFAULT}
        )
    )
    assert drowned.found.scores is not None
    assert drowned.found.scores.answered < 0.3
    assert drowned.found.scores.clear == 0.0
    assert drowned.found.scores.clear_right is None


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    given = [
        *("labelling", "--phones", "60", "--samples", "6", "--scenes", "3", "--epsilon", "20"),
        *("--policy", "anything", "--summation", "ideal", "--jobs", "1", "--seed", "2"),
    ]
    return earshot("simulate", *given, *words)


def types(*words: str) -> str:
    run = asked(*words)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_command_writes_a_report_and_its_numbers(tmp_path: Path) -> None:
    said = types("--out", str(tmp_path / "out"))
    assert "57 of 60 phones labelled" in said
    kept: dict[str, Any] = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (kept["phones"], kept["survivors"], len(kept["samples"])) == (60, 57, 6)
    # The server composes what the noise was chosen by as phones do, and no worse.
    assert 10 < kept["privacy"]["together"]["phone"]["epsilon"] <= 40 * (1 + 1e-9)
    assert kept["configuration"]["dropout"] == 0.05
    page = (tmp_path / "out" / "report.html").read_text()
    for word in ("57 of 60 phones labelled", "votes: masked input", "earshot simulate labelling"):
        assert word in page
    assert json.loads(types("--json"))["samples"] == kept["samples"], "the seed decides"


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("--samples", "0"), "samples=0"),
        (("--samples", "4000"), "samples=4000: must be at most 600"),
        (("--threshold", "61"), "the votes of all 60 phones"),
        (("--policy", "default"), "no phone would take part"),
        (("--scenes", "1"), "scenes=1"),
        (("--check-share", "0"), "check_share"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(words: tuple[str, ...], match: str) -> None:
    refused = asked(*words)
    assert refused.returncode == 2
    assert match in refused.stderr


@pytest.mark.parametrize(("epsilon", "some"), [("0.5", False), ("20", True)])
def test_the_headline_says_how_much_of_it_may_be_noise(epsilon: str, some: bool) -> None:
    said = types("--epsilon", epsilon, "--threshold", "1", "--samples", "12")
    (clear,) = re.findall(r"^clear of the noise +(.*)$", said, re.MULTILINE)
    assert (clear != "0 %") == some
    assert (
        f"({clear if some else 'none'} of the samples clear of the noise)" in said.splitlines()[0]
    )
