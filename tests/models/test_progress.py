"""Progress where there is no terminal: plain lines, few and never lost."""

from __future__ import annotations

import time

import pytest

from earshot_models.commands.progress import shown


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a clock shows that tests turn by hand."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_long_work_is_told_every_ten_seconds_and_at_its_end(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with shown() as progress:
        for second in range(36):
            clock[0] = 100.0 + second
            progress("hear", 1000 * second, 35_000)
    assert capsys.readouterr() == (
        "",
        "hear: 10,000 of 35,000, 0:00:10\n"
        "hear: 20,000 of 35,000, 0:00:20\n"
        "hear: 30,000 of 35,000, 0:00:30\n"
        "hear: 35,000 of 35,000, 0:00:35\n",
    )


def test_short_work_is_told_when_it_is_done_and_once(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with shown() as progress:
        for what in ("one", "two"):
            for done in (0, 1, 2, 3, 3):
                clock[0] += 1
                progress(what, done, 3, f"{what}, in words")
    assert capsys.readouterr().err.splitlines() == [
        "one, in words: 3 of 3, 0:00:03",
        "two, in words: 3 of 3, 0:00:03",
    ]


def test_a_line_is_there_as_soon_as_it_is_told(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with shown() as progress:
        progress("hear", 0, 9)
        clock[0] += 10
        progress("hear", 4, 9)
        assert capsys.readouterr().err == "hear: 4 of 9, 0:00:10\n"


def test_on_a_terminal_there_are_bars(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes anything for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    with shown() as progress:
        progress("hear", 9, 9)
    written = capsys.readouterr().err
    assert "━" in written
    assert "9 of 9" not in written
