"""What people read about a campaign: it answers their questions, from the plan's own figures."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.campaigns import campaign, changed
from support.command import earshot

from earshot_client.expiry import KEEP_DAYS
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import Campaign, Publication
from earshot_server.campaigns.plan import planned
from earshot_server.commands.campaign.public_text import public_text

HOSTILE = "<script>alert('\"&x')</script>{{ text }} [a](b) `c` \u202e"
PUBLIC = Publication(
    authority="Health office of the north",
    second_operator="University of the north",
    results="https://health.example/contacts",
)
MASKED = campaign(public=PUBLIC, cohorts=("north",))
SPLIT = changed(MASKED, "sum", summation=SummationName.TWO_OPERATORS)
SHORT = """\
name = "Contacts"
from = 2027-01-04
weeks = 2

[budget]
continues = false

[expected]
phones = 2000

[public]
authority = "Health office"
results = "https://health.example"
"""


class Words(HTMLParser):
    """The text of a page, without its styles, and the addresses that it names."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.addresses, self._inside = "", [], ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.addresses += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.words += f"{data} " if self._inside != "style" else ""


def words(text: str) -> str:
    """A text's letters and digits, in their order."""
    return " ".join(re.findall(r"\w+", text))


@pytest.mark.parametrize("asked", [MASKED, SPLIT], ids=["masked", "split"])
def test_it_answers_what_people_ask(asked: Campaign) -> None:
    plan = planned(asked)
    assert plan.confusion_week is not None
    first = plan.confusion_week.contact_guesses
    told = public_text(plan).markdown()
    flat = re.sub(r"[ \n\u00a0]+", " ", told)
    assert re.findall(r"^## (.*)", told, re.MULTILINE) == [
        "What exactly is sent",
        "How often",
        "How many take part",
        "Where the results are",
        "What it costs you",
        "Whom you trust",
        "What you decide",
        "For the careful reader",
    ]
    for said in (
        "There are 12 kinds of place: a, b, c",
        "That makes 25 numbers.",
        "numbers leave a phone in a week: 25 or 169",
        "for each of the 12 kinds of place, how often the map says each of them. That makes 144",
        f"an ordinary week's result: at most {math.ceil(100 * plan.contact_guesses)} of 100",
        f"you named, from the first week after a map: at most {math.ceil(100 * first)} of 100",
        f"In the first week after a map, over √2: {plan.noise / math.sqrt(2):.4g}",
        "14 days later at the latest",
        "First week: 4 Jan to 10 Jan 2027",
        "About 5\u202f000 phones of north are expected",
        "<https://health.example/contacts>",
        f"a change of less than {math.ceil(100 * plan.reach.change)} %",
        "ε = 8 at δ = 10⁻⁶",
        f"results of 366 days: at most {math.ceil(100 * plan.guesses)} of 100",
        f"count as at most {plan.contacts} contacts in one place",
        f"is erased after {KEEP_DAYS} days",
        plan.digest,
    ):
        assert said in flat, said
    assert ("University of the north" in flat) == asked.sum.summation.by_operators
    assert ("masks" in flat) != asked.sum.summation.by_operators
    assert max(map(len, told.splitlines())) <= 100


def test_page_and_text_say_the_same_and_the_page_loads_nothing() -> None:
    text = public_text(planned(MASKED))
    page = Words(text.page())
    plain = re.sub(r"^(#+|-) |[<>\\]", "", text.markdown(), flags=re.MULTILINE)
    shown, told = words(page.words), words(plain)
    assert sorted(shown.split()) == sorted(f"{told} {words(text.title)}".split())
    assert page.addresses == ["https://health.example/contacts"]
    assert "url(" not in text.page()


def test_names_are_text_in_both() -> None:
    public = Publication(authority=HOSTILE, results="https://health.example/{{text}}[a](b)&x")
    text = public_text(planned(campaign(name=HOSTILE, weeks=1, discovery=None, public=public)))
    page = text.page()
    assert page.count("<script") == 0
    assert page.count("&lt;script&gt;") >= 4
    assert "{{ text }} [a](b)" in page
    assert "\u202e" not in Words(page).words
    assert (
        "# \\<script\\>alert('\"&x')\\</script\\>{{ text }} \\[a\\](b) \\`c\\` \ufffd"
        in text.markdown()
    )


def test_without_a_confusion_matrix_nothing_is_said_about_one() -> None:
    text = public_text(planned(changed(MASKED, "sum", confusion=False))).markdown()
    flat = " ".join(text.replace("\u00a0", " ").split())
    assert "numbers leave a phone in a week: 25 -" in flat
    assert "from one week's result: at most" in flat
    assert "first week after" not in flat


def test_without_a_map_nothing_is_said_about_one() -> None:
    text = public_text(planned(campaign(weeks=1, discovery=None, public=PUBLIC))).markdown()
    assert "map" not in text
    assert "all others as unknown" in " ".join(text.split())


@pytest.mark.parametrize(
    ("public", "said"),
    [
        (None, r"public is missing.*give \[public\] with authority and results"),
        (Publication(authority="A", results="https://a"), r"public.second_operator is missing"),
    ],
)
def test_it_is_not_written_without_those_who_run_it(public: Publication | None, said: str) -> None:
    lacking = changed(
        campaign(public=public, weeks=1), "sum", summation=SummationName.TWO_OPERATORS
    )
    with pytest.raises(InvalidInputError, match=said):
        public_text(planned(lacking))


def test_two_files_are_written_and_replaced_on_demand_alone(tmp_path: Path) -> None:
    file, folder = tmp_path / "campaign.toml", tmp_path / "for" / "people"
    file.write_text(SHORT, "utf-8")
    command = ("campaign", "plan", file, "--out", folder)
    written = earshot(*command)
    assert (written.returncode, written.stderr) == (
        0,
        f"{folder / 'campaign.html'}\n{folder / 'campaign.md'}\n",
    )
    assert (folder / "campaign.md").read_text("utf-8").startswith("# Contacts\n\nHealth office\n")
    (folder / "campaign.md").unlink()
    again = earshot(*command)
    assert again.returncode == 2
    assert "campaign.html exists: name another file, or add --overwrite" in again.stderr
    assert not (folder / "campaign.md").exists()
    assert earshot(*command, "--overwrite").returncode == 0
    assert (folder / "campaign.md").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(SHORT, "utf-8")
    refused = earshot("campaign", "plan", file, "--out", file / "people")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "cannot be written" in refused.stderr
