"""A Flask application without endpoints: rate limits, metrics, log, secure headers, problems."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from functools import partial

from flask import Flask, Response, g, request

from earshot_server.api import bodies, problems
from earshot_server.api.limits import RateLimits
from earshot_server.api.metrics import Metrics
from earshot_server.api.pages_of_phones import PREFLIGHTS
from earshot_server.api.proxies import BehindProxies
from earshot_server.phone_page.serving import PHONE_PAGE

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Header fields of every response that does not set its own."""

_log = logging.getLogger("earshot.api")


def bare_app(
    limits: RateLimits,
    metrics: Metrics,
    proxies: int,
    details: Mapping[int, str] | None = None,
) -> Flask:
    """Create an application for blueprints to be registered on.

    Args:
        limits: Limits of requests per address.
        metrics: Metrics in which requests are counted.
        proxies: Number of reverse proxies before the server, each adding to X-Forwarded-For.
        details: Details of the framework's problems, by status; by default `problems.DETAILS`.
    """
    app = Flask(__name__, static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False  # a path that does not exist is not redirected
    app.before_request(partial(_begin, limits))
    app.after_request(_secure)
    app.after_request(_Recorder(metrics).record)
    problems.register(app, details)
    app.wsgi_app = BehindProxies(app.wsgi_app, proxies)  # type: ignore[method-assign]
    return app


def _begin(limits: RateLimits) -> None:
    g.request_id = secrets.token_hex(8)
    g.began = time.perf_counter()
    # Not counted: health checks, or a load balancer would take a busy server for a dead one;
    # preflights, whose refusal a browser does not show to its page; and the page's files, which a
    # class of phones requests by the thousand and which cost next to nothing.
    if request.blueprint not in ("health", PREFLIGHTS, PHONE_PAGE) and not bodies.is_second_look():
        limits.count_address(request.remote_addr)


def _secure(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.is_secure:
        response.headers["Strict-Transport-Security"] = "max-age=31536000"
    response.headers["X-Request-Id"] = g.request_id
    return response


class _Recorder:
    """Counts and logs requests; a failure to do so does not affect the response."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._failed = False

    def record(self, response: Response) -> Response:
        """Count and log the present request."""
        try:
            self._record(response)
        except Exception:  # a response must not fail because of its logging
            if not self._failed:  # one line, not one for each request
                _log.exception("requests are answered, but neither counted nor logged")
            self._failed = True
        return response

    def _record(self, response: Response) -> None:
        seconds = time.perf_counter() - g.began
        said = {
            "request": g.request_id,
            "method": request.method,
            "endpoint": request.url_rule.rule if request.url_rule else None,
            "status": response.status_code,
            "milliseconds": round(seconds * 1e3, 1),
        }
        said |= {name: g.get(name) for name in ("phone", "problem") if name in g}
        _log.info("request", extra=said)
        self._metrics.count(response.status_code, seconds)
