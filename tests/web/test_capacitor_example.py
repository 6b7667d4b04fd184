"""The app in client/web/examples/capacitor, built and opened as far as that can be here.

Its page comes from a loopback address in the place of `https://localhost` (Android) and
`capacitor://localhost` (iOS), and a script stands for the bridge that Capacitor puts into it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from support.dashboard_browser import overheard
from support.fake_microphone import hearing
from support.node import CAPACITOR, PACKAGE, node
from support.web_pages import files_of, hosted

from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, packaged

SERVER = "https://earshot.example.org"
BRIDGE = """
globalThis.Capacitor = { Plugins: { DeviceKey: { get: async () => ({ key: "%s" }) } } };
"""
ALLOWED = {"appId", "appName", "webDir", "loggingBehavior", "server", "android", "ios"}

expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def www(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What its build command writes."""
    folder = tmp_path_factory.mktemp("app") / "www"
    run = subprocess.run(  # noqa: S603 - Node of the wheel
        [node(), CAPACITOR / "build.ts", folder], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return files_of(folder)


@pytest.fixture(scope="module")
def origin(www: dict[str, bytes]) -> Iterator[str]:
    with hosted(www) as address:
        yield address


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with hearing("rain", tmp_path_factory.mktemp("sound")) as chromium:
        yield chromium


@contextlib.contextmanager
def opened(running: Browser) -> Iterator[Page]:
    """A page in a profile of its own."""
    context = running.new_context(permissions=["microphone"])
    try:
        yield context.new_page()
    finally:
        context.close()


def with_key(page: Page, key: bytes) -> None:
    page.add_init_script(BRIDGE % base64.b64encode(key).decode())


def said(page: Page, text: str) -> None:
    expect(page.locator("#said")).to_contain_text(text)


def test_the_folder_has_the_app_the_package_and_the_encoder_and_nothing_else(
    www: dict[str, bytes],
) -> None:
    own = {path for path in www if not path.startswith("/earshot-phone/")}
    names = ("index.html", "app.css", "main.js", "device_key.js", "operators.js")
    assert own == {"/", "/contrast-3.tflite", *(f"/{name}" for name in names)}
    assert www["/contrast-3.tflite"] == packaged(DEFAULT_ENCODER)
    rooms = {path.split("/")[2] for path in www if path.startswith("/earshot-phone/")}
    rooms -= {"index.js", "hearing.js"}
    assert rooms == {"page", "phone", "protocol", "store", "transport", "voting"}
    assert [path for path in www if "/page/" in path] == ["/earshot-phone/page/worklet.js"]
    sources = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("p*/**/*.ts")}
    missing = {
        path
        for path in sources - {path for path in sources if path.startswith("page/")}
        if f"/earshot-phone/{path[:-3]}.js" not in www
    }
    assert missing == set()


def test_every_module_is_there_by_the_name_by_which_it_is_asked(www: dict[str, bytes]) -> None:
    asked = 0
    for path, content in www.items():
        if path.endswith(".js"):
            for name in re.findall(r'\b(?:from |import\()"([^"]+)"', content.decode()):
                assert name.startswith("."), f"{path} asks for {name}"
                parts: list[str] = path.split("/")[:-1]
                for part in name.split("/"):
                    parts = parts[:-1] if part == ".." else [*parts, part] if part != "." else parts
                assert "/".join(parts) in www, f"{path} asks for {name}"
                asked += 1
    assert asked > 100


def test_its_settings_name_no_page_from_elsewhere_and_nothing_that_logs() -> None:
    settings = json.loads((CAPACITOR / "capacitor.config.json").read_text(encoding="utf-8"))
    assert settings.keys() == ALLOWED
    assert settings["webDir"] == "www"
    assert settings["loggingBehavior"] == "none"
    assert settings["server"] == {
        "hostname": "localhost",
        "androidScheme": "https",
        "iosScheme": "capacitor",
    }, "no url, no allowNavigation, no cleartext"
    assert settings["android"]["allowMixedContent"] is False
    for platform in ("android", "ios"):
        assert settings[platform]["webContentsDebuggingEnabled"] is False


def test_every_version_is_pinned() -> None:
    package = json.loads((CAPACITOR / "package.json").read_text(encoding="utf-8"))
    versions = {**package["dependencies"], **package["devDependencies"]}
    assert len(versions) >= 4
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", each) for each in versions.values())
    lock = (CAPACITOR / "package-lock.json").read_text(encoding="utf-8")
    assert "resolved" not in lock, "digests, and no registry"
    locked = json.loads(lock)["packages"]
    for name, version in versions.items():
        assert locked[f"node_modules/{name}"]["version"] == version
        assert locked[f"node_modules/{name}"]["integrity"].startswith("sha512-")


def test_a_phone_opens_hears_and_is_sealed_under_the_key_of_the_device(
    running: Browser, origin: str
) -> None:
    with opened(running) as page:
        complaints, requested = overheard(page)
        with_key(page, bytes(range(32)))
        page.goto(origin)
        said(page, "0 recordings are kept on this phone.")
        page.locator("#listen").click()
        said(page, "Heard. The sound is forgotten")
        page.locator("#choice").select_option("kitchen")
        page.locator("#label").click()
        said(page, "Kept: kitchen.")
        page.reload()
        said(page, "1 recordings are kept on this phone.")
        assert all(each.startswith(origin) for each in requested)
        assert complaints == []
        other = page.context.new_page()
        with_key(other, bytes(32))
        other.goto(origin)
        said(other, "WrongKeyError")


def test_without_its_native_part_it_keeps_nothing(running: Browser, origin: str) -> None:
    with opened(running) as page:
        page.goto(origin)
        said(page, "NoDeviceKeyError")
        assert page.evaluate("indexedDB.databases().then((all) => all.length)") == 0


def test_it_calls_its_server_and_nobody_else(running: Browser, origin: str) -> None:
    asked: list[str] = []

    def away(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    with opened(running) as page:
        complaints, _ = overheard(page)
        with_key(page, bytes(range(32)))
        page.route(lambda url: not url.startswith(origin), away)
        page.goto(origin)
        said(page, "0 recordings")
        page.locator("#code").fill("code")
        page.locator("#join").click()
        said(page, f"{SERVER} cannot be reached")
        assert {*asked} == {f"{SERVER}/v1/phones"}
        complaints.clear()
        asked.clear()
        blocked = page.evaluate(_TRIED, origin)
        assert blocked == dict.fromkeys(blocked, "blocked"), blocked
        assert len(blocked) == 9
        assert asked == []
        assert sum("Content Security Policy" in each for each in complaints) >= 6, complaints


_TRIED = """
async (origin) => {
  const elsewhere = "https://elsewhere.example";
  const other = origin.replace(/\\d+$/, "9");
  const loaded = (name, attributes) => new Promise((done) => {
    const element = Object.assign(document.createElement(name), attributes);
    element.onload = () => done("loaded");
    element.onerror = () => done("blocked");
    document.head.append(element);
  });
  const failed = (work) => Promise.resolve().then(work).then(() => "done", () => "blocked");
  const inline = async () => {
    const script = document.createElement("script");
    script.append("globalThis.ran = true");
    document.head.append(script);
    if (!globalThis.ran) throw new Error("it did not run");
  };
  return {
    fetch: await failed(() => fetch(elsewhere)),
    port: await failed(() => fetch(other)),
    image: await loaded("img", { src: `${elsewhere}/x.png` }),
    style: await loaded("link", { rel: "stylesheet", href: `${elsewhere}/x.css` }),
    module: await failed(() => import(`${elsewhere}/x.js`)),
    inline: await failed(inline),
    markup: await failed(() => (document.body.innerHTML = "<p>")),
    worker: await failed(() => new Worker("main.js")),
    address: await failed(() => (document.createElement("script").src = "main.js")),
  };
}
"""
"""Ways to get at something else: each is blocked, or the page is not what it says."""
