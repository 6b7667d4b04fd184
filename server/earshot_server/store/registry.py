"""Registry of phones, of gatherings and their members, and of leases on phases."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from psycopg import errors

from earshot_protocol.errors import InvalidInputError, RemoteError, UnexpectedMessageError
from earshot_protocol.messages import AnyParameters
from earshot_protocol.phases.kinds import KINDS
from earshot_protocol.phases.parameters import Choices, Parameters
from earshot_protocol.rules import Rule
from earshot_server.store.database import Database
from earshot_server.store.invitations import IssuedInvitations

_TOLD_TO_ALL = [
    str(kind.parameters.__struct_config__.tag) for kind in KINDS if kind.outcome.told_to_all
]
"""Kinds of phase whose results are sent to every phone."""

_STANDING = """
WITH mine AS (
    SELECT phase, index, g.position,
        failure IS NOT NULL OR coalesce(over, false) AS over,
        coalesce(finished, ended) AS finished
    FROM members m JOIN gatherings g USING (phase) LEFT JOIN phases USING (phase)
    WHERE phone = %(phone)s
), present AS (
    SELECT phase, index FROM mine WHERE NOT over ORDER BY position LIMIT 1
), known AS (
    SELECT coalesce(max(coalesce(finished, ended)), 0) AS finished
    FROM gatherings LEFT JOIN phases USING (phase) WHERE phase = ANY(%(known)s)
), newest AS (
    SELECT phase FROM phases JOIN gatherings USING (phase)
    WHERE kind = ANY(%(told_to_all)s) AND step = 'published' ORDER BY finished DESC LIMIT 1
)
SELECT
    (SELECT phase FROM present),
    (SELECT index FROM present),
    coalesce(
        (SELECT phase FROM mine JOIN known ON mine.finished > known.finished
            WHERE over ORDER BY mine.finished DESC LIMIT 1),
        (SELECT phase FROM newest WHERE phase <> ALL(%(known)s))
    ),
    (SELECT phase FROM gatherings
        WHERE ended IS NULL AND joined < wanted AND NOT EXISTS (SELECT FROM present)
        AND (cohorts = '{}' OR (SELECT cohort FROM phones WHERE phone = %(phone)s) = ANY(cohorts))
        ORDER BY position LIMIT 1)
"""

_REFUSE = """
WITH mine AS (
    SELECT failure IS NULL AND NOT coalesce(over, false) AS under_way
    FROM members JOIN gatherings USING (phase) LEFT JOIN phases USING (phase)
    WHERE phase = %(phase)s AND phone = %(phone)s
), first AS (
    UPDATE members SET refused = true
    WHERE phase = %(phase)s AND phone = %(phone)s AND NOT refused
    AND (SELECT under_way FROM mine) RETURNING true
), counted AS (
    INSERT INTO refusals AS r (phase, rule, phones) SELECT %(phase)s, %(rule)s, 1 FROM first
    ON CONFLICT (phase, rule) DO UPDATE SET phones = r.phones + 1
)
SELECT under_way FROM mine
"""


class InvitationUsedUpError(RemoteError):
    """The invitation has enrolled as many phones as it allows."""


class Gathering(NamedTuple):
    """Phase that phones may join, or that is about to begin with those that have.

    Attributes:
        phase: Identifier of the phase, 16 bytes.
        wanted: Most phones that may join.
        least: Fewest phones that must have joined when the gathering ends.
        until: End of the gathering in seconds since 1970, on the database's clock.
        joined: Number of phones that have joined.
        encoded: Parameters of the phase, encoded.
        encoded_choices: Choices that polls offer per label, encoded.
        ended: Whether the gathering is over and the phase about to begin.
    """

    phase: bytes
    wanted: int
    least: int
    until: float
    joined: int
    encoded: bytes
    encoded_choices: bytes
    ended: bool

    @property
    def choices(self) -> Choices:
        """Choices that polls offer, per label."""
        return msgspec.msgpack.decode(self.encoded_choices, type=Choices)

    @property
    def parameters(self) -> Parameters:
        """Parameters of the phase; `phones` is the number wanted.

        Raises:
            msgspec.DecodeError: Another version of this software wrote them.
        """
        return msgspec.msgpack.decode(self.encoded, type=AnyParameters)


class PhoneStanding(NamedTuple):
    """Present state of one phone.

    Attributes:
        member: (phase, index) of the phase it is in, gathering or running; None if it is in none.
        news: Phase that is over, whose ending is to be sent to the phone: its own newest one, if
            that ended after all that it knows, or else the newest published result, if unknown to
            it. It stays news until the phone lists it as known, since a response may be lost.
        gathering: Oldest phase with room for phones of its cohort, if the phone is in no phase.
    """

    member: tuple[bytes, int] | None
    news: bytes | None
    gathering: bytes | None


class Registry:
    """Registry of phones, gatherings and leases in a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database that keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._invitations = IssuedInvitations(database)

    # ----------------------------------------------------------------------------- phones

    def enrol(
        self,
        public_key: bytes,
        invitation: bytes,
        uses: int,
        cohort: str = "",
        *,
        listed: bool = False,
    ) -> int:
        """Enrol a phone under its Ed25519 key, and return its number.

        The same key is the same phone, which stays in the cohort with which it first enrolled.

        Args:
            public_key: Key of the phone, 32 bytes.
            invitation: Identifier of the invitation, or of another attestation.
            uses: Most phones that it enrols.
            cohort: Cohort of the phone; empty for none.
            listed: Whether the invitation must be listed, and not revoked.

        Raises:
            InvitationUsedUpError: The invitation has enrolled as many phones as it has `uses`.
            InvitationError: The invitation must be listed, and is revoked or not listed.
        """
        rows = _again_if_raced(
            lambda: self._database.query(
                "WITH known AS (SELECT phone FROM phones WHERE public_key = %(key)s),"
                " allowed AS (INSERT INTO invitations AS i (invitation, used)"
                "  SELECT %(invitation)s, 1 WHERE %(uses)s > 0 AND NOT EXISTS (SELECT FROM known)"
                "  AND (NOT %(listed)s OR EXISTS (SELECT FROM invitation_codes"
                "   WHERE invitation = %(invitation)s AND revoked IS NULL))"
                "  ON CONFLICT (invitation) DO UPDATE SET used = i.used + 1"
                "  WHERE i.used < %(uses)s RETURNING invitation),"
                " enrolled AS (INSERT INTO phones (public_key, invitation, cohort)"
                "  SELECT %(key)s, invitation, %(cohort)s FROM allowed RETURNING phone)"
                " SELECT phone FROM known UNION ALL SELECT phone FROM enrolled",
                {
                    "key": public_key,
                    "invitation": invitation,
                    "uses": uses,
                    "cohort": cohort,
                    "listed": listed,
                },
            )
        )
        if not rows and listed:
            self._invitations.check(invitation)
        if not rows:
            raise InvitationUsedUpError(
                f"{uses} phones have enrolled with this invitation, and no more may: "
                "ask for another one"
            )
        return int(rows[0][0])

    def public_key(self, phone: int) -> bytes | None:
        """Return the phone's Ed25519 key, 32 bytes; None if there is no such phone."""
        rows = self._database.query("SELECT public_key FROM phones WHERE phone = %s", (phone,))
        return rows[0][0] if rows else None

    def standing(self, phone: int, known: tuple[bytes, ...] = ()) -> PhoneStanding:
        """Return the present state of a phone, by a single query.

        Args:
            phone: Number of the phone.
            known: Phases whose endings the phone reports to know.
        """
        phase, index, *others = self._database.query(
            _STANDING, {"phone": phone, "known": list(known), "told_to_all": _TOLD_TO_ALL}
        )[0]
        return PhoneStanding(None if phase is None else (phase, index), *others)

    # ------------------------------------------------------------------------- gatherings

    def gather(
        self,
        phase: bytes,
        parameters: Parameters,
        least: int,
        until: float,
        *,
        name: str = "",
        cohorts: tuple[str, ...] = (),
        choices: Choices = (),
    ) -> None:
        """Let phones join a new phase for `parameters.phones` phones (see `Gathering`).

        Args:
            phase: Identifier of the phase.
            parameters: Parameters of the phase.
            least: Fewest phones that must have joined when the gathering ends.
            until: End of the gathering, in seconds since 1970 on the database's clock.
            name: Name of the phase for people.
            cohorts: Cohorts whose phones may join; empty for all.
            choices: Choices that polls offer, per label.

        Raises:
            InvalidInputError: The phase exists.
        """
        encoded = msgspec.msgpack.encode(parameters)
        try:
            self._database.query(
                "INSERT INTO gatherings"
                " (phase, parameters, kind, wanted, least, until, name, cohorts, choices)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    *(phase, encoded, parameters.kind, parameters.phones, least, until),
                    *(name, list(cohorts), msgspec.msgpack.encode(choices)),
                ),
            )
        except errors.UniqueViolation as error:
            raise InvalidInputError(f"phase {phase.hex()} exists already") from error

    def gatherings(self) -> tuple[Gathering, ...]:
        """Return gatherings whose phase has neither begun nor failed, oldest first.

        Phones may still join some of them.
        """
        rows = self._database.query(
            "SELECT phase, wanted, least, until, joined, parameters, choices, ended IS NOT NULL"
            " FROM gatherings g"
            " WHERE failure IS NULL AND NOT EXISTS (SELECT FROM phases p WHERE p.phase = g.phase)"
            " ORDER BY position"
        )
        return tuple(Gathering(*row) for row in rows)

    def join(self, phase: bytes, phone: int) -> int | None:
        """Let the phone join; repeating it changes nothing.

        Returns:
            The phone's index, counted from 0 in order of joining; None if none can join any more.
        """
        rows = _again_if_raced(
            lambda: self._database.query(
                "WITH present AS (SELECT index FROM members"
                "  WHERE phase = %(phase)s AND phone = %(phone)s),"
                " joining AS (UPDATE gatherings SET joined = joined + 1 WHERE phase = %(phase)s"
                "  AND ended IS NULL AND joined < wanted AND NOT EXISTS (SELECT FROM present)"
                "  AND (cohorts = '{}' OR (SELECT cohort FROM phones WHERE phone = %(phone)s)"
                "   = ANY(cohorts))"
                "  RETURNING joined - 1 AS index),"
                " joined AS (INSERT INTO members (phase, phone, index)"
                "  SELECT %(phase)s, %(phone)s, index FROM joining RETURNING index)"
                " SELECT index FROM present UNION ALL SELECT index FROM joined",
                {"phase": phase, "phone": phone},
            )
        )
        # The same phone may have taken the last place concurrently: then it is a member now.
        rows = rows or self._database.query(
            "SELECT index FROM members WHERE phase = %s AND phone = %s", (phase, phone)
        )
        return int(rows[0][0]) if rows else None

    def end_gathering(self, phase: bytes, failure: str | None = None) -> int:
        """End a gathering, so that no more phones may join; repeating it changes nothing.

        Args:
            phase: Identifier of the phase.
            failure: Reason why the phase fails; ignored if the phase has begun. None to let it
                begin.

        Returns:
            Number of phones that have joined.

        Raises:
            InvalidInputError: There is no such phase.
        """
        rows = self._database.query(
            "UPDATE gatherings g SET ended = coalesce(ended, seconds_now()),"
            " failure = CASE WHEN EXISTS (SELECT FROM phases p WHERE p.phase = g.phase)"
            "  THEN failure ELSE coalesce(failure, %s) END"
            " WHERE phase = %s RETURNING joined",
            (failure, phase),
        )
        if not rows:
            raise InvalidInputError(f"no phase {phase.hex()}")
        return int(rows[0][0])

    def stop(self, phase: bytes, reason: str) -> bool:
        """Stop a phase or its gathering, unless it is over; a driver later deletes its snapshot.

        Returns:
            Whether it was under way.
        """
        with self._database.transaction() as connection:
            # A driver that opens a step or publishes also holds this lock, so the next statement
            # sees its changes.
            connection.execute("SELECT FROM gatherings WHERE phase = %s FOR UPDATE", (phase,))
            stopped = connection.execute(
                "UPDATE gatherings g SET ended = seconds_now(), failure = %s"
                " WHERE phase = %s AND failure IS NULL AND NOT EXISTS"
                "  (SELECT FROM phases p WHERE p.phase = g.phase AND over)",
                (reason, phase),
            )
        return stopped.rowcount > 0

    def stopped(self) -> tuple[tuple[bytes, str], ...]:
        """Return the stopped phases that a driver has not ended yet, each with the reason."""
        return tuple(
            self._database.query(
                "SELECT phase, failure FROM gatherings JOIN phases USING (phase)"
                " WHERE failure IS NOT NULL AND NOT over ORDER BY phases.position"
            )
        )

    def refuse(self, phase: bytes, phone: int, rule: Rule) -> None:
        """Count one more phone that refuses the phase by this rule; each phone counts once.

        Raises:
            UnexpectedMessageError: The phone is not in this phase, or the phase is over.
        """
        rows = self._database.query(_REFUSE, {"phase": phase, "phone": phone, "rule": rule.value})
        if not rows or not rows[0][0]:
            raise UnexpectedMessageError("this phone is not in the phase that it refuses")

    # ------------------------------------------------------------------ leases and the past

    def lease(self, phase: bytes, owner: str, seconds: float) -> bool:
        """Take or renew the lease of a phase for this many seconds; return whether it succeeded.

        It fails while another owner holds the lease; the owner's name must be unique.
        """
        return bool(
            self._database.query(
                "INSERT INTO leases AS l VALUES (%s, %s, seconds_now() + %s)"
                " ON CONFLICT (phase) DO UPDATE"
                " SET owner = excluded.owner, expires = excluded.expires"
                " WHERE l.owner = excluded.owner OR l.expires < seconds_now() RETURNING true",
                (phase, owner, seconds),
            )
        )

    def renew(self, phase: bytes, owner: str, seconds: float) -> bool:
        """Extend a lease to this many seconds from now; return whether the owner still holds it."""
        return bool(
            self._database.query(
                "UPDATE leases SET expires = seconds_now() + %s WHERE phase = %s AND owner = %s"
                " RETURNING true",
                (seconds, phase, owner),
            )
        )

    def release(self, phase: bytes, owner: str) -> None:
        """Release the lease, if the owner holds it."""
        self._database.query("DELETE FROM leases WHERE phase = %s AND owner = %s", (phase, owner))

    def purge(self, before: float) -> int:
        """Delete members and snapshots of phases that ended before a time; return their number.

        Leases that expired before it are deleted, too; endings and the history of steps are kept.
        """
        rows = self._database.query(
            "WITH past AS (SELECT phase FROM phases WHERE over AND finished < %(before)s UNION"
            "  SELECT phase FROM gatherings WHERE failure IS NOT NULL AND ended < %(before)s),"
            " gone AS (DELETE FROM members USING past WHERE members.phase = past.phase"
            "  RETURNING members.phase),"
            " emptied AS (DELETE FROM snapshots USING past WHERE snapshots.phase = past.phase"
            "  RETURNING snapshots.phase),"
            " expired AS (DELETE FROM leases WHERE expires < %(before)s)"
            " SELECT count(*) FROM"
            "  (SELECT phase FROM gone UNION SELECT phase FROM emptied) AS purged",
            {"before": before},
        )
        return int(rows[0][0])


def _again_if_raced(query: Callable[[], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Run a query, again if another process concurrently did the same for the phone.

    There are no rows if the phone is erased concurrently.
    """
    with suppress(errors.UniqueViolation):
        return _none_if_erased(query)
    return _none_if_erased(query)


def _none_if_erased(query: Callable[[], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    try:
        return query()
    except errors.ForeignKeyViolation:
        return []
