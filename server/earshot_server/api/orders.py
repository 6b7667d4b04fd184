"""Orders of operators, by API or dashboard: invite phones and revoke; start and stop phases.

Campaigns are started, stopped and resumed likewise.

An order that changes the database and its audit log entry are one transaction.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import msgspec

from earshot_protocol.api import Invitation, Invite, StartPhase
from earshot_protocol.errors import InvalidParametersError, UnexpectedMessageError
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.api.authentication import present_operator
from earshot_server.api.problems import UnknownPhaseError
from earshot_server.api.views import (
    CampaignExport,
    CampaignView,
    CampaignViews,
    DamagedCampaign,
    NewOperator,
    OperatorToken,
    PhaseView,
    StartCampaign,
    Stopped,
    TwoOperators,
)
from earshot_server.attestation import InvitationCodes
from earshot_server.campaigns.admission import CampaignAdmission
from earshot_server.campaigns.conduct import CampaignConductor, StartedCampaign
from earshot_server.campaigns.plan import Planning
from earshot_server.campaigns.schedule import midnight
from earshot_server.credentials import Credentials
from earshot_server.phases.forecast import check_possible, refusals
from earshot_server.records import GATHERING, STOPPED_REASON, CampaignState, PhaseRecord
from earshot_server.store.archive import Archive
from earshot_server.store.campaigns import CampaignRows
from earshot_server.store.database import Database
from earshot_server.store.invitations import IssuedInvitations
from earshot_server.store.operators import Accounts
from earshot_server.store.registry import Registry


class Orders:
    """Orders that the operator of the present request may give; the caller checks the role.

    Args:
        database: Database that keeps everything.
        credentials: Credentials of the server.
        helper: Public key of the helper of sums by two operators, in hexadecimal; empty without
            one.
    """

    def __init__(self, database: Database, credentials: Credentials, helper: str = "") -> None:
        self.archive = Archive(database)
        self.invitations = IssuedInvitations(database)
        self._database = database
        self._registry = Registry(database)
        self._campaigns = CampaignRows(database)
        self._conductor = CampaignConductor(database)
        self.accounts = Accounts(database)
        self._credentials = credentials
        leader = credentials.leader if helper else ""
        self.two_operators = TwoOperators(leader=leader, helper=helper)

    def invite(self, invite: Invite) -> Invitation:
        """Sign an invitation code.

        Raises:
            InvitationNameError: Another invitation has the name.
        """
        codes = InvitationCodes(self._credentials.invitation_key)
        issued = codes.issue(invite, time.time())
        invitation = codes.check(issued.code, b"", 0.0).invitation  # however soon it expires
        with self._database.transaction():
            self.invitations.add(invitation, issued)
            self._record("invite", issued.name, f"{invite.uses} uses, {invite.days:g} days")
        return issued

    def revoke(self, name: str) -> None:
        """Revoke an invitation.

        Raises:
            UnknownInvitationError: No invitation has this name.
            InvitationOverError: It is revoked, expired or used up already.
        """
        with self._database.transaction():
            self.invitations.revoke(name)
            self._record("revoke invitation", name)

    def add_operator(self, new: NewOperator) -> OperatorToken:
        """Add an operator, and return the token, which is kept nowhere.

        Raises:
            OperatorNameError: The name is taken.
        """
        with self._database.transaction():
            token = self.accounts.add(new.name, new.role)
            self._record("add operator", new.name, new.role.value)
        return OperatorToken(name=new.name, token=token)

    def remove_operator(self, name: str) -> None:
        """Remove an operator, whose token is void from now on.

        Raises:
            UnknownOperatorError: There is no such operator.
            OperatorNameError: The operator is the one whose token is in the data folder.
        """
        with self._database.transaction():
            self.accounts.remove(name)
            self._record("remove operator", name)

    def rotate(self, name: str, marked: str | None = None) -> OperatorToken:
        """Give an operator a new token in place of the old one.

        Args:
            name: Name of the operator.
            marked: Mark of the old token (`Accounts.mark`); None for any.

        Raises:
            UnknownOperatorError: There is no such operator.
            OperatorNameError: The operator is the one whose token is in the data folder.
            TokenReplacedError: The operator's token has another mark.
        """
        with self._database.transaction():
            token = self.accounts.rotate(name, marked)
            self._record("rotate token", name)
        return OperatorToken(name=name, token=token)

    def start(self, wanted: StartPhase, phase: bytes | None = None) -> bytes:
        """Start a phase: it gathers phones, then the driver runs it.

        Args:
            wanted: Description of the phase.
            phase: Identifier of the phase, 16 bytes; by default random.

        Returns:
            The phase's identifier.

        Raises:
            InvalidParametersError: No such phase can run, or default phones would refuse it and
                `wanted.anyway` is false.
        """
        check_possible(wanted)
        self.check_helper(wanted)
        objections = [] if wanted.anyway else self.objections(wanted)
        if objections:
            raise InvalidParametersError(
                f"default phones do not take part: {'; '.join(objections)}. If yours do, start it "
                "all the same: --anyway on the command line, in a request the field anyway set to "
                "true"
            )
        least = wanted.least()
        parameters = wanted.agreed()
        phase = os.urandom(16) if phase is None else phase
        until = self._database.now() + wanted.gather_seconds
        with self._database.transaction():
            self._registry.gather(
                phase,
                parameters,
                least,
                until,
                name=wanted.name,
                cohorts=wanted.cohorts,
                choices=wanted.choices,
            )
            self._record(
                "start phase",
                phase.hex(),
                f"{wanted.parameters.kind}, {wanted.parameters.phones} phones",
            )
        return phase

    def check_helper(self, wanted: StartPhase) -> None:
        """Check that the server has a helper if the phase needs one.

        Raises:
            InvalidParametersError: The phase is by two operators, and the server has no helper.
        """
        summation = wanted.parameters.summation
        if summation.by_operators and not self.two_operators.helper:
            raise InvalidParametersError(
                f"summation={summation}: this server has no helper; start it with --helper and "
                f"--helper-key, or start the phase with summation={SummationName.BELL}"
            )

    def objections(self, wanted: StartPhase) -> list[str]:
        """Return the reasons why default phones refuse the phase, or cannot join it."""
        reasons = [refusal.reason for refusal in refusals(wanted)]
        known = {cohort.name for cohort in self.archive.cohorts()}
        return reasons + [
            f"cohort {name} has no phones; those that have: {', '.join(sorted(known - {''}))}"
            for name in wanted.cohorts
            if name not in known
        ]

    def begin(self, phase: bytes) -> PhaseView:
        """Begin a phase with the phones that have joined, before its gathering is over.

        Args:
            phase: Identifier of the phase.

        Raises:
            UnknownPhaseError: There is no such phase.
            UnexpectedMessageError: The phase does not gather phones, or too few have joined.
        """
        record = self.known(phase)
        if record.status != GATHERING:
            raise UnexpectedMessageError(f"the phase is {record.status} and gathers no phones")
        if record.joined < record.least:
            raise UnexpectedMessageError(
                f"{record.joined} phones have joined; the phase begins with {record.least} or more"
            )
        with self._database.transaction():
            joined = self._registry.end_gathering(phase)
            self._record("begin phase", phase.hex(), f"{joined} phones")
        return PhaseView.of(self.known(phase))

    def stop(self, phase: bytes, reason: str = "") -> Stopped:
        """Stop a phase without a result; one that is over stays as it is.

        Args:
            phase: Identifier of the phase.
            reason: The operator's reason, for the audit log.

        Raises:
            UnknownPhaseError: There is no such phase.
        """
        self.known(phase)
        with self._database.transaction():
            stopped = self._registry.stop(phase, STOPPED_REASON)
            if stopped:
                self._record("stop phase", phase.hex(), reason)
        return Stopped(stopped=stopped, phase=PhaseView.of(self.known(phase)))

    def start_campaign(self, wanted: StartCampaign) -> CampaignView:
        """Start a campaign; the driver opens its phases.

        Raises:
            InvalidParametersError: It cannot run here, was started before, or would not go as
                planned and `wanted.anyway` is false.
        """
        names = [cohort.name for cohort in self.archive.cohorts()]
        admission = CampaignAdmission(self._conductor, names, bool(self.two_operators.helper))
        with self._campaigns.deciding():
            now = datetime.fromtimestamp(self._database.now(), UTC)
            found = admission.check(wanted.campaign, now)
            if found.objections and not wanted.anyway:
                raise InvalidParametersError(
                    f"it would not go as planned: {'; '.join(found.objections)}. Start it all the "
                    "same: --anyway on the command line, in a request the field anyway set to true"
                )
            encode = msgspec.msgpack.encode
            name = present_operator().name
            self._campaigns.add(found.digest, encode(found.plan), encode(found.discovery), name)
            if found.follows is not None:
                self._campaigns.give_way(found.follows.row.campaign, wanted.campaign.begins)
            self._record("start campaign", found.plan.digest, wanted.campaign.name)
        return self._campaign(self._conductor.one(found.digest)).campaign

    def campaigns(self) -> CampaignViews:
        """Return all campaigns."""
        found = tuple(self._campaign(each).campaign for each in self._conductor.all())
        damaged = tuple(map(DamagedCampaign.of, self._conductor.damaged()))
        return CampaignViews(campaigns=found, damaged=damaged)

    def campaign(self, digest: bytes) -> CampaignExport:
        """Return a campaign and what became of its phases.

        Raises:
            UnknownCampaignError: There is none of this digest.
            DamagedCampaignError: It cannot be read.
        """
        return self._campaign(self._conductor.one(digest))

    def _campaign(self, started: StartedCampaign) -> CampaignExport:
        slots = self._conductor.slots(started)
        view = CampaignView.of(started, slots)
        return CampaignExport(campaign=view, plan=started.plan, slots=slots)

    def stop_campaign(self, digest: bytes, reason: str = "") -> CampaignView:
        """Stop a campaign for good, and its phase under way; one that is stopped stays so.

        Args:
            digest: Digest of the campaign's plan.
            reason: The operator's reason, for the audit log.

        Raises:
            UnknownCampaignError: There is none of this digest.
            DamagedCampaignError: It cannot be read.
        """
        with self._campaigns.deciding():
            started = self._conductor.one(digest)
            if started.row.state is not CampaignState.STOPPED:
                self._campaigns.change(digest, CampaignState.STOPPED, STOPPED_REASON)
                for attempt in self._campaigns.attempts(digest):
                    self._registry.stop(attempt.phase, STOPPED_REASON)
                self._give_days_back(started)
                self._record("stop campaign", digest.hex(), reason)
        return self.campaign(digest).campaign

    def _give_days_back(self, stopped: StartedCampaign) -> None:
        """Let the campaign before go on, if the stopped one has not taken over yet."""
        begins, follows = stopped.campaign.begins, Planning(stopped.campaign).digests_before
        if follows and self._database.now() < midnight(begins).timestamp():
            self._campaigns.give_way(bytes.fromhex(follows[0]), None)

    def resume_campaign(self, digest: bytes) -> CampaignView:
        """Let a campaign go on that was paused when the server was restored.

        Raises:
            UnknownCampaignError: There is none of this digest.
            DamagedCampaignError: It cannot be read.
            UnexpectedMessageError: It is not paused.
        """
        with self._campaigns.deciding():
            state = self._campaigns.one(digest).state
            if state is not CampaignState.PAUSED:
                raise UnexpectedMessageError(f"the campaign is {state}, not paused")
            self._campaigns.change(digest, CampaignState.RUNNING)
            self._record("resume campaign", digest.hex())
        return self.campaign(digest).campaign

    def known(self, phase: bytes) -> PhaseRecord:
        """Return the record of a phase.

        Raises:
            UnknownPhaseError: There is no such phase.
        """
        record = self.archive.phase(phase)
        if record is None:
            raise UnknownPhaseError("no phase has this name")
        return record

    def _record(self, action: str, subject: str, detail: str = "") -> None:
        self.accounts.record(present_operator().name, action, subject, detail)
