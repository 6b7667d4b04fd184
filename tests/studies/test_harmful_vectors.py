"""What a few phones do by their vectors: the crowd is as described, and so is the harm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.reproduced import reproduced

from earshot_protocol.geometry import unit_rows
from earshot_studies.adversaries import harm
from earshot_studies.adversaries.harm import FALSE, INVENTED, NEGATIVE, NONE, PUSHED, RAISED, WEEK
from earshot_studies.adversaries.town import EMPTY, PLACES, Town


def test_sounds_are_as_alike_as_those_of_mixed_places() -> None:
    held_out = Town(3, 20, 0.5, 0).held_out()
    cosines = [
        own @ unit_rows(own.mean(axis=0)[None])[0]
        for own in (held_out.points[held_out.scenes == place] for place in range(PLACES))
    ]
    mean, low = np.mean(cosines), np.quantile(np.concatenate(cosines), 0.05)
    assert mean == pytest.approx(0.73, abs=0.01)
    assert mean - low == pytest.approx(0.24, abs=0.02)


def test_phones_hear_the_same_whenever_they_are_asked_and_never_the_empty_label() -> None:
    town, again = (Town(3, 400, 0.5, 1) for _ in range(2))
    heard = town.recordings(2)
    assert heard.points.tolist() == again.recordings(2).points.tolist()
    assert set(heard.scenes.tolist()) == set(range(EMPTY))
    assert np.mean(heard.labels >= 0) == pytest.approx(0.5, abs=0.1)
    assert heard.points.tolist() != town.recordings(1).points.tolist()


@pytest.mark.parametrize(("attack", "adds"), [(RAISED, 6 * 4), (FALSE, 30 * 4)])
def test_a_week_s_count_grows_by_what_each_phone_may_add(attack: str, adds: int) -> None:
    """Six of sixty phones, or one that counts for thirty; what they made is left out."""
    row = harm.counted(attack, 0.1, 60, 0)
    town = Town(60, 3, 1.0, 0)
    made = np.bincount(np.concatenate([town.recordings(phone).scenes for phone in range(60)]))[0]
    assert float(row["counted"]) * made == pytest.approx(adds, abs=5)


def test_where_inputs_are_proved_a_false_vector_takes_its_phone_out_of_a_week() -> None:
    """What the phone itself heard is missing, at most three contacts, and nothing else changes."""
    row = harm.counted(harm.REFUSED, 0.1, 60, 0)
    town = Town(60, 3, 1.0, 0)
    made = np.bincount(np.concatenate([town.recordings(phone).scenes for phone in range(60)]))[0]
    assert -4 <= float(row["counted"]) * made <= 1


def test_as_many_phones_make_a_told_change_in_every_crowd() -> None:
    assert [harm.told_change(phones) for phones in (1000, 20_000)] == pytest.approx([51, 51], abs=2)


@pytest.mark.slow
def test_the_command_leaves_the_harm_of_each_attack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harm.reproduce, "__defaults__", (1, 1000, (0.1,), print))
    rows = reproduced("harmful-vectors", tmp_path, "--seeds", 1)
    names = {row["attack"]: row for row in rows if row["sum"] != WEEK}
    right = {attack: float(row["right_name"]) for attack, row in names.items()}
    assert right[NONE] > 0.95
    assert right[FALSE] < 0.1
    assert right[harm.REFUSED] > 0.95
    assert 0.85 < right[NEGATIVE] < 0.95
    assert float(names[PUSHED]["attacked_label"]) < 0.5 < right[PUSHED]
    assert [float(names[each]["empty_clear"]) for each in (NONE, INVENTED)] == [0, 1]
    week = {row["attack"]: float(row["counted"]) for row in rows if row["sum"] == WEEK}
    assert 1 < week[RAISED] < 3 < week[FALSE]
    assert abs(week[harm.REFUSED]) < 0.1
    note = (tmp_path / "harmful-vectors.md").read_text(encoding="utf-8")
    assert all(f"| {attack} |" in note for attack in (*names, *week))
    assert (tmp_path / "harmful-vectors.png").stat().st_size > 10_000
