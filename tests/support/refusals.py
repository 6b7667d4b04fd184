"""Tests that only say what is refused and in which words: each is a table."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pytest

Row = tuple[Any, ...]
"""Words of the refusal (a pattern; None for any), the function that refuses, and its arguments."""


def refused(error: type[Exception], *rows: Row) -> Callable[..., None]:
    """Return a test with a case a row: the call raises this error, with these words."""
    cases = [
        pytest.param(words, functools.partial(call, *arguments), id=_said(words, call, arguments))
        for words, call, *arguments in rows
    ]

    @pytest.mark.parametrize(("words", "call"), cases)
    def test(words: str | None, call: Callable[[], object]) -> None:
        with pytest.raises(error, match=words):
            call()

    return test


def _said(words: str | None, call: Callable[..., object], arguments: list[object]) -> str:
    """Write a call down in one line, or the words of its refusal where it has no name."""
    if words and getattr(call, "__name__", "") == "<lambda>":
        return words
    written = [*map(_word, arguments)]
    if isinstance(call, functools.partial):
        named = [f"{name}={_word(value)}" for name, value in call.keywords.items()]
        written = [*map(_word, call.args), *written, *named]
        call = call.func
    return f"{_word(call)}({', '.join(written)})"


def _word(value: object) -> str:
    name = getattr(value, "__name__", None)
    return re.sub(r"\s+", " ", name if isinstance(name, str) else repr(value))[:40]
