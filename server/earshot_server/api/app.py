"""The WSGI application of the server; any number of processes may run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flask import Blueprint, Flask
from werkzeug.routing import BaseConverter

from earshot_server.api.administration import Administration
from earshot_server.api.authentication import OperatorAuthentication
from earshot_server.api.bare import bare_app
from earshot_server.api.browsers import Browsers
from earshot_server.api.desk import blueprint as desk
from earshot_server.api.figures import StoredFigures
from earshot_server.api.health import health
from earshot_server.api.limits import FAILURES, RateLimits
from earshot_server.api.metrics import PATH as METRICS
from earshot_server.api.metrics import Metrics
from earshot_server.api.operators import OperatorEndpoints
from earshot_server.api.orders import Orders
from earshot_server.api.pages_of_phones import PagesOfPhones
from earshot_server.api.phones import Phones
from earshot_server.api.public import public
from earshot_server.api.shared_counts import SharedCounts
from earshot_server.attestation import Attestation, InvitationCodes
from earshot_server.campaigns.conduct import CampaignConductor
from earshot_server.credentials import Credentials
from earshot_server.dashboard.pages import blueprint as dashboard
from earshot_server.origins import HERE
from earshot_server.phone_page.serving import phone_page
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database


@dataclass(frozen=True)
class ApiSettings:
    """Settings and parts of the application.

    Attributes:
        database: Migrated database that keeps everything.
        credentials: Credentials of the server.
        attestation: Check that decides which phones may enrol; by default, invitation codes.
        idle_seconds: Seconds after which a phone without a task asks again.
        phone_requests_per_minute: Requests per minute from one phone, to each process.
        address_requests_per_minute: Requests per minute from one address, to each process;
            thousands of phones share one address of a mobile network.
        address_failures_per_minute: Wrong tokens per minute from one address, to each process.
        proxies: Number of reverse proxies before the server, each adding to X-Forwarded-For.
        counts: Counts of requests that several workers share; None for a single process.
        phone_origins: Origins of pages that hold phones.
        phone_page: URL of a page that holds a phone, to which invitations lead; `here` for the
            application's own page; empty without one.
        helper: URL of the helper of sums by two operators; empty without one.
        helper_key: Public key of the helper of sums by two operators, in hexadecimal; empty without
            one.
        data_folder: Folder whose disk must have free space; None if there is no data folder.
    """

    database: Database
    credentials: Credentials
    attestation: Attestation | None = None
    idle_seconds: float = 3600.0
    phone_requests_per_minute: int = 600
    address_requests_per_minute: int = 12_000
    address_failures_per_minute: int = FAILURES
    proxies: int = 0
    counts: SharedCounts | None = None
    phone_origins: tuple[str, ...] = ()
    phone_page: str = ""
    helper: str = ""
    helper_key: str = ""
    data_folder: Path | None = None


class _NameConverter(BaseConverter):
    """Converter of an operator's name in a path."""

    regex = "[a-z][a-z0-9._-]{0,31}"


class _InvitationConverter(BaseConverter):
    """Converter of an invitation's name in a path."""

    regex = "[a-z0-9][a-z0-9._-]{0,31}"


class _PhoneConverter(BaseConverter):
    """Converter of a phone's number in a path."""

    regex = "[1-9][0-9]{0,17}"

    def to_python(self, value: str) -> int:
        return int(value)


class _CampaignConverter(BaseConverter):
    """Converter of a campaign in a path: the 64 hexadecimal digits of its plan's digest."""

    regex = "[0-9a-f]{64}"

    def to_python(self, value: str) -> bytes:
        return bytes.fromhex(value)

    def to_url(self, value: bytes) -> str:
        return value.hex()


class _PhaseConverter(BaseConverter):
    """Converter of a phase in a path: 32 hexadecimal digits."""

    regex = "[0-9a-f]{32}"

    def to_python(self, value: str) -> bytes:
        return bytes.fromhex(value)

    def to_url(self, value: bytes) -> str:
        return value.hex()


def create_app(settings: ApiSettings) -> Flask:
    """Create the application; outside the database it keeps only request rates and metrics."""
    database, credentials = settings.database, settings.credentials
    archive = Archive(database)
    limits = RateLimits(
        settings.phone_requests_per_minute,
        settings.address_requests_per_minute,
        settings.address_failures_per_minute,
    )
    metrics = Metrics(StoredFigures(database), settings.counts)
    attestation = settings.attestation or InvitationCodes(credentials.invitation_key)

    app = bare_app(limits, metrics, settings.proxies)
    PagesOfPhones(settings.phone_origins).install(app)
    app.url_map.converters |= {"phase": _PhaseConverter, "operator": _NameConverter}
    app.url_map.converters |= {"phone": _PhoneConverter, "invitation": _InvitationConverter}
    app.url_map.converters |= {"campaign": _CampaignConverter}
    operators = OperatorAuthentication(credentials, database, limits)
    known, browsers = operators.by_token, Browsers(operators)
    orders = Orders(database, credentials, settings.helper_key)
    keys = orders.two_operators
    watched = dashboard(
        archive,
        CampaignConductor(database),
        operators=(keys.leader, keys.helper),
        helper=settings.helper,
    )
    watched.before_request(browsers.authenticate)
    figures = Blueprint("metrics", __name__)
    figures.before_request(known)
    figures.add_url_rule(METRICS, view_func=metrics.respond)
    for blueprint in (
        Phones(database, attestation, limits, settings.idle_seconds).blueprint(),
        OperatorEndpoints(orders).blueprint(known),
        Administration(database, orders).blueprint(known),
        public(archive),
        health(database, settings.data_folder),
        figures,
        watched,
        desk(orders, browsers, settings.phone_page),
        *((phone_page(),) if settings.phone_page == HERE else ()),
    ):
        app.register_blueprint(blueprint)
    return app
