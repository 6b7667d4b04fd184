"""`earshot serve`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import App, Parameter

from earshot_server.processes.settings import Serving

app = App()

_DEFAULT = Serving()


@app.default
def serve(*, settings: Annotated[Serving, Parameter(name="*")] = _DEFAULT) -> None:
    """Run the server until SIGTERM; see `docs/operations.md`."""
    from earshot_server.credentials import TOKEN_FILE, Credentials
    from earshot_server.processes import supervisor as serving

    settings = replace(settings, log_level=settings.log_level.upper())
    settings.check()

    def ready(address: str) -> None:
        print(f"Earshot serves at {address}")
        where = "at your proxy's https address" if settings.proxies else "there"
        token = (settings.data / TOKEN_FILE).absolute()
        print(f"Dashboard: sign in {where} with the token in {token}", flush=True)
        leader = Credentials.load_or_create(settings.data, leads=settings.leads).leader
        if leader:
            helper = settings.helper_identity
            print(f"Sums by two operators: apps pin leader {leader}, helper {helper}", flush=True)

    serving.serve(settings, ready)
