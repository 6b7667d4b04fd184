"""The site's reference is the public interface, which `__all__` declares, and all is documented."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "site" / "python.rst").read_text("utf-8")
MODULES = re.findall(r"^\.\. automodule:: (\S+)$", REFERENCE, re.MULTILINE)
LISTED = re.findall(
    r"^\.\. auto(?:class|data|exception|function):: (\S+)$", REFERENCE, re.MULTILINE
)


def test_the_reference_lists_what_the_modules_declare() -> None:
    declared = [
        f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__
    ]
    assert len(MODULES) >= 7
    assert declared == LISTED


def texts(thing: object) -> str:
    """Return the docstrings of a function, or of a class and all that it inherits from."""
    whole = thing.__mro__[:-1] if inspect.isclass(thing) else (thing,)
    return "\n".join(inspect.getdoc(each) or "" for each in whole)


def arguments(thing: Callable[..., object]) -> list[str]:
    """Return the arguments that a caller gives; nobody makes an object of a protocol itself."""
    if inspect.isclass(thing) and (
        issubclass(thing, (enum.Enum, BaseException)) or getattr(thing, "_is_protocol", False)
    ):
        return []
    return list(inspect.signature(thing).parameters)


@pytest.mark.parametrize("name", LISTED)
def test_a_public_name_has_a_docstring_with_its_arguments(name: str) -> None:
    module, _, own = name.rpartition(".")
    thing = getattr(importlib.import_module(module), own)
    if not callable(thing):
        source = inspect.getsource(importlib.import_module(module))
        assert re.search(rf'^{own} = .*\n""".', source, re.MULTILINE)
        return
    assert thing.__doc__
    missing = [
        each
        for each in arguments(thing)
        if not re.search(rf"^ +{each}: \S", texts(thing), re.MULTILINE)
    ]
    assert not missing
