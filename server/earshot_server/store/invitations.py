"""List of the invitations that operators had signed; codes themselves are not kept."""

from __future__ import annotations

from psycopg import errors

from earshot_protocol.api import Invitation
from earshot_protocol.errors import RemoteError
from earshot_server.attestation import InvitationError
from earshot_server.records import InvitationRecord, InvitationState
from earshot_server.store.database import Database


class UnknownInvitationError(RemoteError):
    """No invitation has this name."""


class InvitationNameError(RemoteError):
    """Another invitation has this name."""


class InvitationOverError(RemoteError):
    """The invitation is revoked, expired or used up, so that it admits no phone."""


class IssuedInvitations:
    """List of invitations in a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database that keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, invitation: bytes, issued: Invitation) -> None:
        """List an invitation.

        Args:
            invitation: Identifier of the invitation, 16 bytes.
            issued: The invitation, of which the code is not kept.

        Raises:
            InvitationNameError: The name is taken.
        """
        try:
            self._database.query(
                "INSERT INTO invitation_codes (invitation, name, uses, cohort, expires)"
                " VALUES (%s, %s, %s, %s, %s)",
                (invitation, issued.name, issued.uses, issued.cohort, issued.expires),
            )
        except errors.UniqueViolation as error:
            raise InvitationNameError(
                f"there is an invitation '{issued.name}': choose another name"
            ) from error

    def all(self) -> tuple[InvitationRecord, ...]:
        """Return the newest thousand invitations, newest first."""
        return self._read()

    def named(self, name: str) -> InvitationRecord:
        """Return an invitation.

        Raises:
            UnknownInvitationError: No invitation has this name.
        """
        for found in self._read(name):
            return found
        raise UnknownInvitationError(f"there is no invitation '{name}'")

    def revoke(self, name: str) -> None:
        """Revoke an invitation: no phone enrols with it from now on; those that have, stay.

        Raises:
            UnknownInvitationError: No invitation has this name.
            InvitationOverError: It is revoked, expired or used up already.
        """
        state = self.named(name).state
        if state is InvitationState.OPEN and not self._database.query(
            "UPDATE invitation_codes SET revoked = seconds_now()"
            " WHERE name = %s AND revoked IS NULL RETURNING true",
            (name,),
        ):
            state = InvitationState.REVOKED  # by another request, since it was read
        elif state is InvitationState.OPEN:
            return
        raise InvitationOverError(f"the invitation '{name}' is {state.value} already")

    def check(self, invitation: bytes) -> None:
        """Refuse an invitation by which no phone may enrol, however many have.

        Args:
            invitation: Identifier of the invitation, 16 bytes.

        Raises:
            InvitationError: It is revoked, or not listed.
        """
        rows = self._database.query(
            "SELECT revoked IS NOT NULL FROM invitation_codes WHERE invitation = %s", (invitation,)
        )
        if not rows:
            raise InvitationError("this server has no record of this invitation: ask for a new one")
        if rows[0][0]:
            raise InvitationError("this invitation was revoked: ask for a new one")

    def _read(self, name: str | None = None) -> tuple[InvitationRecord, ...]:
        rows = self._database.query(
            "SELECT name, CASE WHEN revoked IS NOT NULL THEN 'revoked'"
            "  WHEN coalesce(used, 0) >= uses THEN 'used up'"
            "  WHEN expires <= seconds_now() THEN 'expired' ELSE 'open' END,"
            " uses, coalesce(used, 0), cohort, made, expires, revoked"
            " FROM invitation_codes LEFT JOIN invitations USING (invitation)"
            " WHERE %(name)s::text IS NULL OR name = %(name)s"
            " ORDER BY made DESC, name LIMIT 1000",
            {"name": name},
        )
        return tuple(
            InvitationRecord(name, InvitationState(state), *rest) for name, state, *rest in rows
        )
