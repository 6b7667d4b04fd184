"""The one command, `earshot`: sub-commands are loaded when they are called.

Where a sub-command lives is named here as text, so that `--help` imports none of them and packages
keep their direction of import.
"""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

from earshot_protocol import distribution
from earshot_protocol.errors import EarshotError


class SubCommand(NamedTuple):
    """A sub-command is the Typer `app` of `commands.<its name>` in one of our packages."""

    package: str
    help: str

    @property
    def extra(self) -> str:
        """What brings the libraries that the package needs."""
        return _EXTRAS.get(self.package, self.package)


_EXTRAS = {"client": "phone", "studies": "simulations"}
"""Extras whose names are not those of the packages that need them."""


SUB_COMMANDS = {
    "phone": SubCommand("client", "A reference phone: hears, enrols and takes part."),
    "ledger": SubCommand("client", "What a phone has released, what it cost, and what is left."),
    "simulate": SubCommand(
        "simulations",
        "One phase over simulated phones: a discovery phase, or the thesis's learning phase.",
    ),
    "sweep": SubCommand(
        "simulations", "Many simulated phases: a grid or a list of settings, each with seeds."
    ),
    "compare": SubCommand("simulations", "Two simulated phases side by side."),
    "serve": SubCommand("server", "The server: API, driver and dashboard on PostgreSQL."),
    "phase": SubCommand("server", "Operator actions: start, list, show, stop and export phases."),
    "budget": SubCommand(
        "server", "Splits a privacy budget over the steps of a phase, and says what it buys."
    ),
    "invite": SubCommand("server", "An invitation code with which phones may enrol."),
    "operator": SubCommand(
        "server", "Who may operate the server: add, list, remove, rotate; the audit log."
    ),
    "phones": SubCommand("server", "The phones that a server knows: count them, erase one."),
    "train": SubCommand("models", "An encoder for phones, trained without labels."),
    "probe": SubCommand(
        "simulations", "How good an encoder is, on labelled sound that it never heard."
    ),
    "reproduce": SubCommand("studies", "One table or figure of a paper."),
    "audit": SubCommand(
        "simulations", "What every private mechanism costs: claimed, proven, measured."
    ),
    "pate": SubCommand(
        "simulations",
        "Votes of teachers on samples that nobody owns: label, budget, student, tag, generate.",
    ),
    "bench": SubCommand("simulations", "Benchmarks, each beside a peer and the physical floor."),
}


def main() -> None:
    """Run `earshot`.

    A mistake of the caller is one line on standard error and exit status 2.
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
            # Only the one that is called is loaded; the others are lines of the help text.
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
