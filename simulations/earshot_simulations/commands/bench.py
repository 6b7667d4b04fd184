"""`earshot bench`."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.secure_sum.interface import SummationName
from earshot_simulations.phases.settings import Discovery, EngineChoice, Settings, SummationChoice

app = App(name="bench", help="Measure beside a peer and the physical floor, in one run.")


@app.command(name="secure-sum")
def secure_sum(
    *,
    summation: SummationName = SummationName.BELL,
    phones: int = 300,
    neighbours: int | None = None,
    length: int | None = None,
    dropout: float = 0.0,
    corrupted: float = 0.05,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Measure one secure sum: CPU of phone and server, bytes, and whether it was exact.

    Args:
        summation: Summation; those by two operators are measured beside bell and, where inputs are
            proved, beside unproved ones.
        phones: Phones in the sum.
        neighbours: Neighbours of a phone; by default the fewest that are safe.
        length: Entries of a vector; by default 1000, and with two operators 640 and 2560.
        dropout: Fraction of phones that drop after sharing their keys, or send no report.
        corrupted: Fraction of phones an adversary may control.
        as_json: Print one JSON object.
    """
    from earshot_simulations.benchmarks import secure_sum, two_operators

    if summation is not SummationName.BELL:
        kinds = two_operators.Input
        inputs = tuple(kinds) if summation.proved else (kinds.UNPROVED,)
        lengths = two_operators.LENGTHS if length is None else (length,)
        with shown() as progress:
            rows = two_operators.benchmark(
                phones, neighbours, lengths, dropout, corrupted, progress, inputs
            )
        _print_table("sums", rows, as_json)
        return
    entries = 1000 if length is None else length
    with shown() as progress:
        figures = secure_sum.benchmark(phones, neighbours, entries, dropout, corrupted, progress)
    _print(figures, as_json)


@app.command
def optics(
    *,
    points: list[int] | None = None,
    dimensions: int = 128,
    threads: int = 1,
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Measure reachability plots beside scikit-learn's: time, and whether they are bit-identical.

    Args:
        points: Number of points; may be repeated. By default three sizes.
        dimensions: Dimensions of a point.
        threads: Threads that may be used.
        seed: Seed for the points.
        as_json: Print one JSON object.
    """
    from earshot_simulations.benchmarks.optics import benchmark

    with shown() as progress:
        rows = benchmark(points or [1000, 3000, 10_000], dimensions, threads, seed, progress)
    _print_table("plots", rows, as_json)


@app.command
def api(
    *,
    phones: int = 2000,
    enrol: int = 1000,
    dropout: float = 0.05,
    step_seconds: float = 45.0,
    workers: int = 2,
    processes: int = 2,
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Measure a learning phase over HTTP against PostgreSQL: time, latencies, sizes, errors.

    Args:
        phones: Phones that take part.
        enrol: Phones that enrol over HTTP; the others are known beforehand.
        dropout: Fraction of phones that vanish, each before a random step.
        step_seconds: Seconds that a step waits for phones that have vanished.
        workers: Web processes of the server.
        processes: Processes that the phones share.
        seed: Seed for points, labels and dropouts.
        as_json: Print one JSON object.
    """
    from earshot_simulations.benchmarks.api.benchmark import Setup, benchmark
    from earshot_simulations.benchmarks.api.report import table

    setup = Setup(phones, enrol, dropout, step_seconds, workers, processes, seed)
    with shown() as progress:
        figures = benchmark(setup, progress)
    print(json.dumps(figures, indent=2) if as_json else table(figures))


@app.command
def phase(
    *,
    phones: str = "1000,10000,100000",
    discovery: Discovery = Discovery.LOCAL,
    summation: SummationChoice = SummationChoice.REAL,
    engine: EngineChoice = EngineChoice.LOCAL,
    recordings: int = 50,
    dropout: float = 0.05,
    jobs: int = os.cpu_count() or 1,
    seed: int = 1,
    kept: Path | None = None,
    picture: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Measure whole phases of growing crowds: time, memory, what a phone pays, and their growth.

    Args:
        phones: Numbers of phones, separated by commas; each gets a phase.
        discovery: Route that finds the centroids.
        summation: Summation: real, or ideal, which replaces the cryptography and nothing else.
        engine: Engine that runs the phones.
        recordings: Recordings of a phone, on average.
        dropout: Fraction of phones that vanish.
        jobs: Processes of this machine.
        seed: Seed for everything except keys.
        kept: File of JSON lines: phases in it are shown and not run again, new ones are added.
        picture: PNG or SVG file for a picture of the same phases.
        as_json: Print one JSON object.
    """
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
            # Phones refuse a δ that permits exposing one of them.
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


@app.command
def sitting(
    *,
    pages: int = 12,
    phones: int = 108,
    out: Path = Path("out/phones"),
    seed: int = 0,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Measure a sitting of real pages in browsers, with a server and its helper: time, CPU, names.

    Args:
        pages: Pages that take part; each hears a few seconds of one of three places.
        phones: Phones in Python that take part beside the pages and hear the same places, so that
            the crowd is large enough for names.
        out: Folder for pictures of a page and of the wall page, and for the figures; those of a
            former run are replaced.
        seed: Seed of the sound.
        as_json: Print one JSON object.
    """
    from earshot_simulations.benchmarks.sitting.benchmark import Sitting, benchmark
    from earshot_simulations.benchmarks.sitting.report import table

    def say(wall: str) -> None:
        print(f"wall page, until it is over: {wall}", file=sys.stderr, flush=True)

    with shown() as progress:
        figures = benchmark(Sitting(pages, phones, out, seed, say), progress)
    print(json.dumps(figures, indent=2) if as_json else table(figures))
    print(f"pictures and figures: {out.resolve()}", file=sys.stderr)


def _whole_numbers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InvalidParametersError(
            f"{name}='{text}': must be whole numbers, separated by commas, such as 1000,10000"
        ) from None


@app.command
def nights(
    *,
    present: float = 0.7,
    phones: int = 1000,
    dropout: float = 0.2,
    sums: int = 3,
    seed: int = 0,
    picture: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Simulate the nights until sums are done, by each summation, for phones that visit at night.

    Args:
        present: Probability that a phone visits in a night; shown beside .5, .6 and so on to .9.
        phones: Phones of a phase.
        dropout: Largest fraction that may vanish during a sum.
        sums: Sums of a phase.
        seed: Seed of the visits.
        picture: PNG or SVG file for a picture.
        as_json: Print one JSON object.
    """
    from earshot_simulations.benchmarks import nights as simulated
    from earshot_simulations.benchmarks.nights_picture import draw
    from earshot_simulations.benchmarks.phase_picture import check_picture

    if picture is not None:
        check_picture(picture)
    presences = sorted({0.5, 0.6, 0.7, 0.8, 0.9, present})
    rows = simulated.benchmark(presences, phones, dropout, sums, seed)
    if picture is not None:
        draw(rows, present, picture)
    _print_table("nights", rows, as_json)


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
