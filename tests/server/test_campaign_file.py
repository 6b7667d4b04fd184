"""Files of campaigns: what they say is read, and every wrong value is refused by its name."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaigns import MINIMAL

from earshot_protocol.environments import default_hierarchy
from earshot_protocol.errors import EarshotError, InvalidParametersError, LocalError
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import Campaign
from earshot_server.campaigns.campaign_file import read_campaign

WHOLE = """\
name = "Contacts in the north, 2027"
cohorts = ["north", "north-2"]
from = 2027-01-04
weeks = 53
labels = "places.json"
map = "0123456789abcdef0123456789abcdef"
follows = "before.toml"

[budget]
epsilon = 6
continues = false

[expected]
phones = 100000
contacts = 2.5
place = 0.1

[sum]
contacts = 12
summation = "two-operators"
dropout = 0.1
corrupted = 0.02

[discovery]
every_weeks = 26
epsilon = 1
retries = 2

[public]
authority = "Health office of the north"
second_operator = "University of the north"
results = "https://health.example/contacts"
"""


def read(folder: Path, text: str) -> Campaign:
    file = folder / "campaign.toml"
    file.write_text(text, "utf-8")
    return read_campaign(file)


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    found = read(tmp_path, MINIMAL)
    assert (found.begins, found.ends) == (date(2027, 1, 4), date(2028, 1, 3))
    assert found.labels == default_hierarchy().classes
    assert (found.cohorts, found.map, found.follows, found.discovery) == ((), "", None, None)
    assert (found.budget.epsilon, found.budget.continues) == (8, True)
    assert (found.expected.contacts, found.expected.place) == (3, 0.05)
    assert (found.sum.contacts, found.sum.summation) == (None, SummationName.BELL)
    assert not found.names_by_map


def test_everything_is_read_and_paths_are_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    (tmp_path / "before.toml").write_text(MINIMAL.replace("2027-01", "2026-01"), "utf-8")
    (tmp_path / "places.json").write_text('{"train": ["tram", "bus"], "office": []}', "utf-8")
    found = read(tmp_path, "\ufeff" + WHOLE.replace("\n", "\r\n"))
    assert (found.labels, found.choices) == (("train", "office"), (("tram", "bus"), ()))
    assert found.entries == 5
    assert found.follows is not None
    assert found.follows.begins == date(2026, 1, 4)
    assert (found.sum.contacts, found.sum.summation) == (12, SummationName.TWO_OPERATORS)
    assert found.discovery is not None
    assert (found.discovery.every_weeks, found.discovery.retries) == (26, 2)
    assert found.public is not None
    assert found.public.second_operator == "University of the north"


LIST = 'labels = ["train", "office"]'
WRONG = {
    "name = 'x'\n": ["from is missing", "a day without quotes, such as 2027-01-04"],
    MINIMAL.replace("phones = 5000", ""): ["expected.phones is missing: give a whole number"],
    MINIMAL.partition("[")[0]: ["expected is missing: give a table with phones"],
    f"weaks = 3\n{MINIMAL}": ["weaks: no such key; did you mean weeks?", "a campaign has budget"],
    f"choices = []\n{MINIMAL}": ["choices: no such key"],
    f"{MINIMAL}fones = 3": ["expected.fones: no such key; did you mean phones? [expected] has"],
    f"budget = 8\n{MINIMAL}": ["budget=8: must be a table, [budget]"],
    MINIMAL.replace("2027-01-04", '"2027-01-04"'): ["from='2027-01-04': must be a day without"],
    MINIMAL.replace("2027-01-04", "2027-01-04T00:00:00"): ["from=2027-01-04 00:00:00: must be"],
    MINIMAL.replace("2027-01-04", "1999-12-31"): ["from=1999-12-31", "from 2000-01-01 to"],
    MINIMAL.replace("52", "0"): ["weeks=0: must be a whole number, from 1 to 53"],
    MINIMAL.replace("52", "54"): ["weeks=54: must be a whole number, from 1 to 53"],
    MINIMAL.replace("52", "5.5"): ["weeks=5.5: must be a whole number"],
    MINIMAL.replace("52", "true"): ["weeks=True: must be a whole number"],
    MINIMAL.replace("5000", "2"): ["expected.phones=2: must be a whole number, from 3"],
    f"{MINIMAL}contacts = 0": ["expected.contacts=0.0: must be a number, from 0.001"],
    f"{MINIMAL}contacts = nan": ["expected.contacts=nan: must be a number"],
    f"{MINIMAL}place = 1": ["expected.place=1.0: must be above 0 and below 1"],
    f"labels = []\n{MINIMAL}": ["the number of labels=0", "from 1 to 256"],
    f"labels = ['a', 'a']\n{MINIMAL}": ["labels repeat: every label is named once"],
    f"labels = ['a', 3]\n{MINIMAL}": ["labels=['a', 3]: must be a list of names, or the JSON"],
    f"labels = 'none.json'\n{MINIMAL}": ["none.json: cannot be read", "JSON file of classes"],
    f"cohorts = ['a', 'a']\n{MINIMAL}": ["cohorts=['a', 'a']: name each cohort once"],
    f"cohorts = ['A b']\n{MINIMAL}": ["cohorts=['A b']: must be a list", "lower-case letters"],
    f"cohorts = 'a'\n{MINIMAL}": ["cohorts='a': must be a list of"],
    f"map = 'PHASE'\n{MINIMAL}": ["map='PHASE': must be the identifier of a phase, 32 hexadec"],
    f"follows = 3\n{MINIMAL}": ["follows=3: must be the file of a campaign"],
    f"follows = 'none.toml'\n{MINIMAL}": ["none.toml: cannot be read (No such file"],
    f"follows = 'campaign.toml'\n{MINIMAL}": ["follows: ", "leads back to itself; name an earlier"],
    f"follows = 'loop.toml'\n{MINIMAL}": ["follows: ", "loop.toml: cannot be read (Too many"],
    f'follows = "a\\u0000b"\n{MINIMAL}': ["follows='a\\x00b': must be the path of a file"],
    f'labels = "a\\u0000b"\n{MINIMAL}': ["labels='a\\x00b': must be the path of a file"],
    f"follows = 'same.toml'\n{MINIMAL}": ["follows: a campaign from 2027-01-04", "an earlier one"],
    f"{MINIMAL}[budget]\nepsilon = 0": ["budget.epsilon=0.0: must be a positive"],
    f"{MINIMAL}[budget]\ncontinues = 1": ["budget.continues=1: must be true or false"],
    f"{MINIMAL}[sum]\ncontacts = 0": ["sum.contacts=0: must be a whole number, from 1"],
    f"{MINIMAL}[sum]\ncontacts = 1.5": ["sum.contacts=1.5: must be a whole number"],
    f"{MINIMAL}[sum]\nsummation = 'ideal'": ["must be one of bell, two-operators"],
    f"{MINIMAL}[sum]\ndropout = 1": ["sum.dropout=1.0: must be at least 0 and below 1"],
    f"{MINIMAL}[sum]\ndropout = 0.6\ncorrupted = 0.4": ["together they must stay below 1"],
    f"{MINIMAL}[sum]\nconfusion = 1": ["sum.confusion=1: must be true or false"],
    f"{MINIMAL}[sum]\nconfusion = true": [
        "sum.confusion=True",
        "name a `map`, or give [discovery]",
    ],
    f"{MINIMAL}[discovery]\nevery_weeks = 0": ["discovery.every_weeks=0", "from 1 to 53"],
    f"{MINIMAL}[discovery]\nepsilon = -1": ["discovery.epsilon=-1.0: must be a positive"],
    f"{MINIMAL}[discovery]\nretries = -1": ["discovery.retries=-1", "from 0 to 53"],
    f"{MINIMAL}[public]\nauthority = 'A'": ["public.results is missing: give text"],
    f"{MINIMAL}[public]\nauthority = 'A'\nresults = 'http://a'": ["begins with https://"],
    f"{MINIMAL}[public]\nauthority = 'A'\nresults = 'https://a/><script>'": ["quotes, < and >"],
    f"{MINIMAL}[public]\nauthority = \"A\\nB\"\nresults = 'https://a'": [
        "must be text in one line"
    ],
    f"{MINIMAL}[public": ["is not TOML", "docs/campaigns.md"],
    f"{MINIMAL}{'[' * 5000}": ["is not TOML"],
    "#" * 2**21: ["at most 1048576 bytes are read"],
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[-40:])
def test_a_wrong_value_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "same.toml").write_text(MINIMAL, "utf-8")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    with pytest.raises(LocalError) as refused:
        read(tmp_path, text)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / 'campaign.toml'}: "), said
    assert [part for part in WRONG[text] if part not in said] == [], said


def test_a_long_chain_of_campaigns_is_refused(tmp_path: Path) -> None:
    for year in range(70):
        follows = f"follows = '{year - 1}.toml'\n" if year else ""
        text = MINIMAL.replace("2027", str(2027 + year))
        (tmp_path / f"{year}.toml").write_text(follows + text, "utf-8")
    assert read_campaign(tmp_path / "60.toml").follows is not None
    with pytest.raises(InvalidParametersError, match="follows: at most 60 campaigns"):
        read_campaign(tmp_path / "69.toml")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_bytes(MINIMAL.replace("north", "nörd").encode("latin-1"))
    with pytest.raises(LocalError, match="line 1: is not UTF-8"):
        read_campaign(file)


@pytest.mark.parametrize("text", [MINIMAL, WHOLE])
def test_every_value_may_be_wrong_and_none_is_an_accident(text: str, tmp_path: Path) -> None:
    """Each value is replaced by one of every other kind: read, or refused by the key's name."""
    (tmp_path / "before.toml").write_text(MINIMAL.replace("2027-01", "2026-01"), "utf-8")
    (tmp_path / "places.json").write_text('{"train": []}', "utf-8")
    others = ["-1", "1e400", "1979-05-27", "'x'", "[]", "[[1]]", "{}", "true", f"{10**30}"]
    lines = text.splitlines()
    for place, line in enumerate(lines):
        key = line.partition(" = ")[0]
        for other in others if " = " in line else ():
            wrong = "\n".join([*lines[:place], f"{key} = {other}", *lines[place + 1 :]])
            refused = refusal(tmp_path, wrong)
            named = re.search(rf"\b({key}|the number of labels|hierarchy)\b", refused)
            assert not refused or named, refused


def refusal(folder: Path, text: str) -> str:
    """Why a file is refused; empty if it is read."""
    try:
        read(folder, text)
    except LocalError as error:
        return str(error)
    return ""


NAMES = st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200) | VALUES.map(lambda value: f"name = {value!r}\n{MINIMAL}"))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    try:
        found = read(tmp_path, text)
    except EarshotError:
        return
    found.check()
