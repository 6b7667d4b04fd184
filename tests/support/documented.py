"""What pages tell readers to type, and whether the command that they name would take it."""

from __future__ import annotations

import functools
import importlib
import re
import shlex
from typing import Any

from typer.main import get_command

from earshot_client.command import SUB_COMMANDS

_INLINE = re.compile(r"`([^`]+)`")
_CALL = re.compile(r"(?<![\w.~/$=-])(['\"]?)(?:[\w.~/$-]*/)?earshot +(.*?)\1$")
"""The program, by any path, and its words; all of it may be quoted, for another machine's shell."""
_REST = re.compile(r"[|&;<>()]|\s\d>")
"""Where the words of a command end: pipes, redirections, the end of `$(…)`."""


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
def loaded(name: str) -> Any:
    """A sub-command of `earshot`, as its command line reads it."""
    module = f"earshot_{SUB_COMMANDS[name].package}.commands.{name}"
    return get_command(importlib.import_module(module).app)


def options(command: Any) -> dict[str, Any]:
    """The options of a command by each of their names, `--help` aside."""
    return {
        name: parameter
        for parameter in command.params
        if parameter.param_type_name == "option"
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


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
            if name not in options(command):
                return f"earshot {path} has no option {name}"
            if rest and not given and not options(command)[name].is_flag:
                rest.pop(0)
        elif word in getattr(command, "commands", {}):
            command, path = command.commands[word], f"{path} {word}"
        elif word != "…" and all(each.param_type_name == "option" for each in command.params):
            return f"earshot {path} has no sub-command and no argument {word}"
    return None
