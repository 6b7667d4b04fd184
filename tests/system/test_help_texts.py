"""Help texts at 80 columns: every option of every command stands there with its whole name."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cyclopts import App
from support.command import earshot
from support.documented import loaded, parameters, subcommands

from earshot_client.command import SUB_COMMANDS

WIDTH = 80


def each(command: App, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], App]]:
    """A command and all below it, each with the words that call it."""
    yield words, command
    for name, below in subcommands(command).items():
        yield from each(below, (*words, name))


def shown(words: tuple[str, ...]) -> list[str]:
    """The lines of a command's help text."""
    run = earshot(*words, "--help", COLUMNS=str(WIDTH))
    assert run.returncode == 0
    return run.stdout.splitlines()


@pytest.mark.parametrize("name", SUB_COMMANDS)
def test_every_option_has_its_whole_name_on_one_line(name: str) -> None:
    for words, command in each(loaded(name), (name,)):
        lines = shown(words)
        assert max(map(len, lines)) <= WIDTH
        begins = [line.removeprefix("│ ").removeprefix("* ").lstrip() for line in lines]
        options = [each for each in parameters(command) if each.show]
        for option in options:
            called = option.positives[0] if option.positives else option.name
            whole = re.compile(rf"{re.escape(called)}(?![\w.-])")
            assert [line for line in begins if whole.match(line)], (words, called)
        for below in subcommands(command):
            assert [line for line in begins if line.split()[:1] == [below]], (words, below)
