"""The dashboard's pages: what they say of every kind of phase, and how well-formed they are."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from html.parser import HTMLParser

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import dashboard_records as made
from support.dashboard_server import PAGES, application
from support.hand_made_campaigns import HandMadeCampaigns
from support.steps import STEPS, Step

from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Result
from earshot_protocol.privacy.accounting import Expense
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.wire import Matrix
from earshot_server.accounting.accountant import ADDED_UP, AS_PHONES_DO, Composed, composed_total
from earshot_server.campaigns.conduct import StartedCampaign
from earshot_server.dashboard import wording
from earshot_server.dashboard.spending import OF_NAMED_RECORDINGS
from earshot_server.phases.costs import together
from earshot_server.phases.spending import expenses_of
from earshot_server.records import FAILED, PhaseRecord, StepRecord
from earshot_server.store.database import DatabaseUnavailableError

HOSTILE = "<img src=x onerror=alert(1)>\"'&\u202e"
INLINE = {"a", "abbr", "code", "strong", "sup", "time"}
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """A page's elements and words; asserts that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words, self.prose = "", ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []
        self.words = re.sub(r"\s+", " ", self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag not in INLINE:
            self.words += " "

    def handle_data(self, data: str) -> None:
        self.words += data
        if not {"code", "script"} & set(self._open):
            self.prose += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def values(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]


def page(path: str, records: Sequence[PhaseRecord], *, enrolled: int = 214) -> Page:
    client = application(made.HandMadeArchive(records, enrolled)).test_client()
    response = client.get(path)
    assert response.status_code == 200
    assert response.mimetype == "text/html"
    return Page(response.text)


def phase_page(record: PhaseRecord) -> Page:
    return page(f"/phases/{record.phase.hex()}", [record])


PHASES = {
    "gathering": made.gathering(),
    "running": made.running(),
    "published": made.published_learning(10, made.NOW),
    "histogram": made.published_statistics(30, made.NOW),
    "failed": made.too_few(),
    "stopped": made.stopped(),
    "never started": made.never_started(),
    "refused": msgspec.structs.replace(made.running(), refusals=dict.fromkeys(map(str, Rule), 3)),
}
EVERY_PAGE: dict[str, tuple[str, tuple[PhaseRecord, ...]]] = {
    f"{page} {name}": (page.replace("<name>", record.phase.hex()), (record,))
    for page in PAGES
    if "<name>" in page
    for name, record in PHASES.items()
} | {
    f"{page} {name}": (page, records)
    for page in PAGES
    if "<name>" not in page
    for name, records in {"of months": made.some_months(), "of nothing": ()}.items()
}


def pages_over(*records: PhaseRecord) -> set[str]:
    """Paths of all pages over these phases."""
    return {page.replace("<name>", each.phase.hex()) for page in PAGES for each in records}


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_every_page_is_well_formed(name: str) -> None:
    shown = page(*EVERY_PAGE[name])
    assert shown.all("html")[0]["lang"] == "en"
    assert len(shown.all("main")) == len(shown.all("h1")) == 1
    assert " · Earshot " in shown.words
    identifiers = shown.values("id")
    assert Counter(identifiers).most_common(1)[0][1] == 1
    referred = " ".join(shown.values("aria-labelledby")).split()
    assert set(referred) <= set(identifiers)
    framed = {"header", "nav", "footer"} <= {tag for tag, _ in shown.elements}
    assert framed is not name.startswith("/phases/<name>/wall")  # which a room reads from afar
    assert len(shown.all("caption")) == len(shown.all("table"))
    assert all(head.get("scope") in ("col", "row", "colgroup") for head in shown.all("th"))
    for time in shown.all("time"):
        datetime.strptime(time["datetime"] or "", "%Y-%m-%dT%H:%M:%S%z")
    levels = [int(tag[1]) for tag, _ in shown.elements if re.fullmatch("h[1-6]", tag)]
    # No level is skipped on the way down.
    assert all(after <= before + 1 for before, after in zip([0, *levels], levels, strict=False))


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_no_page_shows_an_identifier_outside_code(name: str) -> None:
    assert re.findall(r"[^\W_]+_\w+", page(*EVERY_PAGE[name]).prose) == []


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_every_page_suits_a_strict_policy_and_loads_nothing_from_elsewhere(name: str) -> None:
    shown = page(*EVERY_PAGE[name])
    assert shown.values("style") == []
    assert shown.all("style") == []
    assert all(script.get("src", "").startswith("/static/") for script in shown.all("script"))
    attributes = {key for _, found in shown.elements for key in found}
    assert not [key for key in attributes if key.startswith("on")]
    loaded = shown.values("src") + shown.values("href")
    assert all(address.startswith(("/", "?", "#")) and "//" not in address for address in loaded)


@pytest.mark.parametrize("name", ["dashboard.css", "renew.js", "icon.svg"])
def test_static_files_are_served_and_name_no_other_host(name: str) -> None:
    response = (
        application(made.HandMadeArchive(())).test_client().get(f"/static/{name}", buffered=True)
    )
    assert response.status_code == 200
    assert set(re.findall(r"https?://[^\"' ]+", response.text)) <= {"http://www.w3.org/2000/svg"}


def test_responses_carry_a_policy_without_anything_inline() -> None:
    response = application(made.HandMadeArchive(())).test_client().get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


# ------------------------------------------------------------------------------ the overview


def test_overview_shows_counts_and_every_phase_with_its_status() -> None:
    records = made.some_months()
    shown = page("/", records)
    assert "2 phases under way, 12 results published" in shown.words
    assert "214 phones enrolled" in shown.words or "phones enrolled 214" in shown.words
    assert "48.3 MB" in shown.words
    links = Counter(link["href"] for link in shown.all("a"))
    for record in records:
        under_way = record.ending is None
        assert links[f"/phases/{record.phase.hex()}"] == (2 if under_way else 1)
    for status, number in (("gathering", 2), ("running", 2), ("published", 12), ("failed", 2)):
        assert shown.values("class").count(f"status {status}") == number
    assert "37 phones have joined in time" in shown.words


def test_overview_of_a_running_phase_says_how_far_it_is() -> None:
    shown = page("/", [made.running(answered=131)])
    assert "Centroid vote: masked input" in shown.words
    assert "step 4 of 9" in shown.words
    assert "131 of 190 phones have answered; 160 must." in shown.words
    assert "22 Sep 2026, 05:13 UTC (in 15 hours)" in shown.words


def test_overview_of_a_gathering_phase_says_who_is_missing() -> None:
    shown = page("/", [made.gathering()])
    assert "64 of 200 phones have joined" in shown.words
    assert "at least 120" in shown.words


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (msgspec.structs.replace(made.running(), deadline=made.NOW - 300), "this step was over"),
        (
            msgspec.structs.replace(made.gathering(), gather_until=made.NOW - 300),
            "this gathering was over",
        ),
    ],
)
def test_what_is_overdue_is_said(record: PhaseRecord, words: str) -> None:
    for shown in (page("/", [record]), phase_page(record)):
        assert words in shown.words
        assert "14:08 UTC (5 minutes ago)" in shown.words


@pytest.mark.parametrize("enrolled", [0, 7])
def test_empty_overview_says_what_to_do_first(enrolled: int) -> None:
    shown = page("/", (), enrolled=enrolled)
    assert shown.all("table") == []
    assert "earshot invite" in shown.words
    assert "earshot phase start" in shown.words
    assert ("7 phones can take part" in shown.words) == (enrolled == 7)


def test_only_pages_with_something_under_way_renew_themselves() -> None:
    assert page("/", [made.running()]).all("script")
    assert phase_page(made.gathering()).all("script")
    assert not page("/", [made.too_few()]).all("script")
    assert not phase_page(made.published_learning(10, made.NOW)).all("script")


# ------------------------------------------------------------------------------- one phase


def test_running_phase_lists_its_steps_and_what_lies_ahead() -> None:
    shown = phase_page(made.running(answered=131))
    assert "Local centroids 21 Sep 2026, 02:13 UTC 200 192 1 h" in shown.words
    assert "Centroid vote: masked input 21 Sep 2026, 05:13 UTC 190 131 so far –" in shown.words
    assert shown.words.count("to come") == 5
    assert "Paid so far" in shown.words


def test_gathering_phase_shows_no_steps_and_nothing_paid() -> None:
    shown = phase_page(made.gathering())
    assert "Participation" not in shown.words
    assert "Paid so far 0 0 0 0" in shown.words


def test_published_phase_lists_environments_with_their_votes() -> None:
    record = made.published_learning(10, made.NOW)
    result = record.ending
    assert isinstance(result, Result)
    shown = phase_page(record)
    named = 8 - result.names.count(None)
    assert 0 < named < 7, "noise leaves some without a name that have votes"
    assert f"183 of 200 phones stayed: they found 8 environments and named {named}" in shown.words
    for number, (label, votes) in enumerate(
        zip(result.labels, result.centroid_votes, strict=True), start=1
    ):
        of_labels = result.label_votes[number - 1]
        name, own, why = "unnamed", "–", ""
        if label >= 0:
            name, own = result.label_names[label], wording.whole(of_labels[label])
        else:
            leading = result.label_names[result.leading[number - 1]]
            p_value = wording.real(result.name_p_values[number - 1])
            why = (
                f" {wording.whole(max(of_labels))} votes for {leading}, may be noise: p = {p_value}"
            )
        kept = result.centroid_p_values[number - 1]
        doubt = f" may be noise: p = {wording.real(kept)}" if kept > 0.05 else ""
        assert f"{number} {name}{why} {votes}{doubt} {own}" in shown.words
        row = " ".join(wording.whole(each) for each in of_labels)
        assert f"{number} {name} {row}" in shown.words
    assert [svg for svg in shown.all("svg") if svg.get("role") == "img"]


def test_environments_are_sorted_by_votes_and_cut_off_at_a_hundred() -> None:
    record = made.published_learning(10, made.NOW, environments=130)
    votes = tuple(range(130))
    ending = msgspec.structs.replace(record.ending, centroid_votes=votes)
    shown = phase_page(msgspec.structs.replace(record, ending=ending))
    assert "Shown are the 100 with the most votes, of 130" in shown.words
    assert re.search(r" 1 unnamed −1 votes for [a-z ]+, may be noise: p = 1 129 ", shown.words)
    assert shown.values("class").count("number") > 100
    assert len([each for each in shown.values("class") if each.startswith("place ")]) == 100


def said(costs: Iterable[Composed]) -> str:
    """What steps cost together, as tables say it."""
    return " ".join(
        f"{wording.real(cost.epsilon)} {wording.real(cost.delta)}"
        + ("" if cost.method == ADDED_UP else ", composed")
        for cost in costs
    ).replace("\u202f", " ")


def cells_of(expenses: tuple[Expense, ...]) -> str:
    return said(composed_total(expenses).values())


def test_privacy_is_shown_in_both_units_with_totals() -> None:
    record = made.published_learning(10, made.NOW)
    shown = phase_page(record)
    costs = together(record.parameters.plan())
    assert f"Together {said(costs.values())}" in shown.words
    deltas = [wording.real(costs[unit].delta) for unit in (Unit.RECORDING, Unit.PHONE)]
    assert f"ε per recording / per phone (zero-out), at δ = {' / '.join(deltas)}" in shown.words
    assert AS_PHONES_DO in shown.values("title")
    assert "Per phone (zero-out), this promises nothing" in shown.words
    assert "Per recording, this promises nothing" not in shown.words
    assert OF_NAMED_RECORDINGS in shown.words


def test_statistics_phase_shows_every_count_and_its_interval() -> None:
    record = made.published_statistics(30, made.NOW)
    shown = phase_page(record)
    assert "184 of 200 phones stayed and counted their contacts" in shown.words
    assert "The sum of what 186 phones counted" in shown.words
    table = shown.words.partition("At most")[2]
    parts = r"(\d+) labelled, (\d+) named by places"
    rows = re.findall(rf"([a-z ]+?) {parts} (\d+) (\d+) (\d+) ", table)
    intervals = {name.strip(): tuple(map(int, found)) for name, *found in rows[:7]}
    labelled, named, published, least, most = intervals["public transport"]
    assert (published, labelled, named) == (612, 204, 408)
    assert published - least == most - published > 0
    assert re.search(r"unknown 150 \d+ \d+ ", table)
    assert "sport −4 labelled, −7 named by places −11 may be noise: p = 1 0" in shown.words
    assert "workshop 5 labelled, 9 named by places 14 may be noise: p = 1" in shown.words


def test_parameters_name_the_phones_that_joined_and_every_budget() -> None:
    shown = phase_page(msgspec.structs.replace(made.running(), joined=196))
    assert "Phones n 196" in shown.words
    assert "Budget of the clustering ε₁ 1" in shown.words
    assert "Longest wait in a step 24 h" in shown.words
    assert ", ".join(made.LABELS) in shown.words
    fields = set(made.LEARNING.__struct_fields__) - {"budget"}
    assert len(shown.all("dt")) == len(fields) + len(made.LEARNING.budget.__struct_fields__)


def failed(
    answers: Sequence[int], *, seconds: float = made.DAY, joined: int = 200, reason: str = "why"
) -> PhaseRecord:
    """A phase that failed in the step after which its history ends."""
    finished = made.NOW - made.DAY
    began = finished - len(answers) * seconds
    steps = made.history(STEPS, answers, joined, began, seconds)
    # What follows the last step in the history is its failure itself.
    steps = (*steps, StepRecord(len(steps), Step.FAILED, 0, 0, finished, None)) if steps else ()
    ending = Failed(phase=made.name_of(3), reason=reason)
    return made.record(
        3,
        FAILED,
        joined=joined,
        steps=steps,
        ending=ending,
        created=began - 2.5 * made.DAY,
        finished=finished,
    )


@pytest.mark.parametrize(
    ("record", "advice"),
    [
        (made.too_few(), "--step-hours"),
        (made.never_started(), "--gather-hours"),
        (failed([198]), "forms no groups"),
        (failed([198, 197, 196, 195, 194]), "no sum could be computed"),
        (failed([], joined=150), "do not suit the phones that joined"),
    ],
)
def test_failed_phase_says_why_and_what_to_do(record: PhaseRecord, advice: str) -> None:
    assert isinstance(record.ending, Failed)
    shown = phase_page(record)
    assert "This phase ended without a result" in shown.words
    assert wording.sentence(record.ending.reason) + "." in shown.words
    assert advice in shown.words
    assert "to come" not in shown.words
    others = {"--step-hours", "--gather-hours", "forms no groups", "no sum could be computed"}
    assert sum(other in shown.words for other in others) <= 1


@pytest.mark.parametrize(("asked", "spent"), [(True, "stays spent"), (False, "nothing was spent")])
def test_a_phase_that_was_stopped_has_not_failed(asked: bool, spent: str) -> None:
    shown = phase_page(made.stopped(asked=asked))
    assert "An operator stopped this phase" in shown.words
    assert spent in shown.words
    states = {name for each in shown.values("class") for name in each.split()}
    assert "stopped" in states
    assert not states & {"failed", "alert-error"}
    assert "failed" not in shown.words
    assert "What happened" not in shown.words
    assert "to come" not in shown.words
    listed = page("/", [made.stopped(asked=asked)])
    assert "stopped Stopped by an operator" in listed.words


def test_failed_phase_says_what_was_paid() -> None:
    shown = phase_page(made.too_few())
    paid = r"Select [^ε]*?, paid .*Centroid vote [^ε]*?, not paid .*Label vote [^ε]*?, not paid "
    assert re.search(paid, shown.words)
    assert "nothing was spent" in phase_page(made.never_started()).words


# ------------------------------------------------------------------------------ statistics


def test_statistics_show_both_kinds_of_labels_newest_first() -> None:
    shown = page("/statistics", made.some_months())
    dates = re.findall(r"(\d+ \w{3} 2026) 14:13 UTC (|votes )± \d+", shown.words)
    assert [date for date, what in dates if not what] == [
        *("16 Sep 2026", "17 Aug 2026", "18 Jul 2026"),
        *("18 Jun 2026", "19 May 2026", "19 Apr 2026"),
    ]
    assert [date for date, what in dates[6:] if what] == [
        *("18 Sep 2026", "19 Aug 2026", "20 Jul 2026"),
        *("20 Jun 2026", "21 May 2026", "21 Apr 2026"),
    ]
    assert len(shown.all("table")) == 4
    assert "Since 17 Aug 2026, 14:13 UTC: sport fell; 10 labels changed by no more" in shown.words
    assert "sport fell 72 −6 −77 ± 65" in shown.words
    assert "gastronomy within the noise 199 199 0 ± 65" in shown.words
    assert shown.values("class").count("course-chart") == 2 * len(made.LABELS)
    assert "2 env." in shown.words


def test_statistics_mark_labels_that_a_phase_did_not_know() -> None:
    newer = made.published_statistics(31, made.NOW)
    ending = msgspec.structs.replace(
        newer.ending,
        label_names=("beach",),
        labelled=(70.0,),
        named=(7.0,),
        labelled_p_values=(1.0,),
        named_p_values=(1.0,),
    )
    newer = msgspec.structs.replace(newer, ending=ending)
    shown = page("/statistics", [newer, made.published_statistics(30, made.NOW - made.DAY)])
    first_row = shown.words.partition("21 Sep 2026 14:13 UTC ± ")[2].partition("20 Sep 2026")[0]
    assert re.findall("[–−0-9]+", first_row).count("–") == len(made.LABELS)
    assert "77" in first_row


def test_a_published_phase_says_what_changed_since_the_one_before_it() -> None:
    newer = made.published_statistics(30, made.NOW, shift=-40)
    records = [newer, *made.some_months()]
    shown = page(f"/phases/{newer.phase.hex()}", records)
    assert "Since 16 Sep 2026, 14:13 UTC:" in shown.words
    assert "public transport rose; sport, workshop and event fell" in shown.words
    first = made.published_statistics(35, made.NOW - 155 * made.DAY)
    assert "Since" not in page(f"/phases/{first.phase.hex()}", [first]).words
    assert "Since" not in page(f"/phases/{newer.phase.hex()}", [newer]).words


def test_overview_says_what_all_phases_have_cost_together() -> None:
    learned, counted = made.published_learning(10, made.NOW), made.published_statistics(30, 1.0)
    records = [made.gathering(), learned, counted, made.never_started()]
    shown = page("/", records)
    of_learned = expenses_of(learned, learned.ending.privacy)
    of_counted = expenses_of(counted, counted.ending.privacy)
    for expenses, name, phases in (
        (of_learned, "Learning phases", 1),
        (of_counted, "Statistics phases", 1),
        ((*of_learned, *of_counted), "All phases", 2),
    ):
        assert f"{name} {phases} {cells_of(expenses)}" in shown.words
    # A phase counts from its first answer on, and then with what has left the phones.
    assert "Privacy spent so far" not in page("/", [made.gathering(), made.never_started()]).words
    began = page("/", [made.running()]).words
    assert "All phases 1" in began
    whole = wording.real(composed_total(of_learned)[Unit.RECORDING].epsilon)
    assert f"All phases 1 {whole}" not in began


def test_phases_of_one_day_have_an_axis_of_hours() -> None:
    hours = [made.published_statistics(30 + i, made.NOW - 3600.0 * i) for i in range(3)]
    shown = page("/statistics", hours)
    assert "21 Sep, 12:13 21 Sep, 14:13" in shown.words
    assert "from 21 Sep 2026, 12:13 UTC to 21 Sep 2026, 14:13 UTC" in shown.words
    months = [made.published_statistics(30 + i, made.NOW - made.DAY * 30 * i) for i in range(3)]
    assert "23 Jul 21 Sep" in page("/statistics", months).words
    years = [made.published_statistics(30 + i, made.NOW - made.DAY * 300 * i) for i in range(3)]
    assert "29 Jan 2025 21 Sep 2026" in page("/statistics", years).words
    one = page("/statistics", hours[:1]).words
    assert "one phase on 21 Sep 2026, 14:13 UTC" in one
    assert "What has changed" not in one


def test_empty_statistics_say_how_to_get_some() -> None:
    shown = page("/statistics", [made.running()])
    assert shown.all("table") == []
    assert "earshot phase start --statistics" in shown.words


# ------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("name", ["0" * 32, "xyz", "0" * 31, "A" * 32, "٣" * 32, HOSTILE])
def test_a_phase_that_is_not_there_is_a_page_of_its_own(name: str) -> None:
    client = application(made.HandMadeArchive(made.some_months())).test_client()
    for path in PAGES:
        if "<name>" in path:
            response = client.get(path.replace("<name>", name))
            assert response.status_code == 404
            assert "No such phase" in Page(response.text).words


def test_pages_only_answer_reading() -> None:
    client = application(made.HandMadeArchive(())).test_client()
    for path in PAGES:
        for method in (client.post, client.put, client.delete, client.patch):
            assert method(path).status_code == 405


def test_without_a_database_every_page_says_so_and_when_to_return() -> None:
    class Away(made.HandMadeArchive):
        def phases(self, limit: int = 100) -> tuple[PhaseRecord, ...]:
            raise DatabaseUnavailableError("secret words")

        def phase(self, phase: bytes) -> PhaseRecord | None:
            raise DatabaseUnavailableError("secret words")

    class AwayCampaigns(HandMadeCampaigns):
        def all(self) -> tuple[StartedCampaign, ...]:
            raise DatabaseUnavailableError("secret words")

    client = application(Away(()), AwayCampaigns()).test_client()
    for path in pages_over(made.running()):
        response = client.get(path)
        assert response.status_code == 503
        assert int(response.headers["Retry-After"]) > 0
        assert "The database is not available" in Page(response.text).words
        assert "secret" not in response.text


def test_words_of_others_are_escaped_everywhere() -> None:
    labels = (HOSTILE, "b")
    parameters = msgspec.structs.replace(made.LEARNING, labels=labels, encoder=HOSTILE)
    learned = msgspec.structs.replace(
        made.published_learning(10, made.NOW),
        parameters=parameters,
        ending=made.result(10, labels=labels),
    )
    broken = failed([198], reason=HOSTILE)
    running = msgspec.structs.replace(
        made.running(), refusals={HOSTILE: 3}, name=HOSTILE, cohorts=(HOSTILE,)
    )
    records = [learned, broken, running]
    client = application(made.HandMadeArchive(records)).test_client()
    texts = {path: client.get(path).text for path in pages_over(*records)}
    for text in texts.values():
        assert "<img" not in text
        assert "\u202e" not in text
    escaped = {path for path, text in texts.items() if HOSTILE[:-2] in html.unescape(text)}
    assert escaped >= {"/", "/statistics", *(f"/phases/{each.phase.hex()}" for each in records)}


@st.composite
def results(draw: st.DrawFn) -> PhaseRecord:
    environments, labels = draw(st.integers(0, 12)), draw(st.integers(1, 5))
    dimensions = draw(st.integers(1, 4))
    values = st.floats(-(2.0**100), 2.0**100, width=32)
    rows = draw(
        st.lists(
            st.lists(values, min_size=dimensions, max_size=dimensions),
            min_size=environments,
            max_size=environments,
        )
    )
    votes, chances = st.integers(-(2**62), 2**62), st.floats(0, 1)
    names = draw(
        st.lists(st.text(min_size=1, max_size=64), min_size=labels, max_size=labels, unique=True)
    )
    record = made.published_learning(10, made.NOW)
    ending = Result(
        phase=record.phase,
        geometry=made.LEARNING.geometry,
        centroids=Matrix.of(np.array(rows).reshape(environments, dimensions)),
        labels=tuple(draw(st.integers(-1, labels - 1)) for _ in rows),
        label_names=tuple(names),
        centroid_votes=tuple(draw(votes) for _ in rows),
        label_votes=tuple(tuple(draw(votes) for _ in names) for _ in rows),
        centroid_p_values=tuple(draw(chances) for _ in rows),
        name_p_values=tuple(draw(chances) for _ in rows),
        encoder=DEFAULT_ENCODER,
        privacy=record.ending.privacy,
    )
    return msgspec.structs.replace(record, ending=ending)


@settings(max_examples=3)
@given(results())
def test_every_result_can_be_shown(record: PhaseRecord) -> None:
    check_shown(record)


@pytest.mark.slow
@settings(max_examples=200)
@given(results())
def test_every_result_of_many_can_be_shown(record: PhaseRecord) -> None:
    check_shown(record)


def check_shown(record: PhaseRecord) -> None:
    for path in pages_over(record):
        page(path, [record])
