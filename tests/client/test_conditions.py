from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_client.visits.conditions import AllOf, Hours, Postponed, When
from earshot_protocol.errors import InvalidInputError

NOON = datetime(2026, 3, 1, 12, 0, 0)


@given(
    start=st.integers(0, 23),
    length=st.integers(1, 23),
    now=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
)
def test_hours_hold_exactly_within_them_and_the_pause_ends_as_they_begin(
    start: int, length: int, now: datetime
) -> None:
    hours = Hours(start, (start + length) % 24)
    open_hours = {(start + step) % 24 for step in range(length)}
    postponed = hours.check(now)
    assert (postponed is None) == (now.hour in open_hours)
    if postponed is not None:
        opens = now + timedelta(seconds=postponed.seconds)
        assert 0 < postponed.seconds <= 86_400
        assert (opens.hour, opens.minute, opens.second, opens.microsecond) == (start, 0, 0, 0)
        assert hours.check(opens) is None
        between = [now + (opens - now) * part / 50 for part in range(50)]
        assert all(hours.check(each) is not None for each in between)


def test_a_whole_day_and_the_hour_24() -> None:
    assert all(Hours(0, 24).check(NOON.replace(hour=hour)) is None for hour in range(24))
    assert Hours(20, 24).check(NOON) == Postponed("outside 20-24 h", 8 * 3600.0)
    assert Hours(20, 24).check(NOON.replace(hour=23)) is None


@pytest.mark.parametrize(
    ("text", "hours"), [("22-6", (22, 6)), (" 0-24 ", (0, 24)), ("09-17", (9, 17))]
)
def test_hours_are_read_as_people_write_them(text: str, hours: tuple[int, int]) -> None:
    assert Hours.parse(text) == Hours(*hours)


@pytest.mark.parametrize(
    "text", ["", "22", "22-", "6-6", "24-6", "1-25", "-1-5", "a-b", "٣-٤", "1-2-3"]
)
def test_other_hours_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match="22-6"):
        Hours.parse(text)


def test_the_app_tells_what_only_it_knows() -> None:
    state = {"charging": False}
    condition = When(lambda: state["charging"], "not charging", 60.0)
    assert condition.check(NOON) == Postponed("not charging", 60.0)
    state["charging"] = True
    assert condition.check(NOON) is None


def test_several_conditions_hold_together_or_not_at_all() -> None:
    assert AllOf().check(NOON) is None
    charging = When(lambda: True, "not charging")
    wifi = When(lambda: False, "no Wi-Fi", 300.0)
    night = Hours(22, 6)
    assert AllOf(charging).check(NOON) is None
    assert AllOf(charging, wifi).check(NOON) == Postponed("no Wi-Fi", 300.0)
    both = AllOf(AllOf(wifi, charging), night).check(NOON)
    assert both == Postponed("no Wi-Fi, outside 22-6 h", 10 * 3600.0)
    assert AllOf(charging, night).check(NOON.replace(hour=23)) is None
