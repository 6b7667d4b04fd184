"""`earshot bench`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from earshot_models.commands.progress import shown

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
def api(
    phones: Annotated[int, typer.Option(help="Phones that enrol and take part.")] = 2000,
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
    from earshot_simulations.benchmarks import api as measured

    with shown() as progress:
        figures = measured.benchmark(
            phones, dropout, step_seconds, workers, processes, slow, seed, progress
        )
    _print(figures, as_json)


@app.command("local-choices")
def local_choices(
    seeds: Annotated[int, typer.Option(help="Seeds that each figure is the mean of.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What phones gain at the same ε: methods of selection, and the best of several runs."""
    from earshot_simulations.benchmarks.local_choices import benchmark
    from earshot_simulations.reproductions.outcome import markdown_table

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
    from earshot_simulations.reproductions.outcome import markdown_table

    if as_json:
        print(json.dumps({name: rows}, indent=2))
        return
    print(markdown_table(rows, list(rows[0])))
