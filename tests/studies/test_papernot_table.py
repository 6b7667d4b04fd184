"""Table 1 of Papernot et al. on votes made here: the command's files, and each accounting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command import earshot
from support.reproduced import reproduced

from earshot_models.votes.rules.confident import ConfidentRule
from earshot_protocol.errors import InvalidInputError
from earshot_studies.papernot import table_1 as table
from earshot_studies.papernot.table_1 import PaperRow, account, read_votes

TEN = ConfidentRule(sigma=40.0, threshold=200.0, check_sigma=150.0)
TWO = ConfidentRule(sigma=40.0, threshold=300.0, check_sigma=200.0)
CASES = {
    "Ten": PaperRow("ten.npy", TEN, 1e-5, 60, 1.97),
    "Two": PaperRow("two.npy", TWO, 1e-5, 60, None),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(1)
    votes = tmp_path / "votes"
    votes.mkdir()
    np.save(votes / "ten.npy", generator.multinomial(250, [0.82] + [0.02] * 9, 400))
    np.save(votes / "two.npy", generator.multinomial(250, [0.9, 0.1], 400))
    return votes


@pytest.mark.slow
def test_the_command_leaves_a_table_a_picture_and_a_note(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "CASES", CASES)
    monkeypatch.setattr(table.read_votes, "__defaults__", (CASES,))
    monkeypatch.setattr(table.reproduce, "__defaults__", (2, CASES, table.silent))
    out = tmp_path / "out"
    made = reproduced("papernot-table-1", out, "--data", folder, "--seeds", 2)
    rows = {row["data"]: row for row in made}
    assert set(rows) == {"Ten", "Two"}
    assert rows["Ten"]["theirs"] == "1.97"
    assert rows["Two"]["theirs"] == ""
    assert rows["Two"]["why"] == "the paper has no such number"
    assert rows["Ten"]["why"] == (
        "the size differs: the order of the paper's queries and its draw of noise are not known"
    )
    assert rows["Ten"][table.EXACT_SANITIZED] == "", "known for two classes alone"
    assert float(rows["Two"][table.EXACT_SANITIZED].split()[0]) > 0
    note = (out / f"{table.NAME}.md").read_text(encoding="utf-8")
    for row in rows.values():
        assert row[table.EXACT] in note
        assert row["why"] in note
        assert row[table.SANITIZED] in note
    assert (out / f"{table.NAME}.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["Two", pytest.param("Ten", marks=pytest.mark.slow)])
def test_accounts_are_in_their_order(folder: Path, name: str) -> None:
    votes = read_votes(folder, CASES)[name]
    found = account(CASES[name], votes, 3)
    assert int(found.voted.sum()) == 60
    assert found.voted[-1]
    assert len(found.voted) == found.asked
    each = found.epsilons
    assert each[table.EXACT] < each[table.EXACT_CLASSIC] < each[table.THEIRS]
    assert each[table.THEIRS] < each[table.SANITIZED]
    assert found.labels[table.EXACT] >= found.labels[table.EXACT_CLASSIC]
    assert found.labels[table.EXACT_CLASSIC] > found.labels[table.SOUND] > 0
    again = account(CASES[name], votes, 3)
    assert again.epsilons == each
    assert account(CASES[name], votes, 4).epsilons != each


def test_what_is_no_file_of_votes_is_named(folder: Path, tmp_path: Path) -> None:
    np.save(folder / "ten.npy", np.ones((5, 10)))
    with pytest.raises(InvalidInputError, match="250 teachers; query 0 has 10"):
        read_votes(folder, CASES)
    (folder / "ten.npy").write_text("nothing")
    with pytest.raises(InvalidInputError, match=r"ten\.npy: must be a file of votes"):
        read_votes(folder, CASES)
    with pytest.raises(InvalidInputError, match="at least 60"):
        account(CASES["Two"], np.tile([125, 125], (30, 1)), 0)
    assert earshot("reproduce", table.NAME, "--out", tmp_path / "out").returncode == 2
