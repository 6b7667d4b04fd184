"""Formatting of numbers, times and untrusted text for people, in the page's language."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta

from markupsafe import Markup

from earshot_protocol.privacy.significance import LEVEL
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import ngettext, noted

NOTHING = "–"
UNNAMED = noted("unnamed")
"""Name of an environment whose label may be noise."""
UNKNOWN = noted("unknown")
"""Name of a sound or cell with no prototype near it."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_RESOLUTION = 1e-6
"""Smallest p-value that is shown as a number: laws err by up to 10⁻¹², times the number of counts
that were looked at."""
_DISTANCES = (
    (
        86_400,
        (noted("in %(number)s day"), noted("in %(number)s days")),
        (noted("%(number)s day ago"), noted("%(number)s days ago")),
    ),
    (
        3600,
        (noted("in %(number)s hour"), noted("in %(number)s hours")),
        (noted("%(number)s hour ago"), noted("%(number)s hours ago")),
    ),
    (
        60,
        (noted("in %(number)s minute"), noted("in %(number)s minutes")),
        (noted("%(number)s minute ago"), noted("%(number)s minutes ago")),
    ),
)
"""Each unit of time: its length in seconds, and texts for the future and the past."""
_MONTHS = (
    *(noted("Jan"), noted("Feb"), noted("Mar"), noted("Apr"), noted("May"), noted("Jun")),
    *(noted("Jul"), noted("Aug"), noted("Sep"), noted("Oct"), noted("Nov"), noted("Dec")),
)


def printable(text: str) -> str:
    """Replace control characters and changes of the reading direction by U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Cn") else letter
        for letter in text
    )


def as_text(value: object, printable: Callable[[str], str] = printable) -> object:
    """Make a template's value printable; markup stays as it is."""
    text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(str(value)) if text else value


def sentence(text: str) -> str:
    """Return printable text with a capital first letter and without a final full stop."""
    text = printable(text).strip().removesuffix(".")
    symbol = text[:1] in ("ε", "δ")  # whose capitals look like other letters
    return text if symbol else text[:1].upper() + text[1:]


def whole(value: float) -> str:
    """Return a rounded count with thousands separated."""
    sign = "−" if round(value) < 0 else ""
    return sign + f"{abs(round(value)):,}".replace(",", "\u202f")


def votes(value: float) -> str:
    """Return a sum of votes; small fractional ones to a tenth."""
    if isinstance(value, int) or abs(value) >= 99.95:
        return whole(value)
    return f"{'' if round(value, 1) >= 0 else '−'}{_decimal(f'{abs(value):.1f}')}"


def signed(value: float) -> str:
    """Return a change of a count, with its sign."""
    return whole(value) if round(value) <= 0 else f"+{whole(value)}"


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as "1 phone" or "3 phones", as the subject of a sentence."""
    one = f"%(number)s {noun}"
    return ngettext(one, f"{one}s", number, number=whole(number))


def listed(names: Sequence[str]) -> str:
    """Return printable names in a row, such as "a, b and c"; at least one."""
    shown = [printable(name) for name in names]
    if len(shown) == 1:
        return shown[0]
    return _("%(first)s and %(last)s", first=", ".join(shown[:-1]), last=shown[-1])


def byte_size(value: float) -> str:
    """Return a number of bytes to three digits, with its unit."""
    units = ["TB", "GB", "MB", "kB", _("bytes")]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop()
    return f"{_decimal(f'{value:.3g}')} {units[-1]}"


def real(value: float) -> str:
    """Return a positive number to three digits, or in full from 1000 on.

    Numbers below 0.001, and from 100,000 on, are powers of ten with two digits.
    """
    if value == math.inf:
        return "∞"
    if value == 0 or 1e-3 <= value < 1e5:
        return _decimal(f"{value:.3g}") if value < 999.5 else whole(value)
    digits, exponent = f"{value:.1e}".split("e")
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    digits = digits.removesuffix(".0")
    return power if digits == "1" else f"{_decimal(digits)} · {power}"


def _decimal(digits: str) -> str:
    """Return digits with the decimal mark of the page's language."""
    return digits.replace(".", _("."))


def alike(first: float, second: float) -> tuple[str, str]:
    """Format two positive numbers with the same number of decimals, to stand side by side."""
    said = real(first), real(second)
    if not all(1e-3 <= each < 99.95 for each in (first, second)):
        return said
    decimals = max(len(each.partition(_("."))[2]) for each in said)
    return _decimal(f"{first:.{decimals}f}"), _decimal(f"{second:.{decimals}f}")


def chance(p_value: float) -> str:
    """Return a p-value to three digits; it is never 0, only smaller than can be computed."""
    return f"< {real(_RESOLUTION)}" if p_value < _RESOLUTION else real(p_value)


def doubt(p_value: float) -> str:
    """Return why a published number may be noise; empty if it is clear of the noise."""
    return _("may be noise: p = %(chance)s", chance=chance(p_value)) if p_value > LEVEL else ""


def percent(value: float) -> str:
    """Return a fraction as a percentage, without decimals."""
    return _("%(number)s %%", number=round(100 * value))


def duration(seconds: float) -> str:
    """Return a duration in its one or two largest units."""
    if seconds < 0.995:
        digits = f"{1000 * seconds:.2g}" if seconds < 0.0995 else f"{1000 * seconds:.0f}"
        return f"{_decimal(digits)} ms"
    if seconds < 59.5:
        digits = f"{seconds:.2g}" if seconds < 9.95 else f"{seconds:.0f}"
        return f"{_decimal(digits)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    if hours:
        return _("%(days)s days %(hours)s h", days=days, hours=hours)
    return _("%(days)s days", days=days)


def moment(seconds: float) -> Markup:
    """Return a time in UTC, to the minute, as an HTML `time` element."""
    return _time(seconds, instant(seconds))


def instant(seconds: float) -> str:
    """Return a time in UTC, to the minute, as text."""
    then = _utc(seconds)
    return f"{_date(then)}, {then:%H:%M} UTC"


def day(seconds: float) -> Markup:
    """Return the day of a time in UTC, as an HTML `time` element."""
    return _time(seconds, _date(_utc(seconds)))


def hour(seconds: float) -> str:
    """Return the time of day in UTC, to the minute."""
    return f"{_utc(seconds):%H:%M} UTC"


def on_axis(seconds: float, span: float) -> Markup:
    """Return a time in UTC, only as exact as an axis of `span` seconds needs.

    It has its time of day if the span is less than two days, and no year if less than a year.
    """
    then = _utc(seconds)
    if span < 2 * 86_400:
        return _time(seconds, f"{_day_and_month(then)}, {then:%H:%M}")
    return _time(seconds, _day_and_month(then) if span < 365 * 86_400 else _date(then))


def _time(seconds: float, words: str) -> Markup:
    then = _utc(seconds)
    return Markup('<time datetime="{}">{}</time>').format(f"{then:%Y-%m-%dT%H:%M:%SZ}", words)


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def window(since: date | None, until: date | None) -> str:
    """Return the days from `since` to the one before `until`, such as "1 Jan to 7 Jan 2026"."""
    if since is None or until is None:
        return ""
    last = until - timedelta(days=1)
    if since == last:
        return _date(last)
    first = _day_and_month(since) if since.year == last.year else _date(since)
    return _("%(first)s to %(last)s", first=first, last=_date(last))


def _date(day: date) -> str:
    month = _(_MONTHS[day.month - 1])
    return _("%(day)s %(month)s %(year)s", day=day.day, month=month, year=day.year)


def _day_and_month(day: date) -> str:
    return _("%(day)s %(month)s", day=day.day, month=_(_MONTHS[day.month - 1]))


def since(seconds: float, now: float) -> str:
    """Return "since", a time in UTC, and how long ago it was."""
    ago = from_now(seconds, now)
    return _("since %(moment)s (%(ago)s)", moment=instant(seconds), ago=ago)


def from_now(seconds: float, now: float) -> str:
    """Return how far a time lies in the past or the future, such as "3 hours ago"."""
    ahead, distance = seconds > now, abs(seconds - now)
    for size, to_come, past in _DISTANCES:
        if distance >= size:
            number = round(distance / size)
            return ngettext(*(to_come if ahead else past), number, number=whole(number))
    return _("in less than a minute") if ahead else _("just now")
