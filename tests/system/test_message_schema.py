"""The table of message fields: current, and enough to read and write every message by it alone."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from support import textbook_phone as textbook
from support.documented import blocks

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCUMENTS / "vectors"
Table = dict[str, Any]


def vectors(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


SCHEMA, MESSAGES = vectors("schema.json"), vectors("messages.json")
LINE_BREAKERS = [
    *(range(0x20), range(0x7F, 0xA0), (0xAD, 0x61C, 0x180E, 0xFEFF), range(0x200B, 0x2010)),
    *(range(0x2028, 0x202F), range(0x2060, 0x2070), range(0xFFF9, 0xFFFC)),
    range(0xE0000, 0xE0080),
]
UNSEEN = {chr(code) for codes in LINE_BREAKERS for code in codes}


class Refused(Exception):  # noqa: N818 - not an error of ours
    """A value is not what the table says."""


def require(condition: bool, table: Table, value: object) -> None:
    if not condition:
        raise Refused(f"{value!r} is not {table}")


def without_kinds_of_numbers(value: Any) -> Any:
    """As a reader has it whose language knows one kind of number: 1.0 has become 1."""
    if isinstance(value, dict):
        return {name: without_kinds_of_numbers(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [without_kinds_of_numbers(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read(table: Table, value: Any) -> Any:
    """The value as its field has it; a real number is a float."""
    if value is None and table.get("or_nil"):
        return None
    return READERS[table["type"]](table, value)


def read_number(table: Table, value: Any) -> int | float:
    real = table["type"] == "real"
    require(type(value) in ((int, float) if real else (int,)), table, value)
    require(value >= table.get("least", value) and value <= table.get("most", value), table, value)
    require("above" not in table or value > table["above"], table, value)
    require("below" not in table or value < table["below"], table, value)
    return float(value) if real else int(value)


def sized(kind: type) -> Any:
    def read_sized(table: Table, value: Any) -> Any:
        require(type(value) is kind, table, value)
        require(len(value) >= table.get("shortest", 0), table, value)
        require(len(value) <= table.get("longest", len(value)), table, value)
        require(not table.get("line") or not UNSEEN.intersection(value), table, value)
        return [read(table["of"], entry) for entry in value] if kind is list else value

    return read_sized


def read_date(table: Table, value: Any) -> str:
    require(type(value) is str and len(value) == 10, table, value)
    return date.fromisoformat(value).isoformat()


def read_choice(table: Table, value: Any) -> str:
    require(value in table["choices"], table, value)
    return str(value)


def read_truth(table: Table, value: Any) -> bool:
    require(type(value) is bool, table, value)
    return bool(value)


def read_map(table: Table, value: Any) -> Table:
    names = table["maps"] if "maps" in table else [table["map"]]
    return read_as(names, value)


READERS: dict[str, Any] = {
    "whole": read_number,
    "real": read_number,
    "bytes": sized(bytes),
    "text": sized(str),
    "list": sized(list),
    "date": read_date,
    "choice": read_choice,
    "yes or no": read_truth,
    "map": read_map,
    "map of a kind": read_map,
}


def read_as(names: list[str], value: Any) -> Table:
    """One of these maps, with the fields in the order of the table, as its sender wrote them."""
    require(type(value) is dict, {}, value)
    for name in names:
        table = SCHEMA["maps"][name]
        tag = table.get("tag")
        if not is_of(table, value):
            continue
        made = {tag["name"]: tag["value"]} if tag else {}
        for field in table["fields"]:
            has_default = "default" in field
            require(field["name"] in value or has_default, field, value)
            given = field["name"] in value
            entry = read(field, value[field["name"]]) if given else default(field)
            if not (table["leaves_out_defaults"] and has_default and entry == default(field)):
                made[field["name"]] = entry
        listed = {field["name"] for field in table["fields"]} | ({tag["name"]} if tag else set())
        require(value.keys() <= listed or bool(table.get("ignores_others")), table, value)
        return made
    raise Refused(f"{value!r} is none of {names}")


def default(field: Table) -> Any:
    value = field["default"]
    if field["type"] == "bytes":
        return bytes.fromhex(value)
    return float(value) if field["type"] == "real" and value is not None else value


def all_messages() -> Iterator[tuple[list[str], bytes]]:
    """Every message of the vectors as short as it can be, and the maps that it may be."""
    for group, names in SCHEMA["messages"].items():
        for case in MESSAGES.get(group, []):
            yield [case["name"]] if "name" in case else names, shortest(case["messagepack"])
    for case in vectors("two_operators.json")["offers"]:
        yield SCHEMA["messages"]["tasks"], shortest(case["task"])


def shortest(text: str) -> bytes:
    """Our encoder reserves a longer header for a map that might have had more fields."""
    return textbook.packed(textbook.unpacked(bytes.fromhex(text)))


def test_every_message_is_read_and_written_by_the_table_alone() -> None:
    seen = set()
    for names, data in all_messages():
        value = without_kinds_of_numbers(textbook.unpacked(data))
        assert textbook.packed(read_as(names, value)) == data
        seen |= {name for name in names if len(names) == 1}
        tags = {SCHEMA["maps"][name].get("tag", {}).get("value"): name for name in names}
        seen.add(tags.get(value.get("type")))
    expected = {name for names in SCHEMA["messages"].values() for name in names}
    # Parameters and offers are inside tasks; nothing is in the body of a phone that leaves.
    inside = {*SCHEMA["messages"]["parameters"], "Offer", "Leave"}
    assert expected - inside <= seen


def test_without_the_kinds_of_numbers_other_bytes_are_written() -> None:
    differ = [
        data
        for _, data in all_messages()
        if textbook.packed(without_kinds_of_numbers(textbook.unpacked(data))) != data
    ]
    assert len(differ) > 10


def canonical(table: Table, value: Any) -> Any:
    """The form that is hashed: no field that has its default, names in order."""
    if isinstance(value, list):
        return [canonical(table["of"], entry) for entry in value]
    if not isinstance(value, dict):
        return value
    maps = [SCHEMA["maps"][name] for name in table.get("maps", [table.get("map")])]
    of = next(each for each in maps if is_of(each, value))
    made = {of["tag"]["name"]: of["tag"]["value"]} if "tag" in of else {}
    for field in of["fields"]:
        left_out = "default" in field and value.get(field["name"], default(field)) == default(field)
        if not left_out:
            made[field["name"]] = canonical(field, value[field["name"]])
    return dict(sorted(made.items()))


def is_of(table: Table, value: Table) -> bool:
    """Whether a value has the tag of a map, if that has one."""
    tag = table.get("tag")
    return tag is None or value.get(tag["name"]) == tag["value"]


@pytest.mark.parametrize("case", vectors("salt.json")["cases"], ids=lambda case: case["salt"][:8])
def test_the_canonical_form_follows_from_the_table(case: Table) -> None:
    value = without_kinds_of_numbers(textbook.unpacked(bytes.fromhex(case["task"])))
    names = SCHEMA["messages"]["tasks"]
    task = read_as(names, value)
    task["advertise"]["index"] = 0
    told = textbook.packed(canonical({"maps": names}, task))
    assert case["told"].endswith(told.hex())
    opening = canonical({"map": "AdvertiseKeys"}, task["advertise"])
    assert textbook.packed(opening).hex() == case["opening"]


@pytest.mark.parametrize("case", MESSAGES["malformed_tasks"][:7], ids=lambda case: case["why"])
def test_the_table_refuses_what_is_malformed(case: Table) -> None:
    try:
        value = textbook.unpacked(bytes.fromhex(case["messagepack"]))
    except AssertionError:
        return
    with pytest.raises(Refused):
        read_as(SCHEMA["messages"]["tasks"], value)


def reals(table: Table) -> Iterator[Table]:
    """The real numbers in a field, at any depth of its lists."""
    if table["type"] == "list":
        yield from reals(table["of"])
    elif table["type"] == "real":
        yield table


def test_only_parameters_may_hold_what_is_not_finite() -> None:
    """These are checked by name; NaN passes no limit, and infinity none above."""
    open_ended = {
        f"{name}.{field['name']}"
        for name, table in SCHEMA["maps"].items()
        if "Parameters" not in name and name != "Budget"
        for field in table["fields"]
        for each in reals(field)
        if not {"most", "below"} & each.keys()
    }
    assert open_ended == {"Release.epsilon"}
    (epsilon,) = (f for f in SCHEMA["maps"]["Release"]["fields"] if f["name"] == "epsilon")
    assert epsilon["least"] == 0


# --------------------------------------------------------------------------------------- for people


def page(name: str) -> str:
    return (DOCUMENTS / name).read_text(encoding="utf-8")


def test_the_reference_of_messages_is_current() -> None:
    reference = runpy.run_path(str(FOLDER / "reference.py"))
    assert reference["text"](SCHEMA) == page("messages.md"), "run docs/vectors/reference.py"


def test_the_reference_shows_every_map_once_and_links_to_those_inside() -> None:
    names = re.findall(r"(?m)^### (\w+)$", page("messages.md"))
    assert sorted(names) == sorted(SCHEMA["maps"])
    for text in (page("messages.md"), page("native-phones.md")):
        linked = set(re.findall(r"\((?:messages\.md)?#(\w+)\)", text))
        assert linked
        assert linked <= {name.lower() for name in names}


def test_the_page_for_native_phones_names_parts_of_vectors_that_there_are() -> None:
    rows = re.findall(r"(?m)^\| \d+ \|.*\| ([^|]*\.json[^|]*) \|$", page("native-phones.md"))
    assert len(rows) == 10
    for row in rows:
        for name, inside in re.findall(r"`(\w+\.json)`(?: \(([^)]*)\))?", row):
            assert set(re.findall(r"`(\w+)`", inside)) - {"key"} <= vectors(name).keys(), name
    assert {"public", "private"} <= vectors("two_operators.json")["sum"]["key"].keys()


def test_steps_of_the_kotlin_of_that_page_give_the_shares_of_the_vectors() -> None:
    """The same steps in Python, with the sizes and the name that stand there."""
    (code,) = blocks(page("native-phones.md"), "kotlin")
    (info,) = re.findall(r'"(earshot [^"]*)"', code)
    key, begin, size = map(int, re.findall(r"keys, 0, (\d+).*keys, (\d+), (\d+)\)", code)[0])
    for case in vectors("two_operators.json")["shares"]:
        drawn = HKDF(SHA256(), key + size, None, info.encode()).derive(bytes.fromhex(case["seed"]))
        width = case["width"]
        octets = 2 if width <= 16 else 4 if width <= 32 else 8
        cipher = Cipher(AES(drawn[:key]), CTR(drawn[begin : begin + size])).encryptor()
        stream = cipher.update(bytes(len(case["helpers_share"]) * octets))
        words = [
            int.from_bytes(stream[at : at + octets], "little") & (2**width - 1)
            for at in range(0, len(stream), octets)
        ]
        assert words == case["helpers_share"]
