"""How the dashboard writes numbers and times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support import dashboard_records as made

from earshot_server.dashboard import wording


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.5, "0.5"),
        (1e-6, "10⁻⁶"),
        (2.4e-12, "2.4 · 10⁻¹²"),
        (9.99e-7, "10⁻⁶"),
        (408.7, "409"),
        (12_345.6, "12\u202f346"),
        (2.5e7, "2.5 · 10⁷"),
        (float("inf"), "∞"),
    ],
)
def test_real_numbers(value: float, words: str) -> None:
    assert wording.real(value) == words


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ((2.0, 2.0), ("2", "2")),
        ((4.04, 3.0), ("4.04", "3.00")),
        ((3.996, 0.5), ("4.0", "0.5")),
        ((408.7, 2.25), ("409", "2.25")),
        ((float("inf"), 2.25), ("∞", "2.25")),
        ((12_345.6, 2.25), ("12\u202f346", "2.25")),
        ((1e-6, 2.25), ("10⁻⁶", "2.25")),
    ],
)
def test_numbers_side_by_side_have_as_many_decimals(
    pair: tuple[float, float], words: tuple[str, str]
) -> None:
    assert wording.alike(*pair) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "< 10⁻⁶"), (9.9e-7, "< 10⁻⁶"), (1e-6, "10⁻⁶"), (0.034, "0.034"), (1.0, "1")],
)
def test_no_p_value_is_zero(value: float, words: str) -> None:
    assert wording.chance(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0066, "6.6 ms"),
        (0.42, "420 ms"),
        (1.5, "1.5 s"),
        (48, "48 s"),
        (60, "1 min"),
        (3 * 3600 + 300, "3 h 5 min"),
        (48 * 3600, "2 days"),
        (86_400 * 3 + 7200, "3 days 2 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert wording.duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-10, "just now"),
        (10, "in less than a minute"),
        (-3600, "1 hour ago"),
        (7300, "in 2 hours"),
        (3 * 86_400, "in 3 days"),
    ],
)
def test_distances_in_time(seconds: float, words: str) -> None:
    assert wording.from_now(made.NOW + seconds, made.NOW) == words


def test_moments_are_in_utc_for_people_and_machines() -> None:
    expected = datetime.fromtimestamp(made.NOW, UTC)
    assert wording.moment(made.NOW) == (
        f'<time datetime="{expected:%Y-%m-%dT%H:%M:%SZ}">21 Sep 2026, 14:13 UTC</time>'
    )


def test_a_symbol_that_begins_a_sentence_keeps_its_form() -> None:
    assert wording.sentence("ε of the phase is too large.") == "ε of the phase is too large"
    assert wording.sentence("too few phones") == "Too few phones"
