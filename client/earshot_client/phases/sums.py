"""A phone's secure sums in its store: the secrets of the current one, and a list of all begun.

An abandoned sum would leave private keys, shares and the phone's input in the store, exposed to a
later theft. So its secrets are kept for a limited time.
"""

from __future__ import annotations

from datetime import date, timedelta

from earshot_client.calendar import Calendar
from earshot_client.store.interface import Store
from earshot_protocol.errors import RefusedError
from earshot_protocol.rules import Rule

KEEP_DAYS = 30
"""Days without a message from the server after which a phone abandons a sum."""

_SECRETS, _SINCE = "sum", "sum since"
"""Names of the stored values: the sum under way, and the day of its newest round."""
_BEGUN, _REMEMBERED = "begun sums", 1024
"""Name of the stored value with the newest sums that were begun, and the number of these sums."""


class Sums:
    """The secure sums of one phone, in its store.

    Args:
        store: Store of the phone.
        calendar: Calendar of the present day.
    """

    def __init__(self, store: Store, calendar: Calendar) -> None:
        self._store = store
        self._calendar = calendar

    def begin(self, sum_id: bytes) -> None:
        """Note that this sum was begun.

        Raises:
            RefusedError: The sum was begun before, with this phone's keys.
        """
        begun = self._store.get(_BEGUN) or b""
        if sum_id in (begun[at : at + len(sum_id)] for at in range(0, len(begun), len(sum_id))):
            raise RefusedError("a secure sum begins only once; this one has begun", Rule.REPEATED)
        self._store.put(_BEGUN, (begun + sum_id)[-_REMEMBERED * len(sum_id) :])

    @property
    def secrets(self) -> bytes | None:
        """Secrets that the sum under way needs for its next round; None if there is none."""
        return self._store.get(_SECRETS)

    def keep(self, secrets: bytes) -> None:
        """Keep the secrets for the next round, from today on."""
        self._store.put(_SECRETS, secrets)
        self._wait_from(self._calendar.today())

    def forget(self) -> None:
        """Erase the secrets of the sum under way."""
        self._store.delete(_SECRETS)
        self._store.delete(_SINCE)

    @property
    def expired(self) -> bool:
        """Whether the secrets of the sum under way have been kept for long enough.

        A sum whose day is unknown or in the future (a clock was wrong) waits from today on.
        """
        if self.secrets is None:
            return False
        saved, today = self._store.get(_SINCE), self._calendar.today()
        since = None if saved is None else date.fromisoformat(saved.decode())
        if since is None or since > today:
            self._wait_from(today)
            return False
        return since + timedelta(days=KEEP_DAYS) <= today

    def _wait_from(self, day: date) -> None:
        self._store.put(_SINCE, day.isoformat().encode())
