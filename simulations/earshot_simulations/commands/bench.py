"""`earshot bench`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.learning.settings import Discovery, Engine, Settings, Summation

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure, each time beside a peer and the physical floor, in one run."""


@app.command("secure-sum")
def secure_sum(
    phones: Annotated[int, typer.Option(help="Phones in the sum.")] = 300,
    neighbours: Annotated[
        int | None, typer.Option(help="Neighbours of a phone; default: the fewest that are safe.")
    ] = None,
    length: Annotated[int, typer.Option(help="Entries of a vector.")] = 1000,
    dropout: Annotated[
        float, typer.Option(help="Fraction of phones that drop after sharing their keys.")
    ] = 0.0,
    corrupted: Annotated[
        float, typer.Option(help="Fraction of phones an adversary may control.")
    ] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """One secure sum: CPU of phone and server, bytes, and whether it was exact."""
    from earshot_simulations.benchmarks.secure_sum import benchmark

    with shown() as progress:
        figures = benchmark(phones, neighbours, length, dropout, corrupted, progress)
    _print(figures, as_json)


@app.command()
def optics(
    points: Annotated[
        list[int] | None, typer.Option(help="How many; may be repeated. By default three sizes.")
    ] = None,
    dimensions: Annotated[int, typer.Option(help="Of a point.")] = 128,
    threads: Annotated[int, typer.Option(help="That may be used.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the points.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Reachability plots beside scikit-learn's: time, and whether they are the same to a bit."""
    from earshot_simulations.benchmarks.optics import benchmark

    with shown() as progress:
        rows = benchmark(points or [1000, 3000, 10_000], dimensions, threads, seed, progress)
    _print_table("plots", rows, as_json)


@app.command()
def closing(
    phones: Annotated[
        str, typer.Option(help="Numbers of phones, with commas between them.")
    ] = "1000,10000,100000",
    length: Annotated[int, typer.Option(help="Entries of a vector.")] = 1000,
    dropout: Annotated[
        float, typer.Option(help="Fraction of phones that drop after sharing their keys.")
    ] = 0.05,
    postgres: Annotated[
        bool, typer.Option("--postgres", help="With a PostgreSQL of its own; else in memory.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Closing each step of a secure sum: time and memory against the number of phones."""
    from earshot_simulations.benchmarks.closing import benchmark

    with shown() as progress:
        rows = benchmark(_whole_numbers("phones", phones), length, dropout, postgres, progress)
    _print_table("steps", rows, as_json)


@app.command()
def api(
    phones: Annotated[int, typer.Option(help="Phones that take part.")] = 2000,
    enrol: Annotated[
        int,
        typer.Option(help="How many of them enrol over HTTP; the others are known beforehand."),
    ] = 1000,
    dropout: Annotated[
        float, typer.Option(help="Fraction of phones that vanish, each before a random step.")
    ] = 0.05,
    step_seconds: Annotated[
        float, typer.Option(help="How long a step waits for those that have vanished.")
    ] = 45.0,
    workers: Annotated[int, typer.Option(help="Web processes of the server.")] = 2,
    processes: Annotated[int, typer.Option(help="That the phones share.")] = 2,
    slow: Annotated[
        int, typer.Option(min=0, help="Connections that let the server wait, all the time.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of points, labels and dropouts.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """A learning phase over HTTP against PostgreSQL: time, latencies, sizes, errors."""
    from earshot_simulations.benchmarks.api.benchmark import Setup, benchmark
    from earshot_simulations.benchmarks.api.report import table

    setup = Setup(phones, enrol, dropout, step_seconds, workers, processes, slow, seed)
    with shown() as progress:
        figures = benchmark(setup, progress)
    print(json.dumps(figures, indent=2) if as_json else table(figures))


@app.command()
def phase(
    phones: Annotated[
        str, typer.Option(help="Numbers of phones, with commas: a phase for each.")
    ] = "1000,10000,100000",
    discovery: Annotated[
        Discovery, typer.Option(help="How global centroids are found.")
    ] = Discovery.LOCAL,
    summation: Annotated[
        Summation, typer.Option(help="ideal replaces the cryptography, and nothing else.")
    ] = Summation.REAL,
    engine: Annotated[Engine, typer.Option(help="Where phones run.")] = Engine.LOCAL,
    recordings: Annotated[int, typer.Option(help="Of a phone, on average.")] = 50,
    dropout: Annotated[float, typer.Option(help="Fraction of phones that vanish.")] = 0.05,
    jobs: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(help="Of everything but keys.")] = 1,
    kept: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines: phases in it are shown and not run again, new ones are added."
        ),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="PNG or SVG of the same phases.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Whole phases of growing crowds: time, memory, what a phone pays, and how that grows."""
    from earshot_simulations.benchmarks import phase as measured
    from earshot_simulations.benchmarks.phase_picture import check_picture, draw

    if picture is not None:
        check_picture(picture)
    settings = [
        Settings(
            phones=number,
            discovery=discovery,
            summation=summation,
            engine=engine,
            recordings=recordings,
            # Phones refuse a phase that could expose one of them and keep its word.
            delta=min(Settings.delta, 0.1 / max(1, number)),
            dropout=dropout,
            jobs=jobs,
            seed=seed,
        )
        for number in _whole_numbers("phones", phones)
    ]
    rows = measured.benchmark(settings, kept)
    if picture is not None:
        draw(rows, picture)
    if not as_json:
        print(measured.page(rows))
        return
    grown = {
        name: {
            "growth": {what: asdict(each) for what, each in measured.growths(found).items()},
            "says": measured.statements(found),
        }
        for name, found in measured.series(rows).items()
    }
    print(json.dumps({"phases": rows, "series": grown}, indent=2))


def _whole_numbers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InvalidParametersError(
            f"{name}='{text}': must be whole numbers with commas between them, such as 1000,10000"
        ) from None


@app.command("local-choices")
def local_choices(
    seeds: Annotated[int, typer.Option(help="Seeds that each figure is the mean of.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What phones gain at the same ε: methods of selection, and the best of several runs."""
    from earshot_simulations.benchmarks.local_choices import benchmark
    from earshot_simulations.reporting.tables import markdown_table

    with shown() as progress:
        tables = benchmark(seeds, progress)
    if as_json:
        print(json.dumps(tables, indent=2))
        return
    for name, rows in tables.items():
        print(f"{name}\n\n{markdown_table(rows, list(rows[0]))}\n")


def _print(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:<28} {f'{value:.3f}' if isinstance(value, float) else value}")


def _print_table(name: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    from earshot_simulations.reporting.tables import markdown_table

    if as_json:
        print(json.dumps({name: rows}, indent=2))
        return
    print(markdown_table(rows, list(rows[0])))
