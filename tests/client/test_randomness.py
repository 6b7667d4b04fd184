"""Without being told otherwise, whatever draws randomness draws the operating system's."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import earshot_client
import earshot_protocol


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Everything that can be called in what a phone carries."""
    for package in (earshot_client, earshot_protocol):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if getattr(value, "__module__", None) != module.__name__:
                    continue
                members = vars(value).items() if inspect.isclass(value) else ((name, value),)
                for member, held in members:
                    function = getattr(held, "__func__", getattr(held, "func", held))
                    if inspect.isfunction(inspect.unwrap(function)):
                        yield f"{module.__name__}.{name}.{member}", inspect.unwrap(function)


def test_every_default_source_of_randomness_is_that_of_the_system() -> None:
    sources = {
        where: parameter.default
        for where, function in functions()
        for parameter in inspect.signature(function).parameters.values()
        if "RandomBytes" in str(parameter.annotation)
        and parameter.default is not inspect.Parameter.empty
    }
    assert "earshot_client.phone.Phone.__init__" in sources
    assert len(sources) >= 8, sources
    assert {where for where, source in sources.items() if source is not os.urandom} == set()
