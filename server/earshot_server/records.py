"""Records of phases for operators, the API and the dashboard, without secrets.

Times are seconds since 1970, on the database's clock.
"""

from __future__ import annotations

import enum

import msgspec

from earshot_protocol.messages import AnyEnding, AnyParameters

GATHERING = "gathering"
RUNNING = "running"
PUBLISHED = "published"
FAILED = "failed"
STOPPED = "stopped"
"""Stopped by an operator; for phones and the store, a failure with `STOPPED_REASON`."""

STOPPED_REASON = "stopped by an operator"
"""Reason sent to the phones of a stopped phase; no other phase ends with this text."""

RESTORED_REASON = "restored from a"
"""Beginning of the reason sent to phones of a phase that was under way in a restored copy."""

RESTORED = "restore server"
"""Action in the audit log of a server that was restored."""

MOST_TRIES = 12
"""Number of tries to move a phase on before it fails; they span about two and a half hours."""


class CampaignState(enum.StrEnum):
    """What drivers do with a campaign."""

    RUNNING = "running"
    PAUSED = "paused"
    """Nothing opens until an operator resumes it."""
    STOPPED = "stopped"


class StepRecord(msgspec.Struct, frozen=True):
    """One step in the history of a phase.

    Attributes:
        number: Number of the step within its phase, from 0.
        step: Name of the step.
        expected: Number of phones that had a task.
        answered: Number of phones that have answered.
        opened: Time at which the step began.
        closed: Time at which the next step began; None while this one is open.
    """

    number: int
    step: str
    expected: int
    answered: int
    opened: float
    closed: float | None


class Trouble(msgspec.Struct, frozen=True):
    """Trouble that keeps a driver from moving a phase on.

    Attributes:
        attempts: Number of tries to move the phase on.
        reason: Name of the error; the log has the details. Empty during a first try.
        next_try: Time of the next try.
    """

    attempts: int
    reason: str
    next_try: float


class AuditEntry(msgspec.Struct, frozen=True):
    """One entry of the audit log.

    Attributes:
        entry: Number of the entry; later entries have larger numbers, and numbers may be missing.
        at: Time of the action.
        operator: Name of the operator; `phone` for a phone that left by itself.
        action: Action, such as `start phase`.
        subject: Identifier or name that the action concerned.
        detail: Further details.
    """

    entry: int
    at: float
    operator: str
    action: str
    subject: str
    detail: str


class PhaseRecord(msgspec.Struct, frozen=True):
    """One phase, from its gathering to its ending.

    Attributes:
        phase: Identifier of the phase, 16 bytes.
        parameters: Parameters of the phase; `phones` is the number wanted, also after gathering.
        status: `GATHERING`, `RUNNING`, `PUBLISHED`, `FAILED` or `STOPPED`.
        created: Time at which the gathering began.
        finished: Time at which it was published, failed or was stopped; None before.
        wanted: Most phones that may join.
        least: Fewest phones that must have joined when the gathering ends.
        joined: Number of phones that have joined.
        gather_until: Time at which the gathering ends.
        step: Name of the present step; `GATHERING` before the first one.
        deadline: Time at which the present step ends; None if no step is open.
        steps: Steps so far, oldest first.
        ending: Ending that is sent to phones; None before the phase is over.
        trouble: Trouble that keeps the phase from moving on; None without any.
        name: Name of the phase for people; empty if it has none.
        cohorts: Cohorts whose phones the phase gathers; empty for all phones.
        refusals: Number of phones that reported a refusal, by rule.
        helper: Trouble with the helper of a sum by two operators; None without any.
    """

    phase: bytes
    parameters: AnyParameters
    status: str
    created: float
    finished: float | None
    wanted: int
    least: int
    joined: int
    gather_until: float
    step: str
    deadline: float | None
    steps: tuple[StepRecord, ...]
    ending: AnyEnding | None
    trouble: Trouble | None = None
    name: str = ""
    cohorts: tuple[str, ...] = ()
    refusals: dict[str, int] = {}
    helper: Trouble | None = None

    @property
    def least_answers(self) -> int:
        """Fewest phones that must answer every step: a share 1 − ρ of those that joined."""
        return msgspec.structs.replace(self.parameters, phones=self.joined).least_survivors


class InvitationState(enum.Enum):
    """What an invitation allows."""

    OPEN = "open"
    """Phones may enrol with it."""
    USED_UP = "used up"
    """It has enrolled as many phones as it has uses."""
    EXPIRED = "expired"
    REVOKED = "revoked"


class InvitationRecord(msgspec.Struct, frozen=True):
    """An invitation, without its code.

    Attributes:
        name: Name of the invitation.
        state: What it allows.
        uses: Most phones that it enrols.
        used: Phones that have enrolled with it, those included that have left since.
        cohort: Cohort of these phones; empty for none.
        made: Time at which it was signed.
        expires: End of its validity.
        revoked: Time at which it was revoked; None if it was not.
    """

    name: str
    state: InvitationState
    uses: int
    used: int
    cohort: str
    made: float
    expires: float
    revoked: float | None


class CohortRecord(msgspec.Struct, frozen=True):
    """Phones that enrolled with invitations for one cohort.

    Attributes:
        name: Name of the cohort; empty for phones that belong to none.
        phones: Number of enrolled phones.
        free: Number of these phones that are in no phase under way.
    """

    name: str
    phones: int
    free: int
