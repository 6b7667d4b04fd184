"""`earshot pate`: from files to files, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import ended

NOISE = ("--sigma", "40", "--check-sigma", "150", "--threshold", "200")
BUDGET = ("--epsilon", "1", "--delta", "1e-5")


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.npy"
    generator = np.random.default_rng(0)
    agree = generator.beta(3, 1, 300)
    chances = np.full((300, 10), 1 / 10) * (1 - agree[:, None])
    chances[np.arange(300), generator.integers(0, 10, 300)] += agree
    np.save(path, np.array([generator.multinomial(250, each) for each in chances]))
    return path


def test_label_writes_answers_figures_and_a_report_and_goes_on(
    votes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    command = (
        "pate",
        "label",
        "confident",
        votes,
        *NOISE,
        *BUDGET,
        "--teachers",
        250,
        "--out",
        out,
    )
    assert ended(monkeypatch, *command) == 0
    figures = json.loads((out / "result.json").read_text())
    with (out / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == figures["realised"]["asked"] < 300
    answers = [row["answer"] for row in rows if row["answer"]]
    assert len(answers) == figures["realised"]["answered"] > 20
    winners = np.load(votes).argmax(axis=1)
    right = sum(row["answer"] == str(winners[int(row["query"])]) for row in rows)
    # Noise is drawn afresh: of 45 answers one is wrong on average, and twelve once in 10^9 runs.
    assert right > 0.75 * len(answers)
    assert figures["data_dependent"] is None
    assert "a trusted curator" not in (report := (out / "report.md").read_text())
    assert "the curator sees every vote" in report
    assert "who cast which was made up here" in report
    capsys.readouterr()
    assert ended(monkeypatch, *command, "--json") == 0
    assert json.loads(capsys.readouterr().out) == figures
    assert ended(monkeypatch, *command[:-3], 249, "--out", out) == 2
    assert "do not have one vote from each of the 249 teachers" in capsys.readouterr().err
    other = [word if word != "40" else "50" for word in command]
    assert ended(monkeypatch, *other) == 2
    assert "deviation 40.0, not 50.0" in capsys.readouterr().err


def promise(out: Path, printed: str) -> tuple[str, ...]:
    """All that is promised, as it is written and printed."""
    report, shown = (out / "report.md").read_text(), json.loads((out / "result.json").read_text())
    part = report[report.index("## What is promised") : report.index("## What was realised")]
    said = printed[: printed.index("\nrealised ")]
    assert "whatever the votes" not in report.replace(part, "") + printed.replace(said, "")
    return json.dumps(shown["promised"]), part, said


CONFIDENT = ("--threshold", 30, "--check-sigma", 12, "--sigma", 5)


@pytest.mark.parametrize("share", ["1", "2"])  # the budget's: enough for all queries, or not
@pytest.mark.parametrize("unit", ["left out", "replaced"])
def test_what_is_promised_depends_on_no_vote(
    share: str,
    unit: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Unanimous votes and ties, the same settings: what was realised differs, the promise not."""
    found, spent, budget = [], [], 20 if share == "1" else 3
    for name, teachers in (
        ("unanimous", [[1] * 60] * 50),
        ("ties", [[each % 10] * 60 for each in range(50)]),
    ):
        votes, out = tmp_path / f"{name}.npy", tmp_path / name
        np.save(votes, np.array(teachers))
        command = ("pate", "label", "confident", votes, "--classes", 10, *CONFIDENT, "--out", out)
        given = ("--epsilon", budget, "--delta", "1e-5", "--unit", unit.replace(" ", "-"))
        assert ended(monkeypatch, *command, *given) == 0
        found.append(promise(out, capsys.readouterr().out))
        shown = json.loads((out / "result.json").read_text())
        assert shown["realised"]["private"]
        (cost,), (worst,) = shown["realised"]["costs"], shown["promised"]["worst"]
        spent.append(cost["epsilon"])
        for each, epsilon in cost["epsilon"].items():
            assert epsilon <= worst["epsilon"][each]
        own = f"teacher {unit}"
        assert cost["epsilon"][own] <= worst["epsilon"][own] <= budget * (1 + 1e-9)
    assert found[0] == found[1]
    assert spent[0] != spent[1]


def table(printed: str) -> list[list[str]]:
    """The three costs as a terminal shows them; the lines of a cell are joined."""
    rows: list[list[str]] = []
    for line in printed[: printed.index("also private")].splitlines()[1:]:
        if line.startswith(" "):
            rows[-1][-1] += " " + line.strip()
        else:
            rows.append(re.split(r" {2,}", line, maxsplit=4))
    return rows


@pytest.mark.parametrize("more", [(), ("--votes-cost", "dependent"), ("--unit", "left-out")])
def test_three_costs_stand_in_one_table(
    more: tuple[str, ...],
    votes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    command = ("pate", "label", "confident", votes, *NOISE, *BUDGET, *more, "--out", out)
    assert ended(monkeypatch, *command) == 0
    printed = capsys.readouterr().out
    figures = json.loads((out / "result.json").read_text())
    titles, *rows = table(printed)
    assert titles == ["cost", "ε", "δ", "publish?", "what it means"]
    assert [row[0] for row in rows] == ["promised", "realised", "with noise of its own"]
    own, unit = figures["data_dependent"], figures["promised"]["unit"]
    assert unit == ("teacher left out" if "left-out" in more else "teacher replaced")
    (spent,) = (each["epsilon"][unit] for each in figures["realised"]["costs"])
    assert [row[1] for row in rows] == [
        "1",
        f"{spent:.4g}",
        f"{own['epsilon']:.4g}" if own else "–",
    ]
    assert {row[2] for row in rows} == {"1e-05"}
    assert [row[3] for row in rows] == ["yes", "no", "yes, once" if own else "–"]
    assert (own is None) == ("--votes-cost draws one" in rows[2][4])
    assert max(map(len, printed.splitlines()[:-1])) <= 80, "the last one is a path"
    report = (out / "report.md").read_text()
    for row in rows:
        assert f"| {' | '.join(row)} |" in report


@pytest.mark.parametrize("more", [("--tally", "federated"), ("--weights", "weights.npy")])
def test_the_table_says_where_no_cost_has_noise_of_its_own(
    more: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("votes.npy", np.tile([1, 2, 1], (40, 1)))
    np.save("weights.npy", np.array([1, 2] * 20))
    command = ("--classes", 3, *CONFIDENT, "--epsilon", 9, "--delta", "1e-3", "--out", "out", *more)
    assert ended(monkeypatch, "pate", "label", "confident", "votes.npy", *command) == 0
    printed = capsys.readouterr().out
    assert table(printed)[3][4].startswith("not known for confident, ")
    weighed = "for teachers of the largest weight" in printed.splitlines()[0]
    assert weighed == ("--weights" in more)


@pytest.mark.slow
def test_teachers_are_called_teachers(
    votes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = ("confident", *NOISE, "--delta", "1e-5", "--teachers", 250)
    for tally in ("central", "federated"):
        out = tmp_path / tally
        words = (*known, "--epsilon", 1, "--tally", tally)
        assert ended(monkeypatch, "pate", "label", words[0], votes, *words[1:], "--out", out) == 0
        assert ended(monkeypatch, "pate", "budget", *words, "--classes", 10) == 0
        written = [(out / name).read_text() for name in ("result.json", "report.md")]
        said = " ".join([*written, *capsys.readouterr()])
        assert "teacher" in said
        said = said.replace("but not where each phone is a teacher", "")
        assert re.findall(r".*\b(?:phone|owner)s?\b.*|.*\bpart(?:y|ies)\b.*", said) == []
    np.save(votes, np.array([[4, 0]]))
    few = (*NOISE, *BUDGET, "--tally", "federated", "--corrupted", 0.9, "--out", tmp_path / "none")
    assert ended(monkeypatch, "pate", "label", "confident", votes, *few) == 2
    assert "leaves 4 participants no safe graph" in capsys.readouterr().err
    for command in ("label", "label confident", "budget", "budget confident", "student", "example"):
        assert ended(monkeypatch, "pate", *command.split(), "--help") == 0
    assert re.findall(r".*phone.*", capsys.readouterr().out) == []


def test_a_cost_that_looks_at_votes_is_published_once(
    votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    command = ("pate", "label", "confident", votes, *NOISE, *BUDGET, "--out", out)
    assert ended(monkeypatch, *command) == 0
    assert ended(monkeypatch, *command, "--votes-cost", "dependent") == 0
    first = json.loads((out / "result.json").read_text())["data_dependent"]
    assert first["method"] == "dependent"
    assert 0 < first["publishing"] <= 0.1 * (1 + 1e-9)
    assert ended(monkeypatch, *command, "--votes-cost", "dependent") == 0
    assert json.loads((out / "result.json").read_text())["data_dependent"] == first
    assert "Such a cost is private" in (out / "report.md").read_text()


def test_labels_of_few_teachers_through_secure_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes, out = tmp_path / "votes.npy", tmp_path / "out"
    labels = (np.arange(4) % 2 == np.arange(6)[:, None] % 2).astype(np.int8)
    np.save(votes, np.tile(labels, (30, 1, 1)))
    noise = ("--sigma", "2.5")
    command = ("--epsilon", 20, "--delta", "1e-3", "--tally", "federated", "--out", out)
    assert ended(monkeypatch, "pate", "label", "binary", votes, *noise, *command) == 0
    with (out / "answers.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["query", "label_0", "label_1", "label_2", "label_3"]
    assert [[int(cell) for cell in row[1:]] for row in rows[1:]] == labels.tolist()
    figures = json.loads((out / "result.json").read_text())
    assert figures["effort"]["bytes_up_per_teacher_and_sum"] > 0
    assert any("the server sees" in sentence for sentence in figures["sees"])
    assert not (out / "teachers.key").exists()


def test_budget_says_what_queries_cost_and_how_many_a_budget_buys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = (
        "pate",
        "budget",
        "confident",
        *NOISE,
        "--delta",
        "1e-5",
        "--teachers",
        250,
        "--classes",
        10,
    )
    assert ended(monkeypatch, *known, "--queries", 200, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["unit"]: round(row["epsilon"], 2) for row in rows} == {
        "teacher left out": pytest.approx(1.535, abs=0.01),
        "teacher replaced": pytest.approx(2.208, abs=0.01),
    }
    assert ended(monkeypatch, *known, "--groups", "1:125,2:125") == 0
    assert "of 2 at δ = 1e-05, teacher replaced, weight 2" in capsys.readouterr().out
    assert ended(monkeypatch, *known) == 2
    assert "give one of --queries, --epsilon and --groups" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--delta", "0.004"), "must be below 1/250"),
        (("--epsilon", "0"), "epsilon=0.0: must be a positive"),
        (("--check-sigma", "0"), "deviation=0.0: must be a number"),
        (("--tau", "1.2"), "Unknown option: --tau"),
        (("--scores", "none.npy"), "Unknown option: --scores"),
        (("--tally", "federated", "--votes-cost", "dependent"), "hold for a central tally"),
        (("--votes-cost", "exact"), "for two classes, not for 10"),
        (("--classes", "3"), "classes from 0 to 2"),
        (
            ("--sigma", "0.3", "--votes-cost", "dependent"),
            "has no room for a query, which costs up to",
        ),
        (("--sigma", "0.3"), "has no room for a query, which costs up to"),
    ],
)
def test_mistakes_are_one_line_and_exit_status_2(
    words: tuple[str, ...],
    message: str,
    votes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command: tuple[Any, ...] = (
        "pate",
        "label",
        "confident",
        votes,
        *NOISE,
        *BUDGET,
        "--out",
        tmp_path / "out",
    )
    assert ended(monkeypatch, *command, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.splitlines()[-1].startswith("earshot: ")


@pytest.fixture
def ensemble(tmp_path: Path) -> Path:
    """Ten teachers of points on a line, and samples to vote on."""
    from sklearn.tree import DecisionTreeClassifier

    from earshot_models.teachers.ensemble import train
    from earshot_models.teachers.partitions import partitions

    generator = np.random.default_rng(1)
    points = generator.uniform(-1, 1, (400, 2))
    truth = (points[:, 0] > 0).astype(np.int64)
    parts = partitions(np.arange(400), 10, generator)
    train(
        tmp_path / "teachers",
        lambda number: DecisionTreeClassifier(random_state=number),
        points,
        truth,
        parts,
        ("left", "right"),
        lambda what, done, total: None,
    )
    np.save(tmp_path / "samples.npy", generator.uniform(-1, 1, (60, 2)))
    return tmp_path / "teachers"


@pytest.mark.parametrize("tally", ["central", "federated"])
def test_a_folder_of_teachers_votes_on_samples(
    ensemble: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: str
) -> None:
    samples, out = tmp_path / "samples.npy", tmp_path / tally
    command = ("pate", "label", "gnmax", ensemble, "--samples", samples, "--names", "left,right")
    noise = ("--sigma", 1, "--epsilon", 1000, "--delta", 1e-3)
    assert ended(monkeypatch, *command, *noise, "--tally", tally, "--out", out) == 0
    with (out / "answers.csv").open() as file:
        answers = [int(row["answer"]) for row in csv.DictReader(file)]
    # The budget has room for fewer where a server sees the counts.
    assert len(answers) == 60 if tally == "central" else 10 <= len(answers) < 60
    right = np.array(answers) == (np.load(samples)[: len(answers), 0] > 0)
    assert right.mean() > 0.8


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--names", "left,right"), "needs --samples"),
        (("--samples", "samples.npy", "--names", "right,left"), "another class list"),
        (("--samples", "samples.npy", "--classes", "2"), "leave --classes out"),
    ],
)
def test_what_no_ensemble_can_vote_on(
    ensemble: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    noise = ("--sigma", 1, *BUDGET)
    out = tmp_path / "out"
    assert (
        ended(monkeypatch, "pate", "label", "gnmax", ensemble, *options, *noise, "--out", out) != 0
    )
    assert named in capsys.readouterr().err
    assert not out.exists()
