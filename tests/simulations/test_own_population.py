"""A population of one's own: what it decides, what is refused, and what a result says of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.own_things import LOCAL, SMALL, Crowd, Hashed, Plane, piped
from support.parameters import statistics_parameters
from support.simulated import decided

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases.statistics import Statistics
from earshot_server.discovery.optics import Optics
from earshot_simulations import (
    OwnCodeError,
    PolicyChoice,
    Recordings,
    Settings,
    SummationChoice,
    result,
    simulate,
)
from earshot_simulations.engine.course import Course
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import AGREES, Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.phases.kept import read, repeatable
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.phases.run import render
from earshot_simulations.phases.settings import replaced
from earshot_simulations.populations import Blobs, Heterogeneity
from earshot_simulations.populations.own import OwnPopulation
from earshot_simulations.sweeps.plan import read_settings

DAYS = np.datetime64("2027-01-04") + np.arange(20)
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_a_script_that_saves_a_picture(example: Path, tmp_path: Path) -> None:
    run = subprocess.run(  # noqa: S603 - our own documentation
        [sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == [f"{example.stem}.png"]
    assert (tmp_path / f"{example.stem}.png").stat().st_size > 10_000


@pytest.mark.parametrize("settings", [SMALL, LOCAL], ids=["secure-sum", "local"])
@pytest.mark.parametrize("crowd", [Crowd, Plane])
def test_a_phase_runs_over_points_of_either_geometry(
    settings: Settings, crowd: type[Crowd]
) -> None:
    run = simulate(settings, population=crowd())
    assert run.interrupted is None
    assert (run.phones, run.population) == (30, crowd.__name__)
    assert run.found.label_names == Crowd.labels
    lifted = crowd is Plane and settings is SMALL
    assert run.found.points.shape[1] == crowd.dimensions + lifted
    assert any("lifted to the sphere" in note for note in run.notes) == lifted


def test_the_points_that_phones_hold_are_the_population_s() -> None:
    run = simulate(SMALL, population=Crowd())
    rows = {row.tobytes() for phone in range(30) for row in Crowd().recordings(phone).points}
    drawn = run.found.points.astype(np.float64)
    assert len(rows) == 600
    assert drawn.shape == (600, 4)
    assert sorted(map(tuple, drawn.tolist())) == sorted(
        tuple(row.astype(np.float32).tolist())
        for phone in range(30)
        for row in Crowd().recordings(phone).points
    )
    assert run.found.ari_test is not None


class Daily(Crowd):
    """Each phone hears its recordings on successive days, and of the last one forgets when."""

    def recordings(self, phone: int) -> Recordings:
        days: Any = np.append(DAYS[:-1], np.datetime64("NaT"))
        return super().recordings(phone)._replace(days=days if phone % 2 else days.tolist())


def counted_contacts(crowd: Crowd, since: date, until: date) -> float:
    """Contacts of a window that phones of a crowd count, noise aside."""
    population = OwnPopulation(crowd, spherical=True)
    parameters = statistics_parameters(
        phones=30,
        labels=Crowd.labels,
        contacts=20,
        noise=1e-6,
        dropout=0.0,
        corrupted=0.0,
        since=since,
        until=until,
    )
    engine = LocalEngine(Scenario(population, 1, IDEAL, AGREES), 1)
    course = Course(parameters, engine, IDEAL, Optics(), 1)
    with engine:
        course.run()
    found = course.coordinator.result()
    assert isinstance(found, Statistics)
    return sum(found.labelled) + found.unknown


def test_phones_know_the_days_of_a_population_that_tells_them() -> None:
    since, until = date(2027, 1, 5), date(2027, 1, 8)
    assert counted_contacts(Daily(), since, until) == pytest.approx(3 * 30, abs=0.1)
    whole_time = date(2027, 1, 4), date(2028, 1, 1)
    assert counted_contacts(Daily(), *whole_time) == pytest.approx(19 * 30, abs=0.1)
    assert counted_contacts(Crowd(), *whole_time) == pytest.approx(0, abs=0.1)


def test_days_change_no_phase_that_has_no_window() -> None:
    run = simulate(SMALL, population=Daily())
    same = simulate(SMALL, population=Crowd())
    assert (run.found.names, run.found.ari_test) == (same.found.names, same.found.ari_test)


@pytest.mark.slow
def test_it_is_the_same_in_other_processes() -> None:
    assert decided(simulate(SMALL, population=Crowd())) == decided(
        simulate(replace(SMALL, jobs=2), population=Crowd())
    )


def test_a_labelling_phase_takes_it_too() -> None:
    settings = LabellingSettings(
        samples=5, policy=PolicyChoice.ANYTHING, summation=SummationChoice.IDEAL, jobs=1
    )
    run = simulate(settings, population=Crowd())
    assert (run.phones, run.interrupted) == (30, None)
    assert any("code of the caller's own: population" in note for note in run.notes)


@pytest.mark.usefixtures("no_pictures")
def test_a_result_says_what_ran_and_cannot_be_repeated(tmp_path: Path) -> None:
    run = simulate(LOCAL, population=Crowd())
    figures = result(run)
    own = {"class": "support.own_things.Crowd", "key": "three clusters"}
    assert figures["provenance"]["own"] == {"population": own}
    assert not figures["configuration"].keys() & {*replaced(False)}
    assert figures["configuration"]["phones"] == 30
    assert figures["configuration"]["dimensions"] == 4
    # Of the sphere, though settings of no data are of the plane.
    assert figures["configuration"]["budget"]["clustering"] == 2.0
    assert "The program that made this run repeats it" in render(run)
    run.write(tmp_path)
    for again in (lambda: repeatable(read(tmp_path)), lambda: read_settings(tmp_path)):
        with pytest.raises(InvalidInputError, match=r"population support\.own_things\.Crowd"):
            again()


def test_a_result_without_own_things_does_not_mention_them() -> None:
    figures = result(simulate(replace(SMALL, phones=12, scenes=2)))
    assert "own" not in figures["provenance"]
    assert figures["configuration"]["data"] == "blobs"


def test_a_population_of_the_package_is_one_as_well() -> None:
    own = simulate(LOCAL, population=Blobs(20, 10, 3, 0.5, seed=1))
    assert (own.phones, own.interrupted) == (20, None)
    assert own.found.points.shape[1] == 2


class Truthless(Crowd):
    def recordings(self, phone: int) -> Recordings:
        found = super().recordings(phone)
        return found._replace(scenes=np.where(found.labels < 0, -1, found.scenes))


class Unknown(Crowd):
    def recordings(self, phone: int) -> Recordings:
        found = super().recordings(phone)
        return found._replace(scenes=np.full(len(found.scenes), -1))


@pytest.mark.usefixtures("no_pictures")
def test_recordings_of_unknown_scenes_are_not_scored() -> None:
    some, none = (simulate(SMALL, population=each) for each in (Truthless(), Unknown()))
    assert 0 < len(some.found.points) < 600
    assert some.found.scenes.min() == 0
    assert some.found.ari_train is not None
    assert len(none.found.points) == 0
    assert none.found.ari_train is None
    assert none.found.ari_test == some.found.ari_test
    render(none)


class Started(Crowd):
    def start(self, cells: int) -> Any:
        return np.eye(4)[np.arange(cells) % 4] + 0.01 * np.arange(cells)[:, None]


def test_start_centroids_are_its_own_or_public_directions() -> None:
    own, usual = (simulate(SMALL, population=each) for each in (Started(), Crowd()))
    given = Started().start(len(own.found.start_centroids))
    given /= np.linalg.norm(given, axis=1, keepdims=True)
    assert own.found.start_centroids == pytest.approx(given, abs=1e-4)
    assert not any("random and public" in note for note in own.notes)
    assert any("random and public" in note for note in usual.notes)
    other = simulate(SMALL, population=Truthless())
    assert other.found.start_centroids.tolist() == usual.found.start_centroids.tolist()


# ---------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"phones": 31}, "phones=31: not beside a population of one's own, which has 30"),
        ({"dimensions": 5}, "dimensions=5: not beside a population of one's own, which has 4"),
        ({"scenes": 3}, "scenes: not beside a population"),
        ({"labelled": 0.5}, "labelled: not beside a population"),
        ({"data": "soundscapes"}, "data: not beside a population"),
        ({"encoder": "contrast-3"}, "encoder: not beside a population"),
        ({"heterogeneity": Heterogeneity(concentration=1)}, "heterogeneity: not beside"),
        ({"policy": None}, "no phone would take part by default"),
    ],
)
def test_settings_that_contradict_it_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParametersError, match=says):
        simulate(replace(SMALL, **changes), population=Crowd())


@pytest.mark.parametrize("name", ["population", "clustering", "attack", "encoder"])
def test_a_class_in_place_of_an_object_is_refused(name: str) -> None:
    with pytest.raises(InvalidParametersError, match=rf"{name} Crowd: .* an instance, Crowd\(\)"):
        simulate(SMALL, **{name: Crowd})  # type: ignore[arg-type]


def test_settings_that_agree_with_it_are_taken() -> None:
    run = simulate(replace(SMALL, phones=30, dimensions=4), population=Crowd())
    assert run.phones == 30


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("phones", 2, r"phones=2: must be a whole number, from 3 to 10000000"),
        ("phones", 30.0, "phones=30.0: must be a whole number"),
        ("dimensions", 0, "dimensions=0: must be a whole number"),
        ("dimensions", 4000, "dimensions=4000: must be"),
        ("labels", ("one",), "the number of labels=1: must be a whole number, from 2"),
        ("labels", "abc", "labels='abc': must be names"),
        ("labels", (1, 2), "labels=a tuple: must be names"),
        ("labels", {"a", "b"}, "labels=a set: must be names"),
        ("labels", ("a", "b", "a"), "'a' occurs twice"),
        ("labels", ("a", "b" * 65), "labels: "),
        ("labels", ("a", "b\nc"), "labels: "),
        ("labels", ("a", ""), "labels: "),
        ("geometry", "flat", "geometry='flat': must be 'euclidean' or 'spherical'"),
        ("encoder", "", "encoder='': must be a short text"),
        ("encoder", "x" * 65, "must have at most 64 characters"),
        ("key", 3, "key=3: must be a text"),
    ],
)
def test_an_attribute_that_cannot_be_is_refused_by_name(name: str, value: Any, says: str) -> None:
    crowd = type("Crowd", (Crowd,), {name: value})
    with pytest.raises(InvalidParametersError, match=f"population Crowd: .*{says}"):
        simulate(SMALL, population=crowd())


@pytest.mark.parametrize("name", ["labels", "phones", "geometry", "start", "key"])
def test_a_property_that_raises_is_named(name: str) -> None:
    def broken(self: object) -> Any:
        raise ZeroDivisionError("division by zero")

    crowd = type("Crowd", (Crowd,), {name: property(broken)})
    with pytest.raises(OwnCodeError, match=f"population Crowd: {name} raised ZeroDivisionError"):
        simulate(SMALL, population=crowd())


def test_an_object_that_is_no_population_is_told_what_one_has() -> None:
    with pytest.raises(InvalidParametersError, match="has no labels and no phones"):
        simulate(SMALL, population=object())  # type: ignore[arg-type]


GOOD = Crowd().recordings(0)
LONG = GOOD._replace(points=2 * GOOD.points)
NAN = GOOD.points.copy()
NAN[7, 1] = np.nan


class Unreadable:
    """As a tensor on another device."""

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError("not on this device")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, r"returned None: return Recordings"),
        (GOOD.points, r"returned a ndarray: return Recordings"),
        (GOOD._replace(points=[[1.0], [1.0, 2.0]]), r"\.points is not an array: "),
        (GOOD._replace(labels=Unreadable()), r"\.labels is not an array: not on this device"),
        (GOOD._replace(points=np.ma.masked_less(GOOD.points, 0)), "points is a masked array"),
        (GOOD[:2], r"returned a tuple: return Recordings"),
        (GOOD._replace(points=GOOD.points[0]), r"points has shape \(4,\): must be \(recordings, 4"),
        (GOOD._replace(points=GOOD.points[:, :3]), r"points has shape \(20, 3\)"),
        (GOOD._replace(points=GOOD.scenes[:, None] * np.eye(1, 4, dtype=int)), "type int64"),
        (GOOD._replace(points=GOOD.points.astype(complex)), "type complex128: must be floats"),
        (GOOD._replace(points=NAN), "row 7 is not finite"),
        (GOOD._replace(points=GOOD.points * 1e300), "row 0 is not finite"),
        (LONG, "row 0 has length 2, and on the sphere"),
        (GOOD._replace(labels=GOOD.labels[:5]), r"labels has shape \(5,\): must be \(20,\)"),
        (GOOD._replace(labels=GOOD.labels * 1.0), "labels is of type float64: must be whole"),
        (GOOD._replace(labels=np.full(20, 3)), "entry 0 is 3: must be 0 to 2"),
        (GOOD._replace(labels=np.full(20, -2)), "entry 0 is -2"),
        (GOOD._replace(scenes=np.full(20, 2**40)), "scenes: entry 0 is 1099511627776"),
        (GOOD._replace(days=DAYS[:5]), r"days has shape \(5,\): must be \(20,\)"),
        (GOOD._replace(days=np.arange(20)), "days is of type int64: must be dates"),
        (GOOD._replace(days=DAYS.astype("datetime64[s]")), r"datetime64\[s\]: must be dates"),
        (GOOD._replace(days=["2027-01-04"] * 20), "must be dates"),
    ],
)
@pytest.mark.parametrize("method", ["recordings(0)", "held_out()"])
def test_recordings_that_cannot_be_used_are_named(given: Any, says: str, method: str) -> None:
    name = method.partition("(")[0]
    crowd = type("Crowd", (Crowd,), {name: lambda self, *phone: given})
    with pytest.raises(OwnCodeError, match=says) as refused:
        simulate(SMALL, population=crowd())
    assert f"population Crowd: {method}" in str(refused.value)


def returning(held_out: Recordings) -> Callable[..., Recordings]:
    return lambda self: held_out


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"held_out": returning(GOOD.rows(slice(0)))}, "has no recording"),
        (
            {"held_out": returning(GOOD._replace(scenes=np.full(20, -1)))},
            "scenes: entry 0 is -1: must be 0 to 2, an index into the 3 labels, all of them known",
        ),
        (
            {"recordings": lambda self, phone: GOOD.rows(slice(0))},
            "none of 30 phones has a recording",
        ),
        ({"start": lambda self, cells: np.eye(4)}, r"start\(\d+\) has 4 rows"),
        ({"start": lambda self, cells: np.zeros((cells, 4))}, "none may be zero"),
        ({"start": lambda self, cells: np.ones((cells, 3))}, r"has shape \(\d+, 3\)"),
        ({"recordings": lambda self, phone: 1 // 0}, r"recordings\(0\) raised ZeroDivisionError"),
        ({"prepare": lambda self: {}["sound"]}, r"prepare\(\) raised KeyError: 'sound'"),
    ],
)
def test_what_is_too_little_or_raises_is_named(changes: dict[str, Any], says: str) -> None:
    crowd = type("Crowd", (Crowd,), changes)
    with pytest.raises(OwnCodeError, match=says):
        simulate(SMALL, population=crowd())


def test_points_of_the_plane_beyond_one_are_refused() -> None:
    crowd = type("Wide", (Plane,), {"recordings": lambda self, phone: GOOD.rows(slice(0, 3))})
    with pytest.raises(OwnCodeError, match=r"points has shape \(3, 4\)"):
        simulate(LOCAL, population=crowd())
    far = GOOD._replace(points=3 * GOOD.points[:, :2])
    crowd = type("Wide", (Plane,), {"recordings": lambda self, phone: far})
    with pytest.raises(OwnCodeError, match="beyond ±1, which a phone would cut off"):
        simulate(LOCAL, population=crowd())


class Forgetful(Crowd):
    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def recordings(self, phone: int) -> Recordings:
        return self.heard(self.random, 20, 0.5)


def test_an_answer_that_changes_from_call_to_call_is_named() -> None:
    with pytest.raises(OwnCodeError, match=r"recordings\(0\) is not the same at every call"):
        simulate(SMALL, population=Forgetful())


@pytest.mark.slow
def test_an_answer_that_is_another_in_another_process_is_named() -> None:
    with pytest.raises(OwnCodeError, match="is not the same at every call"):
        simulate(replace(SMALL, jobs=2), population=Hashed())


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_of_any_size_are_taken(kind: type[np.floating]) -> None:
    class Sized(Crowd):
        def heard(self, random: np.random.Generator, count: int, labelled: float) -> Recordings:
            found = super().heard(random, count, labelled)
            own = found.labels.astype(np.int8), found.scenes.astype(np.uint8)
            return Recordings(found.points.astype(kind), *own)  # type: ignore[arg-type]

    run = simulate(SMALL, population=Sized())
    assert run.found.points.dtype == np.float32
    assert run.interrupted is None


def test_what_cannot_be_copied_is_refused_before_any_work() -> None:
    class Open(Crowd):
        def __init__(self) -> None:
            self.file = (n for n in range(3))

    simulate(SMALL, population=Open())
    with pytest.raises(InvalidParametersError, match="population Open: cannot be copied"):
        simulate(replace(SMALL, jobs=2), population=Open())


NOTEBOOK = """
cell = '''
from support.own_things import SMALL, Crowd
from dataclasses import replace
from earshot_simulations import simulate
shift = 0
class Mine(Crowd):
    def recordings(self, phone):
        return super().recordings(phone + shift)
run = simulate(replace(SMALL, jobs=2), population=Mine())
print(run.interrupted, run.provenance["own"]["population"]["class"])
'''
exec(compile(cell, "<ipython-input-1>", "exec"))
"""


@pytest.mark.slow
def test_a_class_of_a_notebook_runs_in_other_processes(tmp_path: Path) -> None:
    assert piped(NOTEBOOK, tmp_path) == "None __main__.Mine\n"
