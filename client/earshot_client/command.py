"""The one command, `earshot`: sub-commands are loaded when they are called.

The place of a sub-command is named here as text, so that `--help` imports none of them and packages
keep their direction of import.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, get_args, get_origin

from earshot_client.commands import standard_streams
from earshot_client.home import writable_home
from earshot_protocol import distribution
from earshot_protocol.errors import EarshotError
from earshot_protocol.text import bare, one_line


class SubCommand(NamedTuple):
    """A sub-command: the cyclopts `app` of `commands.<its name>` in one of our packages.

    Attributes:
        package: Package that holds it.
        help: Help text.
        extras: Extras that it needs.
        further: Extras that some of its own sub-commands need besides, by their name.
    """

    package: str
    help: str
    extras: tuple[str, ...]
    further: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def module(self, name: str) -> str:
        """Return the name of the module that holds the sub-command of this name."""
        return f"earshot_{self.package}.commands.{name.replace('-', '_')}"

    def needed(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the extras that the call with these words needs."""
        inner = next((word for word in words if word in self.further), "")
        return self.extras + self.further.get(inner, ())


SUB_COMMANDS = {
    "phone": SubCommand(
        "client", "Run a reference phone: it hears, enrols and takes part.", ("phone",)
    ),
    "ledger": SubCommand(
        "client", "Show a phone's releases, their cost, and the budget left.", ("phone",)
    ),
    "simulate": SubCommand(
        "simulations",
        "Simulate the phones of one discovery phase, or of the thesis's learning phase.",
        ("simulations",),
    ),
    "sweep": SubCommand(
        "simulations",
        "Simulate many phases: a grid or a list of settings, each with seeds.",
        ("simulations", "tables"),
    ),
    "compare": SubCommand(
        "simulations", "Compare two simulated phases side by side.", ("simulations",)
    ),
    "serve": SubCommand(
        "server", "Run the server: API, driver and dashboard on PostgreSQL.", ("server",)
    ),
    "backup": SubCommand(
        "server", "Write a server into one file, while it runs or not: a backup.", ("server",)
    ),
    "restore": SubCommand("server", "Make the server of a backup anew.", ("server",)),
    "helper": SubCommand(
        "server", "Run the second operator of sums by two operators.", ("server",)
    ),
    "phase": SubCommand(
        "server", "Start, list, show, stop and export phases, as an operator.", ("server",)
    ),
    "budget": SubCommand(
        "server",
        "Split a privacy budget over the steps of a phase, and say what it buys.",
        ("server",),
    ),
    "invite": SubCommand(
        "server", "Make an invitation code with which phones may enrol.", ("server",)
    ),
    "phone-page": SubCommand(
        "server", "Write a page that is a phone, as files for any web host.", ("server",)
    ),
    "operator": SubCommand(
        "server",
        "Add, list, remove and rotate operators of the server; show the audit log.",
        ("server",),
    ),
    "phones": SubCommand(
        "server", "Count the phones that a server knows, or erase one.", ("server",)
    ),
    "train": SubCommand("models", "Train an encoder for phones, without labels.", ("models",)),
    "probe": SubCommand(
        "simulations", "Measure an encoder on labelled sound that it never heard.", ("simulations",)
    ),
    "starts": SubCommand(
        "simulations",
        "Find an encoder's start centroids anew, from public sound.",
        ("simulations", "models"),
    ),
    "reproduce": SubCommand(
        "studies",
        "Reproduce one table or figure of a paper.",
        ("simulations", "generators", "server", "tables"),
    ),
    "audit": SubCommand(
        "simulations",
        "Audit the cost of every private mechanism: claimed, proven, measured.",
        ("simulations", "generators"),
    ),
    "pate": SubCommand(
        "simulations",
        "Let teachers vote on samples nobody owns: example, label, budget, student, tag, generate.",
        ("simulations",),
        {"tag": ("models",), "generate": ("generators",)},
    ),
    "bench": SubCommand(
        "simulations",
        "Run benchmarks, each beside a peer and a physical floor.",
        ("simulations", "server"),
        {"sitting": ("browsers",)},
    ),
}


_NO_HOME = (
    "earshot: there is no home (HOME) that can be written to: what libraries keep for later runs "
    "is kept for this run alone"
)

_MOST_NAMED = 15
"""Most options that a refusal lists."""
_LONGEST_TEXT = 4000
"""Most letters of a refusal."""


def _value(hint: Any, tokens: Any) -> Any:
    """Return the value of an option; where a whole number is needed, nothing is rounded."""
    from cyclopts import convert

    if isinstance(tokens, tuple) and Path not in _types(hint):
        # A variable may end as the line of its file did; a file's name may be meant as it is.
        tokens = tuple(each.evolve(value=bare(each.value)) for each in tokens)
    whole = int in (hint, *get_args(hint))
    return convert(hint, tokens, (lambda kind, text: kind(text)) if whole else None)


def _said(error: Exception) -> str:
    """Return the words for a mistake; those of cyclopts name Python's types where they can."""
    from cyclopts import CoercionError, MissingArgumentError, UnusedCliTokensError

    if not isinstance(error, CoercionError | MissingArgumentError | UnusedCliTokensError):
        return str(error)
    chain = " ".join(("earshot", *(error.command_chain or ())))
    if isinstance(error, UnusedCliTokensError):
        named = " ".join(error.unused_tokens or ())
        return f"{named}: not expected here; `{chain} --help` says what it takes"
    if isinstance(error, MissingArgumentError) and error.argument and not error.argument.tokens:
        return f"{error.argument.name} is missing: `{chain} --help` says what it is"
    if isinstance(error, CoercionError) and error.token is not None and error.msg is None:
        where = error.token.keyword or (error.argument.name.upper() if error.argument else "")
        wanted = next(
            (words for kind, words in _WANTED.items() if kind in _types(error.target_type)), None
        )
        if wanted is not None:
            return f"{where} {error.token.value!r}: must be {wanted.format(name=where)}"
    return str(error)


def _types(hint: Any) -> set[Any]:
    """Return a type, those that it is a union of, and what each is made from."""
    return {kind for each in (hint, *get_args(hint)) for kind in (each, get_origin(each))}


_WANTED = {
    dict: "NAME VALUE, with the name behind a point: {name}.NAME VALUE",
    int: "a whole number",
    float: "a number",
    date: "a day, such as 2026-03-31",
}
"""Words for what a value must be, by its type."""


def _default(value: Any) -> str | None:
    """Return a default as help texts show it; flags and options that may be left out show none."""
    if isinstance(value, Enum):
        return value.name.lower().replace("_", "-")
    return None if value is None or value is False or value == "" else str(value)


def _require_extras(wanted: str) -> None:
    """Refuse a sub-command, before it is loaded, whose packages are not installed."""
    if wanted not in SUB_COMMANDS:
        distribution.require("the command line", ("phone",))
        return
    distribution.require(f"earshot {wanted}", SUB_COMMANDS[wanted].needed(sys.argv[1:]))


def _accepted(error: Exception) -> str:
    """Return the options of a command that was given one that it does not take."""
    from cyclopts import UnknownOptionError

    if not isinstance(error, UnknownOptionError):
        return ""
    command = " ".join(("earshot", *(error.command_chain or ())))
    options = [each.name for each in error.argument_collection if each.parse and each.show]
    if len(options) > _MOST_NAMED:
        return f" {command} --help lists the options that it takes."
    return f" {command} takes {', '.join(options) or 'none'}."


def main() -> NoReturn:
    """Run `earshot`.

    A caller's mistake is one line on standard error and exit status 2.
    """
    standard_streams.run(_run)


def _run() -> None:
    wanted = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        _require_extras(wanted)
    except distribution.MissingExtraError as error:
        print(f"earshot: {error}", file=sys.stderr)
        sys.exit(2)

    from cyclopts import App, CycloptsError, Parameter

    from earshot_client.commands.help_columns import FORMATTER

    app = App(
        name="earshot",
        help="A crowd of phones finds out, in private, where people meet.",
        help_flags=["--help"],
        help_formatter=FORMATTER,
        version=distribution.version,
        # A flag is given or left out, and of one option that is given twice the last counts.
        default_parameter=Parameter(
            negative=(), allow_repeating=True, show_default=_default, converter=_value
        ),
    )
    first = next(iter(sys.argv[1:]), "")
    if first.startswith("-") and first not in ("--help", "--version"):
        print(
            f"earshot: {first}: name a command first, as `earshot simulate --help`; "
            "`earshot --help` lists them",
            file=sys.stderr,
        )
        sys.exit(2)
    try:
        for name, command in SUB_COMMANDS.items():
            # Only the one that is called is loaded; the others are lines of the help text.
            if name == wanted:
                app.command(importlib.import_module(command.module(name)).app, name=name)
            else:
                app.command(f"{command.module(name)}:app", name=name, help=command.help)
        with writable_home() as lacking:
            if lacking and wanted in SUB_COMMANDS and "--help" not in sys.argv:
                print(_NO_HOME, file=sys.stderr)
            app(sys.argv[1:], exit_on_error=False, print_error=False)
    except (CycloptsError, EarshotError) as error:
        # What a message quotes, of a file or of a command line, may be long, or move a cursor.
        said = one_line(f"{_said(error)}{_accepted(error)}", _LONGEST_TEXT)
        print(f"earshot: {said}", file=sys.stderr)
        sys.exit(2)
    except ModuleNotFoundError as error:
        if error.name == "earshot_studies":
            print(
                f"earshot {wanted}: no wheel has the studies of papers; they are in the "
                "repository, folder simulations/earshot_studies, and run from a checkout",
                file=sys.stderr,
            )
            sys.exit(2)
        raise
