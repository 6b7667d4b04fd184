"""The one command, `earshot`: sub-commands are loaded when they are called.

Where a sub-command lives is named here as text, so that `--help` imports none of them and packages
keep their direction of import.
"""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

from earshot_protocol.errors import EarshotError


class SubCommand(NamedTuple):
    """Where a sub-command lives: a module with a Typer `app`."""

    module: str
    extra: str
    help: str


SUB_COMMANDS = {
    "phone": SubCommand(
        "earshot_client.commands.phone",
        "phone",
        "A reference phone: hears, enrols and takes part.",
    ),
    "simulate": SubCommand(
        "earshot_simulations.commands.simulate",
        "simulations",
        "One learning phase over simulated phones.",
    ),
    "serve": SubCommand(
        "earshot_server.commands.serve",
        "server",
        "The server: API, driver and dashboard on PostgreSQL.",
    ),
    "phase": SubCommand(
        "earshot_server.commands.phase",
        "server",
        "Operator actions: start, list, show, stop and export phases.",
    ),
    "invite": SubCommand(
        "earshot_server.commands.invite",
        "server",
        "An invitation code with which phones may enrol.",
    ),
    "train": SubCommand(
        "earshot_models.commands.train",
        "models",
        "An encoder for phones, trained without labels.",
    ),
    "probe": SubCommand(
        "earshot_simulations.commands.probe",
        "simulations",
        "How good an encoder is, on labelled sound that it never heard.",
    ),
    "reproduce": SubCommand(
        "earshot_simulations.commands.reproduce",
        "simulations",
        "One table or figure of a paper.",
    ),
    "bench": SubCommand(
        "earshot_simulations.commands.bench",
        "simulations",
        "Benchmarks, each beside a peer and the physical floor.",
    ),
}


def main() -> None:
    """Run `earshot`.

    A mistake of the caller is one line on standard error and exit status 2.
    """
    try:
        import typer
    except ImportError:
        sys.exit("the command line needs an extra: pip install 'earshot[phone]'")

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
            from importlib.metadata import version as installed

            print(installed("earshot"))
            raise typer.Exit

    try:
        for name, command in SUB_COMMANDS.items():
            # Only the one that is called is loaded; the others are lines of the help text.
            called = name == wanted
            loaded = importlib.import_module(command.module).app if called else typer.Typer()
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
            f"pip install 'earshot[{SUB_COMMANDS[wanted].extra}]'"
        )
