"""Plans of campaigns: what they cost over every 366 days, what they can tell, and who they are."""

from __future__ import annotations

import math
import random
from datetime import date, timedelta

import dp_accounting
import msgspec
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from support.campaigns import PLACES, campaign, changed, lean
from support.endings import discovered

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases import discovery_budget
from earshot_protocol.phases.acceptance import Limits, default_refusals
from earshot_protocol.privacy.accounting import TOLD_DELTA, Expense, epsilon_at
from earshot_protocol.privacy.events import SkellamSum
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import GRID, LEDGER_UNITS, Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_server.accounting.accountant import composed
from earshot_server.campaigns.campaign import (
    Campaign,
    CampaignBudget,
    ExpectedContacts,
    RepeatedDiscovery,
    SumOptions,
)
from earshot_server.campaigns.plan import CampaignPlan, Planning, planned
from earshot_server.campaigns.schedule import PhaseKind
from earshot_server.campaigns.spending import Releases, right_guesses, windows
from earshot_server.campaigns.weekly_sum import entry_deviation, histogram
from earshot_server.phases.places import agreed

BELL, SPLIT = SummationName.BELL, SummationName.TWO_OPERATORS
DAY = timedelta(days=1)
DELTAS = (TOLD_DELTA, Limits().largest_yearly_phone_delta)


@pytest.fixture(scope="module", params=[True, False], ids=["confusion", "counts alone"])
def planning(request: pytest.FixtureRequest) -> Planning:
    return Planning(campaign(sum=SumOptions(confusion=request.param)))


@pytest.fixture(scope="module")
def plan(planning: Planning) -> CampaignPlan:
    return planned(planning.campaign)


def cost(plan: CampaignPlan, unit: Unit, delta: float) -> tuple[float, float]:
    (found,) = [each for each in plan.costs if (each.unit, each.delta) == (unit, delta)]
    return found.epsilon, found.punctual_epsilon


def in_ledger(course: list[tuple[date, Releases]], unit: Unit, delta: float) -> float:
    """The largest ε of 366 days in the ledger of a phone that takes part on these days."""
    kept, most = Ledger(), 0.0
    for number, (day, each) in enumerate(sorted(course, key=lambda each: each[0])):
        kept.append(number.to_bytes(16), each.expenses, day)
        most = max(most, epsilon_at(delta, kept.expenses_of(unit, today=day)))
    return most


def test_the_budget_is_kept_and_used(plan: CampaignPlan) -> None:
    epsilon, in_time = cost(plan, Unit.PHONE, TOLD_DELTA)
    assert 7.99 < epsilon <= 8
    assert in_time < epsilon
    assert plan.noise == float(f"{plan.noise:.4g}")


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("unit", LEDGER_UNITS)
def test_in_time_a_plan_costs_what_ledgers_say_to_the_last_digit(
    plan: CampaignPlan, planning: Planning, unit: Unit, delta: float
) -> None:
    course = [(each.first, each) for each in planning.releases(0, plan.noise)]
    assert in_ledger(course, unit, delta) == cost(plan, unit, delta)[1]


@pytest.mark.parametrize("seed", range(6))
def test_no_course_of_events_costs_more(planning: Planning, seed: int) -> None:
    """Phases are late as chance has it, one discovery is repeated, and the campaign goes on."""
    chance = random.Random(seed)
    releases = planning.releases(56, planning.noise)
    course = []
    for each in releases:
        days = (each.last - each.first).days
        course.append((each.first + chance.choice((0, days, chance.randint(0, days))) * DAY, each))
    repeated = chance.choice([each for each in course if each[1].reserve])
    for unit in LEDGER_UNITS:
        for delta in DELTAS:
            most = max(epsilon_at(delta, each.expenses(unit)) for each in planning.windows)
            assert in_ledger([*course, repeated], unit, delta) <= most * (1 + 1e-12)


def test_windows_hold_what_any_366_days_may(planning: Planning) -> None:
    """Each day is looked at, not only those at which something changes."""
    releases = planning.releases(56, planning.noise)
    brute = 0.0
    for number in range(7 * 108):
        first = planning.campaign.begins + number * DAY
        within = [
            each for each in releases if each.first - first < 366 * DAY and each.last >= first
        ]
        spent = [e for each in within for e in each.expenses if e.release.unit is Unit.PHONE]
        found = [each for each in within if each.reserve]
        spent += [e for e in (found[0].expenses if found else ()) if e.release.unit is Unit.PHONE]
        brute = max(brute, epsilon_at(TOLD_DELTA, spent))
    most = max(epsilon_at(TOLD_DELTA, each.expenses(Unit.PHONE)) for each in planning.windows)
    assert brute == pytest.approx(most, rel=1e-12)


def test_a_release_may_be_as_late_as_its_phase_ends(planning: Planning) -> None:
    releases = planning.releases(0, planning.noise)
    for phase, each in zip(planning.phases, releases, strict=True):
        assert (each.kind, each.first) == (phase.kind, phase.opens.date())
        assert each.last == (phase.last + planning.lengths.of(phase.kind)).date()


def test_two_releases_share_366_days_if_365_lie_between() -> None:
    day, spent = date(2027, 1, 4), Planning(campaign()).releases(0, 1.0)[1].expenses
    for apart, together in ((365, 2), (366, 1)):
        course = [
            Releases(PhaseKind.STATISTICS, each, each, spent) for each in (day, day + apart * DAY)
        ]
        found = windows(course, day)
        assert max(each.weeks for each in found) == together
        assert all(each.last - each.first == 365 * DAY for each in found)


def test_a_window_with_a_reserve_is_not_one_without() -> None:
    day, spent = date(2027, 1, 4), Planning(campaign()).releases(0, 1.0)[0].expenses
    later = day + 400 * DAY
    course = [
        Releases(PhaseKind.DISCOVERY, each, each, spent, reserve)
        for each, reserve in ((day, 0), (later, 2))
    ]
    (found,) = windows(course, day)
    assert (found.first, found.discoveries, len(found.repeated)) == (later, 1, 2)


def test_a_window_with_a_confusion_matrix_is_not_one_without() -> None:
    """Also while the noise of both is sought, so that neither has expenses."""
    day = date(2027, 1, 4)
    course = [
        Releases(PhaseKind.STATISTICS, each, each, (), confusion=confusion)
        for each, confusion in ((day, False), (day + 400 * DAY, True))
    ]
    assert [each.unknown for each in windows(course, day)] == [(False,), (True,)]


@pytest.mark.parametrize("confusion", [True, False])
@pytest.mark.parametrize("summation", [BELL, SPLIT])
def test_never_below_an_independent_accountant(summation: SummationName, confusion: bool) -> None:
    made = Planning(changed(lean(5000, summation), "sum", confusion=confusion))
    (window,) = made.punctual_windows
    events = window.events(Unit.PHONE)
    ours = epsilon_at(TOLD_DELTA, window.expenses(Unit.PHONE))
    # The last digit depends on the order in which events are added up, which sets do not keep.
    assert composed(events).epsilon * (1 - 1e-12) <= ours <= 1.03 * composed(events).epsilon
    # Of these 52 weeks, four cost as much as two.
    noises = [made.noise] * (52 + 4 * confusion)
    if made.discovery is not None:
        noises += [made.discovery.cells_noise] * discovery_budget.SUMS * 4
        noises += [made.discovery.labels_noise] * 4
    # Noise that sums hold is at least as good as continuous noise of this variance is.
    for accountant in (RdpAccountant(), PLDAccountant(value_discretization_interval=1e-3)):
        # Gaussian noises compose to one: their inverse squares add up.
        one = 1 / math.sqrt(math.fsum(noise**-2 for noise in noises))
        accountant.compose(dp_accounting.GaussianDpEvent(one))
        assert accountant.get_epsilon(TOLD_DELTA) <= ours * (1 + 1e-9)


def test_the_noise_of_the_design() -> None:
    """52 weeks and 4 discoveries at 1.5 for ε = 8: ρ = .0162 a week, a multiplier of 5.55."""
    split, bell = (
        Planning(changed(lean(5000, summation), "sum", confusion=False))
        for summation in (SPLIT, BELL)
    )
    assert split.noise == pytest.approx(5.55, abs=0.01)
    assert bell.noise == pytest.approx(5.68, abs=0.01)  # as ledgers count noise in shares
    entries = [
        entry_deviation(msgspec.structs.replace(each.week, contacts=1)) for each in (bell, split)
    ]
    stay = math.sqrt(5000 / 3750)
    assert entries == pytest.approx([5.68 * stay, 5.55 * math.sqrt(2)], rel=3e-3)


@pytest.mark.parametrize("summation", [BELL, SPLIT])
def test_four_confusion_matrices_cost_a_year_as_much_as_four_weeks(
    summation: SummationName,
) -> None:
    alone, both = (
        Planning(changed(lean(5000, summation), "sum", confusion=asked)) for asked in (False, True)
    )
    assert both.noise == pytest.approx(alone.noise * math.sqrt(56 / 52), rel=2e-3)
    asked = [each.number for each in both.phases if each.confusion]
    assert asked == [1, 14, 27, 40]
    assert not any(each.confusion for each in alone.phases)
    assert alone.confusion_week is None
    assert both.confusion_week is not None
    assert both.confusion_week.entries == both.week.entries + 12**2
    # Counts of a week with a matrix are as noisy as those of any other.
    deviations = [entry_deviation(each) for each in (both.week, both.confusion_week)]
    assert deviations[1] == pytest.approx(deviations[0], rel=1e-3)


def test_people_are_told_how_many_numbers_a_phone_sends(planning: Planning) -> None:
    assert planning.campaign.entries == planning.week.entries == 2 * len(planning.week.labels) + 1


def test_a_recording_is_one_over_b_of_a_phone(planning: Planning) -> None:
    mechanism = histogram(planning.week).mechanism
    assert mechanism.sensitivity(Unit.PHONE) == GRID  # type: ignore[attr-defined]
    one = mechanism.sensitivity(Unit.RECORDING)  # type: ignore[attr-defined]
    assert one == pytest.approx(GRID / planning.week.contacts, abs=math.sqrt(25))


@pytest.mark.parametrize(
    ("phones", "least", "most"), [(5000, 0.5, 0.7), (20_000, 0.18, 0.25), (100_000, 0.05, 0.065)]
)
def test_the_smallest_changes_of_the_design(phones: int, least: float, most: float) -> None:
    """For a place of 5 % and two operators; one of 10 % needs about half the change."""
    assert least < planned(lean(phones, SPLIT)).reach.change < most


def test_a_place_has_two_numbers_where_a_map_names_contacts() -> None:
    reaches = [
        Planning(chosen).reach(5000)
        for chosen in (campaign(discovery=None), campaign(), campaign(discovery=None, map="0" * 32))
    ]
    factors = [each.deviation / each.entry_deviation for each in reaches]
    assert factors == pytest.approx([1, math.sqrt(2), math.sqrt(2)])


def test_a_large_crowd_is_told_about_two_operators() -> None:
    small, large = (planned(lean(phones, BELL)) for phones in (5000, 100_000))
    assert (small.crowd_factor, large.crowd_factor) == (1, pytest.approx(math.sqrt(7.5)))
    assert small.operators_factor == pytest.approx(0.84, abs=0.01)
    assert large.operators_factor == pytest.approx(2.29, abs=0.01)
    assert planned(lean(100_000, SPLIT)).operators_factor is None


def test_the_crowd_for_ten_per_cent_tells_ten_per_cent() -> None:
    made = Planning(lean(5000, SPLIT))
    needed = planned(lean(5000, SPLIT)).phones_needed
    assert needed is not None
    assert made.reach(needed).change <= 0.1 < made.reach(round(0.95 * needed)).change


# ------------------------------------------------------------------------- campaigns in a row


def followed(before: Campaign, **changes: object) -> Campaign:
    return campaign(begins=before.ends, follows=before, **changes)


@pytest.mark.parametrize("changes", [{}, {"map": "0" * 32}, {"map": "0" * 32, "discovery": None}])
def test_the_same_campaign_can_follow_without_a_break(changes: dict[str, object]) -> None:
    changes |= {"sum": SumOptions(confusion=True)}
    first = campaign(**changes)
    second = Planning(followed(first, **changes))
    assert second.noise == Planning(first).noise
    third = Planning(followed(second.campaign, **changes))
    assert third.noise == second.noise
    assert max(each.weeks for each in third.windows) == 55


def test_one_that_leaves_nothing_for_the_next_is_told_what_would_fit() -> None:
    first = lean(5000, BELL)
    with pytest.raises(InvalidParametersError, match=r"nothing fits.*the campaign before") as told:
        planned(followed(first))
    day = str(told.value).split("from=")[1][:10]
    apart = followed(first)
    later = msgspec.structs.replace(apart, begins=date.fromisoformat(day))
    assert Planning(later).noise == Planning(campaign()).noise


def test_last_year_counts_where_366_days_reach_back() -> None:
    short = campaign(weeks=8, budget=CampaignBudget(epsilon=4, continues=False))
    alone = Planning(campaign(begins=short.ends))
    after = Planning(followed(short))
    assert after.noise > alone.noise
    assert max(each.weeks for each in after.windows) == 55
    epsilon, _ = cost(planned(after.campaign), Unit.PHONE, TOLD_DELTA)
    assert 7.9 < epsilon <= 8


def test_a_campaign_that_takes_another_s_place_ends_it() -> None:
    first = campaign(budget=CampaignBudget(continues=False))
    instead = Planning(campaign(begins=first.begins + 13 * 7 * DAY, follows=first, labels=("a",)))
    ours = instead.campaign.begins
    weeks, discoveries = (
        [each.first for each in before_this(instead) if each.kind is kind] for kind in PhaseKind
    )
    assert (weeks[-1], len(weeks), len(discoveries)) == (ours, 13, 1)


def before_this(made: Planning) -> list[Releases]:
    """What the campaigns before release; their last week ends as this one's first begins."""
    every = made.releases(0, 1.0)
    return every[: len(every) - len(made.phases)]


def test_a_dear_campaign_long_ago_does_not_matter() -> None:
    dear = campaign(weeks=8, budget=CampaignBudget(epsilon=12, continues=False))
    little = CampaignBudget(epsilon=4)
    cheap = campaign(begins=date(2029, 1, 1), follows=dear, discovery=None, budget=little)
    assert Planning(cheap).noise == Planning(campaign(discovery=None, budget=little)).noise


def test_phases_wait_until_the_campaign_before_has_ended() -> None:
    before = campaign(weeks=14)
    second = planned(followed(before, weeks=2))
    last = planned(before).phases[-1]
    assert last.latest > last.expected
    assert second.phases[0].expected == last.latest + 4 * DAY
    assert second.life == planned(campaign(weeks=2)).life


ONE_DEAR_DISCOVERY = campaign(
    weeks=1,
    budget=CampaignBudget(continues=False),
    discovery=RepeatedDiscovery(epsilon=9, retries=0),
)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (campaign(discovery=RepeatedDiscovery(epsilon=7)), r"6 discoveries, repeated ones incl"),
        (campaign(discovery=RepeatedDiscovery(epsilon=50)), r"discovery: epsilon=50.*give at most"),
        (ONE_DEAR_DISCOVERY, r"nothing fits: 1 discovery within 366 days from 2027-01-26"),
        (
            changed(campaign(discovery=None), "budget", epsilon=0.01),
            r"a week's sum: .*noise is too large.*a larger epsilon or more phones",
        ),
        (campaign(discovery=RepeatedDiscovery(every_weeks=1)), r"fewer or cheaper discoveries"),
        (
            campaign(discovery=RepeatedDiscovery(every_weeks=1, retries=53)),
            r"no budget.epsilon would leave half to the weekly sums; or fewer or cheaper",
        ),
        (campaign(budget=CampaignBudget(epsilon=1)), r"budget.epsilon=1: nothing fits"),
        (changed(campaign(), "expected", phones=4), r"phones"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_what_would_fit(wrong: Campaign, said: str) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        planned(wrong)


def test_the_epsilon_that_is_proposed_fits() -> None:
    with pytest.raises(InvalidParametersError) as told:
        planned(campaign(budget=CampaignBudget(epsilon=1)))
    proposed = float(str(told.value).split("budget.epsilon=")[2].split()[0])
    assert Planning(campaign(budget=CampaignBudget(epsilon=proposed))).noise < 20


# ----------------------------------------------------------------------------- who a plan is


def test_a_digest_covers_everything_that_a_phase_depends_on() -> None:
    plan = planned(campaign())
    others = [
        campaign(name="Contacts in the south, 2027"),
        campaign(begins=date(2027, 1, 5)),
        campaign(weeks=51),
        campaign(labels=tuple(reversed(PLACES))),
        campaign(choices=(("x",), *(((),) * 11))),
        campaign(cohorts=("north",)),
        campaign(map="0" * 32),
        campaign(sum=SumOptions(contacts=9)),
        campaign(sum=SumOptions(summation=SPLIT)),
        campaign(sum=SumOptions(confusion=True)),
        campaign(sum=SumOptions(confusion=False)),
        campaign(budget=CampaignBudget(epsilon=7)),
        campaign(discovery=RepeatedDiscovery(retries=0)),
        campaign(follows=campaign(begins=date(2020, 1, 1))),
        campaign(follows=campaign(begins=date(2020, 1, 2))),
    ]
    digests = {Planning(other).digest for other in others} | {plan.digest}
    assert len(digests) == len(others) + 1
    assert plan.digest == Planning(campaign()).digest
    assert len(bytes.fromhex(plan.digest)) == 32


def test_a_default_phone_takes_part_for_years(plan: CampaignPlan) -> None:
    assert plan.refusals == ()
    assert plan.life == 14
    dear = planned(changed(campaign(), "budget", epsilon=11))
    assert [each.rule for each in dear.refusals] == ["largest_yearly_phone_epsilon"]
    few = planned(changed(campaign(), "expected", phones=99))
    assert "least_phones" in [each.rule for each in few.refusals]


def test_a_week_costs_no_more_than_a_default_phone_accepts() -> None:
    """However large the budget, or few the weeks, and whether or not it has a matrix."""
    mapped, asked = "0" * 32, SumOptions(confusion=True)
    for few in (
        campaign(weeks=2, discovery=None, budget=CampaignBudget(continues=False)),
        campaign(discovery=None, budget=CampaignBudget(epsilon=1e6)),
        campaign(discovery=None, budget=CampaignBudget(epsilon=1e6), map=mapped, sum=asked),
    ):
        made = Planning(few)
        limits, weeks = Limits(), [made.week]
        if made.confusion_week is not None:
            found = discovered(encoder=DEFAULT_ENCODER, label_names=PLACES[:2])
            places = agreed(found, None, LabelHierarchy.flat(PLACES))
            weeks.append(msgspec.structs.replace(made.confusion_week, places=places))
        spent = made.expenses_of_a_week(Unit.PHONE, made.confusion)
        week = epsilon_at(limits.largest_phone_delta, spent)
        assert 0.999 * limits.largest_phone_epsilon < week <= limits.largest_phone_epsilon
        for each in weeks:
            each.check_feasible()
            assert not any(default_refusals(each))


def crowd(phones: int, summation: SummationName, **changes: object) -> Campaign:
    expected = ExpectedContacts(phones=phones)
    return campaign(expected=expected, sum=SumOptions(summation=summation), **changes)


@pytest.mark.parametrize("summation", [BELL, SPLIT])
def test_correction_is_proposed_where_noise_leaves_it_something_to_correct(
    summation: SummationName,
) -> None:
    few, many = (crowd(phones, summation) for phones in (3000, 5000))
    assert [Planning(each).confusion for each in (few, many)] == [False, True]
    # It must be asked for, or refused, by hand otherwise.
    assert Planning(changed(few, "sum", confusion=True)).confusion
    assert not Planning(changed(many, "sum", confusion=False)).confusion
    without = Planning(changed(few, "sum", confusion=False))
    assert (Planning(few).noise, Planning(few).phases) == (without.noise, without.phases)
    # Without a map there are no names.
    assert not Planning(crowd(5000, summation, discovery=None)).confusion
    assert Planning(crowd(5000, summation, discovery=None, map="0" * 32)).confusion


def test_guesses_are_bounded_by_what_noise_allows() -> None:
    """Gaussian noise that moves by μ deviations lets nobody be right more often than Φ(μ/2)."""
    from statistics import NormalDist

    made = Planning(lean(5000, SPLIT))
    (window,) = made.punctual_windows
    for expenses in (window.expenses(Unit.PHONE), made.expenses_of_a_week(Unit.PHONE)):
        rho = math.fsum(each.event.rho for each in expenses)  # type: ignore[union-attr]
        exact = NormalDist().cdf(math.sqrt(2 * rho) / 2)
        assert exact <= right_guesses(expenses) <= exact + 0.11
    assert right_guesses(()) == 0.5


def test_guesses_count_how_far_real_sums_are_from_ideal_ones() -> None:
    release, _ = Planning(campaign()).expenses_of_a_week(Unit.PHONE)[0]
    event = SkellamSum(1e12, 1.0, 1.0, statistical_security=8)
    guesses = right_guesses([Expense(release, event)])
    assert guesses >= (1 + 2 * 2.0**-8) / 2
