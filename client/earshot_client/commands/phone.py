"""`earshot phone`: a reference phone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from earshot_client.client import Client
from earshot_client.commands import folder
from earshot_client.commands.report import Report
from earshot_client.commands.termination import (
    EndingSource,
    EndingTransport,
    Terminated,
    Termination,
)
from earshot_client.encoder import open_encoder, rate_of
from earshot_client.expiry import KEEP_DAYS
from earshot_client.hearing import Hearing, Second, Source
from earshot_client.labels import LabelHierarchy, UnknownLabelError
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.interface import Store
from earshot_client.transport.enrolment import signing_key
from earshot_client.transport.http import UnavailableError
from earshot_client.visits.conditions import Hours
from earshot_client.visits.endings import Endings
from earshot_client.visits.outcome import Event, Visit
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_protocol.sound_reading import unreadable_sentence
from earshot_protocol.two_operators.messages import read_identity

app = App()

_PROGRESS = 100


def _whole(name: str, value: float) -> int:
    if not value.is_integer():
        raise InvalidInputError(f"--limit.{name} {value:g}: must be a whole number")
    return int(value)


def _real(name: str, value: float) -> float:
    del name
    return value


_LIMITS = {
    each.name: _whole if isinstance(each.default, int) else _real
    for each in fields(Limits)
    if not isinstance(each.default, bool)
}
"""Reader of each limit that is a number, by its name."""


def _written(name: str) -> str:
    """Return a limit's name as it is written on the command line."""
    return name.replace("_", "-")


@app.default
def phone(
    *,
    data: Path,
    server: Annotated[str | None, Parameter(env_var="EARSHOT_SERVER")] = None,
    invitation: str | None = None,
    hear: Path | None = None,
    microphone: bool = False,
    recordings: int | None = None,
    seed: int | None = None,
    labelled: float = 1.0,
    ask: bool = False,
    labels: str | None = None,
    encoder: Annotated[
        str | None,
        Parameter(
            help=f"Shipped encoder by its name ({', '.join(SHIPPED_ENCODERS)}), or an encoder file "
            f"of `earshot train`, instead of {DEFAULT_ENCODER}; ./NAME for a file with the name of "
            "a shipped one."
        ),
    ] = None,
    keep_days: int = KEEP_DAYS,
    limit: Annotated[
        dict[str, float] | None,
        Parameter(
            help="Limit of this phone instead of the default, such as --limit.least-phones 50: "
            f"{', '.join(_written(name) for name in _LIMITS)}."
        ),
    ] = None,
    per_recording: bool = False,
    any_delta: bool = Policy.any_delta,
    tell_refusals: Annotated[bool, Parameter(negative="--no-tell-refusals")] = Policy.tell_refusals,
    leader_key: str | None = None,
    helper_key: str | None = None,
    hours: str | None = None,
    poll: float = 3600.0,
    until_result: bool = False,
    once: bool = False,
    leave: bool = False,
    ledger: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Run a phone: it hears, enrols and takes part in phases; its data is encrypted.

    Args:
        data: The phone's folder, with its encrypted data and the key to them.
        server: URL of the server.
        invitation: Code with which a new phone enrols.
        hear: Folder of CLASS/NAME or of plain files, .au, .flac, .mp3, .ogg or .wav, to hear
            once.
        microphone: Hear with this machine's microphone.
        recordings: Most seconds of sound to keep, drawn at random.
        seed: Seed for choosing the seconds that are heard and labelled, and for nothing else.
        labelled: Fraction of recordings with a label.
        ask: Ask for labels instead of taking them from file names.
        labels: Labels, separated by commas (a,b,c), instead of everyday environments.
        keep_days: Days after which a recording is forgotten.
        per_recording: Take part in phases that protect single recordings but not the phone as a
            whole, at any cost to it, such as phases that cluster on each phone. Limits on the
            phone's own privacy that are set by --limit still hold.
        any_delta: Take part even if a phase's δ is 1/phones or more, which may expose a phone.
        tell_refusals: Report to the server which rule refused a phase.
        leader_key: Key by which the server leads sums by two operators, 64 hexadecimal digits.
        helper_key: Key of the helper in such sums, which another organization runs. Without both
            keys, phases by two operators are refused.
        hours: Hours in which to take part, such as 22-6; by default always.
        poll: Longest pause between requests, in seconds.
        until_result: Exit when a phase has ended.
        once: Visit the server once.
        leave: Un-enrol, so that the server forgets this phone, and exit.
        ledger: Show everything that this phone has released, and exit.
        as_json: Print one JSON object at the end, and nothing else.
    """
    _refuse_contradictions(
        {
            "--ledger": ledger,
            "--leave": leave,
            "--hear": hear is not None,
            "--microphone": microphone,
            "--ask": ask,
            "--recordings": recordings is not None,
            "--labelled": labelled != 1.0,
            "--seed": seed is not None,
            "--invitation": invitation is not None,
            "--hours": hours is not None,
            "--once": once,
            "--until-result": until_result,
        }
    )
    policy = replace(
        _policy(limit or {}, per_recording, any_delta, tell_refusals),
        leaders=_identities("--leader-key", leader_key),
        helpers=_identities("--helper-key", helper_key),
    )
    if not poll > 0:
        raise InvalidInputError(f"--poll {poll}: a pause is a positive number of seconds")
    if server is None and not ledger:
        raise InvalidInputError("--server: give the server's URL, such as http://127.0.0.1:8000")
    condition = None if hours is None else Hours.parse(hours)
    hierarchy = None if labels is None else LabelHierarchy.flat(labels.split(","))
    hears = open_encoder(encoder)
    store = folder.opened(data)
    with (
        Phone(store, hears, policy, hierarchy=hierarchy, keep_days=keep_days) as reference,
        Termination() as termination,
    ):
        report = Report(reference, as_json)
        if server is None or ledger:
            report.ledger(folder.limits(store))
            return
        folder.keep_limits(store, policy)
        if leave:
            with Client(reference, store, partial(_line, server, termination)) as leaving:
                leaving.leave()
            report.say("left: the server has deleted this phone")
            return
        asks = _asked(reference, termination) if ask else None
        hearing = Hearing(reference, store, most=recordings, labelled=labelled, seed=seed, ask=asks)
        last = None
        with Client(
            reference,
            store,
            partial(_line, server, termination),
            invitation=invitation,
            condition=condition,
            longest_pause=poll,
        ) as client:
            day = _Day(client, report, termination, poll, once)
            try:
                with termination.allowed():
                    sources = _sources(
                        hear, reference.hierarchy, rate_of(hears), microphone, recordings
                    )
                day.enrol()
                day.hear(hearing, [EndingSource(termination, source) for source in sources])
                last = day.visit(until_result)
            except Terminated:
                report.say("stopped")
            report.finish()
            client.told()
    if last is not None and last.event in (Event.REFUSED, Event.TROUBLE, Event.LATE):
        sys.exit(1)


_ENDS = ("--ledger", "--leave")
"""Options that do one thing and exit, without hearing or taking part."""
_HEARD = ("--ask", "--recordings", "--labelled", "--seed")
"""Options that choose which recordings are kept and labelled."""


def _refuse_contradictions(options: Mapping[str, bool]) -> None:
    """Refuse options that contradict each other or would have no effect.

    Args:
        options: Whether each was given, by its name.
    """
    given = [name for name, is_given in options.items() if is_given]
    end = next((name for name in _ENDS if name in given), None)
    if end is not None and len(given) > 1:
        others = [name for name in given if name != end]
        raise InvalidInputError(f"{end} runs alone: leave out {', '.join(others)}")
    for one, other in (("--hear", "--microphone"), ("--once", "--until-result")):
        if {one, other} <= set(given):
            raise InvalidInputError(f"{one} and {other}: give one of them")
    unheard = [name for name in _HEARD if name in given]
    if unheard and not {"--hear", "--microphone"} & set(given):
        raise InvalidInputError(
            f"{', '.join(unheard)}: only for new recordings; add --hear FOLDER or --microphone"
        )


def _policy(
    limit: dict[str, float], per_recording: bool, any_delta: bool, tell_refusals: bool
) -> Policy:
    """Return the limits that are given; the others are the default ones."""
    for name in limit:
        if name not in map(_written, _LIMITS):
            raise InvalidInputError(
                f"--limit.{name}: there is no such limit; "
                f"limits are {', '.join(map(_written, _LIMITS))}"
            )
    named: dict[str, Any] = {
        name: _LIMITS[name](_written(name), limit[_written(name)])
        for name in _LIMITS
        if _written(name) in limit
    }
    rules: dict[str, Any] = {"any_delta": any_delta, "tell_refusals": tell_refusals}
    return Policy.per_recording(**named, **rules) if per_recording else Policy(**named, **rules)


def _identities(option: str, text: str | None) -> tuple[bytes, ...]:
    try:
        return () if text is None else (read_identity(text),)
    except InvalidInputError as error:
        raise InvalidInputError(f"{option}: {error}") from None


def _line(server: str, termination: Termination, store: Store) -> EndingTransport:
    return EndingTransport(termination, server, signing_key(store), Endings(store).known)


def _sources(
    hear: Path | None,
    hierarchy: LabelHierarchy,
    rate: int,
    microphone: bool,
    recordings: int | None,
) -> list[Source]:
    sources: list[Source] = []
    if hear is not None:
        from earshot_client.recordings_folder import RecordingsFolder, first_of

        folder_of_sound = RecordingsFolder(hear, hierarchy, rate)
        if folder_of_sound.unread:
            left_out = first_of(folder_of_sound.unread)
            lost = folder_of_sound.lost
            whole = f" (all of {', '.join(lost)})" if lost else ""
            print(f"left out, of a kind that is not read{whole}: {left_out}", file=sys.stderr)
        if folder_of_sound.short:
            left_out = first_of(folder_of_sound.short)
            print(f"left out, shorter than a second: {left_out}", file=sys.stderr)
        if folder_of_sound.unreadable:
            print(unreadable_sentence(folder_of_sound.unreadable), file=sys.stderr)
        sources.append(folder_of_sound)
    if microphone:
        from earshot_client.microphone import Microphone

        sources.append(Microphone(1 if recordings is None else recordings))
    return sources


def _asked(reference: Phone, termination: Termination) -> Callable[[Second], str | None]:
    """Ask on the terminal for a recording's label, until the answer is a choice or empty."""
    poll, hierarchy = reference.poll, reference.hierarchy

    def ask(second: Second) -> str | None:
        while True:
            with termination.allowed():
                choice = _answer(f"{second.name}: {poll.question}: ")
            if not choice:
                return None
            try:
                hierarchy.class_of(choice)
            except UnknownLabelError as error:
                print(error, file=sys.stderr)
            else:
                return choice

    return ask


def _answer(question: str) -> str:
    """Ask on standard error and return the answer; empty at the end of input."""
    print(question, end="", file=sys.stderr, flush=True)
    try:
        return input()
    except EOFError:
        return ""


@dataclass
class _Day:
    """Run of a phone from its start to its end."""

    client: Client
    report: Report
    termination: Termination
    poll: float
    once: bool

    def enrol(self) -> None:
        """Enrol before anything is heard: a code that is refused ends the run at once.

        A server that cannot be reached now is asked again at the first visit.
        """
        with suppress(UnavailableError):
            self._enrol()

    def hear(self, hearing: Hearing, sources: Sequence[Source]) -> None:
        """Hear everything that there is to hear."""
        for source in sources:
            count = 0
            for count, _ in enumerate(hearing.hear(source), start=1):
                if count % _PROGRESS == 0:
                    self.report.say(f"heard {count} seconds so far")
                self.termination.check()
            self.report.say(f"heard {count} seconds that were new")
        if hearing.unreadable:
            print(unreadable_sentence(hearing.unreadable), file=sys.stderr)

    def visit(self, until_result: bool) -> Visit | None:
        """Visit the server until there is a reason to end; return the last visit."""
        while not self.client.enrolled:
            try:
                self._enrol()
            except UnavailableError as error:
                if self.once:
                    raise
                self.report.say(f"{Event.TROUBLE}: {error}")
                self.termination.pause(max(error.seconds, min(self.poll, 30.0)))
        visit = None
        while True:
            ending = self.client.ending
            if ending is not None:
                self.report.end(ending)
                if until_result:
                    return None
                self.client.told()
            if self.once and visit is not None:
                return visit
            visit = self.client.step(datetime.now().astimezone())
            if visit.event is not Event.ENDED:
                self.report.say(f"{visit.event}: {visit.detail}")
            if not self.once:
                self.termination.pause(visit.seconds)

    def _enrol(self) -> None:
        known = "is " if self.client.enrolled else ""
        self.report.say(f"{known}enrolled as phone {self.client.enrol()}")
