"""Worker of gunicorn that runs uvicorn's event loop over a `Gateway`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial
from typing import Any

from uvicorn_worker import UvicornWorker

from earshot_server.front.connections import Patience
from earshot_server.front.gateway import Gateway
from earshot_server.front.protocol import PatientProtocol

_LOOK_EVERY = 1.0
"""Seconds between two checks that the arbiter is alive."""


class Worker(UvicornWorker):  # type: ignore[misc]  # it has no types
    """Web process: connections in its main thread, requests in the gateway's threads."""

    CONFIG_KWARGS: dict[str, Any] = {  # noqa: RUF012 - as in its base
        "loop": "asyncio",
        "ws": "none",
        "lifespan": "off",
        "interface": "asgi3",
        "proxy_headers": False,  # the application knows how many proxies there are
        "server_header": False,
        "access_log": False,  # the application logs requests
        "timeout_keep_alive": int(Patience.idle),
    }
    wsgi: Gateway

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.config.timeout_graceful_shutdown = self.cfg.graceful_timeout
        # Bad requests are not worth a line; errors go to the same log as everything else.
        logger = logging.getLogger("uvicorn.error")
        logger.propagate = True
        logger.setLevel(logging.ERROR)

    async def _serve(self) -> None:
        connections = self.wsgi.connections
        self.config.http = partial(PatientProtocol, connections, pages=self.wsgi.pages)
        watching = [
            asyncio.create_task(watch) for watch in (connections.watch(), self._end_with_parent())
        ]
        await super()._serve()
        for watch in watching:
            watch.cancel()

    async def _end_with_parent(self) -> None:
        """Stop once the arbiter has died: nothing else would stop this worker."""
        while os.getppid() == self.ppid:
            await asyncio.sleep(_LOOK_EVERY)
        os.kill(os.getpid(), signal.SIGTERM)
