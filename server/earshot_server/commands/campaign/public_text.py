"""What people read about a campaign: a page that is complete in itself, and the same as Markdown.

It answers what users of such apps ask: what exactly is sent, how often, how many take part, where
the results are, what it costs a person, and whom one trusts.
"""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from flask import Flask, render_template
from markupsafe import Markup

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.privacy.accounting import TOLD_DELTA
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server import dashboard
from earshot_server.campaigns.campaign import Publication
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.schedule import LATEST, PhaseKind
from earshot_server.dashboard.wording import (
    as_text,
    byte_size,
    counted,
    listed,
    real,
    whole,
    window,
)

_HERE = Path(__file__).parent
_DASHBOARD = Path(dashboard.__file__).parent
_KEPT_DAYS = 28
"""Days for which a phone keeps contacts."""
_MARKUP = re.compile(r"([\\`*_\[\]<>#|])")
_WIDTH = 100


class Section(NamedTuple):
    """A section: paragraphs, then facts by name, then an address."""

    heading: str
    paragraphs: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    address: str = ""


class PublicText(NamedTuple):
    """Everything that people read about a campaign.

    Attributes:
        title: Name of the campaign.
        authority: Name of the authority.
        lead: First paragraph.
        figures: Figures at the head, by name.
        sections: Sections below.
        end: Last line.
    """

    title: str
    authority: str
    lead: str
    figures: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    end: str

    def page(self) -> str:
        """Return an HTML page that loads nothing from elsewhere."""
        styles = (_DASHBOARD / "static/dashboard.css").read_text(encoding="utf-8")
        app = Flask(__name__, template_folder=str(_HERE))
        with app.app_context():
            return render_template(
                "public_text.html",
                told=self,
                styles=Markup(styles),  # noqa: S704 - the file is ours
                shown=as_text,
            )

    def markdown(self) -> str:
        """Return the same as Markdown."""
        parts = [f"# {_marked(self.title)}", self.authority, self.lead]
        parts[1:] = [_filled(each) for each in parts[1:]]
        parts.append(_facts(self.figures))
        for section in self.sections:
            parts.append(f"## {_marked(section.heading)}")
            parts += [_filled(each) for each in section.paragraphs]
            parts += [_facts(section.facts)] if section.facts else []
            parts += [f"<{section.address}>"] if section.address else []
        return "\n\n".join([*parts, _filled(self.end)]) + "\n"


def public_text(plan: CampaignPlan) -> PublicText:
    """Return what people read about a campaign.

    Raises:
        InvalidInputError: The campaign does not say who runs it, or where results are.
    """
    public = _publication(plan)
    campaign = plan.campaign
    return PublicText(
        title=campaign.name,
        authority=public.authority,
        lead=(
            f"{public.authority} counts, week after week, in which kinds of place people have "
            "contacts that may be infectious. This page says what a phone that takes part sends, "
            "what that costs its owner, and whom one trusts."
        ),
        figures=(
            ("weeks are counted", whole(campaign.weeks)),
            ("numbers leave a phone in a week", _numbers(plan)),
            ("phones are expected", whole(campaign.expected.phones)),
        ),
        sections=(
            _sent(plan),
            _often(plan),
            _many(plan),
            _results(plan, public),
            _cost(plan),
            _trusted(plan, public),
            _decided(),
            _exact(plan),
        ),
        end=(
            f"Written by Earshot {distribution.version()} from the plan {plan.digest}. This text "
            "is complete in itself and loads nothing from elsewhere."
        ),
    )


def _numbers(plan: CampaignPlan) -> str:
    entries, more = plan.campaign.entries, len(plan.campaign.labels) ** 2
    return f"{whole(entries)} or {whole(entries + more)}" if plan.confusion else whole(entries)


def _publication(plan: CampaignPlan) -> Publication:
    public = plan.campaign.public
    if public is None:
        raise InvalidInputError(
            "public is missing: people are told who runs a campaign; give [public] with authority "
            "and results"
        )
    if plan.campaign.sum.summation.by_operators and not public.second_operator:
        raise InvalidInputError(
            "public.second_operator is missing: people are told who the two operators are; give "
            "the name of the organization that runs the helper"
        )
    return public


def _sent(plan: CampaignPlan) -> Section:
    campaign = plan.campaign
    places = f"{counted(len(campaign.labels), 'kind')} of place: {listed(campaign.labels)}"
    by_map = (
        "those without a name are counted by the place that a public map of sounds gives them, "
        if campaign.names_by_map
        else ""
    )
    paragraphs = [
        f"Once a week your phone counts the contacts of seven days. There are {places}. Contacts "
        f"that you gave a name are counted by that name, {by_map}and all others as unknown. "
        f"That makes {campaign.entries} numbers.",
        f"If you had many contacts, your phone makes all its numbers smaller together, so that "
        f"you count as at most {counted(plan.contacts, 'contact')} in one place. If you had none, "
        "it sends zeros, in the same way as all other phones.",
        _protected(plan),
        f"No sound leaves your phone, and no time, no position and no name of anybody. A week's "
        f"message has {byte_size(plan.week_bytes.sent)}.",
    ]
    if campaign.discovery is not None:
        paragraphs.append(
            f"Every {counted(campaign.discovery.every_weeks, 'week')} the map is made anew. Then "
            "your phone adds up the numbers that it has computed from what it heard, by kind of "
            "sound and by the names that you gave, and these totals leave it in the same way. No "
            "word can be heard from them."
        )
    if plan.confusion_week is not None:
        labels = len(campaign.labels)
        paragraphs.append(
            "In the first week after each map your phone also sends how that map names what you "
            f"named yourself in the last {_KEPT_DAYS} days: for each of the {labels} kinds of "
            f"place, how often the map says each of them. That makes {whole(labels**2)} more "
            "numbers, which are made smaller together if you gave many names, and leave your phone "
            "in the same way. Their totals show how often the map is wrong, so that counts can be "
            f"corrected. This message has {byte_size(plan.confusion_week.bytes.sent)}."
        )
    return Section("What exactly is sent", tuple(paragraphs))


_CHECKED = {
    True: (
        "Your phone also proves, without showing them, that its numbers are no larger than one "
        "phone's may be; what does not prove this is left out."
    ),
    False: "Nobody can check that a phone's numbers are no larger than one phone's may be.",
}
"""Whether inputs are checked, by whether they are proved."""


def _protected(plan: CampaignPlan) -> str:
    if plan.campaign.sum.summation.by_operators:
        return (
            "Your phone cuts each number into two parts, which say nothing by themselves, and "
            "gives each of two organizations one of them. Each adds up the parts of all phones and "
            "adds random numbers of its own. Only then are the two totals put together. "
            + _CHECKED[plan.campaign.sum.summation.proved]
        )
    return (
        "To each number your phone adds random numbers of its own, and masks it with secrets that "
        "it shares with a few other phones. In the total of all phones the masks cancel, and a "
        "little of everybody's randomness is left."
    )


def _often(plan: CampaignPlan) -> Section:
    weeks = [each for each in plan.phases if each.kind is PhaseKind.STATISTICS]
    maps = [each for each in plan.phases if each.kind is PhaseKind.DISCOVERY]
    facts = [
        ("First week", window(weeks[0].since, weeks[0].until)),
        ("Last week", window(weeks[-1].since, weeks[-1].until)),
    ]
    if maps:
        days = [each.opens.date() for each in maps]
        facts.append(("New maps, from", listed([f"{day.day} {day:%b} {day.year}" for day in days])))
    return Section(
        "How often",
        (
            "Each week is counted once. Your phone is asked when the week has ended, and "
            f"{LATEST.days} days later at the latest; a week that cannot be counted until then is "
            "left out, and the results say so. Days begin and end in UTC.",
        ),
        tuple(facts),
    )


def _many(plan: CampaignPlan) -> Section:
    cohorts = plan.campaign.cohorts
    whose = f" of {listed(cohorts)}" if cohorts else ""
    return Section(
        "How many take part",
        (
            f"About {counted(plan.campaign.expected.phones, 'phone')}{whose} are expected in a "
            f"week. With its usual settings, your phone stays out of any count of fewer than "
            f"{Limits().least_phones}. The server knows which phones took part, but not what any "
            "of them said.",
        ),
    )


def _results(plan: CampaignPlan, public: Publication) -> Section:
    change, place = plan.reach.change, 100 * plan.reach.place
    told = (
        f"a change of less than {math.ceil(100 * change)} % from one week to the next cannot be "
        "told from chance"
        if change <= 1
        else "no change from one week to the next can be told, not even a doubling"
    )
    return Section(
        "Where the results are",
        (
            "Results are totals of all phones: for each week and place the number of contacts, "
            f"with its uncertainty. In a place with {place:.2g} % of the contacts, {told}.",
        ),
        address=public.results,
    )


def _cost(plan: CampaignPlan) -> Section:
    counts = "late and repeated counts"
    one, week = "one week's result", plan.confusion_week
    more: list[tuple[str, str]] = []
    if week is not None:
        one, first = "an ordinary week's result", "the first week after a map"
        more = [
            (f"Right about one contact that you named, from {first}", _cases(week.contact_guesses)),
            (f"Right about your phone, from {first}", _cases(week.guesses)),
        ]
    if plan.campaign.budget.continues:
        counts += " and a campaign that follows"
    return Section(
        "What it costs you",
        (
            "Think of somebody who knows everything about all other phones and reads all results, "
            "and who guesses whether your phone sent your contacts or zeros. Luck alone is right "
            "in 50 of 100 cases. The numbers below are for the worst case that can be thought of; "
            "real people know far less.",
            f"The promise behind these numbers holds over every 366 days, {counts} included: "
            f"ε = {real(_epsilon(plan, Unit.PHONE))} at δ = {real(TOLD_DELTA)} for everything that "
            "your phone sends. A smaller ε would hide more and tell less: with half of it, the "
            "randomness is nearly twice as large.",
        ),
        (
            (f"Right about one contact, from {one}", _cases(plan.contact_guesses)),
            (f"Right about your phone, from {one}", _cases(plan.week_guesses)),
            *more,
            ("Right about your phone, from all results of 366 days", _cases(plan.guesses)),
        ),
    )


def _cases(probability: float) -> str:
    return f"at most {math.ceil(100 * probability)}\u00a0of\u00a0100"


def _epsilon(plan: CampaignPlan, unit: Unit) -> float:
    return next(
        each.epsilon for each in plan.costs if (each.unit, each.delta) == (unit, TOLD_DELTA)
    )


def _trusted(plan: CampaignPlan, public: Publication) -> Section:
    if plan.campaign.sum.summation.by_operators:
        whom = (
            f"Two organizations add up: {public.authority} and {public.second_operator}. You trust "
            "that they never put their parts together, for then they could read what your phone "
            "sent; and that each adds its random numbers. Neither can cheat alone."
        )
    else:
        whom = (
            f"You trust {public.authority}, which runs the server, to keep to the rules. A server "
            "that cheats can read what single phones sent, with next to no randomness in it, and "
            "your phone would not notice."
        )
    return Section(
        "Whom you trust",
        (
            whom,
            "You need not trust anybody with your sound: your phone listens for one second, turns "
            "it into 128 numbers and forgets it. No word can be heard from them.",
        ),
    )


def _decided() -> Section:
    return Section(
        "What you decide",
        (
            "You can stop whenever you like. What was added up before cannot be taken out again, "
            "because nobody can tell which part of it was yours.",
            "Before anything leaves it, your phone writes into its ledger what that costs, and it "
            "refuses what exceeds its limits for one count, for a year or for its life. You can "
            "read the ledger. What your phone keeps of a contact is erased after "
            f"{_KEPT_DAYS} days.",
        ),
    )


def _exact(plan: CampaignPlan) -> Section:
    facts = [
        *(
            (
                f"Per {each.unit}, any 366 days",
                f"ε\u00a0=\u00a0{real(each.epsilon)} at δ\u00a0=\u00a0{real(each.delta)}",
            )
            for each in plan.costs
        ),
        ("Length B of a phone's counts", counted(plan.contacts, "contact")),
        ("Noise multiplier of a week", f"{plan.noise:g}"),
        *(
            [("In the first week after a map, over √2", f"{plan.noise / math.sqrt(2):.4g}")]
            if plan.confusion
            else []
        ),
        (
            "Standard deviation of the noise on a number",
            f"{real(plan.reach.entry_deviation)} contacts",
        ),
        ("Plan (SHA-256)", plan.digest),
    ]
    return Section(
        "For the careful reader",
        (
            "Per phone: everything that a phone sends, against zeros. Per recording: one contact "
            "more or less. Costs are composed as the phones' ledgers compose them.",
        ),
        tuple(facts),
    )


def _marked(text: str) -> str:
    """Return text in which Markdown finds no markup."""
    return _MARKUP.sub(r"\\\1", str(as_text(text)))


def _filled(text: str) -> str:
    return textwrap.fill(_marked(text), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _facts(facts: tuple[tuple[str, str], ...]) -> str:
    return "\n".join(f"- {_marked(name)}: {_marked(value)}" for name, value in facts)
