"""Expiry of recordings after the configured number of days."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from earshot_client.store.interface import Store

KEEP_DAYS = 28
"""Default number of days for which an app's recordings are kept: twice what exposure notification
keeps of a contact, so that a phase finds some."""

_UNDATED = "undated since"
"""Name of the stored value with the day on which recordings without a day were first met."""


def forget_expired(store: Store, keep_days: int, today: date) -> None:
    """Forget every recording that is at least `keep_days` days old.

    A recording without a day, or with a future one (a clock was wrong), counts as made on the day
    on which this function first met one.

    Args:
        store: Store of the phone.
        keep_days: Age in days at which a recording is forgotten.
        today: Present day, in UTC.
    """
    made = {each.number: each.day for each in store.descriptions()}
    undated = [number for number, day in made.items() if day is None or day > today]
    last = today - timedelta(days=keep_days)
    expired = [number for number in made.keys() - undated if (made[number] or today) <= last]
    since = _since(store)
    if undated and since is not None and since <= last:
        expired += undated
        undated = []
    if not expired and bool(undated) == (since is not None):
        return
    with store.transaction():
        for number in expired:
            store.forget(number)
        if not undated:
            store.delete(_UNDATED)
        elif since is None:
            store.put(_UNDATED, today.isoformat().encode())


def _since(store: Store) -> date | None:
    saved = store.get(_UNDATED)
    return None if saved is None else date.fromisoformat(saved.decode())
