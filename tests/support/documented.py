"""What pages tell readers to type, and whether the command that they name would take it."""

from __future__ import annotations

import functools
import importlib
import re
import shlex

from cyclopts import App
from cyclopts.argument import Argument

from earshot_client.command import SUB_COMMANDS

_INLINE = re.compile(r"`([^`]+)`")
_CALL = re.compile(r"(?<![\w.~/$=-])(['\"]?)(?:[\w.~/$-]*/)?earshot +(.*?)\1$")
"""The program, by any path, and its words; all of it may be quoted, for another machine's shell."""
_REST = re.compile(r"[|&;<>()]|\s\d>")
"""Where the words of a command end: pipes, redirections, the end of `$(…)`."""

_PARAMETERS: dict[int, tuple[App, list[Argument]]] = {}
"""What was found for each command, which has no hash; kept with it, so that it keeps its number."""


def section(page: str, heading: str) -> str:
    """What stands under a heading, down to the next one of its level."""
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """The words behind each `earshot` of a page, in blocks for a shell and between backticks."""
    typed = [block.replace("\\\n", " ") for block in blocks(page, "sh")]
    spans = [" ".join(span.split()) for span in _INLINE.findall(prose(page))]
    lines = [line for text in (*typed, *spans) for line in text.splitlines()]
    calls = [_CALL.search(line.partition(" # ")[0].rstrip()) for line in lines]
    return [shlex.split(_REST.split(call[2], maxsplit=1)[0]) for call in calls if call]


@functools.cache
def loaded(name: str) -> App:
    """A sub-command of `earshot`, as its command line reads it."""
    found = importlib.import_module(SUB_COMMANDS[name].module(name)).app
    assert isinstance(found, App)
    return found


def subcommands(command: App) -> dict[str, App]:
    """The commands below a command by name."""
    return {name: command[name] for name in command if not name.startswith("-")}


def parameters(command: App) -> list[Argument]:
    """The options and arguments of a command; a group of commands has none."""
    if command.default_command is None:
        return []
    if id(command) not in _PARAMETERS:
        every = command.assemble_argument_collection(parse_docstring=True)
        _PARAMETERS[id(command)] = command, [each for each in every if each.parse]
    return _PARAMETERS[id(command)][1]


def options(command: App) -> dict[str, Argument]:
    """The options of a command by each of their names."""
    return {
        name: parameter
        for parameter in parameters(command)
        for name in (*parameter.positives, *(parameter.parameter.negative or ()))
        if name.startswith("--")
    }


def option(name: str, command: App) -> Argument | None:
    """The option that a name means; of a table, by the name of an entry."""
    known = options(command)
    return known.get(name) or known.get(name.partition(".")[0])


def mistake(words: list[str]) -> str | None:
    """Why `earshot` would not take these words, or None. It asks names alone, and no values.

    An ellipsis stands for words that a page leaves out.
    """
    path, *rest = words
    if path not in SUB_COMMANDS:
        return f"earshot has no sub-command {path}"
    command = loaded(path)
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            name, given, _ = word.partition("=")
            if name == "--help":
                continue
            known = option(name, command)
            if known is None:
                return f"earshot {path} has no option {name}"
            if rest and not given and not known.is_flag():
                rest.pop(0)
        elif word in subcommands(command):
            command, path = subcommands(command)[word], f"{path} {word}"
        elif word != "…" and not any(
            each.is_positional_only() and each.show for each in parameters(command)
        ):
            return f"earshot {path} has no sub-command and no argument {word}"
    return None
