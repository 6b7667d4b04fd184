"""Bodies that travel over HTTP beside tasks and answers: enrolment, problems, operators' requests.

They are MessagePack or JSON, told apart by their content type; in JSON, bytes are base64.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from earshot_protocol.errors import InvalidInputError, InvalidParametersError, MalformedMessageError
from earshot_protocol.messages import AnyParameters
from earshot_protocol.phases.parameters import Choices, Parameters, hierarchy_of
from earshot_protocol.repeated_names import check_names
from earshot_protocol.rules import Rule
from earshot_protocol.signatures import KEY_ID
from earshot_protocol.text import line
from earshot_protocol.wire import Identifier, PublicKey

MESSAGEPACK = "application/msgpack"
JSON = "application/json"
PROBLEM = "application/problem+json"

ENROL = "/v1/phones"
TASK = "/v1/task"
ANSWER = "/v1/answer"
LEAVE = "/v1/leave"
REFUSAL = "/v1/refusal"
RESULTS = "/v1/results"
STATISTICS = "/v1/statistics"
INVITATIONS = "/v1/invitations"
PHASES = "/v1/phases"
COHORTS = "/v1/cohorts"
CAMPAIGNS = "/v1/campaigns"
OPERATORS = "/v1/operators"
AUDIT = "/v1/audit"
PRIVACY = "/v1/privacy"
TWO_OPERATORS = "/v1/two-operators"
OPENAPI = "/v1/openapi.json"

NEW_PHONE = "new"
"""`keyid` of a phone that enrols."""
PROBLEM_PREFIX = "urn:earshot:problem:"
"""Prefix of every problem's `type`."""

LARGEST_SMALL_BODY = 64 * 2**10
"""Most bytes of a request that is not an answer, an enrolment or the start of a phase."""
LARGEST_START = 4 * 2**20
"""Most bytes of an operator's request to start a phase, whose parameters may hold samples."""
LARGEST_ENROLMENT = 32 * 2**10
"""Most bytes of an enrolment."""
LARGEST_INVITED = 10**8
LONGEST_GATHERING = 365 * 86_400.0
LARGEST_REFUSAL = 512
"""Most bytes of a refusal."""

_COHORT = "[a-z0-9][a-z0-9-]{0,31}"
# In Python, a dollar sign alone also matches before a line break at the end.
CohortName = Annotated[str, Meta(pattern=rf"^{_COHORT}$(?!\n)")]
"""Name of the group of phones that enrolled with invitations for it: a region, a pilot."""
OptionalCohort = Annotated[str, Meta(pattern=rf"^({_COHORT})?$(?!\n)")]
InvitationName = Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9._-]{0,31})?$(?!\n)")]
"""Operator's name for an invitation, unique."""
PhaseName = Annotated[str, Meta(max_length=64)]
"""Operator's name for a phase, not unique; `StartPhase.check_name` restricts it further."""


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all bodies: immutable, and without unknown fields."""


class Enrol(_Body, frozen=True, kw_only=True):
    """A phone's request to enrol its key; it is signed with that key, and its `keyid` is `new`."""

    public_key: PublicKey
    """Ed25519 public key of the phone."""
    attestation: Annotated[str, line(16_384)]
    """Proof that the server's attestation requires; by default an invitation code."""


class Enrolled(_Body, frozen=True, kw_only=True):
    """The name under which the server knows this phone: the `keyid` of its later requests."""

    phone: Annotated[str, Meta(pattern=rf"^{KEY_ID}$(?!\n)")]


class AskTask(_Body, frozen=True, kw_only=True):
    """A phone's request for its task, with its newest results: the server sends newer ones only."""

    known: Annotated[tuple[Identifier, ...], Meta(max_length=8)] = ()


class Refuse(_Body, frozen=True, kw_only=True):
    """A phone's refusal of a phase: the rule that forbids it, and no further reason."""

    phase: Identifier
    rule: Rule


class Leave(_Body, frozen=True, kw_only=True):
    """A phone's request to leave: the server deletes its key, its number and its places."""


class Problem(_Body, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457); `type` is a fixed name for each kind."""

    type: str
    title: str
    status: int
    detail: str = ""
    now: Annotated[float, Meta(ge=0, lt=1e12)] | None = None
    """Time on the server's clock, in seconds since 1970, where a signature was stale."""


class Invite(_Body, frozen=True, kw_only=True):
    """An operator's request for an invitation code."""

    uses: Annotated[int, Meta(ge=1, le=LARGEST_INVITED)] = 1
    """Number of phones that may enrol with the code."""
    days: Annotated[float, Meta(gt=0, le=3650)] = 30.0
    """Days for which the code is valid."""
    cohort: OptionalCohort = ""
    """Cohort of the phones that enrol with the code; empty for none."""
    name: InvitationName = ""
    """Name under which the invitation is listed and revoked; empty for one that the server makes:
    lower-case letters, digits, dots, underscores and hyphens, a letter or digit first."""


class Invitation(_Body, frozen=True, kw_only=True):
    """A signed code that enrols as many phones as it has uses."""

    code: str
    uses: int
    expires: float
    """End of validity, in seconds since 1970."""
    cohort: OptionalCohort = ""
    name: InvitationName
    """Name under which the invitation is listed and revoked."""


class StartPhase(_Body, frozen=True, kw_only=True):
    """An operator starts a phase: it gathers phones, then runs with those that have joined."""

    parameters: AnyParameters
    """Parameters of the phase; it starts as soon as `phones` phones have joined."""
    least_phones: Annotated[int, Meta(ge=3, le=10**8)] | None = None
    """Phones that must have joined when the gathering ends; by default `phones`."""
    gather_seconds: Annotated[float, Meta(gt=0, le=LONGEST_GATHERING)] = 86_400.0
    name: PhaseName = ""
    """Display name, which is published with the results."""
    cohorts: Annotated[tuple[CohortName, ...], Meta(max_length=64)] = ()
    """Cohorts whose phones may join; if empty, any phone may."""
    anyway: bool = False
    """Start the phase even if default phones refuse it or a cohort has no phones."""
    choices: Choices = ()
    """Choices that polls offer for each label; by default the labels themselves."""

    def agreed(self) -> Parameters:
        """Return the parameters, with the digest of labels and choices if it was left out.

        Raises:
            InvalidParametersError: Labels and choices are not a hierarchy, or another digest is
                given.
        """
        parameters: Parameters = self.parameters
        if self.choices and not parameters.hierarchy:
            try:
                digest = hierarchy_of(parameters.labels, self.choices).digest
            except InvalidInputError as error:
                raise InvalidParametersError(f"choices: {error}") from error
            parameters = msgspec.structs.replace(parameters, hierarchy=digest)
        parameters.agreed_hierarchy(self.choices)
        return parameters

    def check_name(self) -> None:
        """Refuse a name with padding or unprintable characters.

        Raises:
            InvalidParametersError: The name begins or ends with a space or holds unprintable
                characters.
        """
        if self.name != self.name.strip() or not self.name.isprintable():
            raise InvalidParametersError(
                f"name={self.name!r}: give printable text without spaces around it"
            )

    def least(self) -> int:
        """Return the number of phones that must have joined when the gathering ends.

        Raises:
            InvalidParametersError: The number is larger than `phones`.
        """
        least = self.least_phones if self.least_phones is not None else self.parameters.phones
        if least > self.parameters.phones:
            raise InvalidParametersError(
                f"least_phones={least}: must be at most phones={self.parameters.phones}, the "
                "phones wanted"
            )
        return least


_T = TypeVar("_T")


def encode_body(body: object, media_type: str) -> bytes:
    """Encode a body in one of the two media types."""
    return msgspec.json.encode(body) if media_type == JSON else msgspec.msgpack.encode(body)


def decode_body(data: bytes, media_type: str, kind: type[_T]) -> _T:
    """Read a body of one of the two media types.

    Raises:
        MalformedMessageError: The data are not such a body (the message says where), or a map in
            MessagePack repeats a name.
    """
    decode = msgspec.json.decode if media_type == JSON else msgspec.msgpack.decode
    try:
        body = decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"the body is not as expected: {error}") from error
    if media_type != JSON:
        check_names(data, body)
    return body
