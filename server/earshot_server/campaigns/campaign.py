"""A campaign: what an authority wants counted, week after week, and what it may cost a phone."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from earshot_protocol import checks
from earshot_protocol.api import CohortName
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases.parameters import (
    LARGEST_CROWD,
    LARGEST_LABELS,
    Choices,
    LabelName,
    hierarchy_of,
)
from earshot_protocol.phases.statistics import LARGEST_CONTACTS
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.text import line

WEEK = timedelta(days=7)
MOST_WEEKS = 53
MOST_BEFORE = 60
"""Campaigns that may precede one: more than 366 days of the shortest."""
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2999, 12, 31)
"""Days between which a campaign may begin: those around it are still dates."""
LARGEST_NAME = 100
_PHASE = re.compile("([0-9a-f]{32})?")
_ADDRESS = re.compile(r"https://[^\s<>\"]+")


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Table of a campaign's file."""

    def check(self) -> None:
        """Refuse values that no campaign can have.

        Raises:
            InvalidParametersError: A value is wrong; the message names it and the accepted ones.
        """


class CampaignBudget(_Part, frozen=True, kw_only=True):
    """What a campaign may cost.

    Attributes:
        epsilon: Largest ε of a phone over every 366 days, at δ = 10⁻⁶.
        continues: Whether a campaign with the same noise may follow without a break, so that ε
            holds over every 366 days across both.
    """

    epsilon: float = 8.0
    continues: bool = True

    def check(self) -> None:
        """Refuse an ε for which there is no noise."""
        checks.epsilon("budget.epsilon", self.epsilon)


class ExpectedContacts(_Part, frozen=True, kw_only=True):
    """What an authority expects, from which the noise is judged; phones never see it.

    Attributes:
        phones: Phones that take part in a week.
        contacts: Contacts of a phone in a week, on average.
        place: Share of all contacts that the place of interest has.
    """

    phones: int
    contacts: float = 3.0
    place: float = 0.05

    def check(self) -> None:
        """Refuse numbers that are out of range."""
        checks.whole("expected.phones", self.phones, 3, LARGEST_CROWD)
        checks.between("expected.contacts", self.contacts, 1e-3, LARGEST_CONTACTS)
        checks.probability("expected.place", self.place)


class SumOptions(_Part, frozen=True, kw_only=True):
    """The secure sum of a week's contacts.

    Attributes:
        contacts: Length to which a phone's counts of a week are projected, B; by default proposed.
        summation: Summation of phones' counts.
        dropout: Largest fraction of phones that may drop out (ρ).
        corrupted: Fraction of phones that an adversary may control (γ).
        confusion: Whether the first sum after each map also has a confusion matrix of labelled
            recordings, by which the map's names are corrected; by default the plan decides.
    """

    contacts: int | None = None
    summation: SummationName = SummationName.BELL
    dropout: float = 0.2
    corrupted: float = 0.05
    confusion: bool | None = None

    def check(self) -> None:
        """Refuse numbers that are out of range, and a summation of ballots."""
        if self.contacts is not None:
            checks.whole("sum.contacts", self.contacts, 1, LARGEST_CONTACTS)
        checks.fraction("sum.dropout", self.dropout)
        checks.fraction("sum.corrupted", self.corrupted)
        if self.dropout + self.corrupted >= 1:
            raise InvalidParametersError(
                f"sum.dropout={self.dropout:g} and sum.corrupted={self.corrupted:g}: together they "
                "must stay below 1"
            )


class RepeatedDiscovery(_Part, frozen=True, kw_only=True):
    """Discovery phases of a campaign, which find places anew.

    Attributes:
        every_weeks: Weeks from one discovery to the next.
        epsilon: Cost ε of one discovery, per phone.
        retries: Discoveries in any 366 days that may be repeated after a failure; their cost is
            kept in reserve.
    """

    every_weeks: int = 13
    epsilon: float = 1.5
    retries: int = 1

    def check(self) -> None:
        """Refuse numbers that are out of range."""
        checks.whole("discovery.every_weeks", self.every_weeks, 1, MOST_WEEKS)
        checks.epsilon("discovery.epsilon", self.epsilon)
        checks.whole("discovery.retries", self.retries, 0, MOST_WEEKS)


class Publication(_Part, frozen=True, kw_only=True):
    """Who tells people about a campaign.

    Attributes:
        authority: Name of the authority that runs the campaign and its server.
        results: Address at which results are published.
        second_operator: Name of the organization that runs the helper; needed with two operators.
    """

    authority: Annotated[str, line(LARGEST_NAME, least=1)]
    results: Annotated[str, line(1000, least=1)]
    second_operator: Annotated[str, line(LARGEST_NAME)] = ""

    def check(self) -> None:
        """Refuse an address that a page cannot link to."""
        if not _ADDRESS.fullmatch(self.results):
            raise InvalidParametersError(
                f"public.results={self.results!r}: must be an address that begins with https://, "
                "without spaces, quotes, < and >"
            )


class Campaign(_Part, frozen=True, kw_only=True):
    """A campaign as its file describes it.

    Attributes:
        name: Name of the campaign, for people.
        begins: First day, in UTC; a slot is from `begins` + 7k days to seven days later.
        weeks: Number of slots.
        labels: Labels of places, L.
        choices: Choices that polls offer for each label; empty where they offer the labels.
        cohorts: Cohorts whose phones take part; if empty, all phones.
        map: Discovery phase that names unlabelled contacts, in hexadecimal digits; empty for none.
        follows: Campaign whose phones go on here; its releases count in the same 366 days.
        budget: What the campaign may cost a phone.
        expected: What the authority expects.
        sum: The secure sum of a week's contacts.
        discovery: Discovery phases; None for none.
        public: Who tells people about the campaign; None if it is not published yet.
    """

    name: Annotated[str, line(LARGEST_NAME, least=1)]
    begins: date = msgspec.field(name="from")
    weeks: int
    labels: tuple[LabelName, ...]
    choices: Choices = ()
    cohorts: Annotated[tuple[CohortName, ...], Meta(max_length=64)] = ()
    map: str = ""
    follows: Campaign | None = None
    budget: CampaignBudget = CampaignBudget()
    expected: ExpectedContacts
    sum: SumOptions = SumOptions()
    discovery: RepeatedDiscovery | None = None
    public: Publication | None = None

    @property
    def ends(self) -> date:
        """Day after the last slot."""
        return self.begins + self.weeks * WEEK

    @property
    def entries(self) -> int:
        """Entries of a phone's counts: each label's own, each label's by the map, and unknown."""
        return 2 * len(self.labels) + 1

    @property
    def names_by_map(self) -> bool:
        """Whether a map names unlabelled contacts, so that a place's total has two entries."""
        return bool(self.map) or self.discovery is not None

    def check(self) -> None:
        """Refuse values that no campaign can have, in any table.

        Raises:
            InvalidParametersError: A value is wrong; the message names it and the accepted ones.
        """
        if not FIRST_DAY <= self.begins <= LAST_DAY:
            raise InvalidParametersError(
                f"from={self.begins}: must be a day from {FIRST_DAY} to {LAST_DAY}"
            )
        checks.whole("weeks", self.weeks, 1, MOST_WEEKS)
        checks.whole("the number of labels", len(self.labels), 1, LARGEST_LABELS)
        try:
            hierarchy_of(self.labels, self.choices)
        except InvalidInputError as error:
            raise InvalidParametersError(str(error)) from None
        if len(set(self.cohorts)) < len(self.cohorts):
            raise InvalidParametersError(f"cohorts={list(self.cohorts)}: name each cohort once")
        if not _PHASE.fullmatch(self.map):
            raise InvalidParametersError(
                f"map={self.map[:100]!r}: must be the identifier of a phase, 32 hexadecimal digits"
            )
        for part in (self.budget, self.expected, self.sum, self.discovery, self.public):
            if part is not None:
                part.check()
        if self.sum.confusion and not self.names_by_map:
            raise InvalidParametersError(
                "sum.confusion=True: a confusion matrix is of the names that a map gives; name a "
                "`map`, or give [discovery]"
            )
        if self.follows is not None and self.follows.begins >= self.begins:
            raise InvalidParametersError(
                f"follows: a campaign from {self.follows.begins}, which does not begin before this "
                f"one, from {self.begins}; name an earlier one"
            )


def plain(campaign: Campaign) -> dict[str, Any]:
    """Return the campaign as plain values, without the one that it follows."""
    values: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(campaign, follows=None))
    return values
