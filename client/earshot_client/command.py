"""The one command, `earshot`: sub-commands are loaded when they are called.

The modules of sub-commands are named as text, so that `--help` imports none of them and packages
keep their direction of import.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import itertools
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, get_args, get_origin

from earshot_client.commands import standard_streams
from earshot_client.home import writable_home
from earshot_protocol import distribution
from earshot_protocol.errors import EarshotError, LocalError
from earshot_protocol.text import bare, one_line

ABOUT = "A crowd of phones finds out, in private, where people meet."


class SubCommand(NamedTuple):
    """A sub-command: the cyclopts `app` of `commands.<its name>` in one of our packages.

    Attributes:
        package: Package that holds it.
        help: Help text.
        extras: Extras that it needs.
        further: Further extras that its own sub-commands need, by their name.
    """

    package: str
    help: str
    extras: tuple[str, ...]
    further: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def module(self, name: str) -> str:
        """Return the name of the module that holds the sub-command of this name."""
        return f"earshot_{self.package}.commands.{name.replace('-', '_')}"

    def needed(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the extras for a call with these arguments."""
        return self.extras + self.further.get(next(iter(words), ""), ())


_WITH_FURTHER_LIBRARIES = (
    *("audioset-ensemble", "audioset-phones", "audioset-privacy", "audioset-student"),
    *("noisy-gradients", "pate-aae"),
)
"""Studies that need JAX or librosa."""

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
        "server", "Back up a server to one file, whether it is running or not.", ("server",)
    ),
    "restore": SubCommand("server", "Restore a server from a backup.", ("server",)),
    "helper": SubCommand(
        "server", "Run the second operator of sums by two operators.", ("server",)
    ),
    "phase": SubCommand(
        "server", "Start, list, show, stop and export phases, as an operator.", ("server",)
    ),
    "budget": SubCommand(
        "server",
        "Split a privacy budget over the steps of a phase, and show what it buys.",
        ("server",),
    ),
    "campaign": SubCommand(
        "server",
        "Plan a year of weekly counts of contacts: its phases, cost and reach.",
        ("server",),
    ),
    "invite": SubCommand(
        "server", "Make an invitation code with which phones may enrol.", ("server",)
    ),
    "phone-page": SubCommand(
        "server", "Write the phone's web page, as files for any web host.", ("server",)
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
        "simulations",
        "Measure an encoder on labelled sound that it was not trained on.",
        ("simulations",),
    ),
    "starts": SubCommand(
        "simulations",
        "Recompute an encoder's start centroids from public sound.",
        ("simulations", "models"),
    ),
    "reproduce": SubCommand(
        "studies",
        "Reproduce one table or figure of a paper.",
        ("simulations", "models", "server", "tables"),
        dict.fromkeys(_WITH_FURTHER_LIBRARIES, ("dev",)),
    ),
    "audit": SubCommand(
        "simulations",
        "Audit the cost of every private mechanism: claimed, proven, measured.",
        ("simulations", "proofs"),
    ),
    "pate": SubCommand(
        "simulations",
        "Label public samples by votes of teachers: example, label, budget, student.",
        ("simulations",),
    ),
    "bench": SubCommand(
        "simulations",
        "Run benchmarks, each beside a peer and a physical floor.",
        ("simulations", "server"),
        {"sitting": ("browsers",)},
    ),
}


_KEEPING = frozenset({"models", "simulations", "studies"})
"""Packages whose libraries store caches in the home directory."""
_NO_HOME = (
    "earshot: no home (HOME) can be written to: caches of libraries are kept for this run only"
)

_MOST_NAMED = 15
"""Most options that an error message lists."""
_LONGEST_TEXT = 4000
"""Most characters of an error message."""


def _value(hint: Any, tokens: Any) -> Any:
    """Convert the value of an option; whole numbers are not made by rounding."""
    from cyclopts import convert

    if isinstance(tokens, tuple) and Path not in _types(hint):
        # A variable read from a file may end in a newline; names of files are left as they are.
        tokens = tuple(each.evolve(value=bare(each.value)) for each in tokens)
    whole = int in (hint, *get_args(hint))
    return convert(hint, tokens, (lambda kind, text: kind(text)) if whole else None)


def _said(error: Exception) -> str:
    """Return the message for a usage error; cyclopts' own would name Python's types."""
    from cyclopts import CoercionError, MissingArgumentError, UnusedCliTokensError

    if not isinstance(error, CoercionError | MissingArgumentError | UnusedCliTokensError):
        return str(error)
    chain = " ".join(("earshot", *(error.command_chain or ())))
    if isinstance(error, UnusedCliTokensError):
        named = " ".join(error.unused_tokens or ())
        return f"{named}: not expected here; see `{chain} --help`"
    if isinstance(error, MissingArgumentError) and error.argument and not error.argument.tokens:
        return f"{error.argument.name} is missing; see `{chain} --help`"
    if isinstance(error, CoercionError) and error.token is not None and error.msg is None:
        where = error.token.keyword or (error.argument.name.upper() if error.argument else "")
        wanted = next(
            (words for kind, words in _WANTED.items() if kind in _types(error.target_type)), None
        )
        if wanted is not None:
            return f"{where} {error.token.value!r}: must be {wanted.format(name=where)}"
    return str(error)


def _types(hint: Any) -> set[Any]:
    """Return a type, the members of its union, and the origin of each."""
    return {kind for each in (hint, *get_args(hint)) for kind in (each, get_origin(each))}


_WANTED = {
    dict: "given with its name, as {name}.NAME VALUE",
    int: "a whole number",
    float: "a number",
    date: "a day, such as 2026-03-31",
}
"""Descriptions of valid values for error messages, by type."""


def _default(value: Any) -> str | None:
    """Format a default for help texts; flags and optional values show none."""
    if isinstance(value, Enum):
        return value.name.lower().replace("_", "-")
    return None if value is None or value is False or value == "" else str(value)


class UnknownCommandError(LocalError):
    """No sub-command has the name that was given."""


class NoPackageError(LocalError):
    """This installation lacks the package that holds a sub-command."""


def _require(name: str, words: Sequence[str]) -> None:
    """Raise if a sub-command is unknown or its packages are missing, before it is loaded."""
    command = SUB_COMMANDS.get(name)
    if command is None:
        close = difflib.get_close_matches(name, SUB_COMMANDS, 1)
        raise UnknownCommandError(
            f"no such command: {name if name and name.isprintable() else ascii(name)}; "
            f"{f'did you mean {close[0]}? ' if close else ''}`earshot --help` lists them"
        )
    if command.package == "studies" and not _has("studies"):
        raise NoPackageError(
            "studies of papers are not in the wheels: run them from a checkout of the repository, "
            "where they are in simulations/earshot_studies"
        )
    if distribution.name() == distribution.PHONE and not _has(command.package):
        raise NoPackageError(
            f"earshot {name} is not in {distribution.PHONE}: pip uninstall {distribution.PHONE}, "
            f"then pip install '{distribution.NAME}[{','.join(command.needed(words))}]'"
        )
    distribution.require(f"earshot {name}", command.needed(words))


def _has(package: str) -> bool:
    """Return whether this installation has one of our packages.

    A wheel has no studies of papers, and that of the phone alone only the client and its protocol.
    """
    return importlib.util.find_spec(f"earshot_{package}") is not None


def _overview() -> str:
    """Return the list of sub-commands, each with the extras that it needs."""
    width = max(40, min(100, shutil.get_terminal_size().columns))
    here = distribution.name()
    lacking = {each.extras: distribution.missing(each.extras) for each in SUB_COMMANDS.values()}

    def row(name: str, text: str) -> str:
        begin = f"  {name:<12}"
        return textwrap.fill(
            text, width, initial_indent=begin, subsequent_indent=" " * len(begin),
            break_on_hyphens=False,
        )  # fmt: skip

    def needs(command: SubCommand) -> str:
        if command.package == "studies" and not _has("studies"):
            return "only in a checkout"
        if here == distribution.PHONE and not _has(command.package):
            return f"only in {distribution.NAME}"
        return ",".join(command.extras) + ": not installed" * bool(lacking[command.extras])

    brackets = (
        "A command needs the extras in brackets; install them as in "
        f"{distribution.installation('phone')}."
    )
    return "\n".join(
        [
            "Usage: earshot COMMAND\n",
            f"{ABOUT}\n",
            textwrap.fill(brackets, width, break_on_hyphens=False) + "\n",
            *(
                row(name, f"{command.help} [{needs(command)}]")
                for name, command in sorted(SUB_COMMANDS.items())
            ),
            "",
            row("--help", "Show this help, or that of a command."),
            row("--version", "Show the version."),
        ]
    )


def _accepted(error: Exception) -> str:
    """Return the accepted options, for the error about an unknown one."""
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
    words = sys.argv[1:]
    behind = list(itertools.dropwhile("--help".__eq__, words))  # `earshot --help serve`, too
    wanted, *rest = behind or ["--help"]
    try:
        if wanted == "--help":
            print(_overview())
            sys.exit()
        if wanted == "--version":
            print(distribution.version())
            sys.exit()
        if wanted.startswith("-"):
            raise UnknownCommandError(
                f"{wanted}: name a command first, as `earshot simulate --help`; "
                "`earshot --help` lists them"
            )
        _require(wanted, rest)
    except LocalError as error:
        print(f"earshot: {error}", file=sys.stderr)
        sys.exit(2)

    from cyclopts import App, CycloptsError, Parameter

    from earshot_client.commands.help_columns import FORMATTER

    app = App(
        name="earshot",
        help=ABOUT,
        help_flags=["--help"],
        help_formatter=FORMATTER,
        version=distribution.version,
        # Flags have no negative form, and of a repeated option the last value counts.
        default_parameter=Parameter(
            negative=(), allow_repeating=True, show_default=_default, converter=_value
        ),
    )
    try:
        module = importlib.import_module(SUB_COMMANDS[wanted].module(wanted))
        app.command(module.app, name=wanted)
        keeps = SUB_COMMANDS[wanted].package in _KEEPING
        with writable_home() if keeps else contextlib.nullcontext(False) as lacking:
            if lacking and "--help" not in words:
                print(_NO_HOME, file=sys.stderr)
            app(words, exit_on_error=False, print_error=False)
    except (CycloptsError, EarshotError) as error:
        # Messages may quote long text or control characters from files or the command line.
        said = one_line(f"{_said(error)}{_accepted(error)}", _LONGEST_TEXT)
        print(f"earshot: {said}", file=sys.stderr)
        sys.exit(2)
