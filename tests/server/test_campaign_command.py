"""`earshot campaign plan`: what it prints, and how it ends."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import msgspec
import pytest
from support.campaigns import MINIMAL, campaign, changed, lean
from support.command import earshot
from support.documented import blocks

from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import (
    Campaign,
    CampaignBudget,
    ExpectedContacts,
    Publication,
    RepeatedDiscovery,
    SumOptions,
)
from earshot_server.campaigns.campaign_file import read_campaign
from earshot_server.campaigns.plan import CampaignPlan, planned
from earshot_server.commands.campaign import forecast
from earshot_server.dashboard.wording import byte_size

GUIDE_FOR_PEOPLE = (Path(__file__).parents[2] / "docs/privacy-for-people.md").read_text("utf-8")
GUIDE = (Path(__file__).parents[2] / "docs/campaigns.md").read_text("utf-8")
GOLDEN = """\
Contacts in the north, 2027: 3 weeks, 4 Jan to 24 Jan 2027 (UTC), cohort north
  phase           counts                       opens        at the latest  expected
  week 1          4 Jan to 10 Jan 2027         11 Jan 2027  25 Jan 2027    11 Jan 2027, 00:00
  week 2          11 Jan to 17 Jan 2027        18 Jan 2027  1 Feb 2027     18 Jan 2027, 00:00
  week 3          18 Jan to 24 Jan 2027        25 Jan 2027  8 Feb 2027     25 Jan 2027, 00:00
a week's phase takes up to 2 days 12 h, if the helper answers immediately; a phone is in one phase \
at a time: all open in time; no phase opens late
a phone spends in any 366 days at most (3 weekly sums, no discovery: phases may be late), and in \
time
  per recording   δ = 10⁻⁶   ε = 0.909   ε = 0.909
  per recording   δ = 10⁻⁴   ε = 0.681   ε = 0.681  (a default phone accepts 30)
  per phone       δ = 10⁻⁶   ε = 4.1     ε = 4.1
  per phone       δ = 10⁻⁴   ε = 3.25    ε = 3.25  (a default phone accepts 8)
a default phone takes part in 39 such campaigns during its life
each week a phone sends 5 numbers, its contacts by label, and unknown, as no map names them, \
projected to a length of B = 4 contacts
"""
SHORT = """\
name = "Contacts in the north, 2027"
cohorts = ["north"]
from = 2027-01-04
weeks = 3
labels = ["train", "office"]

[budget]
continues = false

[expected]
phones = 2000

[sum]
contacts = 4
summation = "two-operators"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "north.toml"
    place.write_text(SHORT, "utf-8")
    return place


def test_it_prints_phases_costs_and_a_verdict(file: Path) -> None:
    shown = earshot("campaign", "plan", file)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    past = [line for line in lines if "is in the past" in line]
    assert bool(past) == (date(2027, 1, 4) < date.today())
    assert "\n".join(line for line in lines if line not in past).startswith(GOLDEN)
    week = planned(read_campaign(file)).week_bytes
    place = lines.index(f"for a week a phone sends {byte_size(week.sent)}")
    assert f"all phones together {byte_size(2000 * week.sent)}; " in lines[place + 1]
    assert f"keeps up to {byte_size(week.server)} at a time" in lines[place + 1]
    assert f"the helper’s disk keeps up to {byte_size(week.helper)}, " in lines[place + 2]
    assert lines[-2] == f"plan {planned_in(file)['digest']}"
    assert lines[-1].startswith("2\u202f000 phones can tell a change of ")


def planned_in(file: Path) -> dict[str, object]:
    found = json.loads(earshot("campaign", "plan", file, "--json").stdout)
    assert set(found) == {"plan", "verdict"}
    plan: dict[str, object] = found["plan"]
    return plan


def test_json_holds_the_whole_plan(file: Path) -> None:
    plan = msgspec.convert(planned_in(file), CampaignPlan)
    assert plan == planned(plan.campaign)
    assert [str(phase.since) for phase in plan.phases] == ["2027-01-04", "2027-01-11", "2027-01-18"]


def test_a_plan_that_cannot_run_ends_with_one(tmp_path: Path) -> None:
    few = tmp_path / "few.toml"
    few.write_text(SHORT.replace("2000", "50"), "utf-8")
    shown = earshot("campaign", "plan", few)
    assert shown.returncode == 1
    assert "default phones refuse it (too few phones take part)" in shown.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MINIMAL.replace("weeks = 52", "weeks = 0"), "weeks=0: must be a whole number"),
        (f"{MINIMAL}[discovery]\nepsilon = 7", "nothing fits: 6 discoveries, repeated ones"),
    ],
)
def test_a_mistake_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(text, "utf-8")
    shown = earshot("campaign", "plan", wrong)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert said in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_the_past_is_noted(file: Path) -> None:
    plan = planned(campaign(weeks=1, discovery=None))
    begins = plan.campaign.begins
    noted = [line for line in forecast.lines(plan, date(2027, 1, 5)) if "past" in line]
    assert noted == [
        "4 Jan 2027 is in the past: this can be planned, but a campaign starts today or later"
    ]
    assert not [line for line in forecast.lines(plan, begins) if "past" in line]


def test_a_verdict_says_what_would_be_better() -> None:
    large = planned(lean(100_000, SummationName.BELL))
    assert forecast.verdict(large).endswith(
        '; proposed: two operators (sum.summation = "two-operators"), whose noise is 2.29 times '
        "smaller"
    )
    assert "in a crowd of 100\u202f000 it is 2.74 times as large" in "\n".join(
        forecast.lines(large, date.min)
    )
    tiny = planned(changed(campaign(weeks=1, discovery=None), "expected", phones=100, place=0.001))
    assert forecast.verdict(tiny).startswith(
        "100 phones cannot tell even a doubling between two weeks in a place with 0.1 %"
    )
    never = msgspec.structs.replace(tiny, phones_needed=None)
    assert "; no crowd would tell 10 %" in forecast.verdict(never)


@pytest.mark.slow
def test_the_guide_has_the_changes_that_plans_have() -> None:
    table = GUIDE.partition("<!-- made by the plans")[2].partition("<!-- end")[0]
    rows = re.findall(r"^\| ([\d,]+) \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) == 3
    for phones, told in rows:
        expected = [
            planned(changed(lean(int(phones.replace(",", "")), by), "expected", place=place))
            for by in (SummationName.BELL, SummationName.TWO_OPERATORS)
            for place in (0.05, 0.1)
        ]
        assert told.split(" | ") == [f"{100 * plan.reach.change:.2g} %" for plan in expected]


def test_the_guide_says_what_each_budget_buys_and_tells() -> None:
    table = GUIDE.partition("<!-- made by plans of each ε")[2].partition("<!-- end ε")[0]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", table, re.MULTILINE)
    assert [epsilon for epsilon, _ in rows] == ["2", "4", "8", "16"]
    for epsilon, told in rows:
        plans = [
            planned(
                campaign(
                    budget=CampaignBudget(epsilon=float(epsilon)),
                    expected=ExpectedContacts(phones=phones),
                    sum=SumOptions(summation=SummationName.TWO_OPERATORS),
                    discovery=None,
                )
            )
            for phones in (5_000, 20_000, 100_000)
        ]
        least, *_ = plans
        guesses = (least.contact_guesses, least.week_guesses, least.guesses)
        assert told.split(" | ") == [
            *(f"{100 * plan.reach.change:.2g} %" for plan in plans),
            *(f"{math.ceil(100 * each)} of 100" for each in guesses),
        ]
        # The last row is there to say why not: a default phone refuses it.
        assert bool(least.refusals) == (epsilon == "16")


def test_people_read_what_a_year_costs_at_most() -> None:
    page = " ".join((GUIDE_FOR_PEOPLE).split())
    # With one server, and without discoveries, a week tells most.
    mapped = campaign(discovery=None, map="0" * 32)
    least = [campaign(discovery=None), mapped]
    plans = [planned(each) for each in (lean(5_000, SummationName.BELL), *least)]
    firsts = [plan.confusion_week for plan in plans if plan.confusion_week is not None]
    assert f"at most {_most(plan.week_guesses for plan in plans)} times out of 100, and" in page
    assert f"about a single contact {_most(plan.contact_guesses for plan in plans)} times" in page
    first, labelled = _most(each.guesses for each in firsts), [e.contact_guesses for e in firsts]
    assert f"it is {first} times, and {_most(labelled)} about a contact that you labelled" in page
    assert f"more: at most {_most(plan.guesses for plan in plans)} times out of 100" in page


def _most(guesses: Iterable[float]) -> int:
    return math.ceil(100 * max(guesses))


def test_the_guide_s_first_plan_costs_what_it_says(tmp_path: Path) -> None:
    first, public = blocks(GUIDE, "toml")
    file = tmp_path / "north.toml"
    file.write_text(first + public, "utf-8")
    plan = msgspec.convert(planned_in(file), CampaignPlan)
    week, contact, year = (
        math.ceil(100 * each) for each in (plan.week_guesses, plan.contact_guesses, plan.guesses)
    )
    said = f"at most {week} of 100 from one week, {contact} about one contact, and {year} from all"
    assert said in " ".join(GUIDE.split())


def test_the_guide_names_every_key() -> None:
    keys = set(re.findall(r"^\| (`[^|]+`) \|", GUIDE.split("## Slots")[0], re.MULTILINE))
    named = {name for key in keys for name in re.findall(r"`([^`]+)`", key)}
    tables = {"budget": CampaignBudget, "expected": ExpectedContacts, "sum": SumOptions}
    tables |= {"discovery": RepeatedDiscovery, "public": Publication}
    inner = {
        f"{table}.{field.encode_name}"
        for table, kind in tables.items()
        for field in msgspec.structs.fields(kind)
    }
    outer = {field.encode_name for field in msgspec.structs.fields(Campaign)}
    assert named == inner | (outer - {"choices", *tables})


def test_a_plan_says_in_which_weeks_it_has_a_confusion_matrix() -> None:
    shown = forecast.lines(planned(campaign(weeks=15)), date.min)
    matched = [line.split()[:2] for line in shown if line.endswith(", with a confusion matrix")]
    assert matched == [["week", "1"], ["week", "14"]]
    told = "\n".join(shown)
    assert "(55 weekly sums, 5 of them with a confusion matrix, 6 discoveries" in told
    assert "in the first week after each map 144 more" in told
    assert "(a confusion matrix, proposed), at the cost of two weeks" in told
    for each in ("a week", "a week with a confusion matrix", "a discovery"):
        assert f"for {each} a phone sends " in told
    asked = planned(changed(campaign(weeks=15), "sum", confusion=True))
    assert "(a confusion matrix), at the cost of two weeks" in "\n".join(
        forecast.lines(asked, date.min)
    )


def test_a_plan_says_why_it_proposes_no_confusion_matrix() -> None:
    few = changed(campaign(weeks=15), "expected", phones=2000)
    said = "noise on the place of interest is 24 % of its contacts, and correction pays up to about"
    assert f"{said} 15 %" in "\n".join(forecast.lines(planned(few), date.min))
    refused = planned(changed(few, "sum", confusion=False))
    assert "confusion" not in "\n".join(forecast.lines(refused, date.min))


def test_phases_that_do_not_fit_are_named() -> None:
    plan = planned(campaign(weeks=20, discovery=RepeatedDiscovery(retries=2, epsilon=1)))
    assert "do not fit one after another: week 1 may open too late" in forecast.verdict(plan)
    shown = forecast.lines(plan, date.min)
    assert "  week 14: 3 May 2027, 00:00" in shown
