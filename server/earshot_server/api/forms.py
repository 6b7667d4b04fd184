"""Forms of the dashboard: their fields, the values entered, and the errors to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple, TypeVar

import msgspec

from earshot_protocol.api import (
    LARGEST_INVITED,
    LONGEST_GATHERING,
    MESSAGEPACK,
    InvitationName,
    Invite,
    StartPhase,
    decode_body,
    encode_body,
)
from earshot_protocol.encoder_file import read as read_encoder
from earshot_protocol.environments import LabelHierarchy, default_hierarchy
from earshot_protocol.errors import EarshotError
from earshot_protocol.phases import discovery_budget, statistics_budget
from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.phases.parameters import Parameters, hierarchy_of
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, packaged
from earshot_server.api.views import NewOperator
from earshot_server.dashboard import prospects
from earshot_server.dashboard.languages import LazyText, gettext, noted
from earshot_server.phases import sitting as sittings
from earshot_server.phases.forecast import check_possible
from earshot_server.phases.options import PhaseOptions, made, of_encoder
from earshot_server.store.operators import Role

LONGEST_REASON = 200
Places = Callable[[LabelHierarchy], AgreedPlaces | None]
"""Function that returns the places by which unlabelled contacts count."""
_CHOOSE = noted("choose one of these")
_T = TypeVar("_T")
_WHOLE = re.compile(r"[0-9]{1,12}", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", re.ASCII)
_SPACES = re.compile(r"[ \u00a0\u202f]")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(\.[0-9]{3})+", re.ASCII)
"""A number such as 1.000, a thousand where decimals have a comma."""
_NAMED = re.compile(r"([a-z_]+)(?:=[^:]*:)?[: ]+")
"""Beginning of one of our errors: the field's name, and often its value."""
_PLACED = re.compile(r".* - at `\$\.([a-z_]+)")
"""Name of the field in a decoding error of the API."""
_TAKEN = {
    "name": LazyText(noted("give at most 64 characters")),
    "least_phones": LazyText(noted("give at least 3, or leave it out")),
    "gather_hours": LazyText(
        noted("give more than 0 and at most %(hours)s"), hours=round(LONGEST_GATHERING / 3600)
    ),
    "cohort": LazyText(noted("give names of lower-case letters, digits and hyphens")),
    "uses": LazyText(noted("give 1 to %(most)s"), most=LARGEST_INVITED),
    "days": LazyText(noted("give more than 0 and at most 3650")),
}
"""Values that the API takes, in terms of the form."""
_FIELDS = {"gather_seconds": "gather_hours", "step_seconds": "step_hours", "cohorts": "cohort"}
"""Fields of the API that have another name in the form."""


class FieldChoice(NamedTuple):
    """One choice of a field.

    Attributes:
        value: Text that the form sends.
        label: Label beside it, in English.
        hint: Explanation of the choice, in English.
    """

    value: str
    label: str
    hint: str | LazyText


@dataclass(frozen=True)
class Field:
    """Field of a form.

    Attributes:
        name: Name of the field.
        label: Label beside it, in English.
        hint: Explanation of the field and of the texts that it takes, in English.
        keys: Keyboard that phones show: `text`, `numeric` or `decimal`.
        lines: Lines of text that it shows.
        choices: Texts that it takes; by default any.
        proposal: Sentence on the proposed choice, in the page's language; empty without one.
    """

    name: str
    label: str
    hint: str | LazyText = ""
    keys: str = "text"
    lines: int = 1
    choices: tuple[FieldChoice, ...] = ()
    proposal: str = ""


START = (
    Field(
        "name",
        noted("Name"),
        noted("For people; it is published with the result. May be left out."),
    ),
    Field(
        "labels",
        noted("Labels"),
        noted(
            "What phones call places, separated by commas. With the everyday ones, polls also "
            "offer their usual choices."
        ),
        lines=3,
    ),
    Field(
        "phones",
        noted("Phones"),
        noted("The phase begins as soon as this many have joined."),
        "numeric",
    ),
    Field(
        "least_phones",
        noted("Phones that are enough"),
        noted("It also begins with these when the gathering ends. If left out: all."),
        "numeric",
    ),
    Field(
        "epsilon",
        noted("Budget ε of each phone"),
        LazyText(
            noted("For the whole phase. Phones accept up to %(limit)s by default."),
            limit=f"{Limits().largest_phone_epsilon:g}",
        ),
        "decimal",
    ),
    Field(
        "gather_hours",
        noted("Hours of the gathering"),
        noted("Time in which phones may join."),
        "decimal",
    ),
    Field(
        "step_hours",
        noted("Hours of a step"),
        noted("Each of the twelve steps waits this long for phones that have not answered."),
        "decimal",
    ),
    Field(
        "cohort",
        noted("Cohorts"),
        noted("Only these phones may join, as north,west. If left out: all."),
    ),
)
SUMMATION = Field(
    "summation",
    noted("Who adds up"),
    choices=(
        FieldChoice(
            SummationName.TWO_OPERATORS,
            noted("Two operators, this server and its helper"),
            noted("Phones take part whose app names both; ship that app first."),
        ),
        FieldChoice(
            SummationName.BELL,
            noted("This server alone"),
            noted("Phones mask their inputs for each other (Bell et al.); every app can."),
        ),
    ),
)
"""Field of a server that has a helper."""
NIGHTS, SITTING = "nights", "sitting"
PACE = Field(
    "pace",
    noted("When phones answer"),
    choices=(
        FieldChoice(
            NIGHTS,
            noted("When they charge"),
            noted("For days: gathering and steps last as many hours as you say below."),
        ),
        FieldChoice(
            SITTING,
            noted("Now, in a sitting"),
            LazyText(
                noted(
                    "For a class or a meeting, whose phones are open pages: %(minutes)s minutes to "
                    "join, or until you let it begin, then steps of %(seconds)s seconds, by two "
                    "operators. The hours below do not count, and half of the phones are enough "
                    "unless you say so."
                ),
                minutes=f"{sittings.GATHER_SECONDS / 60:g}",
                seconds=f"{sittings.STEP_SECONDS:g}",
            ),
        ),
    ),
)
"""Field of a server that has a helper."""
DISCOVERY, STATISTICS = "discovery", "statistics"
KIND = Field("kind", "Kind")
"""Kind of phase that a form is for; empty for a discovery phase."""
COUNTING = (
    Field(
        "contacts",
        noted("Contacts of a phone"),
        noted(
            "Counts of a phone with more are scaled down to this length. About three times a "
            "phone’s usual contacts."
        ),
        "numeric",
    ),
    Field(
        "since",
        noted("First day"),
        noted(
            "In UTC, such as 2026-03-02. If both days are left out: contacts of every day that no "
            "histogram has counted."
        ),
    ),
    Field(
        "until",
        noted("Day after the last one"),
        noted("Such as 2026-03-09, with the first day."),
    ),
)
"""Fields of a phase that counts contacts."""
_OF_COUNTING = {
    "labels": noted("Places whose contacts are counted, separated by commas."),
    "step_hours": noted("Each step waits this long for phones that have not answered."),
}
"""Hints that differ in a phase that counts contacts."""
INVITE = (
    Field(
        "name",
        noted("Name"),
        noted(
            "For the list of invitations, such as class-7b: lower-case letters, digits, dots, "
            "underscores and hyphens. May be left out."
        ),
    ),
    Field("uses", noted("Phones"), noted("Phones that may enrol with the code."), "numeric"),
    Field("days", noted("Days"), noted("Days for which the code is valid."), "decimal"),
    Field(
        "cohort",
        noted("Cohort"),
        noted("Group that these phones belong to. May be left out."),
    ),
)
OPERATOR = (
    Field(
        "name",
        noted("Name"),
        noted("For the audit log: lower-case letters, digits, dots, hyphens."),
    ),
    Field(
        "role",
        noted("Role"),
        choices=(
            FieldChoice(
                Role.VIEWER.value,
                noted("Viewer"),
                noted("Reads dashboard, phases and metrics."),
            ),
            FieldChoice(
                Role.OPERATOR.value,
                noted("Operator"),
                noted("Also invites phones, starts and stops phases."),
            ),
            FieldChoice(
                Role.ADMIN.value,
                noted("Administrator"),
                noted("Also manages operators and erases phones."),
            ),
        ),
    ),
)
STOP = (
    Field(
        "reason",
        noted("Reason"),
        noted("For the audit log; phones learn only that an operator stopped the phase."),
    ),
)


class _WrongTextError(ValueError):
    """A text that its field does not accept.

    Args:
        said: What the field accepts.
    """

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = LazyText(said)


@dataclass
class Filled:
    """A form with the values that a user entered.

    Attributes:
        texts: Text of each field, as it was typed.
        errors: For each invalid field, what it accepts; under an empty name, an error that belongs
            to no single field. Those that come from below the forms are plain texts, in English.
    """

    texts: Mapping[str, str]
    errors: dict[str, str | LazyText] = field(default_factory=dict)

    def typed(self, name: str) -> str:
        """Return the text entered into a field, stripped."""
        return self.texts.get(name, "").strip()

    def take(self, name: str, read: Callable[[str], _T], otherwise: _T) -> _T:
        """Parse a field; if it is invalid, record an error and return `otherwise`."""
        try:
            return read(self.typed(name))
        except _WrongTextError as error:
            self.errors[name] = error.said
            return otherwise

    def refuse(self, error: EarshotError) -> None:
        """Record an error under the field that it names."""
        said: str | LazyText = str(error)
        placed, named = _PLACED.match(str(error)), _NAMED.match(str(error))
        found = placed or named
        name = _FIELDS.get(found[1], found[1]) if found else ""
        if name not in self.texts:
            name = ""
        elif placed:
            said = _TAKEN[name]
        elif named and "=" in named[0]:
            said = str(error).removeprefix(named[0])
        self.errors[name] = said


def counts(filled: Filled) -> bool:
    """Return whether a form is for a phase that counts contacts."""
    return filled.typed(KIND.name) == STATISTICS


def counting(proposal: str | None) -> tuple[Field, ...]:
    """Return the fields of a phase that counts contacts.

    Args:
        proposal: Reason for the summation that is proposed, empty where none is; None on a server
            without a helper.
    """
    fields = [replace(each, hint=_OF_COUNTING.get(each.name, each.hint)) for each in START]
    after = [each.name for each in fields].index("epsilon")
    fields[after:after] = COUNTING
    if proposal is not None:
        fields.insert(after + len(COUNTING) + 1, replace(SUMMATION, proposal=proposal))
    return tuple(fields)


def with_summation(proposal: str) -> tuple[Field, ...]:
    """Return the fields of a discovery phase on a server that has a helper.

    Args:
        proposal: Reason for the proposed summation; empty without a proposal.
    """
    hints = {
        "step_hours": noted(
            "Each of the twelve steps, or of the three by two operators, waits this long for "
            "phones that have not answered."
        )
    }
    fields = [replace(each, hint=hints.get(each.name, each.hint)) for each in START]
    names = [each.name for each in fields]
    fields.insert(names.index("epsilon") + 1, replace(SUMMATION, proposal=proposal))
    return (PACE, *fields)


def proposal(filled: Filled, places: Places) -> str:
    """Return the summation that is proposed for the phase of a form, and why, as a sentence.

    Empty if the form is invalid, or for a sitting, which has no choice.

    Args:
        filled: Form of the phase.
        places: Places by which unlabelled contacts count.
    """
    phases = [
        read_start(Filled({**filled.texts, SUMMATION.name: name}), True, places)
        for name in (SummationName.BELL, SummationName.TWO_OPERATORS)
    ]
    known = [each.parameters for each in phases if each is not None]
    return prospects.proposed_summation(*known) if len(known) == len(phases) else ""


def first_start(phones: int, summation: SummationName, kind: str = DISCOVERY) -> dict[str, str]:
    """Return the texts of a form for the recommended phase of a kind.

    Args:
        phones: Number of enrolled phones that are in no phase.
        summation: Proposed summation.
        kind: Kind of phase: `DISCOVERY` or `STATISTICS`.
    """
    budget = statistics_budget if kind == STATISTICS else discovery_budget
    return {
        KIND.name: kind,
        "contacts": str(statistics_budget.CONTACTS),
        "since": "",
        "until": "",
        "name": "",
        "labels": ", ".join(default_hierarchy().classes),
        "phones": str(max(phones, Limits().least_phones)),
        "least_phones": "",
        "epsilon": f"{budget.EPSILON:g}".replace(".", gettext(".")),
        SUMMATION.name: summation,
        PACE.name: NIGHTS,
        "gather_hours": "24",
        "step_hours": "24",
        "cohort": "",
    }


FIRST_OPERATOR = {"name": "", "role": Role.VIEWER.value}
FIRST_INVITE = {"name": "", "uses": "100", "days": "30", "cohort": ""}


def read_start(filled: Filled, anyway: bool, places: Places) -> StartPhase | None:
    """Return the phase that a form describes; None, with errors recorded, if it is invalid.

    Args:
        filled: Form of the phase.
        anyway: Whether the phase is to start though default phones refuse it.
        places: Places by which unlabelled contacts count, for the hierarchy of the phase.
    """
    phones = filled.take("phones", _whole, 0)
    least = filled.take("least_phones", lambda text: _whole(text) if text else None, None)
    epsilon = filled.take("epsilon", _real, 0.0)
    summation = filled.take(SUMMATION.name, _summation, SummationName.BELL)
    if sitting := sits(filled):
        gather, step = sittings.GATHER_SECONDS, sittings.STEP_SECONDS
        least = sittings.enough(phones) if least is None else least
        if not summation.by_operators:
            said = LazyText(noted("a sitting is by two operators"))
            filled.errors.setdefault(SUMMATION.name, said)
    else:
        hours = (filled.take(name, _real, 0.0) for name in ("gather_hours", "step_hours"))
        gather, step = (3600 * each for each in hours)
    contacts = since = until = None
    if counts(filled):
        contacts = filled.take("contacts", _whole, 0)
        since, until = (filled.take(name, _day, None) for name in ("since", "until"))
    if filled.errors:
        return None
    labels = [*filter(None, map(str.strip, re.split(r"[,\n]", filled.typed("labels"))))]
    if not labels:
        filled.errors["labels"] = LazyText(noted("give at least one"))
        return None
    usual = default_hierarchy()
    everyday = labels == list(usual.classes)
    choices = tuple(usual.groups.values()) if everyday else ()
    cohorts = tuple(filter(None, map(str.strip, filled.typed("cohort").split(","))))
    try:
        classes = LabelHierarchy.flat(labels).classes
    except EarshotError as error:
        filled.errors["labels"] = str(error)
        return None
    try:
        options = PhaseOptions(phones=phones, epsilon=epsilon, labels=classes, summation=summation)
        hierarchy = hierarchy_of(classes, choices)
        parameters: Parameters
        if contacts is None:
            options = sittings.seated(options) if sitting else options
            encoder = read_encoder(packaged(DEFAULT_ENCODER))
            parameters = options.discovery_parameters(encoder.card.name, of_encoder(encoder))
        else:
            counted = {"contacts": contacts, "since": since, "until": until, "noise": 1.0}
            parameters = statistics_budget.affordable(
                made(StatisticsParameters, options, places=places(hierarchy), **counted), epsilon
            )
        asked = StartPhase(
            parameters=msgspec.structs.replace(
                parameters,
                hierarchy=hierarchy.digest if choices else b"",
                step_seconds=step,
            ),
            least_phones=least,
            gather_seconds=gather,
            choices=choices,
            name=filled.typed("name"),
            cohorts=cohorts,
            anyway=anyway,
        )
        # Decoded as the API decodes it, so that both refuse the same.
        read = decode_body(encode_body(asked, MESSAGEPACK), MESSAGEPACK, StartPhase)
        read.parameters.check()
        check_possible(read)
    except EarshotError as error:
        filled.refuse(error)
        return None
    return read


def sits(filled: Filled) -> bool:
    """Return whether a form asks for a sitting; records an error if its pace is invalid."""
    return filled.take(PACE.name, _sits, False)


def read_invite(filled: Filled) -> Invite | None:
    """Return the invitation that a form describes; None, with errors recorded, if invalid."""
    uses, days = filled.take("uses", _whole, 1), filled.take("days", _real, 1.0)
    name = filled.take("name", _invitation_name, "")
    if filled.errors:
        return None
    asked = Invite(uses=uses, days=days, cohort=filled.typed("cohort"), name=name)
    try:
        return decode_body(encode_body(asked, MESSAGEPACK), MESSAGEPACK, Invite)
    except EarshotError as error:
        filled.refuse(error)
        return None


def read_operator(filled: Filled) -> NewOperator | None:
    """Return the operator that a form describes; None, with errors noted, if it is invalid."""
    if filled.typed("role") not in [role.value for role in Role]:
        filled.errors["role"] = LazyText(_CHOOSE)
        return None
    given = {each: filled.typed(each) for each in ("name", "role")}
    try:
        return msgspec.convert(given, NewOperator)
    except msgspec.ValidationError:
        filled.errors["name"] = LazyText(
            noted(
                "give 1 to 32 lower-case letters, digits, dots, underscores and hyphens, a letter "
                "first"
            )
        )
        return None


def read_reason(filled: Filled) -> str | None:
    """Return the reason for stopping a phase; None, with the error recorded, if it is invalid."""
    reason = filled.typed("reason")
    if 0 < len(reason) <= LONGEST_REASON and reason.isprintable():
        return reason
    filled.errors["reason"] = LazyText(
        noted("say why, in one line of at most %(most)s characters"), most=LONGEST_REASON
    )
    return None


def _whole(text: str) -> int:
    written = _SPACES.sub("", text)
    if not _WHOLE.fullmatch(written):
        raise _WrongTextError(noted("give a whole number, such as 200"))
    return int(written)


def _invitation_name(text: str) -> str:
    try:
        return msgspec.convert(text, InvitationName)
    except msgspec.ValidationError as error:
        raise _WrongTextError(
            noted(
                "give at most 32 lower-case letters, digits, dots, underscores and hyphens, a "
                "letter or digit first"
            )
        ) from error


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise _WrongTextError(noted("give a day, such as 2026-03-31")) from error


def _summation(text: str) -> SummationName:
    """Return the chosen summation; by default, by this server alone."""
    try:
        return SummationName(text) if text else SummationName.BELL
    except ValueError as error:
        raise _WrongTextError(_CHOOSE) from error


def _sits(text: str) -> bool:
    """Return whether a sitting was chosen; False if the form did not offer one."""
    if text not in ("", NIGHTS, SITTING):
        raise _WrongTextError(_CHOOSE)
    return text == SITTING


def _real(text: str) -> float:
    written, mark = _SPACES.sub("", text), gettext(".")
    plain = written.replace(mark, ".")
    if not _REAL.fullmatch(plain) or (mark != "." and _GROUPED.fullmatch(written)):
        raise _WrongTextError(noted("give a number, such as 24 or 0.5"))
    return float(plain)
