"""Leaders that a helper serves, each with its own policy, and counts of refused requests."""

from __future__ import annotations

from earshot_server.helper.database import HelperDatabase
from earshot_server.helper.helper import HelperPolicy


class Leaders:
    """Allow list of a helper; methods raise the errors of `HelperDatabase`.

    Args:
        database: Database of the helper.
    """

    def __init__(self, database: HelperDatabase) -> None:
        self._database = database

    def allow(self, policy: HelperPolicy) -> None:
        """Allow the leaders of a policy, or replace their policies."""
        for leader in policy.leaders:
            self._database.change(
                "INSERT OR REPLACE INTO leaders VALUES (?, ?, ?, ?, ?, ?)",
                leader,
                policy.least_reports,
                policy.least_noise,
                policy.largest_window,
                policy.offers_a_day,
                policy.largest_crowd,
            )

    def forbid(self, leader: bytes) -> bool:
        """Stop serving a leader, including its open sums; return whether it was served."""
        return self._database.change("DELETE FROM leaders WHERE identity = ?", leader) > 0

    def policies(self) -> list[HelperPolicy]:
        """Return the policy of each leader."""
        rows = self._database.rows(
            "SELECT identity, least_reports, least_noise, largest_window, offers_a_day,"
            " largest_crowd FROM leaders ORDER BY identity"
        )
        return [
            HelperPolicy(
                frozenset({leader}),
                least_reports=reports,
                least_noise=noise,
                largest_window=window,
                offers_a_day=offers,
                largest_crowd=crowd,
            )
            for leader, reports, noise, window, offers, crowd in rows
        ]

    def policy(self, leader: bytes) -> HelperPolicy | None:
        """Return the policy of a leader; None if it is not served."""
        return next((each for each in self.policies() if leader in each.leaders), None)

    def count_refusal(self, name: str) -> None:
        """Count a refused request of a leader, by the reason's name."""
        self._database.change(
            "INSERT INTO refusals VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1", name
        )

    def refusals(self) -> dict[str, int]:
        """Return how many requests were refused, by the reason's name."""
        return dict(self._database.rows("SELECT name, count FROM refusals ORDER BY name"))
