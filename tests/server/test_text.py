"""All text that one side takes from the other is one bounded line."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from earshot_protocol.api import AskTask, Enrol, Enrolled, Invite, Leave, Refuse, StartPhase
from earshot_protocol.messages import AnyAnswer, AnyTask, Failed, decode_task
from earshot_protocol.text import line, one_line
from earshot_protocol.wire import encode
from earshot_server.api.views import NewOperator

READ = {
    "by phones": (AnyTask, Enrolled),
    "by the server": (AnyAnswer, Enrol, AskTask, Refuse, Leave, Invite, StartPhase, NewOperator),
}
EVIL = ("\n", "\r\n", "\0", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\ufeff")
NAMES = ("bus", "beer garden", "café", "автобус", "مترو", "地下鉄", "ที่ทำงาน", "🚲", "a" * 32)


def texts(kind: Any, seen: set[int], path: str) -> Iterator[tuple[str, inspect.StrType]]:
    """Every string within a type, by where it stands."""
    if isinstance(kind, inspect.StrType):
        yield path, kind
    if id(kind) in seen or not isinstance(kind, inspect.Type | inspect.Field):
        return
    seen.add(id(kind))
    if isinstance(kind, inspect.StructType):
        path = kind.cls.__name__
    for name in kind.__struct_fields__:
        below = getattr(kind, name)
        for each in below if isinstance(below, tuple) else (below,):
            named = f"{path}.{kind.name}" if isinstance(kind, inspect.Field) else path
            yield from texts(each, seen, named)


def accepts(kind: inspect.StrType, text: str) -> bool:
    bounds = msgspec.Meta(
        pattern=kind.pattern, min_length=kind.min_length, max_length=kind.max_length
    )
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(text), type=Annotated[str, bounds])
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("reader", READ)
def test_no_text_that_is_read_is_longer_or_other_than_a_line(reader: str) -> None:
    found = dict(
        each for kind in READ[reader] for each in texts(inspect.type_info(kind), set(), "")
    )
    assert len(found) >= 7
    found.pop("StartPhase.name", None)  # `check_name` refuses it, in words for people
    for where, kind in found.items():
        assert kind.max_length is not None or "}" in (kind.pattern or ""), where
        assert not accepts(kind, "a" * 20_000), where
        for evil in EVIL:
            for text in (evil, f"a{evil}", f"a{evil}b", f"{evil}b"):
                assert not accepts(kind, text), (where, text)


def test_the_walk_over_types_finds_what_is_there() -> None:
    found = {where for where, _ in texts(inspect.type_info(AnyTask), set(), "")}
    assert {
        *("Failed.reason", "Result.label_names", "Result.encoder", "PhaseParameters.labels"),
        *("PhaseParameters.encoder", "Cluster.choices", "Release.step", "Release.mechanism"),
    } <= found


def is_reversing(letter: str) -> bool:
    """Whether a letter changes the order in which others are shown (UAX 9)."""
    isolates = ("LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return unicodedata.bidirectional(letter) in isolates


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_any_language_is_a_line(name: str) -> None:
    kind = inspect.StrType(pattern=line(64).pattern, min_length=1, max_length=64)
    assert accepts(kind, name)
    assert one_line(name, 64) == name


def test_nothing_that_is_printed_is_refused_and_no_control_accepted() -> None:
    kind = inspect.StrType(pattern=line(1).pattern, max_length=1)
    letters = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
    for letter in letters:
        if letter.isprintable():
            assert accepts(kind, letter), ascii(letter)
        elif unicodedata.category(letter) in ("Cc", "Zl", "Zp") or is_reversing(letter):
            assert not accepts(kind, letter), ascii(letter)


@given(st.text(max_size=300), st.integers(0, 50))
def test_any_text_becomes_a_line(text: str, most: int) -> None:
    made = one_line(text, most)
    assert len(made) <= most
    assert accepts(inspect.StrType(pattern=line(50).pattern, max_length=50), made)


@given(st.text(max_size=3000))
def test_whatever_a_phase_fails_for_phones_can_read_it(reason: str) -> None:
    failed = Failed.because(bytes(16), reason)
    assert decode_task(encode(failed)) == failed
