"""The one command, `earshot`: sub-commands are loaded when they are called.

The place of a sub-command is named here as text, so that `--help` imports none of them and packages
keep their direction of import.
"""

from __future__ import annotations

import importlib
import sys
from enum import Enum
from typing import Any, NamedTuple, get_args

from earshot_protocol import distribution
from earshot_protocol.errors import EarshotError


class SubCommand(NamedTuple):
    """A sub-command: the cyclopts `app` of `commands.<its name>` in one of our packages."""

    package: str
    help: str

    def module(self, name: str) -> str:
        """Return the name of the module that holds the sub-command of this name."""
        return f"earshot_{self.package}.commands.{name}"

    @property
    def extra(self) -> str:
        """Extra that brings the libraries that the package needs."""
        return _EXTRAS.get(self.package, self.package)


_EXTRAS = {"client": "phone", "studies": "simulations"}
"""Extras whose names are not those of the packages that need them."""


SUB_COMMANDS = {
    "phone": SubCommand("client", "Run a reference phone: it hears, enrols and takes part."),
    "ledger": SubCommand("client", "Show a phone's releases, their cost, and the budget left."),
    "simulate": SubCommand(
        "simulations",
        "Simulate the phones of one discovery phase, or of the thesis's learning phase.",
    ),
    "sweep": SubCommand(
        "simulations", "Simulate many phases: a grid or a list of settings, each with seeds."
    ),
    "compare": SubCommand("simulations", "Compare two simulated phases side by side."),
    "serve": SubCommand("server", "Run the server: API, driver and dashboard on PostgreSQL."),
    "phase": SubCommand("server", "Start, list, show, stop and export phases, as an operator."),
    "budget": SubCommand(
        "server", "Split a privacy budget over the steps of a phase, and say what it buys."
    ),
    "invite": SubCommand("server", "Make an invitation code with which phones may enrol."),
    "operator": SubCommand(
        "server", "Add, list, remove and rotate operators of the server; show the audit log."
    ),
    "phones": SubCommand("server", "Count the phones that a server knows, or erase one."),
    "train": SubCommand("models", "Train an encoder for phones, without labels."),
    "probe": SubCommand("simulations", "Measure an encoder on labelled sound that it never heard."),
    "reproduce": SubCommand("studies", "Reproduce one table or figure of a paper."),
    "audit": SubCommand(
        "simulations", "Audit the cost of every private mechanism: claimed, proven, measured."
    ),
    "pate": SubCommand(
        "simulations",
        "Let teachers vote on samples that nobody owns: label, budget, student, tag, generate.",
    ),
    "bench": SubCommand("simulations", "Run benchmarks, each beside a peer and a physical floor."),
}


def _value(hint: Any, tokens: Any) -> Any:
    """Return the value of an option; where a whole number is needed, nothing is rounded."""
    from cyclopts import convert

    whole = int in (hint, *get_args(hint))
    return convert(hint, tokens, (lambda kind, text: kind(text)) if whole else None)


def _default(value: Any) -> str | None:
    """Return a default as help texts show it; flags and options that may be left out show none."""
    if isinstance(value, Enum):
        return value.name.lower().replace("_", "-")
    return None if value is None or value is False or value == "" else str(value)


def main() -> None:
    """Run `earshot`.

    A caller's mistake is one line on standard error and exit status 2.
    """
    try:
        from cyclopts import App, CycloptsError, Parameter
    except ImportError:
        sys.exit(f"the command line needs an extra: {distribution.installation('phone')}")

    app = App(
        name="earshot",
        help="A crowd of phones finds out, in private, where people meet.",
        help_flags=["--help"],
        version=distribution.version,
        # A flag is given or left out, and of one option that is given twice the last counts.
        default_parameter=Parameter(
            negative=(), allow_repeating=True, show_default=_default, converter=_value
        ),
    )
    wanted = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        for name, command in SUB_COMMANDS.items():
            # Only the one that is called is loaded; the others are lines of the help text.
            if name == wanted:
                app.command(importlib.import_module(command.module(name)).app, name=name)
            else:
                app.command(f"{command.module(name)}:app", name=name, help=command.help)
        app(sys.argv[1:], exit_on_error=False, print_error=False)
    except (CycloptsError, EarshotError) as error:
        print(f"earshot: {error}", file=sys.stderr)
        sys.exit(2)
    except ModuleNotFoundError as error:
        if error.name == "earshot_studies":
            print(
                f"earshot {wanted}: no wheel has the studies of papers; they are in the "
                "repository, folder simulations/earshot_studies, and run from a checkout",
                file=sys.stderr,
            )
            sys.exit(2)
        # Heavy imports happen where they are used, so this may come from deep within.
        if wanted not in SUB_COMMANDS or (error.name or "").startswith("earshot"):
            raise
        sys.exit(
            f"earshot {wanted} needs an extra ({error.name} is missing): "
            f"{distribution.installation(SUB_COMMANDS[wanted].extra)}"
        )
