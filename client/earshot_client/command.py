"""The one command, `earshot`: sub-commands are loaded when they are called.

The place of a sub-command is named here as text, so that `--help` imports none of them and packages
keep their direction of import.
"""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

from earshot_protocol import distribution
from earshot_protocol.errors import EarshotError


class SubCommand(NamedTuple):
    """A sub-command: the Typer `app` of `commands.<its name>` in one of our packages."""

    package: str
    help: str

    @property
    def extra(self) -> str:
        """Extra that brings the libraries that the package needs."""
        return "phone" if self.package == "client" else self.package


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
    "reproduce": SubCommand("simulations", "Reproduce one table or figure of a paper."),
    "audit": SubCommand(
        "simulations", "Audit the cost of every private mechanism: claimed, proven, measured."
    ),
    "pate": SubCommand(
        "simulations",
        "Let teachers vote on samples that nobody owns: label, budget, student, tag, generate.",
    ),
    "bench": SubCommand("simulations", "Run benchmarks, each beside a peer and a physical floor."),
}


def main() -> None:
    """Run `earshot`.

    A caller's mistake is one line on standard error and exit status 2.
    """
    try:
        import typer
    except ImportError:
        sys.exit(f"the command line needs an extra: {distribution.installation('phone')}")

    app = typer.Typer(
        name="earshot",
        help="A crowd of phones finds out, in private, where people meet.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    wanted = next((word for word in sys.argv[1:] if not word.startswith("-")), "")

    @app.callback(invoke_without_command=True)
    def version(
        show: bool = typer.Option(False, "--version", help="Show the version and exit."),
    ) -> None:
        if show:
            print(distribution.version())
            raise typer.Exit

    try:
        for name, command in SUB_COMMANDS.items():
            # Only the sub-command that is called is loaded; the others are lines of the help text.
            loaded = typer.Typer()
            if name == wanted:
                module = f"earshot_{command.package}.commands.{name}"
                loaded = importlib.import_module(module).app
            app.add_typer(loaded, name=name, help=command.help)
        app()
    except EarshotError as error:
        print(f"earshot: {error}", file=sys.stderr)
        sys.exit(2)
    except ModuleNotFoundError as error:
        # Heavy imports happen where they are used, so this may come from deep within.
        if wanted not in SUB_COMMANDS or (error.name or "").startswith("earshot"):
            raise
        sys.exit(
            f"earshot {wanted} needs an extra ({error.name} is missing): "
            f"{distribution.installation(SUB_COMMANDS[wanted].extra)}"
        )
