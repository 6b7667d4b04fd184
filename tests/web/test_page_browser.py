"""The page as its user has it: one of a crowd of a hundred phones, over HTTP, with a helper."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright
from support.accessibility import check_phone_page
from support.browser import executable
from support.command import earshot
from support.dashboard_browser import ARGUMENTS, overheard
from support.networked import ServerProcess, await_
from support.policies import without_budget
from support.served_helper import ServedHelper

from earshot_client.encoder import default_encoder
from earshot_client.features import one_second
from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_models.soundscapes import synthesize
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.encoder_file import read
from earshot_protocol.messages import Wait
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phone_link import PhoneLink
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import packaged
from earshot_protocol.wire import Ending
from earshot_server.credentials import Credentials
from earshot_server.phases.options import PhaseOptions, of_encoder

RATE = 48_000
HERE, OTHERS = "machine hum", ("birds", "rain")
PHONES = 100
"""As few as a page's phone accepts by default."""
SCREENS = ("listen", "heard", "left", "budget", "part", "forget")

expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place that the page's microphone hears, over and over."""
    sound = synthesize(HERE, 9, np.random.default_rng(5), RATE).reshape(-1)
    path = tmp_path_factory.mktemp("sound") / "place.wav"
    soundfile.write(path, 0.2 * sound / np.abs(sound).max(), RATE, subtype="PCM_16")
    return path


@pytest.fixture(scope="module")
def chromium(recording: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=executable(),
            args=[
                *ARGUMENTS,
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-audio-capture={recording}",
            ],
        )
        try:
            yield running
        finally:
            running.close()


class Operators(NamedTuple):
    """A server that serves the page itself, and its helper."""

    server: ServerProcess
    leader: str
    helper: str

    def link(self) -> str:
        """An invitation as `earshot invite` prints it."""
        arguments = ("--server", self.server.address, "--data", self.server.data)
        said = earshot(*("invite", "--phone-page", "here", *arguments))
        assert said.returncode == 0, said.stderr
        assert said.stdout.startswith(f"{self.server.address}/phone/#earshot1.")
        return said.stdout.strip()


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operators]:
    folder = tmp_path_factory.mktemp("leader")
    with ServedHelper().running() as helper:
        terms = ("--helper", helper.address, "--helper-key", helper.key, "--phone-page", "here")
        with ServerProcess(folder, None, *terms) as server:
            leader = Credentials.load_or_create(folder, leads=True).leader
            helper.leaders = frozenset({bytes.fromhex(leader)})
            yield Operators(server, leader, helper.key)


@contextlib.contextmanager
def opened(running: Browser, **options: object) -> Iterator[tuple[Page, list[str]]]:
    """A page in a profile of its own, and what it complains about.

    Its browser asks its user whether to keep the page's store, as Firefox does, and waits for ever.
    """
    context = running.new_context(permissions=["microphone"], **options)  # type: ignore[arg-type]
    context.add_init_script("StorageManager.prototype.persist = () => new Promise(() => {})")
    page = context.new_page()
    complaints, _ = overheard(page)
    try:
        yield page, complaints
    finally:
        context.close()


def joined(page: Page, link: str) -> None:
    page.goto(link)
    page.locator("main[data-screen=welcome] [data-do=join]").click()
    expect(page.locator("main[data-screen=listen]")).to_be_visible()


def go(page: Page, screen: str) -> None:
    if page.locator(f"main[data-screen={screen}]").count():
        return
    page.locator(f"nav a[href='#{screen}']").click()
    expect(page.locator(f"main[data-screen={screen}]")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def listened(page: Page, choice: str | None = None) -> str:
    """Listen for a second and perhaps name it; return what the page says that it sounds like."""
    go(page, "listen")
    page.locator("[data-do=listen]").click()
    card = page.get_by_role("region")
    expect(card).to_be_visible()
    said = card.inner_text()
    if choice is not None:
        page.get_by_role("combobox").first.select_option(choice)
        page.locator("[data-do=label]").click()
        expect(card).to_have_count(0)
    return said


# ------------------------------------------------------------------------------------ by itself


@pytest.mark.slow
def test_every_screen_is_accessible_in_both_languages(
    chromium: Browser, operators: Operators
) -> None:
    for language, title in (("en-GB", "Listen now"), ("de-AT", "Jetzt zuhören")):
        with opened(chromium, locale=language, bypass_csp=True) as (page, _):  # axe is a script
            page.goto(f"{operators.server.address}/phone/")
            expect(page.locator("main[data-screen=welcome]")).to_be_visible()
            check_phone_page(page, f"{language} welcome")
            page.goto(operators.link())
            expect(page.locator("[data-do=join]")).to_be_visible()
            check_phone_page(page, f"{language} invitation")
            page.locator("[data-do=join]").click()
            expect(page.get_by_role("heading", level=1)).to_have_text(title)
            listened(page, "kitchen")
            listened(page)
            for screen in SCREENS:
                go(page, screen)
                check_phone_page(page, f"{language} {screen}")
            page.locator("[data-do=forget]").click()
            expect(page.locator("#sure")).to_be_focused()
            check_phone_page(page, f"{language} sure")
            assert page.evaluate("document.documentElement.lang") == language[:2]


@pytest.mark.slow
def test_a_page_is_used_by_keyboard_alone(chromium: Browser, operators: Operators) -> None:
    with opened(chromium) as (page, complaints):
        page.goto(operators.link())
        expect(page.get_by_role("heading", level=1)).to_be_focused()

        def reach(does: str) -> None:
            for _ in range(40):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement?.dataset?.do") == does:
                    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                    assert outline != "none"
                    return
            raise AssertionError(f"{does} cannot be reached")

        reach("join")
        page.keyboard.press("Enter")
        expect(page.locator("main[data-screen=listen]")).to_be_visible()
        reach("listen")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_have_text("Heard. The sound is forgotten.")
        page.keyboard.press("Tab")
        page.keyboard.press("k")
        reach("label")
        page.keyboard.press("Space")
        expect(page.get_by_role("status")).to_contain_text("Saved: kitchen.")
        assert complaints == []


@pytest.mark.slow
def test_it_opens_and_hears_without_a_network_and_calls_nobody_else(
    chromium: Browser, operators: Operators
) -> None:
    with opened(chromium) as (page, complaints):
        joined(page, operators.link())
        assert page.evaluate("location.hash") in ("", "#listen"), "the code is not in the address"
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        reached = page.evaluate(
            "fetch('https://elsewhere.example').then(() => 'read', (error) => error.name)"
        )
        assert reached == "TypeError"
        assert any("Content Security Policy" in each for each in complaints), complaints
        blocked = page.evaluate(
            "(() => { try { document.body.innerHTML = '<p>'; } "
            "catch (error) { return error.name; } })()"
        )
        assert blocked == "TypeError", "no text becomes markup"
        page.context.set_offline(True)
        page.reload()
        expect(page.locator("main[data-screen=listen]")).to_be_visible()
        listened(page, "kitchen")
        expect(page.locator("body[data-recordings='1']")).to_be_visible()


@pytest.mark.slow
def test_what_is_no_invitation_is_named_and_a_second_one_changes_nothing(
    chromium: Browser, operators: Operators
) -> None:
    with opened(chromium) as (page, complaints):
        page.goto(operators.link()[:-7])
        expect(page.get_by_text("This is not an invitation")).to_be_visible()
        page.get_by_label("Invitation").fill("https://example.org/")
        page.get_by_role("button", name="Read the invitation").click()
        expect(page.get_by_role("status")).to_contain_text("This is not an invitation")
        page.get_by_label("Invitation").fill(operators.link())
        page.keyboard.press("Enter")
        page.locator("[data-do=join]").click()
        expect(page.locator("main[data-screen=listen]")).to_be_visible()
        kept = page.evaluate("localStorage.getItem('earshot-page')")
        strange = PhoneLink(
            server="https://evil.example", invitation="x", leader=bytes(32), helper=bytes([1] * 32)
        )
        page.goto(f"{operators.server.address}/phone/#{strange.fragment()}")
        expect(page.get_by_role("status")).to_contain_text("already takes part")
        await_(lambda: "true" in page.evaluate("localStorage.getItem('earshot-page')"), "enrolling")
        now = json.loads(page.evaluate("localStorage.getItem('earshot-page')"))
        assert now["link"] == json.loads(kept)["link"]
        assert complaints == []


@pytest.mark.slow
def test_a_phone_that_lost_its_store_does_not_come_back_as_a_new_one(
    chromium: Browser, operators: Operators
) -> None:
    with opened(chromium) as (page, _):
        joined(page, operators.link())
        await_(lambda: "true" in page.evaluate("localStorage.getItem('earshot-page')"), "enrolling")
        known = operators.server.operator().phones().enrolled
        page.context.new_cdp_session(page).send(
            "Storage.clearDataForOrigin",
            {"origin": operators.server.address, "storageTypes": "indexeddb,file_systems"},
        )
        page.reload()
        expect(page.locator("body[data-event=stopped]")).to_be_visible()
        go(page, "part")
        expect(page.locator("#visit")).to_contain_text("No server knows this phone")
        assert operators.server.operator().phones().enrolled == known


@pytest.mark.slow
def test_a_page_hears_and_forgets_while_the_server_is_silent(
    chromium: Browser, operators: Operators
) -> None:
    silent: list[Route] = []

    def keep(route: Route) -> None:
        silent.append(route)

    with opened(chromium) as (page, complaints):
        page.route("**/v1/*", keep)
        with page.expect_request("**/v1/*"):
            joined(page, operators.link())
        listened(page, "kitchen")
        go(page, "heard")
        page.locator("[data-do=forget-all]").click()
        expect(page.locator("body[data-recordings='0']")).to_be_visible()
        assert len(silent) == 1, "the visit is still under way"
        go(page, "forget")
        page.locator("[data-do=forget]").click()
        page.locator("[data-do=erase-only]").click()
        expect(page.locator("main[data-screen=gone]")).to_be_visible()
        page.wait_for_function("Object.keys(localStorage).join() === 'earshot-version'")
        assert len(silent) == 1, "nothing was sent since"
        assert complaints == []


@pytest.mark.slow
def test_a_browser_that_lacks_a_curve_is_told_what_it_takes(
    chromium: Browser, operators: Operators
) -> None:
    lacks = "SubtleCrypto.prototype.generateKey = () => { throw new Error(); };"
    with opened(chromium) as (page, _):
        page.route(
            "**/page/worker.js",
            lambda route: route.fulfill(response=(got := route.fetch()), body=lacks + got.text()),
        )
        known = operators.server.operator().phones().enrolled
        joined(page, operators.link())
        expect(page.locator("body[data-event=stopped]")).to_be_visible()
        page.locator("[data-do=listen]").click()
        said = "This browser cannot be a phone here."
        expect(page.get_by_role("status")).to_contain_text(said)
        go(page, "part")
        expect(page.locator("#visit")).to_contain_text(said)
        expect(page.locator("#visit")).to_contain_text("lacks Ed25519 in WebCrypto")
        assert operators.server.operator().phones().enrolled == known


@pytest.mark.slow
def test_another_version_waits_for_its_readers_consent(
    chromium: Browser, operators: Operators
) -> None:
    newer = {"version": "9.9.9-abcdef01", "digest": "ab" * 32}
    with opened(chromium) as (page, _):
        page.route("**/phone/newest.json", lambda route: route.fulfill(json=newer))
        joined(page, operators.link())
        own = page.evaluate("localStorage.getItem('earshot-version')")
        expect(page.get_by_text("ab" * 32)).to_be_visible()
        page.goto(f"{operators.server.address}/phone/")
        expect(page.locator("main[data-screen=listen]")).to_be_visible()
        assert f"/{own}/" in page.url
        page.get_by_role("button", name="Take the newer version").click()
        page.wait_for_url("**/9.9.9-abcdef01/page/index.html")
        assert page.evaluate("localStorage.getItem('earshot-version')") == newer["version"]


# ------------------------------------------------------------------------------------ in a crowd


class Crowd:
    """Phones in Python that hear the page's place and two others."""

    def __init__(self, operators: Operators) -> None:
        random = np.random.default_rng(11)
        heard = {
            scene: default_encoder().embed(
                np.stack(
                    [
                        one_second(second, 16_000, 16_000)
                        for second in synthesize(scene, 60, random, 16_000).reshape(-1, 16_000)
                    ]
                )
            )
            for scene in (HERE, *OTHERS)
        }
        code = operators.server.operator().invite(Invite(uses=PHONES)).code
        policy = without_budget(
            least_phones=3,
            leaders=(bytes.fromhex(operators.leader),),
            helpers=(bytes.fromhex(operators.helper),),
        )
        self._phones: list[tuple[Phone, HttpTransport]] = []
        self._over: set[int] = set()
        for _ in range(PHONES - 1):
            scenes = random.choice([HERE, *OTHERS], size=6)
            points = np.stack([heard[scene][random.integers(60)] for scene in scenes])
            store = MemoryStore(points, list(scenes))
            phone = Phone(
                store, default_encoder(), policy, hierarchy=LabelHierarchy.flat((HERE, *OTHERS))
            )
            line = HttpTransport(operators.server.address, Ed25519PrivateKey.generate())
            line.enrol(code)
            self._phones.append((phone, line))

    def visit(self) -> bool:
        """Let everybody visit; return whether the phase is over for all."""
        for number, (phone, line) in enumerate(self._phones):
            if number in self._over:
                continue
            task = line.task()
            if isinstance(task, Wait):
                continue
            answer = phone.answer(task)
            if isinstance(task, Ending):
                self._over.add(number)
            elif answer is not None:
                line.send(answer)
        return len(self._over) == len(self._phones)

    def close(self) -> None:
        for _, line in self._phones:
            line.close()


def _parameters(asked: PhaseOptions) -> DiscoveryParameters:
    encoder = read(packaged("contrast-3"))
    return asked.discovery_parameters(encoder.card.name, of_encoder(encoder))


@pytest.mark.slow
def test_a_page_hears_takes_part_and_gets_names_and_forgets(
    chromium: Browser, operators: Operators, tmp_path: Path
) -> None:
    asked = PhaseOptions(
        phones=PHONES,
        labels=(HERE, *OTHERS),
        dropout=0.05,
        sums=0,
        summation=SummationName.TWO_OPERATORS,
    )
    with opened(chromium) as (page, complaints), contextlib.closing(Crowd(operators)) as crowd:
        joined(page, operators.link())
        for _ in range(4):
            assert "No place with a published name" in listened(page, HERE)
        go(page, "part")
        page.locator("[data-do=part]").click()
        parameters = _parameters(asked)
        phase = operators.server.operator().start(StartPhase(parameters=parameters))
        await_(crowd.visit, "the crowd", 300)
        expect(page.locator(f"body[data-ended='{phase}']")).to_be_visible()

        record = operators.server.operator().export(phase)
        assert isinstance(record.ending, Discovered)
        named = zip(record.ending.labels, record.ending.name_p_values, strict=True)
        names = {record.ending.label_names[label] for label, chance in named if chance <= 0.05}
        assert HERE in names, "the crowd is clear of the noise"
        shown = page.get_by_role("region", name="Places that the crowd has found")
        assert {each.inner_text() for each in shown.get_by_role("listitem").all()} == names
        if folder := os.environ.get("EARSHOT_PICTURES"):
            page.screenshot(path=Path(folder, "phone-result.png"), full_page=True)
        page.locator("[data-do=told]").click()
        expect(shown).to_have_count(0)
        assert f"It sounds like: {HERE}" in listened(page)
        if folder:
            page.screenshot(path=Path(folder, "phone-named.png"), full_page=True)
        go(page, "heard")
        rows = page.get_by_role("row").all_inner_texts()[1:]
        assert len(rows) == 5
        assert all(HERE in row for row in rows)

        go(page, "left")
        released = page.get_by_role("row").all_inner_texts()[1:]
        assert len(released) == 1
        assert "labels" in released[0]
        assert phase[:8] in released[0]
        assert "(δ 0.000001)" in released[0]
        go(page, "budget")
        spent = page.locator(".card", has_text="This phone, this year").inner_text()
        assert "of 8, at δ 0.0001" in spent
        assert "ε 0 " not in spent

        go(page, "forget")
        with page.expect_download() as download:
            page.locator("[data-do=export]").click()
        download.value.save_as(tmp_path / "export.json")
        exported = json.loads((tmp_path / "export.json").read_text())
        assert len(exported["recordings"]) == 5
        assert {entry["phase"] for entry in exported["ledger"]} == {phase}
        assert "seed" not in json.dumps(exported)
        before = operators.server.operator().phones().enrolled
        page.locator("[data-do=forget]").click()
        page.locator("[data-do=erase]").click()
        expect(page.locator("main[data-screen=gone]")).to_be_visible()
        assert operators.server.operator().phones().enrolled == before - 1
        assert page.evaluate("Object.keys(localStorage)") == ["earshot-version"]
        assert page.evaluate("caches.keys()") == []
        page.goto(f"{operators.server.address}/phone/")
        expect(page.locator("main[data-screen=welcome]")).to_be_visible()
        assert complaints == []


@pytest.mark.slow
def test_a_group_that_is_too_small_is_refused_until_its_reader_agrees(
    chromium: Browser, operators: Operators
) -> None:
    asked = PhaseOptions(
        phones=3, labels=("kitchen", "park"), sums=0, summation=SummationName.TWO_OPERATORS_UNPROVED
    )
    with opened(chromium) as (page, _), contextlib.ExitStack() as others:
        joined(page, operators.link())
        go(page, "part")
        page.locator("[data-do=part]").click()
        parameters = _parameters(asked)
        start = StartPhase(parameters=parameters, anyway=True)
        phase = operators.server.operator().start(start)
        pages = [page]
        for _ in range(2):
            other, _ = others.enter_context(opened(chromium))
            joined(other, operators.link())
            go(other, "part")
            other.get_by_label("groups of fewer than 100").check()
            expect(other.get_by_role("status")).to_have_text("Small groups are accepted.")
            other.locator("[data-do=part]").click()
            pages.append(other)
        expect(page.locator("body[data-event=refused]")).to_be_visible()
        go(page, "left")
        expect(page.get_by_text("phones=3; at least 100 is accepted")).to_be_visible()
        go(page, "part")
        page.get_by_label("groups of fewer than 100").check()
        for each in pages:
            expect(each.locator(f"body[data-ended='{phase}']")).to_be_visible(timeout=120_000)
            expect(each.get_by_text("Nothing stands clear of the noise")).to_be_visible()
