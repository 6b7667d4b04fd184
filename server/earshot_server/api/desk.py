"""Operator's desk: pages to sign in, start and stop phases, invite phones, manage operators.

Campaigns are stopped and resumed here too.

A change takes two steps: a form leads to a page that shows its consequences, and the button there
makes the change, by the same `Orders` as the API. Nothing is stored between the two: the second
page carries the first one's texts, which are parsed again. A wall page takes one step, as it shows
the consequences beside its buttons.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from flask import Blueprint, Response, g, request, url_for
from markupsafe import Markup

from earshot_protocol.api import Invitation, Invite, StartPhase
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.api import bodies, forms
from earshot_server.api.authentication import needs
from earshot_server.api.browsers import (
    Browsers,
    check_origin,
    derived,
    has_key,
    is_asked_here,
    own_origin,
)
from earshot_server.api.forms import Filled
from earshot_server.api.orders import Orders
from earshot_server.api.problems import ForgedRequestError, OperatorError
from earshot_server.dashboard import language_choice, prospects, rendering, wall
from earshot_server.dashboard.languages import LazyText, gettext, noted
from earshot_server.dashboard.verdict import verdict
from earshot_server.origins import page_at
from earshot_server.phases.forecast import forecast
from earshot_server.phases.places import newest
from earshot_server.phone_links import drawn, link_to
from earshot_server.records import GATHERING, CampaignState
from earshot_server.store.invitations import InvitationNameError
from earshot_server.store.operators import (
    FIRST,
    OperatorNameError,
    Role,
    TokenReplacedError,
    UnknownOperatorError,
)
from earshot_server.store.sessions import HOURS

LARGEST_SIGN_IN = 4096
"""Largest form from a browser that is not signed in, in bytes."""
_STALE = LazyText(noted("This form is of an earlier session: check it and send it again."))


class OperatorDesk:
    """Pages of the desk.

    Args:
        orders: Orders that operators may give.
        browsers: Sessions of browsers.
        phone_page: URL of a page that holds a phone, to which invitations lead; empty without one.
        clock: Clock in seconds since 1970.
    """

    def __init__(
        self, orders: Orders, browsers: Browsers, phone_page: str, clock: Callable[[], float]
    ) -> None:
        self._orders = orders
        self._phone_page = phone_page
        self._browsers = browsers
        self._clock = clock
        self._render = partial(rendering.render, now=clock)

    def blueprint(self) -> Blueprint:
        """Return the pages, to be registered beside the dashboard's."""
        desk = Blueprint("desk", __name__)
        desk.before_request(language_choice.choose)
        desk.after_request(rendering.secure)
        desk.before_request(self._authenticate)
        desk.get("/sign-in")(self.sign_in)
        desk.post("/sign-in", endpoint="signing-in")(self.signing_in)
        desk.post("/sign-out")(self.sign_out)
        campaign = "/campaigns/<campaign:digest>"
        for path, show, act in (
            ("/start", self.start, self.starting),
            ("/invite", self.invite, self.inviting),
            ("/invitations/<invitation:name>/revoke", self.revoke, self.revoking),
            ("/phases/<phase:phase>/stop", self.stop, self.stopping),
            (f"{campaign}/stop", self.stop_campaign, self.stopping_campaign),
            (f"{campaign}/resume", self.resume_campaign, self.resuming_campaign),
        ):
            desk.get(path, endpoint=show.__name__)(needs(Role.OPERATOR, show))
            desk.post(path, endpoint=act.__name__)(needs(Role.OPERATOR, act))
        desk.get("/operators")(needs(Role.ADMIN, self.operators))
        desk.post("/operators", endpoint="adding")(needs(Role.ADMIN, self.adding))
        one = "/operators/<operator:name>"
        desk.get(one)(needs(Role.ADMIN, self.operator))
        desk.post(one, endpoint="changing")(needs(Role.ADMIN, self.changing))
        for path, act in (("wall", self.wall), ("begin", self.beginning)):
            desk.post(f"/phases/<phase:phase>/{path}")(needs(Role.OPERATOR, act))
        return desk

    def _authenticate(self) -> Response | None:
        if request.path == url_for("desk.sign_in"):
            self._browsers.check_may_sign_in()
            return None
        return self._browsers.authenticate()

    # ---------------------------------------------------------------------------- sessions

    def sign_in(self) -> Response:
        """Show the sign-in form."""
        return self._sign_in_form(request.args.get("to", "/"))

    def signing_in(self) -> Response:
        """Begin a session."""
        check_origin()
        form = bodies.read_form(LARGEST_SIGN_IN)
        to = form.get("to", "/")
        try:
            return self._browsers.sign_in(form.get("token", "").strip(), to)
        except OperatorError:
            g.problem = "operator"
            error = gettext("No operator has this token: copy all of it, 43 characters.")
            return self._sign_in_form(to, error)

    def sign_out(self) -> Response:
        """End the session."""
        if not has_key(bodies.read_form(LARGEST_SIGN_IN)):
            raise ForgedRequestError(_STALE)
        return self._browsers.sign_out()

    # ------------------------------------------------------------------------------ phases

    def start(self) -> Response:
        """Show the form of a discovery phase, or of the `kind` asked for."""
        free = sum(cohort.free for cohort in self._orders.archive.cohorts())
        by = SummationName.TWO_OPERATORS if self._by_two else SummationName.BELL
        kind = request.args.get("kind", forms.DISCOVERY)
        return self._start_form(Filled(forms.first_start(free, by, kind)))

    def starting(self) -> Response:
        """Show a phase's forecast, or start it."""
        form = bodies.read_form()
        own = (forms.KIND, forms.SUMMATION, forms.PACE)
        filled = Filled(_texts((*forms.START, *forms.COUNTING, *own), form))
        if not has_key(form):
            filled.errors[""] = _STALE
            return self._start_form(filled, 403)
        anyway = form.get("anyway") == "yes"
        wanted = forms.read_start(filled, anyway, self._places)
        if wanted is None:
            return self._start_form(filled, 422)
        if form.get("do") == "change":
            return self._start_form(filled)
        try:
            self._orders.check_helper(wanted)
        except InvalidParametersError as error:  # the server had a helper when it sent the form
            filled.errors[""] = str(error)
            return self._start_form(filled, 422)
        objections = self._orders.objections(wanted)
        starts = form.get("do") == "start"
        if starts and (anyway or not objections):
            return self._started(wanted, form.get("once", ""), forms.sits(filled))
        enrolled, _ = prospects.enrolled(wanted, self._orders.archive.cohorts())
        seen = forecast(wanted)
        return self._page(
            "verdict.html",
            422 if starts else 200,
            filled=filled,
            wanted=wanted,
            seen=seen,
            verdict=verdict(wanted.parameters),
            objections=objections,
            insist=starts,
            enrolled=enrolled,
            lines=prospects.lines(wanted, seen, self._clock()),
            by_two=self._by_two,
            proposal=forms.proposal(filled, self._places) if self._by_two else "",
            few_reports=prospects.few_reports(wanted),
            first=prospects.gathering_before(wanted, self._orders.archive.phases()),
        )

    def _started(self, wanted: StartPhase, once: str, sits: bool) -> Response:
        # Sent twice, by a second click, a form starts one phase.
        phase = derived("phase", once)[:16]
        try:
            self._orders.start(wanted, phase)
        except InvalidInputError:
            self._orders.known(phase)
        return _to_wall(phase) if sits else _to_phase(phase)

    def stop(self, phase: bytes) -> Response:
        """Show the form for stopping a phase, which asks for the reason."""
        return self._stop_form(phase, Filled(_texts(forms.STOP, {})))

    def stopping(self, phase: bytes) -> Response:
        """Stop a phase."""
        given, status = _reason()
        if isinstance(given, Filled):
            return self._stop_form(phase, given, status)
        self._orders.stop(phase, given)
        return _to_phase(phase)

    # --------------------------------------------------------------------------- campaigns

    def stop_campaign(self, digest: bytes) -> Response:
        """Show the form for stopping a campaign, which asks for the reason."""
        return self._stop_campaign_form(digest, Filled(_texts(forms.STOP, {})))

    def stopping_campaign(self, digest: bytes) -> Response:
        """Stop a campaign."""
        given, status = _reason()
        if isinstance(given, Filled):
            return self._stop_campaign_form(digest, given, status)
        self._orders.stop_campaign(digest, given)
        return _to_campaign(digest)

    def resume_campaign(self, digest: bytes) -> Response:
        """Show what follows if a paused campaign goes on."""
        found = self._orders.campaign(digest).campaign
        return self._page("resume-campaign.html", campaign=found)

    def resuming_campaign(self, digest: bytes) -> Response:
        """Let a paused campaign go on; one that runs already stays so."""
        if not has_key(bodies.read_form()):
            raise ForgedRequestError(_STALE)
        if self._orders.campaign(digest).campaign.status == CampaignState.PAUSED:
            self._orders.resume_campaign(digest)
        return _to_campaign(digest)

    # ------------------------------------------------------------------------- invitations

    def invite(self) -> Response:
        """Show the form of an invitation."""
        return self._invite_form(Filled(forms.FIRST_INVITE))

    def inviting(self) -> Response:
        """Show what an invitation would allow, or sign it and show its code (`do`)."""
        form = bodies.read_form()
        filled = Filled(_texts(forms.INVITE, form))
        if not has_key(form):
            filled.errors[""] = _STALE
            return self._invite_form(filled, 403)
        wanted = forms.read_invite(filled)
        if wanted is None:
            return self._invite_form(filled, 422)
        if form.get("do") == "change":
            return self._invite_form(filled)
        if form.get("do") == "sign":
            own = wanted.name or _name_of_once(form)
            try:
                return self._invited(self._orders.invite(msgspec.structs.replace(wanted, name=own)))
            except InvitationNameError:
                if wanted.name:
                    filled.errors["name"] = LazyText(
                        noted("there is an invitation '%(name)s': choose another name"),
                        name=wanted.name,
                    )
                    return self._invite_form(filled, 422)
                filled.errors[""] = LazyText(
                    noted(
                        "this form was sent before: its code is in the list, and is not shown "
                        "again; to sign another one, send the form below"
                    )
                )
                return self._invite_form(filled, 409)
        enrolled = sum(cohort.phones for cohort in self._orders.archive.cohorts())
        until = self._clock() + wanted.days * 86_400.0
        return self._page(
            "invitation.html", filled=filled, wanted=wanted, enrolled=enrolled, until=until
        )

    def revoke(self, name: str) -> Response:
        """Show an invitation that is to be revoked."""
        return self._page("revoke.html", invitation=self._orders.invitations.named(name))

    def revoking(self, name: str) -> Response:
        """Revoke an invitation."""
        if not has_key(bodies.read_form()):
            raise ForgedRequestError(_STALE)
        self._orders.revoke(name)
        return Response(status=303, headers={"Location": url_for("desk.invite")})

    # --------------------------------------------------------------------------- operators

    def operators(self) -> Response:
        """Show the operators, and the form of a new one."""
        return self._operators_form(Filled(forms.FIRST_OPERATOR))

    def adding(self) -> Response:
        """Add an operator, and show the token."""
        form = bodies.read_form()
        filled = Filled(_texts(forms.OPERATOR, form))
        if not has_key(form):
            filled.errors[""] = _STALE
            return self._operators_form(filled, 403)
        new = forms.read_operator(filled)
        if new is None:
            return self._operators_form(filled, 422)
        try:
            return self._page("token.html", issued=self._orders.add_operator(new))
        except OperatorNameError as error:
            filled.errors["name"] = str(error)
            return self._operators_form(filled, 422)

    def operator(self, name: str) -> Response:
        """Show what can be done with one operator."""
        return self._operator_form(name)

    def changing(self, name: str) -> Response:
        """Give an operator a new token, and show it, or remove the operator."""
        form = bodies.read_form()
        if not has_key(form):
            raise ForgedRequestError(_STALE)
        if form.get("do") == "rotate":
            try:
                issued = self._orders.rotate(name, form.get("replaces", ""))
            except TokenReplacedError:
                return self._operator_form(name, is_late=True)
            return self._page("token.html", issued=issued)
        if form.get("do") == "remove":
            self._orders.remove_operator(name)
        return Response(status=303, headers={"Location": url_for("desk.operators")})

    # ------------------------------------------------------------------------------- wall

    def wall(self, phase: bytes) -> Response:
        """Show the wall page with a new invitation to the phase."""
        form = bodies.read_form()
        if not has_key(form):
            raise ForgedRequestError(_STALE)
        record, now = self._orders.known(phase), self._clock()
        if record.status != GATHERING or record.gather_until <= now:
            return _to_wall(phase)
        wanted = Invite(
            uses=record.wanted,
            days=(record.gather_until - now) / 86_400.0,
            cohort=record.cohorts[0] if record.cohorts else "",
            name=f"wall-{_name_of_once(form)}",
        )
        try:
            issued = self._orders.invite(wanted)
        except InvitationNameError:  # the form was sent twice
            return _to_wall(phase)
        invited = self._drawn(issued) | {"issued": issued, "only_here": is_asked_here()}
        return self._page("wall.html", **wall.shown(record), **invited)

    def beginning(self, phase: bytes) -> Response:
        """Begin a phase with the phones that have joined."""
        if not has_key(bodies.read_form()):
            raise ForgedRequestError(_STALE)
        self._orders.begin(phase)
        return _to_wall(phase)

    @property
    def _by_two(self) -> bool:
        """Whether this server has a helper."""
        return bool(self._orders.two_operators.helper)

    def _invited(self, issued: Invitation) -> Response:
        """Show a code, and the link to a page that holds a phone, if there is one."""
        return self._page("invited.html", issued=issued, **self._drawn(issued))

    def _drawn(self, issued: Invitation) -> dict[str, Any]:
        """Return the link to a page that holds a phone, empty without one, and its QR code."""
        link, keys = "", self._orders.two_operators
        if self._phone_page:
            with contextlib.suppress(InvalidInputError):  # show the signed code in any case
                page = page_at(self._phone_page, own_origin())
                link = link_to(page, own_origin(), issued.code, keys.leader, keys.helper)
        code = Markup(drawn(link or issued.code))  # noqa: S704 - segno draws it, of blocks alone
        return {"link": link, "code": code}

    # ------------------------------------------------------------------------------- pages

    def _sign_in_form(self, to: str, error: str = "") -> Response:
        status = 403 if error else 200
        return self._page("sign-in.html", status, to=to, error=error, hours=HOURS)

    def _start_form(self, filled: Filled, status: int = 200) -> Response:
        proposal = forms.proposal(filled, self._places) if self._by_two else None
        counts = forms.counts(filled)
        if counts:
            fields = forms.counting(proposal)
        else:
            fields = forms.START if proposal is None else forms.with_summation(proposal)
        return self._page("start.html", status, fields=fields, filled=filled, counts=counts)

    def _places(self, hierarchy: LabelHierarchy) -> AgreedPlaces | None:
        """Return the places of the newest phases that found and named any."""
        phases = self._orders.archive.phases()
        over = sorted(phases, key=lambda each: each.finished or 0.0, reverse=True)
        return newest((each.ending for each in over), hierarchy)

    def _invite_form(self, filled: Filled, status: int = 200) -> Response:
        listed = self._orders.invitations.all()
        return self._page(
            "invite.html", status, fields=forms.INVITE, filled=filled, invitations=listed
        )

    def _operators_form(self, filled: Filled, status: int = 200) -> Response:
        known = self._orders.accounts.all()
        return self._page(
            "operators.html", status, fields=forms.OPERATOR, filled=filled, known=known, first=FIRST
        )

    def _operator_form(self, name: str, is_late: bool = False) -> Response:
        accounts = self._orders.accounts
        known = [each for each in accounts.all() if each.name == name]
        if not known:
            raise UnknownOperatorError(
                LazyText(noted("there is no operator '%(name)s'"), name=name)
            )
        mark = "" if name == FIRST else accounts.mark(name)
        return self._page(
            "operator.html",
            409 if is_late else 200,
            one=known[0],
            first=FIRST,
            mark=mark,
            is_late=is_late,
        )

    def _stop_form(self, phase: bytes, filled: Filled, status: int = 200) -> Response:
        record = self._orders.known(phase)
        return self._page("stop.html", status, fields=forms.STOP, filled=filled, record=record)

    def _stop_campaign_form(self, digest: bytes, filled: Filled, status: int = 200) -> Response:
        found = self._orders.campaign(digest).campaign
        return self._page(
            "stop-campaign.html", status, fields=forms.STOP, filled=filled, campaign=found
        )

    def _page(self, template: str, status: int = 200, **shown: Any) -> Response:
        return Response(self._render(template, **shown), status)


def _reason() -> tuple[str | Filled, int]:
    """Return the reason for stopping in the request's form, or the form with its errors.

    Returns:
        The reason or the form, and the HTTP status of an answer with the form.
    """
    form = bodies.read_form()
    filled = Filled(_texts(forms.STOP, form))
    if not has_key(form):
        filled.errors[""] = _STALE
        return filled, 403
    reason = forms.read_reason(filled)
    return (filled, 422) if reason is None else (reason, 200)


def blueprint(
    orders: Orders,
    browsers: Browsers,
    phone_page: str = "",
    clock: Callable[[], float] = time.time,
) -> Blueprint:
    """Return the pages on which operators change something.

    Args:
        orders: Orders that operators may give.
        browsers: Sessions of browsers.
        phone_page: URL of a page that holds a phone, to which invitations lead; empty without one.
        clock: Clock in seconds since 1970.
    """
    return OperatorDesk(orders, browsers, phone_page, clock).blueprint()


def _texts(fields: tuple[forms.Field, ...], form: dict[str, str]) -> dict[str, str]:
    return {each.name: form.get(each.name, "") for each in fields}


def _name_of_once(form: dict[str, str]) -> str:
    """Return the name of the invitation that a form makes, the same if the form is sent twice."""
    return derived("invitation", form.get("once", ""))[:6].hex()


def _to_phase(phase: bytes) -> Response:
    return _to("dashboard.phase", phase)


def _to_wall(phase: bytes) -> Response:
    return _to("dashboard.wall", phase)


def _to_campaign(digest: bytes) -> Response:
    there = url_for("dashboard.campaign", digest=digest.hex())
    return Response(status=303, headers={"Location": there})


def _to(endpoint: str, phase: bytes) -> Response:
    there = url_for(endpoint, name=phase.hex())
    return Response(status=303, headers={"Location": there})
