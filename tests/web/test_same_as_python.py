"""The phone in TypeScript against Python's, on messages, phases and ledgers drawn at random."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.web_phone import WebPhone, WebPhoneError

from earshot_client.calendar import Calendar
from earshot_client.phases import discovery as own
from earshot_client.phases.memory import Memory
from earshot_client.store.memory import MemoryStore
from earshot_client.voters import NearestRecordings
from earshot_protocol.environments import DEFAULT_ENVIRONMENTS, LabelHierarchy
from earshot_protocol.errors import (
    InvalidInputError,
    InvalidParametersError,
    MalformedMessageError,
)
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.discovery import DiscoveryParameters, SumCells, SumLabels
from earshot_protocol.phases.labelling import CheckLabels, LabellingParameters, LabelSamples
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import CountContacts, StatisticsParameters
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import LARGEST_LENGTH, Counts, Norm, Shape, ballot
from earshot_protocol.privacy.accounting import composed_cost, epsilon_at
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Pure, ZeroConcentrated
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import GRID, Unit
from earshot_protocol.privacy.sum_noise import WholeGaussian
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.two_operators.messages import SendReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.voting.vectors import quantized, unit_steps
from earshot_protocol.wire import Matrix, canonical, encode

ROOT = Path(__file__).resolve().parents[2]
SPOKEN = (
    *("count-contacts", "sum-cells", "sum-labels", "label-samples", "check-labels", "wait"),
    *("statistics", "discovered", "labelled", "result", "failed"),
)
RESULTS = ("statistics", "discovered", "labelled", "result")
LABELS = ("bus", "park", "Straßenbahn")
PHASE = bytes(range(16))
OPENING = SendReport(sum_id=bytes(16), index=3)
TODAY = date(2026, 1, 8)
DAY = 86_400.0


@pytest.fixture(scope="module")
def web() -> Iterator[WebPhone]:
    with WebPhone() as phone:
        yield phone


# ------------------------------------------------------------------------------------- MessagePack

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=20,
)


@given(value=VALUES)
def test_any_value_is_written_as_msgspec_writes_it(web: WebPhone, value: Any) -> None:
    written = msgspec.msgpack.encode(value)
    in_order = msgspec.msgpack.Encoder(order="sorted").encode(value)
    assert web.ask("repacked", written) == [written.hex(), in_order.hex()]


# ----------------------------------------------------------------------------------------- messages


def crowd(draw: st.DrawFn) -> dict[str, Any]:
    by = draw(st.sampled_from([SummationName.TWO_OPERATORS, SummationName.TWO_OPERATORS_UNPROVED]))
    # The list of a larger sum is too long, which a phone in TypeScript leaves to the leader.
    large = 10**5 if by.proved else 9 * 10**6
    return {
        "phones": draw(st.sampled_from([100, 500, 5000, 3, 99, large])),
        "labels": LABELS[: draw(st.integers(2, 3))],
        "dropout": draw(st.sampled_from([0.0, 0.1, 0.1, 0.1, 0.2, 0.3, 0.31])),
        "corrupted": draw(st.sampled_from([0.0, 0.05, 0.05, 0.05, 0.1, 0.7, 0.9])),
        "step_seconds": draw(st.sampled_from([86_400.0, 0.5])),
        "summation": by,
    }


@st.composite
def statistics(draw: st.DrawFn) -> StatisticsParameters:
    window = draw(st.booleans())
    return StatisticsParameters(
        **crowd(draw),
        contacts=draw(st.sampled_from([1, 2, 4, 20, 4, 2, 10_001])),
        noise=draw(st.sampled_from([300.0, 40.0, 5.5, 2.5, 1.0, 0.8, 1e-10])),
        since=TODAY if window else None,
        until=TODAY + timedelta(draw(st.sampled_from([1, 366, 367]))) if window else None,
    )


@st.composite
def discoveries(draw: st.DrawFn, dimensions: int | None = None) -> DiscoveryParameters:
    given = crowd(draw)
    d, count = dimensions or draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rows = np.random.default_rng(draw(st.integers(0, 99))).standard_normal((count, d))
    noise = st.sampled_from([6.5, 20.0, 30.0, 8.0, 3.0, 1.0, 1e-10])
    return DiscoveryParameters(
        **given,
        encoder="points",
        start=CentroidSet.of(rows),
        most_cells=count + draw(st.integers(0, 3)),
        sums=draw(st.integers(0, 3)),
        cells_noise=draw(noise),
        labels_noise=draw(noise),
        rows=len(given["labels"]) + draw(st.integers(0, 2)),
        kinds=draw(st.sampled_from([1, 2, 3, 16, 1, 2, 17])),
        delta=draw(st.sampled_from([1e-6, 1e-9, 1e-8, 1e-4])),
    )


@st.composite
def labellings(draw: st.DrawFn) -> LabellingParameters:
    samples = np.random.default_rng(draw(st.integers(0, 99))).standard_normal(
        (draw(st.integers(1, 30)), 2)
    )
    noise = st.sampled_from([40.0, 20.0, 8.0, 60.0, 1.0, 1e-7])
    return LabellingParameters(
        **crowd(draw),
        encoder="points",
        samples=Matrix.of(samples),
        votes_noise=draw(noise),
        check_noise=draw(noise),
        threshold=draw(st.sampled_from([1.0, 3.0, 2.0, 0.5, 0.0])),
        largest_weight=draw(st.sampled_from([1, 2, 5, 16])),
        delta=draw(st.sampled_from([1e-6, 1e-8])),
    )


PHASES = st.one_of(statistics(), discoveries(), labellings())


PUBLISHED = [
    bytes.fromhex(each["messagepack"])
    for each in json.loads((ROOT / "docs/vectors/messages.json").read_text("utf-8"))["tasks"]
    if each["json"]["type"] in SPOKEN
    and each["json"].get("advertise", {}).get("type") != "advertise-keys"
]


@st.composite
def tasks(draw: st.DrawFn) -> bytes:
    parameters = draw(PHASES)
    match parameters:
        case StatisticsParameters():
            task: Any = CountContacts(phase=PHASE, parameters=parameters, opening=OPENING)
        case DiscoveryParameters() if draw(st.booleans()):
            task = SumCells(phase=PHASE, repetition=1, parameters=parameters, opening=OPENING)
        case DiscoveryParameters():
            task = SumLabels(phase=PHASE, parameters=parameters, kinds=(0, 3), opening=OPENING)
        case LabellingParameters() if draw(st.booleans()):
            task = LabelSamples(phase=PHASE, parameters=parameters, opening=OPENING)
        case _:
            task = CheckLabels(phase=PHASE, proposed=(0, 1), opening=OPENING)
    return encode(task)


CHANGES = st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=70)
CHANGES |= st.binary(max_size=40) | st.booleans() | st.lists(st.integers(0, 300), max_size=3)
CHANGES |= st.sampled_from([0, 1, -1, 1.0, 2**32, "2026-02-30", "2026-02-28", "bell", b"", {}])


def alike(value: Any) -> st.SearchStrategy[Any]:
    """Values of the same type, most of which a reader takes."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.integers(-2, 5) | st.integers(-(2**53), 2**53)
    if isinstance(value, float):
        return (
            st.sampled_from([value / 2, 0.0, -0.0, 1, 1.0, math.nan, math.inf, -0.5]) | st.floats()
        )
    if isinstance(value, str):
        return st.text(max_size=66) | st.sampled_from(["spherical", "2024-02-29", "two-operators"])
    if isinstance(value, bytes):
        return st.binary(min_size=len(value), max_size=len(value))
    if isinstance(value, list) and value:
        return st.just([*value, value[0]]) | st.just(value[1:])
    return st.none()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Ways to every value within others."""
    keys = value if isinstance(value, dict) else range(len(value)) if type(value) is list else ()
    return [path, *(way for key in keys for way in places(value[key], (*path, key)))]


@given(data=st.data())
def test_a_task_that_was_changed_anywhere_is_read_as_in_python(
    web: WebPhone, data: st.DataObject
) -> None:
    message = msgspec.msgpack.decode(data.draw(st.sampled_from(PUBLISHED) | tasks()))
    *way, last = data.draw(st.sampled_from([way for way in places(message) if way]))
    inner = message
    for key in way:
        inner = inner[key]
    match data.draw(st.sampled_from(["alike", "set", "drop", "add"])):
        case "alike":
            inner[last] = data.draw(alike(inner[last]))
        case "drop" if isinstance(inner, dict) and last != "type":
            del inner[last]
        case "add" if isinstance(inner, dict) and "start" not in way:  # Python takes it there
            inner["surplus"] = 1
        case _:
            inner[last] = data.draw(CHANGES)
    changed = msgspec.msgpack.encode(message)
    try:
        wanted: str | None = canonical(decode_task(changed)).hex()
    except MalformedMessageError:
        wanted = None
    found = read_by(web, changed)
    assert found == wanted or is_beyond(message, found)


def read_by(web: WebPhone, task: bytes) -> str | None:
    """The canonical form of a task; None where it is malformed, and for no other error."""
    try:
        return str(web.ask("task", task))
    except WebPhoneError as error:
        if error.name != "MalformedMessageError":
            raise
    return None


def is_beyond(message: Any, found: str | None) -> bool:
    """Whether a number of a result is so large that only Python reads it."""
    if message["type"] not in RESULTS:
        return False
    values = [message]
    while values:
        value = values.pop()
        if type(value) is int and not -(2**53) < value < 2**53:
            return found is None
        values += (
            value.values() if isinstance(value, dict) else value if type(value) is list else []
        )
    return False


# -------------------------------------------------------------------------------------------- costs


@given(
    events=st.lists(
        st.tuples(st.booleans(), st.sampled_from([1e-6, 0.01, 0.1, 0.25, 1.0, 7.0, 300.0])),
        max_size=40,
    ),
    delta=st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 0.5, 1.0]),
    only=st.sampled_from(["pure", "zcdp", "both"]),
)
def test_events_compose_as_in_python(
    web: WebPhone, events: list[tuple[bool, float]], delta: float, only: str
) -> None:
    pure = [(is_pure or only == "pure") and only != "zcdp" for is_pure, _ in events]
    ours = [
        Pure(value) if own else ZeroConcentrated(value)
        for own, (_, value) in zip(pure, events, strict=True)
    ]
    theirs = msgspec.to_builtins(ours)
    found = float(web.ask("epsilon", theirs, delta).replace("Infinity", "inf"))
    assert found == pytest.approx(composed_epsilon(ours, delta), rel=1e-6, abs=1e-12)
    if not any(pure):
        assert found == pytest.approx(composed_epsilon(ours, delta), rel=1e-11, abs=1e-15)


@given(parameters=PHASES, weight=st.integers(0, 3))
def test_a_phase_costs_and_sums_as_in_python(
    web: WebPhone, parameters: Parameters, weight: int
) -> None:
    if weight not in parameters.weights:
        weight = parameters.weights[0]
    if not is_valid(parameters):
        return  # refused, as `test_random_offers` demands
    wanted = parameters.expenses(weight)
    found = web.ask("expenses", canonical(parameters), weight)
    assert len(found) == len(wanted)
    for theirs, ours in zip(found, wanted, strict=True):
        release, event = (msgspec.to_builtins(each) for each in ours)
        assert theirs["release"].pop("epsilon") == pytest.approx(release.pop("epsilon"), rel=1e-11)
        assert theirs["release"] == release
        assert theirs["event"] == event
    for part in parameters.plan().parts:
        assert isinstance(part, SecureSum)
        shape = part_shape(parameters, part.name)
        sum_parameters = parameters.sum_parameters(part, shape)
        assert web.ask("sum", canonical(parameters), part.name) == canonical(sum_parameters).hex()


def part_shape(parameters: Parameters, name: str) -> tuple[int, ...]:
    match parameters:
        case DiscoveryParameters() if name == "labels":
            assert parameters.rows is not None
            return parameters.rows * parameters.kinds, parameters.dimensions + 1
        case DiscoveryParameters():
            return parameters.most_cells, parameters.dimensions
        case LabellingParameters():
            return parameters.samples.rows, 1 if name == "check" else len(parameters.labels)
        case _:
            return (parameters.entries,)


def is_valid(parameters: Parameters) -> bool:
    try:
        parameters.check()
        parameters.plan()
    except InvalidParametersError:
        return False
    return True


DAYS = st.integers(0, 800).map(lambda ago: TODAY - timedelta(ago))
HISTORY = st.lists(
    st.tuples(
        PHASES.filter(is_valid),
        DAYS,
    ),
    max_size=6,
)


@given(history=HISTORY)
def test_a_ledger_is_written_and_added_up_as_in_python(
    web: WebPhone, history: list[tuple[Parameters, date]]
) -> None:
    entries = [
        (number.to_bytes(16).hex(), canonical(spent).hex(), 1, day.isoformat())
        for number, (spent, day) in enumerate(history)
    ]
    written = [bytes.fromhex(entry) for entry in web.ask("ledger", entries)]
    ledger, ours, whole = Ledger(written), Ledger(), []
    for number, (spent, day) in enumerate(history):
        whole += ours.append(number.to_bytes(16), spent.expenses(1), day)
    assert len(written) == len(whole)
    for theirs, mine in zip(ledger.export(), ours.export(), strict=True):
        assert theirs.pop("epsilon") == pytest.approx(mine.pop("epsilon"), rel=1e-11)
        assert theirs == mine

    for unit in (Unit.RECORDING, Unit.PHONE):
        spent_in = ledger.expenses_of(unit, today=TODAY)
        epsilon, cost = web.ask("spent", written, unit.value, TODAY.isoformat(), 1e-6)
        assert float(epsilon) == pytest.approx(epsilon_at(1e-6, spent_in), rel=1e-6)
        wanted = composed_cost(spent_in)
        assert (cost["epsilon"], cost["delta"]) == pytest.approx(
            (wanted.epsilon, wanted.delta), rel=1e-6
        )


@given(
    steps=st.lists(
        st.tuples(
            st.floats(1, 30 * DAY),  # that really pass
            st.sampled_from([0.0, 7 * DAY, -7 * DAY, 400 * DAY, -400 * DAY])
            | st.floats(-1000 * DAY, 1000 * DAY),  # by which somebody sets the clock then
            st.booleans(),  # whether the phone is started again
        ),
        max_size=30,
    )
)
def test_days_count_as_in_python(web: WebPhone, steps: list[tuple[float, float, bool]]) -> None:
    store = MemoryStore(np.empty((0, 2), dtype=np.float32))
    store.append_ledger(b"something")
    clock, uptime = 1.8e9, 3600.0
    looks, wanted = [(clock, uptime, False)], [clock]
    Calendar(store, lambda: clock, lambda: uptime).today()
    for passes, sets, restarted in steps:
        clock += passes + sets
        uptime = uptime / 2 if restarted else uptime + passes
        day = Calendar(store, lambda: clock, lambda: uptime).today()  # noqa: B023 - asked at once
        looks.append((clock, uptime, restarted))
        wanted.append(msgspec.msgpack.decode(store.get("calendar") or b"")["counted"])
        assert datetime.fromtimestamp(wanted[-1], UTC).date() == day
    assert web.ask("counted", looks) == wanted


# ------------------------------------------------------------------------------------------- inputs


@given(data=st.data())
def test_what_a_phone_heard_becomes_the_same_input(web: WebPhone, data: st.DataObject) -> None:
    choices: dict[str, tuple[str, ...]] = {
        "bus": ("bus", "tram"), "park": (), "Straßenbahn": ("line 3", "tram stop")
    }  # fmt: skip
    parameters = data.draw(discoveries(dimensions=data.draw(st.sampled_from([2, 3, 7, 16]))))
    hierarchy = LabelHierarchy({label: choices[label] for label in parameters.labels})
    rows = data.draw(st.sampled_from([len(parameters.labels), len(own.rows_of(hierarchy))]))
    kinds = data.draw(st.sampled_from([1, 2]))
    parameters = msgspec.structs.replace(parameters, rows=rows, kinds=kinds, sums=1)
    d = parameters.dimensions
    generator = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    count = data.draw(st.integers(0, 12))
    points = generator.standard_normal((count, d)).astype(np.float32)
    names: list[str | None] = [None, "bus", "tram", "park", "line 3", "unknown"]
    heard = [names[int(place)] for place in generator.integers(0, len(names), count)]
    cells = generator.standard_normal((parameters.start.count, d))

    memory = Heard(points, tuple(heard), hierarchy)
    groups = [[label, list(each)] for label, each in hierarchy.groups.items()]
    for first in (True, False):
        told: dict[str, Any] = (
            {"parameters": parameters} if first else {"centroids": Matrix.of(cells)}
        )
        task = SumCells(phase=PHASE, repetition=1, opening=OPENING, **told)
        found = web.ask("cells", encode(task), canonical(parameters), points.tolist(), groups)
        wanted = own._cells(memory, parameters, task)
        assert found == wanted.reshape(-1).tolist()
        of_cells = tuple(int(kind) for kind in generator.integers(0, kinds, len(cells)))
        label_task = SumLabels(phase=PHASE, kinds=of_cells, opening=OPENING, **told)
        found = web.ask(
            "labels", encode(label_task), canonical(parameters), points.tolist(), heard, groups
        )
        wanted = own._labels(memory, parameters, label_task)
        assert found == wanted.reshape(-1).tolist()
        assert math.fsum(entry**2 for entry in found) < 2**24


@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.sampled_from([1, 4, 5, 30, 640, 2_560]),
    off=st.sampled_from([-1e-3, -1e-9, 0.0, 1e-9, 1e-6, 1e-4, 2e-4, 1e-3, 0.01]),
)
def test_a_vector_is_rounded_or_refused_as_in_python(
    web: WebPhone, seed: int, length: int, off: float
) -> None:
    vector = np.random.default_rng(seed).standard_normal(length)
    assert_rounded_alike(web, (1 + off) * vector / np.linalg.norm(vector))


@pytest.mark.parametrize(
    ("steps", "fits"),
    [
        ([GRID], False),  # of squares that add up to 2^24
        ([2048, -2048, 2048, 2048], False),
        ([4095, 90, -9, 3, 1], False),
        ([4095, 90, -9, 3, 0], True),  # one less
        ([0, -4095], True),
    ],
)
def test_a_vector_as_long_as_the_grid_is_no_input(
    web: WebPhone, steps: list[int], fits: bool
) -> None:
    assert assert_rounded_alike(web, np.array(steps) / unit_steps(len(steps))) == fits


def assert_rounded_alike(web: WebPhone, vector: np.ndarray[Any, Any]) -> bool:
    """Both phones make the same steps of a vector; return whether they do not refuse it."""
    try:
        wanted = quantized(vector).tolist()
    except InvalidInputError:
        with pytest.raises(WebPhoneError, match="InvalidInputError"):
            web.ask("quantized", vector.tolist())
        return False
    assert web.ask("quantized", vector.tolist()) == wanted
    assert sum(entry**2 for entry in wanted) < 2**24
    return True


class Heard(Memory):
    """A phone's memory, as far as a discovery phase reads it."""

    def __init__(
        self, points: np.ndarray[Any, Any], choices: tuple[str | None, ...], agreed: LabelHierarchy
    ) -> None:
        object.__setattr__(self, "store", MemoryStore())
        object.__setattr__(self, "fixed", agreed)
        object.__setattr__(self, "heard", (points, choices))

    def points(self, dimensions: int) -> Any:
        return self.heard  # type: ignore[attr-defined]


@given(
    groups=st.dictionaries(
        st.sampled_from(["a", "bus", "ö", "Straßenbahn"]),
        st.lists(st.sampled_from(["c", "d", "e" * 64]), unique=True),
        min_size=1,
    ),
    choices=st.lists(st.sampled_from(["a", "c", "d", "x", None])),
)
def test_a_hierarchy_has_python_s_digest(
    web: WebPhone, groups: dict[str, list[str]], choices: list[str | None]
) -> None:
    listed = [[label, each] for label, each in groups.items()]
    try:
        ours = LabelHierarchy({label: tuple(each) for label, each in groups.items()})
    except InvalidInputError:
        with pytest.raises(WebPhoneError, match="InvalidInputError"):
            web.ask("hierarchy", listed, choices)
        return
    digest, classes = web.ask("hierarchy", listed, choices)
    assert digest == ours.digest.hex()
    known = {**{c: k for k, each in groups.items() for c in each}, **{k: k for k in groups}}
    assert classes == [known.get(choice) if choice is not None else None for choice in choices]


def test_the_environments_of_everyday_life_are_python_s(web: WebPhone) -> None:
    ours = [[name, list(choices)] for name, choices in DEFAULT_ENVIRONMENTS.items()]
    assert web.ask("usual") == ours


@given(
    seed=st.integers(0, 10**6),
    counts=st.tuples(st.integers(0, 40), st.integers(1, 8)),
    spread=st.sampled_from([0.05, 0.3, 1.0]),
    columns=st.sampled_from([2, 5]),
)
def test_recordings_vote_on_samples_as_in_python(
    web: WebPhone, seed: int, counts: tuple[int, int], spread: float, columns: int
) -> None:
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((3, columns))
    owners = generator.integers(0, 3, counts[0])
    heard = (centres[owners] + spread * generator.standard_normal((counts[0], columns))).astype(
        np.float32
    )
    kinds: list[str | None] = [None, "bus", "park", "home"]
    labels = [kinds[int(place)] for place in generator.integers(0, 4, counts[0])]
    samples = (
        centres[generator.integers(0, 3, counts[1])]
        + spread * generator.standard_normal((counts[1], columns))
    ).astype(np.float32)
    wanted = NearestRecordings.of(heard, labels).answers(samples)
    assert web.ask("votes", heard.tolist(), labels, samples.tolist(), columns) == wanted


# ------------------------------------------------------------------------------------------- proofs


@st.composite
def proved_inputs(draw: st.DrawFn) -> tuple[Shape, list[int]]:
    """Shapes, and valid vectors, the longest ones and those of zeros among them."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    match draw(st.sampled_from(["ballot", "counts", "norm"])):
        case "ballot":
            length = draw(st.integers(1, 120))
            most = draw(st.integers(1, length))
            ones = generator.permutation(length)[: generator.integers(0, most + 1)]
            return ballot(length, most), np.isin(np.arange(length), ones).astype(int).tolist()
        case "counts":
            width, block = draw(st.integers(2, 32)), draw(st.integers(1, 20))
            blocks, largest = draw(st.integers(1, 6)), 2**width - 1
            counts = generator.integers(0, largest + 1, (blocks, block))
            counts *= generator.random((blocks, block)) < draw(st.sampled_from([0.0, 0.3, 1.0]))
            most = max(1, int(counts.sum(axis=1).max()))
            total = draw(st.integers(most, block * largest))
            return Counts(width, total, block), counts.reshape(-1).tolist()
        case _:
            entries = generator.standard_normal(draw(st.integers(1, 300)))
            entries *= draw(st.sampled_from([0, 10, GRID - 1])) / np.linalg.norm(entries)
            return Norm(), np.trunc(entries).astype(int).tolist()


@given(given=proved_inputs(), seed=st.integers(0, 2**32 - 1), context=st.binary(max_size=400))
def test_inputs_are_proved_as_in_python(
    web: WebPhone, given: tuple[Shape, list[int]], seed: int, context: bytes
) -> None:
    (shape, vector), generator = given, np.random.default_rng(seed)
    nonce, random = generator.bytes(16), generator.bytes(128)
    made = Prio3(shape, len(vector), context=context).shard(np.array(vector), nonce, random)
    proof = msgspec.to_builtins(shape)
    assert web.ask("proved", proof, context, vector, nonce, random) == [each.hex() for each in made]


@st.composite
def described(draw: st.DrawFn) -> tuple[Counts | Norm, tuple[int, ...]]:
    """Numbers of a shape, of which some describe no vector, and the shape of a sum."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    width = draw(st.sampled_from([1, 2, 5, 32, 33, 0, -1]))
    block = draw(st.sampled_from([columns, rows * columns, 1, 0, -columns, rows * columns + 1, 4]))
    most = max(1, block * (2 ** max(width, 0) - 1))
    total = draw(st.sampled_from([1, most, most + 1, 0, -1]) | st.integers(1, most))
    return draw(st.sampled_from([Counts(width, total, block), Norm()])), (rows, columns)


@given(given=described())
def test_numbers_of_a_shape_are_refused_as_in_python(
    web: WebPhone, given: tuple[Counts | Norm, tuple[int, ...]]
) -> None:
    assert_described_alike(web, *given)


@pytest.mark.parametrize(
    ("proof", "fits"),
    [
        (Counts(32, 2**33 - 2, 2), True),
        (Counts(32, 2**33 - 1, 2), False),
        (Counts(33, 1, 2), False),
        (Counts(1, 1, 3), False),
        (Counts(1, 1, 8), False),
        (Counts(1, 0, 4), False),
    ],
)
def test_the_largest_numbers_of_a_shape_are_python_s(
    web: WebPhone, proof: Counts, fits: bool
) -> None:
    assert assert_described_alike(web, proof, (2, 2)) == fits


@pytest.mark.parametrize("proof", [Norm(), Counts(1, 2**20, 2**20), Counts(4, 15, 1)])
def test_no_more_entries_are_proved_than_in_python(web: WebPhone, proof: Counts | Norm) -> None:
    assert assert_described_alike(web, proof, (LARGEST_LENGTH // 16, 16))
    assert not assert_described_alike(web, proof, (LARGEST_LENGTH // 16 + 1, 16))


def assert_described_alike(web: WebPhone, proof: Counts | Norm, shape: tuple[int, ...]) -> bool:
    """Both phones refuse parameters, or encode inputs in as many elements."""
    noise = WholeGaussian(2**20)
    parameters = TwoOperatorParameters(100, shape, GRID, noise, 50, 1000.0, proof)
    try:
        parameters.check()
    except InvalidParametersError:
        with pytest.raises(WebPhoneError, match="InvalidParametersError"):
            web.ask("encoded", canonical(parameters))
        return False
    length = parameters.length
    wanted = proof.squares(length) + proof.bits(length)
    assert web.ask("encoded", canonical(parameters)) == wanted
    return True
