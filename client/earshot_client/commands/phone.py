"""`earshot phone`: a reference phone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from earshot_client.client import Client
from earshot_client.commands import folder
from earshot_client.commands.report import Report
from earshot_client.commands.termination import EndingTransport, Terminated, Termination
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
from earshot_client.visits.participation import Event, Visit
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS

app = typer.Typer(add_completion=False)

_PROGRESS = 100


@app.callback(invoke_without_command=True)
def phone(
    context: typer.Context,
    data: Annotated[
        Path, typer.Option(help="The phone's folder: what it keeps, encrypted, and the key to it.")
    ],
    server: Annotated[
        str | None, typer.Option(envvar="EARSHOT_SERVER", help="URL of the server.")
    ] = None,
    invitation: Annotated[
        str | None, typer.Option(help="Code with which a new phone enrols.")
    ] = None,
    hear: Annotated[
        Path | None,
        typer.Option(help="Folder of class/*.wav|ogg|flac, or of plain files, to hear once."),
    ] = None,
    microphone: Annotated[
        bool, typer.Option("--microphone", help="Hear with this machine's microphone.")
    ] = False,
    recordings: Annotated[
        int | None,
        typer.Option(help="Seconds of sound that the phone keeps, at most, drawn at random."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Chooses which seconds are heard and labelled; no more.")
    ] = None,
    labelled: Annotated[float, typer.Option(help="Fraction of recordings with a label.")] = 1.0,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for labels, instead of reading file names.")
    ] = False,
    labels: Annotated[
        str | None, typer.Option(help="a,b,c: the labels, instead of everyday environments.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help=f"A shipped encoder by its name ({', '.join(SHIPPED_ENCODERS)}), or an encoder "
            f"file of `earshot train`, in place of {DEFAULT_ENCODER}; ./NAME for a file that is "
            "called like a shipped one."
        ),
    ] = None,
    keep_days: Annotated[
        int, typer.Option(help="Days after which a recording is forgotten.")
    ] = KEEP_DAYS,
    least_phones: Annotated[
        int, typer.Option(help="Phones of a phase, at least.")
    ] = Policy.least_phones,
    largest_epsilon: Annotated[
        float, typer.Option(help="ε that one phase may spend.")
    ] = Policy.largest_epsilon,
    largest_delta: Annotated[
        float, typer.Option(help="δ that one phase may spend.")
    ] = Policy.largest_delta,
    largest_yearly_epsilon: Annotated[
        float, typer.Option(help="ε that all phases of 366 days may spend.")
    ] = Policy.largest_yearly_epsilon,
    largest_yearly_delta: Annotated[
        float, typer.Option(help="δ that all phases of 366 days may spend.")
    ] = Policy.largest_yearly_delta,
    largest_lifetime_epsilon: Annotated[
        float, typer.Option(help="ε that all phases together may spend.")
    ] = Policy.largest_lifetime_epsilon,
    largest_lifetime_delta: Annotated[
        float, typer.Option(help="δ that all phases together may spend.")
    ] = Policy.largest_lifetime_delta,
    per_recording: Annotated[
        bool,
        typer.Option(
            "--per-recording",
            help="Take part in phases that protect single recordings and not the phone, whatever "
            "they cost it: such as cluster on each phone. Limits of --largest-…-phone-… hold if "
            "they are given.",
        ),
    ] = False,
    largest_phone_epsilon: Annotated[
        float, typer.Option(help="ε that one phase may spend of the whole phone's privacy.")
    ] = Policy.largest_phone_epsilon,
    largest_phone_delta: Annotated[
        float, typer.Option(help="δ that one phase may spend of the whole phone's privacy.")
    ] = Policy.largest_phone_delta,
    largest_yearly_phone_epsilon: Annotated[
        float, typer.Option(help="ε: the same, for 366 days.")
    ] = Policy.largest_yearly_phone_epsilon,
    largest_yearly_phone_delta: Annotated[
        float, typer.Option(help="δ: the same, for 366 days.")
    ] = Policy.largest_yearly_phone_delta,
    largest_lifetime_phone_epsilon: Annotated[
        float, typer.Option(help="ε: the same, for all phases together.")
    ] = Policy.largest_lifetime_phone_epsilon,
    largest_lifetime_phone_delta: Annotated[
        float, typer.Option(help="δ: the same, for all phases together.")
    ] = Policy.largest_lifetime_phone_delta,
    any_delta: Annotated[
        bool,
        typer.Option(
            "--any-delta", help="Take part though δ of a phase is 1/phones or more, a risk to one."
        ),
    ] = Policy.any_delta,
    largest_dropout: Annotated[
        float, typer.Option(help="Fraction of phones that may vanish, at most.")
    ] = Policy.largest_dropout,
    least_corrupted: Annotated[
        float, typer.Option(help="Fraction of corrupted phones to be safe against, at least.")
    ] = Policy.least_corrupted,
    tell_refusals: Annotated[
        bool, typer.Option(help="Tell the server by which of these a phase is refused.")
    ] = Policy.tell_refusals,
    hours: Annotated[str | None, typer.Option(help="22-6: take part in these hours only.")] = None,
    poll: Annotated[
        float, typer.Option(help="Longest pause between requests, in seconds.")
    ] = 3600.0,
    until_result: Annotated[
        bool, typer.Option("--until-result", help="End when a phase has ended.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Visit the server once.")] = False,
    leave: Annotated[
        bool,
        typer.Option("--leave", help="Un-enrol: the server forgets this phone; then end."),
    ] = False,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Show what this phone ever released, and end.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end, and nothing else.")
    ] = False,
) -> None:
    """A phone: hears, enrols, takes part when it is told; what it keeps is encrypted."""
    policy = _policy(context, per_recording)
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
        client = Client(
            reference,
            store,
            partial(_line, server, termination),
            invitation=invitation,
            condition=condition,
            longest_pause=poll,
        )
        day = _Day(client, report, termination, poll, once)
        last = None
        try:
            day.hear(
                hearing, _sources(hear, reference.hierarchy, rate_of(hears), microphone, recordings)
            )
            last = day.visit(until_result)
        except Terminated:
            report.say("stopped")
        report.finish()
        client.told()
    if last is not None and last.event in (Event.REFUSED, Event.TROUBLE, Event.LATE):
        raise typer.Exit(1)


def _policy(context: typer.Context, per_recording: bool) -> Policy:
    """The limits that options name; the others are the usual ones."""
    sources = {limit.name: context.get_parameter_source(limit.name) for limit in fields(Policy)}
    named = {
        name: context.params[name]
        for name, source in sources.items()
        if source is not None and source.name != "DEFAULT"
    }
    return Policy.per_recording(**named) if per_recording else Policy(**named)


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
        from earshot_client.recordings_folder import RecordingsFolder

        sources.append(RecordingsFolder(hear, hierarchy, rate))
    if microphone:
        from earshot_client.microphone import Microphone

        sources.append(Microphone(1 if recordings is None else recordings))
    return sources


def _asked(reference: Phone, termination: Termination) -> Callable[[Second], str | None]:
    """Asks on the terminal what a recording is, until the answer is a choice, or nothing."""
    poll, hierarchy = reference.poll, reference.hierarchy

    def ask(second: Second) -> str | None:
        while True:
            with termination.allowed():
                choice = typer.prompt(
                    f"{second.name}: {poll.question}", default="", show_default=False, err=True
                )
            if not choice:
                return None
            try:
                hierarchy.class_of(choice)
            except UnknownLabelError as error:
                typer.echo(str(error), err=True)
            else:
                return str(choice)

    return ask


@dataclass
class _Day:
    """What a phone does from its start to its end."""

    client: Client
    report: Report
    termination: Termination
    poll: float
    once: bool

    def hear(self, hearing: Hearing, sources: list[Source]) -> None:
        """Hear what there is."""
        for source in sources:
            count = 0
            for count, _ in enumerate(hearing.hear(source), start=1):
                if count % _PROGRESS == 0:
                    self.report.say(f"heard {count} seconds so far")
                self.termination.check()
            self.report.say(f"heard {count} seconds that were new")

    def visit(self, until_result: bool) -> Visit | None:
        """Visit the server until there is a reason to end; returns the last visit."""
        self._enrol()
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
        while True:
            try:
                name = self.client.enrol()
            except UnavailableError as error:
                if self.once:
                    raise
                self.report.say(f"{Event.TROUBLE}: {error}")
                self.termination.pause(max(error.seconds, min(self.poll, 30.0)))
            else:
                self.report.say(f"enrolled as phone {name}")
                return
