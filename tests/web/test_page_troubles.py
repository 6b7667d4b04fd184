"""The page where something is missing, refused or late: it says why until that is over, or goes on.

Its host serves files alone, none for a folder, and no phones: each visit comes to nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Route,
    expect,
)
from support.accessibility import check_phone_page
from support.browser import executable
from support.dashboard_browser import ARGUMENTS
from support.fake_microphone import hearing
from support.web_pages import hosted

from earshot_protocol.phone_link import PhoneLink
from earshot_server.phone_page.assembling import assembled, policy

FOREIGN = "phone.example"
"""A name that leads to this machine, and that browsers do not take for it."""
SCREENS = ("listen", "heard", "left", "budget", "part", "forget")
LANGUAGES = ("en-GB", "de-AT")
KEEPS_NOTHING = {
    "en-GB": "This browser does not let the page store anything at the moment.",
    "de-AT": "Dieser Browser lässt die Seite gerade nichts speichern.",
}

expect.set_options(timeout=60_000)


class Host(NamedTuple):
    """A host of the page."""

    address: str
    version: str

    @property
    def link(self) -> str:
        """An invitation."""
        read = PhoneLink(
            server=self.address, invitation="code", leader=bytes(32), helper=bytes([1] * 32)
        )
        return f"{self.address}/#{read.fragment()}"

    @property
    def page(self) -> str:
        return f"{self.address}/{self.version}/page/index.html"


@contextlib.contextmanager
def host(
    change: Callable[[str, dict[str, bytes]], None] | None = None, moves: bool = False
) -> Iterator[Host]:
    """A host of the page's files, which may be changed.

    Args:
        change: takes the folder of the version and the files by their paths, and changes these.
        moves: whether the address of an `index.html` leads to that of its folder, as some do.
    """
    files = {f"/{path}": content for path, content in assembled(()).items()}
    files["/"] = files["/index.html"]
    version = json.loads(files["/newest.json"])["version"]
    page = f"/{version}/page"
    moved = {f"{page}/index.html": f"{page}/"} if moves else {}
    if moves:
        files[f"{page}/"] = files[f"{page}/index.html"]
    if change:
        change(f"/{version}", files)
    with hosted(files, policy(()), moved) as address:
        yield Host(address, version)


@pytest.fixture(scope="module")
def usual() -> Iterator[Host]:
    with host() as running:
        yield running


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("sound")
    with hearing("rain", folder, f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1") as running:
        yield running


@contextlib.contextmanager
def opened(running: Browser, script: str = "", **options: object) -> Iterator[Page]:
    """A page in a profile of its own, in which a script runs first."""
    context = running.new_context(permissions=["microphone"], **options)  # type: ignore[arg-type]
    if script:
        context.add_init_script(script)
    try:
        yield context.new_page()
    finally:
        context.close()


def joined(page: Page, link: str) -> None:
    page.goto(link)
    page.locator("[data-do=join]").click()
    expect(page.locator("main[data-screen=listen]")).to_be_visible()


def go(page: Page, screen: str) -> None:
    page.evaluate(f"location.hash = '{screen}'")
    expect(page.locator(f"main[data-screen={screen}]")).to_be_visible()


def heard(page: Page) -> None:
    go(page, "listen")
    page.locator("[data-do=listen]").click()
    expect(page.get_by_role("region")).to_be_visible()


def erased(page: Page, does: str = "erase-only") -> None:
    go(page, "forget")
    page.locator("[data-do=forget]").click()
    page.locator(f"[data-do={does}]").click()


def trouble(page: Page, text: str) -> None:
    expect(page.locator("#trouble")).to_contain_text(text)


def no_trouble(page: Page) -> None:
    expect(page.locator("#trouble")).to_be_empty()


def everywhere(page: Page, text: str) -> None:
    """Whatever screen its reader goes to, the page says it."""
    for screen in SCREENS:
        go(page, screen)
        trouble(page, text)


def in_worker(page: Page, script: str, workers: int | None = None) -> None:
    """Let a script run in the phone's worker before its own; in so many, or in all."""

    def fulfil(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=script + response.text())

    page.route("**/page/worker.js", fulfil, times=workers)


TOLD = """
    window.test = new BroadcastChannel("test");
    window.told = (word) => document.documentElement.setAttribute(`data-${word}`, "");
    test.onmessage = ({ data }) => told(data);
"""
"""Notes in the page what the phone's worker, or a script in the page, tells a test."""


def await_word(page: Page, word: str) -> None:
    expect(page.locator(f"html[data-{word}]")).to_be_attached()


def once(page: Page, pattern: str, status: int | None = None) -> list[str]:
    """Let the first request of an address fail, or get a status; the addresses that failed."""
    failed: list[str] = []

    def fail(route: Route) -> None:
        if failed:
            route.fallback()
        else:
            failed.append(route.request.url)
            if status is None:
                route.abort()
            else:
                route.fulfill(status=status)

    page.route(pattern, fail)
    return failed


# ---------------------------------------------------------------------------- what a browser keeps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("indexeddb", "The browser has removed this phone’s store"),
        ("file_systems", "This phone’s store was made with another key"),
    ],
)
def test_a_phone_that_has_lost_half_of_its_store_says_so_until_it_begins_anew(
    chromium: Browser, usual: Host, kind: str, said: str
) -> None:
    with opened(chromium) as page:
        joined(page, usual.link)
        heard(page)
        told = {"origin": usual.address, "storageTypes": kind}
        page.context.new_cdp_session(page).send("Storage.clearDataForOrigin", told)
        page.reload()
        everywhere(page, said)
        go(page, "part")
        expect(page.locator("#visit")).to_contain_text(said)
        erased(page)
        expect(page.locator("main[data-screen=gone]")).to_be_visible()
        no_trouble(page)
        joined(page, f"{usual.page}#{usual.link.partition('#')[2]}")
        heard(page)
        no_trouble(page)


@pytest.mark.slow
def test_a_browser_that_refuses_files_is_named_until_it_does_not(
    chromium: Browser, usual: Host
) -> None:
    refusing = """
        let refuses = true;
        const { getDirectory } = StorageManager.prototype;
        StorageManager.prototype.getDirectory = function () {
          if (!refuses) return getDirectory.call(this);
          return Promise.reject(new DOMException("no", "SecurityError"));
        };
        new BroadcastChannel("test").onmessage = () => { refuses = false; };
    """
    with opened(chromium) as page:
        in_worker(page, refusing)
        joined(page, usual.link)
        everywhere(page, KEEPS_NOTHING["en-GB"])
        expect(page.get_by_text("You are taking part.")).to_have_count(0)
        page.evaluate("new BroadcastChannel('test').postMessage(null)")
        page.get_by_role("button", name="Try again").click()
        no_trouble(page)
        heard(page)


@pytest.mark.slow
def test_troubles_are_accessible_in_both_languages(chromium: Browser, usual: Host) -> None:
    refusing = "StorageManager.prototype.getDirectory = () => Promise.reject(new Error());"
    for language in LANGUAGES:
        with opened(chromium, locale=language, bypass_csp=True) as page:  # axe is a script
            in_worker(page, refusing)
            joined(page, usual.link)
            go(page, "heard")
            trouble(page, KEEPS_NOTHING[language])
            check_phone_page(page, f"{language} troubled")


@pytest.mark.slow
def test_a_page_of_http_says_what_it_lacks_and_lets_go(chromium: Browser, usual: Host) -> None:
    address = usual.page.replace("127.0.0.1", FOREIGN)
    fragment = usual.link.partition("#")[2]
    asked = {"en-GB": "Open it over https.", "de-AT": "Öffnen Sie sie über https."}
    for language, said in asked.items():
        with opened(chromium, locale=language, bypass_csp=True) as page:
            page.goto(f"{address}#{fragment}")
            assert page.evaluate("isSecureContext") is False
            trouble(page, said)
            check_phone_page(page, f"{language} insecure")
            page.locator("[data-do=join]").click()
            expect(page.get_by_role("status")).to_contain_text(said)
            assert "link" not in (page.evaluate("localStorage['earshot-page']") or "")
            # One that took part before it said so.
            page.evaluate(f"localStorage['earshot-page'] = '{json.dumps({'link': fragment})}'")
            page.reload()
            everywhere(page, said)
            erased(page)
            expect(page.locator("main[data-screen=gone]")).to_be_visible()
            trouble(page, said)
            assert page.evaluate("Object.keys(localStorage)") == []


@contextlib.contextmanager
def without_site_data(running: Browser, profile: Path, language: str) -> Iterator[BrowserContext]:
    """A browser whose user has blocked the data of all sites."""
    (profile / "Default").mkdir(parents=True)
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (profile / "Default" / "Preferences").write_text(json.dumps(blocked))
    context = running.browser_type.launch_persistent_context(
        profile, executable_path=executable(), args=ARGUMENTS, locale=language
    )
    try:
        yield context
    finally:
        context.close()


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_browser_that_blocks_the_data_of_sites_is_told_so(
    chromium: Browser, usual: Host, tmp_path: Path, language: str
) -> None:
    with without_site_data(chromium, tmp_path / "profile", language) as context:
        page = context.new_page()
        page.goto(usual.link)
        trouble(page, KEEPS_NOTHING[language])
        expect(page.locator("main[data-screen=welcome]")).to_be_visible()
        page.locator("[data-do=join]").click()
        expect(page.get_by_role("status")).to_contain_text(KEEPS_NOTHING[language])
        page.locator("[data-do=again]").click()
        trouble(page, KEEPS_NOTHING[language])


@pytest.mark.slow
def test_a_visit_that_cannot_write_is_tried_again(chromium: Browser, usual: Host) -> None:
    with opened(chromium) as page:
        page.clock.install()
        session = page.context.new_cdp_session(page)
        page.goto(f"{usual.address}/newest.json")
        full = {"origin": usual.address, "quotaSize": 1}
        session.send("Storage.overrideQuotaForOrigin", full)
        joined(page, usual.link)
        trouble(page, KEEPS_NOTHING["en-GB"])
        go(page, "part")
        visit = page.locator("#visit")
        expect(visit).to_contain_text(KEEPS_NOTHING["en-GB"])
        expect(visit).to_contain_text("Next time:")
        session.send("Storage.overrideQuotaForOrigin", {"origin": usual.address})
        with page.expect_request("**/v1/phones"):
            page.clock.fast_forward("00:31")
        expect(visit).to_contain_text("The server could not be reached")
        no_trouble(page)


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_waited_for_no_longer_than_a_minute(
    chromium: Browser, usual: Host
) -> None:
    silent = """
        const test = new BroadcastChannel("test");
        IDBFactory.prototype.open = () => { test.postMessage("asked"); return {}; };
    """
    with opened(chromium, TOLD) as page:
        page.clock.install()
        in_worker(page, silent, workers=1)
        page.goto(usual.link)
        page.locator("[data-do=join]").click()
        await_word(page, "asked")
        expect(page.get_by_role("status")).to_have_text("One moment …")
        page.clock.fast_forward("01:01")
        trouble(page, "A part of this page did not load, or does not work.")
        page.get_by_role("button", name="Try again").click()
        no_trouble(page)
        heard(page)


@pytest.mark.slow
def test_what_one_tab_forgets_another_one_knows(chromium: Browser, usual: Host) -> None:
    with opened(chromium) as page:
        joined(page, usual.link)
        other = page.context.new_page()
        other.goto(f"{usual.page}#heard")
        expect(other.locator("main[data-screen=heard]")).to_be_visible()
        erased(page)
        expect(other.locator("main[data-screen=welcome]")).to_be_visible()
        no_trouble(other)
        joined(page, f"{usual.page}#{usual.link.partition('#')[2]}")
        expect(other.locator("main[data-screen=heard]")).to_be_visible()


# ----------------------------------------------------------------------------------- the microphone

ASKING = """
    const { getUserMedia } = MediaDevices.prototype;
    MediaDevices.prototype.getUserMedia = async function (wanted) {
      await new Promise((allow) => { window.allow = allow; });
      return getUserMedia.call(this, wanted);
    };
"""
"""A browser that asks its user, who may not answer."""


@pytest.mark.slow
def test_all_else_goes_on_while_nobody_has_allowed_the_microphone(
    chromium: Browser, usual: Host
) -> None:
    waits = "Waiting for the microphone."
    with opened(chromium, ASKING) as page:
        joined(page, usual.link)
        page.locator("[data-do=listen]").click()
        expect(page.get_by_role("status")).to_contain_text(waits)
        go(page, "part")
        page.locator("[data-do=part]").click()
        expect(page.get_by_role("status")).to_contain_text("The sitting has begun.")
        page.locator("#small").check()
        expect(page.get_by_role("status")).to_have_text("Small groups are accepted.")
        go(page, "forget")
        with page.expect_download():
            page.locator("[data-do=export]").click()
        go(page, "listen")
        expect(page.locator("#asking")).to_contain_text(waits)
        page.locator("[data-do=listen]").click()
        expect(page.get_by_role("status")).to_contain_text(waits)
        # Answered at last, while its user is somewhere else.
        go(page, "budget")
        page.evaluate("allow()")
        expect(page.get_by_role("status")).to_have_text("Heard. The sound is forgotten.")
        expect(page.locator("main[data-screen=budget]")).to_be_visible()
        go(page, "listen")
        expect(page.locator("#asking")).to_have_count(0)
        expect(page.get_by_role("region")).to_be_visible()
        page.locator("[data-do=listen]").click()
        erased(page, "erase")
        expect(page.locator("main[data-screen=gone]")).to_be_visible()
        assert page.evaluate("Object.keys(localStorage)") == ["earshot-version"]


@pytest.mark.slow
def test_a_sound_that_comes_after_everything_is_forgotten_is_not_kept(
    chromium: Browser, usual: Host
) -> None:
    """Its user allows the microphone while the store, which is empty yet, is being erased."""
    offline = "Object.defineProperty(Navigator.prototype, 'onLine', { get: () => false });"
    slow = """
        const { createSyncAccessHandle } = FileSystemFileHandle.prototype;
        const test = new BroadcastChannel("test");
        let [isSlow, go] = [false, null];
        test.onmessage = ({ data }) => data === "go" ? go() : (isSlow = true);
        FileSystemFileHandle.prototype.createSyncAccessHandle = async function () {
          if (isSlow) {
            isSlow = false;
            test.postMessage("erasing");
            await new Promise((resolve) => { go = resolve; });
          }
          return createSyncAccessHandle.call(this);
        };
    """
    closes = """
        const { close } = AudioContext.prototype;
        AudioContext.prototype.close = async function () {
          await close.call(this);
          setTimeout(() => told("heard"));
        };
        // The page goes on slowly, so that the phone would have the time to keep the sound.
        ServiceWorkerContainer.prototype.getRegistrations = () =>
          new Promise((resolve) => setTimeout(resolve, 1000, []));
    """
    with opened(chromium, ASKING + TOLD + closes + offline) as page:
        in_worker(page, slow)
        joined(page, usual.link)
        expect(page.locator("body[data-event=trouble]")).to_be_attached()
        page.locator("[data-do=listen]").click()
        page.evaluate("test.postMessage('slow')")
        erased(page)
        await_word(page, "erasing")
        page.evaluate("allow()")
        await_word(page, "heard")
        page.evaluate("test.postMessage('go')")
        expect(page.locator("main[data-screen=gone]")).to_be_visible()
        joined(page, f"{usual.page}#{usual.link.partition('#')[2]}")
        expect(page.locator("body[data-recordings='0']")).to_be_attached()


# ---------------------------------------------------------------------------- scripts and addresses


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "status", "said"),
    [
        ("worker.js", None, "A part of this page did not load, or does not work."),
        ("contrast-3.tflite", None, "A part of this page did not load, or does not work."),
        ("contrast-3.tflite", 503, "The file that turns sound into numbers did not arrive intact."),
    ],
)
def test_what_did_not_load_is_asked_for_again(
    chromium: Browser, usual: Host, file: str, status: int | None, said: str
) -> None:
    with opened(chromium) as page:
        failed = once(page, f"**/{file}", status)
        joined(page, usual.link)
        trouble(page, said)
        assert len(failed) == 1
        page.get_by_role("button", name="Try again").click()
        no_trouble(page)
        heard(page)


@pytest.mark.slow
def test_what_goes_wrong_for_one_screen_is_said_there_and_a_broken_worker_is_replaced(
    chromium: Browser, usual: Host
) -> None:
    """In some browsers, a script that a worker did not get once is missing in it for ever."""
    failing = """
        let isSilent = false;
        const test = new BroadcastChannel("test");
        test.onmessage = () => {
          isSilent = true;
          test.postMessage("silent");
        };
        addEventListener("message", (event) => {
          const { number, name } = event.data;
          if (name === "ledger" && isSilent) {
            isSilent = false;
            return event.stopImmediatePropagation();
          }
          const error = { standing: "LostLedgerError", hear: null }[name];
          if (error === undefined) return;
          event.stopImmediatePropagation();
          postMessage({ number, error: { name: error, message: "planted" } });
        });
    """
    with opened(chromium, TOLD) as page:
        in_worker(page, failing, workers=1)
        joined(page, usual.link)
        go(page, "budget")
        trouble(page, "This phone’s ledger is damaged")
        # A screen that is not drawn yet when all is tried again is still the one that comes.
        page.evaluate("test.postMessage('hush')")
        await_word(page, "silent")
        page.evaluate("location.hash = 'left'")
        # A visit that ends just now has tried it again, and no button is left.
        page.evaluate("document.querySelector('[data-do=again]')?.click()")
        expect(page.locator("main[data-screen=left]")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        no_trouble(page)
        go(page, "listen")
        page.locator("[data-do=listen]").click()
        expect(page.get_by_role("status")).to_contain_text("A part of this page did not load")
        heard(page)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["launch.js", "main.js", "texts/en.json"])
def test_a_page_whose_beginning_did_not_load_says_what_to_do(
    chromium: Browser, usual: Host, file: str
) -> None:
    with opened(chromium) as page:
        failed = once(page, f"**/page/{file}")
        page.goto(usual.link)
        expect(page.get_by_text("If this message stays, reload the page.")).to_be_visible()
        expect(page.get_by_text("laden Sie die Seite neu")).to_be_visible()
        assert len(failed) == 1
        page.reload()
        expect(page.locator("[data-do=join]")).to_be_visible()


@pytest.mark.slow
def test_a_page_without_scripts_says_what_it_needs(chromium: Browser, usual: Host) -> None:
    with opened(chromium, java_script_enabled=False) as page:
        for address in (usual.link, usual.page):
            page.goto(address)
            expect(page.get_by_text("It needs JavaScript.")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("moves", [False, True])
def test_any_host_of_files_will_do_and_the_page_opens_without_it(
    chromium: Browser, moves: bool
) -> None:
    with host(moves=moves) as running, opened(chromium) as page:
        joined(page, running.link)
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.context.set_offline(True)
        for address in (running.page, running.page.removesuffix("index.html")):
            page.goto(address)
            expect(page.locator("main[data-screen=listen]")).to_be_visible()
        heard(page)


@pytest.mark.slow
def test_a_file_that_its_host_lacks_is_not_kept_and_the_page_works_without(
    chromium: Browser,
) -> None:
    def lack(version: str, files: dict[str, bytes]) -> None:
        del files[f"{version}/page/texts/de.json"]

    with host(lack) as running, opened(chromium) as page:
        joined(page, running.link)
        heard(page)
        page.evaluate(
            """async () => {
              const at = await navigator.serviceWorker.getRegistration();
              const { installing } = at ?? {};
              while (installing && installing.state !== "redundant")
                await new Promise((change) => installing.addEventListener("statechange", change));
            }"""
        )
        assert page.evaluate("caches.keys()") == []


@pytest.mark.slow
def test_files_that_cannot_be_read_back_come_from_the_host(chromium: Browser) -> None:
    def fail(version: str, files: dict[str, bytes]) -> None:
        name = f"{version}/page/service.js"
        files[name] = b"CacheStorage.prototype.match = async () => { throw 1; };" + files[name]

    with host(fail) as running, opened(chromium) as page:
        joined(page, running.link)
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.reload()
        assert page.evaluate("navigator.serviceWorker.controller !== null")
        expect(page.locator("main[data-screen=listen]")).to_be_visible()
        heard(page)


@pytest.mark.slow
def test_small_mistakes_of_links_and_scripts_are_said_and_change_no_screen(
    chromium: Browser, usual: Host
) -> None:
    with opened(chromium) as page:
        for broken in ("arshot1.AAAA", "%20earshot1.AAAA"):
            page.goto("about:blank")
            page.goto(f"{usual.page}#{broken}")
            expect(page.get_by_text("This is not an invitation")).to_be_visible()
        joined(page, f"{usual.page}#{usual.link.partition('#')[2]}")
        # It stays, though the screen is a new one.
        expect(page.get_by_role("status")).to_contain_text("You are taking part.")
        go(page, "budget")
        page.keyboard.press("Tab")
        page.locator(".skip").press("Enter")
        expect(page.locator("main")).to_be_focused()
        assert page.evaluate("location.hash") == "#budget"
        expect(page.locator("main[data-screen=budget]")).to_be_visible()
        page.evaluate("void Promise.reject(new Error('unforeseen'))")
        expect(page.get_by_role("status")).to_contain_text("unforeseen")
        page.evaluate("setTimeout(() => { throw new Error('thrown'); })")
        expect(page.get_by_role("status")).to_contain_text("thrown")
