"""Real phases of the recommended route, and the pictures of them that the documents show.

    PYTHONPATH=tests .venv/bin/python -m support.dashboard_phase docs

starts an embedded PostgreSQL and a server, plays a whole discovery phase with default phones that
hear synthesized sound through the default encoder, lets phones join a second one, and takes the
pictures. It takes a few minutes. Phones draw real noise, so no two runs publish the same.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from earshot_client.labels import LabelHierarchy
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, packaged
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.processes.embedded import embedded
from earshot_server.store.database import Database
from support import dashboard_browser
from support.api_caller import Caller, Server
from support.dashboard_server import served
from support.desk import OperatorsBrowser
from support.unsafe_postgres import UNSAFE

PHONES = 600
"""Enough for several names at ε = 2 per phone."""
JOINED = 410
"""Phones that have joined the second phase."""
SECONDS = 60
"""Seconds of each scene, of which every phone hears some."""
HEARD = 20
"""Seconds that each phone hears and labels, in two scenes."""
_SEED = 7


def make_phones(count: int) -> Iterator[Phone]:
    """Yield default phones, each of which has heard two of the scenes and named what it heard."""
    random = np.random.default_rng(_SEED)
    encoder = LiteRtEncoder(packaged(DEFAULT_ENCODER))
    pool = {
        scene: encoder.embed(synthesize(scene, SECONDS, random, encoder.rate)) for scene in SCENES
    }
    labels = LabelHierarchy.flat(SCENES)
    for _ in range(count):
        scenes = random.choice(SCENES, 2, replace=False)
        heard = [str(scene) for scene in np.repeat(scenes, HEARD // 2)]
        points = np.stack([pool[scene][random.integers(SECONDS)] for scene in heard])
        yield Phone(MemoryStore(points, heard), encoder, hierarchy=labels)


def start(server: Server, name: str, phones: int) -> None:
    """Start a phase with all defaults, at the dashboard."""
    browser = OperatorsBrowser(server)
    assert browser.sign_in().status_code == 303
    asked = browser.fields(browser.get("/start"))
    asked |= {"name": name, "phones": str(phones), "labels": ", ".join(SCENES), "do": "look"}
    verdict = browser.fields(browser.post("/start", asked))
    assert browser.post("/start", verdict | {"do": "start"}).status_code == 303


def play(server: Server, driver: Driver, phones: dict[Phone, Caller]) -> None:
    """Let phones join the phase that gathers, and answer until its result is out."""
    while any(phone.result is None for phone in phones):
        for phone, caller in phones.items():
            answer = phone.answer(caller.task())
            if answer is not None:
                assert caller.answer(answer).status_code == 204
        driver.turn()


@contextmanager
def played(phones: int, joined: int) -> Iterator[Server]:
    """A server on which one phase is published and another one gathers."""
    with (
        tempfile.TemporaryDirectory(prefix="earshot-") as folder,
        embedded(Path(folder, "postgresql"), UNSAFE) as postgres,
    ):
        database = Database(postgres.url)
        database.migrate()
        server = Server.over(
            database,
            Path(folder, "data"),
            phone_requests_per_minute=10**9,
            address_requests_per_minute=10**9,
        )
        code = server.invitation(uses=phones)
        crowd = {phone: server.phone(code) for phone in make_phones(phones)}
        start(server, "Week 12", phones)
        play(server, Driver(database, Optics(), keep_seconds=1e9), crowd)
        start(server, "Week 13", phones)
        for phone, caller in list(crowd.items())[:joined]:
            assert phone.result is not None
            caller.task(known=(phone.result.phase,))
        yield server
        database.close()


if __name__ == "__main__":
    (target,) = sys.argv[1:]
    with played(PHONES, JOINED) as server, served(server.app) as address:
        token = server.credentials.operator_token
        with dashboard_browser.browser() as chromium:
            for file in dashboard_browser.take_pictures(chromium, address, Path(target), token):
                print(file)
