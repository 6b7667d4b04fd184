"""`deploy/install.sh`: what it refuses, and an installation in earnest, for a user and as root."""

from __future__ import annotations

import contextlib
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support.closure import distributions
from support.documented import blocks, section
from support.networked import await_, own_port
from support.raw_server import listening

from earshot_client.store.memory import MemoryStore
from earshot_client.transport.enrolment import enrol, signing_key
from earshot_client.transport.http import HttpTransport

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SCRIPT = DEPLOY / "install.sh"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""All of the environment that gets through: nothing of the tests' own."""
PATIENCE = 900


def shell(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own script
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        cwd="/",
        env={"PATH": PATH, **environment},
    )


# ------------------------------------------------------------------------------------ the files


def pins(lock: Path) -> dict[str, str]:
    return dict(
        re.findall(
            r"^([a-z0-9-]+)(?:\[[a-z,-]+\])?==([^ ]+)", lock.read_text("utf-8"), flags=re.MULTILINE
        )
    )


def test_the_servers_lock_is_a_part_of_the_whole_lock_without_training() -> None:
    part, whole = pins(DEPLOY / "requirements.lock"), pins(ROOT / "requirements.lock")
    assert part.items() <= whole.items()
    wanted = {re.sub(r"[-_.]+", "-", name).lower() for name in distributions("server")}
    assert wanted | {"hatchling"} <= part.keys()
    assert part.keys().isdisjoint({"tensorflow", "keras", "matplotlib", "soundfile", "pytest"})


def test_every_image_is_pinned_by_its_digest() -> None:
    """A tag is whatever its registry says today."""
    bases = [
        line.split()[1]
        for path in DEPLOY.glob("Containerfile*")
        for line in path.read_text("utf-8").splitlines()
        if line.upper().startswith("FROM ")
    ]
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    images = [service["image"] for service in services.values() if "image" in service]
    assert (len(bases), len(images)) == (2, 1)
    for image in (*bases, *images):
        assert re.fullmatch(r"docker\.io/[a-z/]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}", image), image
    assert len(set(bases)) == 1
    for service in services.values():
        assert "image" in service or "build" in service


def test_the_container_is_made_by_the_script_alone() -> None:
    lines = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if line and line[0] not in "# "]
    names = [name for name, _ in instructions]
    assert names.count("RUN") == 1
    assert not {"COPY", "ADD"} & set(names)
    of = dict(instructions)
    (command,) = re.findall(r"/source/(deploy/install\.sh .*)", of["RUN"])
    prefix, data = re.findall(r"--(?:prefix|data) (\S+)", command)
    assert (ROOT / command.split()[0]) == SCRIPT
    assert of["ENTRYPOINT"] == f'["{prefix}/bin/earshot"]'
    assert f'"--data", "{data}"' in of["CMD"]
    assert '"--host", "0.0.0.0", "--proxies", "1"' in of["CMD"]
    assert of["VOLUME"] == data
    # Whom the script makes unless it is told otherwise, so that no process is root.
    assert f"account={of['USER']}\n" in SCRIPT.read_text("utf-8")


def test_compose_runs_that_container_beside_a_database() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    server, database = composed["services"]["server"], composed["services"]["database"]
    build = server["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == DEPLOY / "Containerfile"
    user = database["environment"]["POSTGRES_USER"]
    assert server["environment"]["EARSHOT_DATABASE"] == (
        f"postgresql://{user}:${{EARSHOT_DATABASE_PASSWORD}}@database/"
        f"{database['environment']['POSTGRES_DB']}"
    )
    for process in ("WEB", "DRIVER"):
        role = f"{user}_{process.lower()}"
        assert server["environment"][f"EARSHOT_{process}_DATABASE"] == (
            f"postgresql://{role}:${{EARSHOT_{process}_PASSWORD:?set it as well}}@database/"
            f"{database['environment']['POSTGRES_DB']}"
        )
    # No password of ours, and nothing that another machine reaches without a proxy.
    assert database["environment"]["POSTGRES_PASSWORD"].startswith("${EARSHOT_DATABASE_PASSWORD:?")
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert "ports" not in database
    mounted = {mount.split(":")[0] for each in (server, database) for mount in each["volumes"]}
    assert mounted == composed["volumes"].keys()


def test_a_helper_s_unit_is_as_tight_as_the_server_s() -> None:
    server = (DEPLOY / "earshot.service").read_text("utf-8").replace("#system ", "").splitlines()
    helper = (DEPLOY / "earshot-helper.service").read_text("utf-8").splitlines()
    (started,) = [line for line in helper if line.startswith("ExecStart=")]
    words = shlex.split(started.partition("=")[2])
    data = words[words.index("--data") + 1]
    assert words[:3] == ["/opt/earshot/bin/earshot", "helper", "serve"]
    assert words[-2:] == ["--proxies", "1"]
    page = (ROOT / "docs" / "two-operators.md").read_text("utf-8")
    assert f"deploy/install.sh --no-service --data {data}" in page
    filled = {"@DATA@": data, "@USER@": "earshot", "@TARGET@": "multi-user.target"}
    own = ("Description", "Documentation", "After", "ExecStart", "EnvironmentFile", "#")

    def settings(lines: list[str]) -> list[str]:
        kept = [line for line in lines if line and not line.startswith(own)]
        for name, value in filled.items():
            kept = [line.replace(name, value) for line in kept]
        return kept

    assert settings(helper) == settings(server)


def test_a_helper_runs_in_the_same_container_beside_no_database() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.helper.yaml").read_text("utf-8"))
    leaders = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["server"]
    ((name, helper),) = composed["services"].items()
    assert name == "helper"  # so that both files together run both parties
    assert helper["build"] == leaders["build"]
    command = helper["command"]
    assert command[:2] == ["helper", "serve"]
    port = command[command.index("--port") + 1]
    assert helper["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"'http://127.0.0.1:{port}'" in helper["healthcheck"]["test"][-1]
    (mounted,) = helper["volumes"]
    volume, folder = mounted.split(":")
    assert Path(folder) in Path(command[command.index("--data") + 1]).parents
    assert composed["volumes"].keys() == {volume}
    assert "environment" not in helper
    for name in ("read_only", "tmpfs", "cap_drop", "security_opt", "stop_grace_period", "restart"):
        assert helper[name] == leaders[name], name
    assert leaders["environment"]["EARSHOT_HELPER"] == "${EARSHOT_HELPER:-}"
    assert leaders["environment"]["EARSHOT_HELPER_KEY"] == "${EARSHOT_HELPER_KEY:-}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--frob"], "unknown option --frob"),
        (["--prefix"], "--prefix needs a value"),
        (["--data", "/x y"], "choose a path of letters"),
        (["--python", "/bin/false"], "/bin/false is not a Python 3.11 or later"),
    ],
)
def test_what_cannot_be_installed_is_said_before_anything_is_written(
    words: list[str], said: str, tmp_path: Path
) -> None:
    as_root = ["--user", "nobody"] if os.geteuid() == 0 else []
    places = [f"--{name}={tmp_path / name}".split("=") for name in ("prefix", "data", "units")]
    done = shell(str(SCRIPT), *as_root, *(w for p in places for w in p), *words)
    assert done.returncode == 1
    assert done.stderr.startswith("install.sh: ")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------- is the server ready?


HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
UNHEALTHY = HEALTHY.replace(b"200 OK", b"503 Service Unavailable")


def checks() -> dict[str, list[str]]:
    """What asks a container whether it is healthy, by the file that says so."""
    container = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    (check,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", container, re.MULTILINE)
    composed = yaml.safe_load((DEPLOY / "compose.helper.yaml").read_text("utf-8"))
    asked, *words = composed["services"]["helper"]["healthcheck"]["test"]
    assert asked == "CMD"
    return {"Containerfile": json.loads(check), "compose.helper.yaml": words}


@pytest.mark.parametrize("file", checks())
def test_a_container_is_asked_itself_and_no_proxy(file: str) -> None:
    python, option, code = checks()[file]
    assert python == "/opt/earshot/venv/bin/python"
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)'", code)

    def status(answers: bytes) -> int:
        with listening(answers) as (there, _), listening(HEALTHY) as (proxy, overheard):
            run = shell(
                *(sys.executable, option, code.replace(port, str(there))),
                http_proxy=f"http://127.0.0.1:{proxy}",
                all_proxy=f"http://127.0.0.1:{proxy}",
            )
        assert overheard == []
        return run.returncode

    assert (status(HEALTHY), status(UNHEALTHY)) == (0, 1)


def test_an_installation_asks_the_server_that_it_started_and_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = runpy.run_path(str(DEPLOY / "attempt.py"))
    with listening(HEALTHY) as (port, heard), listening(HEALTHY) as (proxy, overheard):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy}")
        with running(f"print('serving at http://127.0.0.1:{port}'); input()") as server:
            attempt["await_ready"](server)
        assert (len(heard), overheard) == (1, [])
    with (
        listening(UNHEALTHY) as (port, _),
        running(f"print('serving at http://127.0.0.1:{port}')") as server,
    ):
        server.wait()
        with pytest.raises(SystemExit, match=r"does not become ready: {}$"):
            attempt["await_ready"](server)


@contextlib.contextmanager
def running(code: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        yield server


# ------------------------------------------------------------------------ an upgrade that fails


PYTHON = """#!/bin/sh
# As pip, it changes the version, unless it is to fail; as the new server, it starts or does not.
here=$(dirname "$0")
case "$*" in
    "-m pip"*) echo new > "$here/../version"; [ "$FAILS" != pip ] ;;
    "- "*) cat > /dev/null; [ "$FAILS" != attempt ] ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$LOG"
[ "$*" != "--user start earshot.service" ] || [ "$FAILS" != start ]
"""


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("fails", ["pip", "attempt", "start", "nothing"])
def test_an_upgrade_that_fails_leaves_what_was_there_and_running(
    fails: str, open_folder: Path
) -> None:
    """By programs that only say what they are asked to: nothing is installed here."""
    home = open_folder / f"upgraded-{fails}"
    prefix, log = home / ".local/share/earshot", home / "systemctl.log"
    script(prefix / "venv/bin/python", PYTHON)
    script(prefix / "venv/bin/earshot", "#!/bin/sh\necho 1.0\n")
    script(home / "bin/systemctl", SYSTEMCTL)
    (prefix / "venv/version").write_text("old\n")
    (home / "a.whl").touch()
    user: list[str] = []
    if os.geteuid() == 0:  # root's units are the machine's own
        shutil.copytree(DEPLOY, home / "deploy")
        subprocess.run(["chown", "-R", "65534:65534", str(home)], check=True)  # noqa: S603, S607
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    done = shell(
        *user,
        *(str((home if user else ROOT) / "deploy/install.sh"), "--wheel", str(home / "a.whl")),
        HOME=str(home), LOG=str(log), FAILS=fails, PATH=f"{home / 'bin'}:{PATH}",
    )  # fmt: skip
    asked = [line.removeprefix("--user ") for line in log.read_text().splitlines()]
    start = "start earshot.service"
    assert asked[:2] == ["is-active --quiet earshot.service", "stop earshot.service"]
    assert {path.name for path in prefix.iterdir()} >= {"venv", "bin"}
    assert not (prefix / "venv.before").exists()
    version = (prefix / "venv/version").read_text()
    if fails in ("pip", "attempt"):
        assert done.returncode != 0
        assert (version, asked[-1]) == ("old\n", start)
        assert "the former programs were restored\nthe service was started again\n" in done.stderr
        assert not (home / ".config/systemd/user/earshot.service").exists()
    else:
        assert (version, start in asked) == ("new\n", True)
        assert (done.returncode == 0) == (fails == "nothing")
        assert ("the service is stopped, and does not start" in done.stderr) == (fails == "start")


# ---------------------------------------------------------------------------------- in earnest


@dataclass
class Machine:
    """An empty folder that everybody may enter, and somebody who installs into it."""

    folder: Path
    source: Path
    wheels: Path
    installer: list[str]
    """What makes a command run as the one who installs."""
    account: str | None
    """Who runs the server, if that is somebody else."""

    def __post_init__(self) -> None:
        self.prefix, self.data = self.folder / "prefix", self.folder / "state" / "data"
        self.unit = self.folder / "units" / "earshot.service"

    def install(self, *options: str) -> str:
        done = shell(
            *self.installer,
            str(self.source / "deploy/install.sh"),
            *("--prefix", str(self.prefix), "--data", str(self.data)),
            *("--units", str(self.unit.parent)),
            *(("--user", self.account) if self.account else ()),
            *options,
            HOME=str(self.folder),
            PIP_NO_INDEX="1",
            PIP_FIND_LINKS=str(self.wheels),
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def as_service(self, *command: str) -> list[str]:
        if self.account is not None:
            become = (f"--reuid={self.account}", f"--regid={self.account}", "--init-groups")
            return ["setpriv", *become, "--", *command]
        return [*self.installer, *command]

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """The server as its unit starts it, at a free port; its address."""
        port = own_port()
        unit = self.unit.read_text("utf-8")
        (started,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        words = started.replace("$EARSHOT_OPTIONS", f"--port {port} --workers 1").split()
        address = f"http://127.0.0.1:{port}"
        with (self.folder / "log").open("a") as log:
            process = subprocess.Popen(  # noqa: S603 - as the unit says
                self.as_service(*words), stdout=log, stderr=log, cwd="/", env={"PATH": PATH}
            )
        try:
            await_(lambda: answers(f"{address}/health/ready"), "the server", PATIENCE)
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(PATIENCE)
        assert status == 0, (self.folder / "log").read_text()[-3000:]

    def earshot(self, *words: str) -> str:
        done = shell(*self.as_service(str(self.prefix / "bin" / "earshot"), *words))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - our own server
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """Everybody may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="earshot-install-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def source(open_folder: Path) -> Path:
    """The tracked files, as somebody who has cloned them has them."""
    target = open_folder / "source"
    listed = subprocess.run(  # noqa: S603
        ["git", "-C", str(ROOT), "ls-files", "-z"],  # noqa: S607
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


@pytest.fixture(scope="module")
def wheels(open_folder: Path) -> Path:
    """All that the server needs, fetched once; afterwards no index is asked."""
    folder = open_folder / "wheels"
    subprocess.run(  # noqa: S603
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes"),
            *("-r", str(DEPLOY / "requirements.lock"), "--dest", str(folder)),
        ],
        check=True,
        timeout=PATIENCE,
    )
    return folder


def installers() -> list[str]:
    """A user, and as root both: whoever is not root can only install for himself."""
    return ["user", "root"] if os.geteuid() == 0 else ["user"]


@pytest.fixture(params=installers())
def machine(
    request: pytest.FixtureRequest, open_folder: Path, source: Path, wheels: Path
) -> Iterator[Machine]:
    folder = open_folder / request.param
    folder.mkdir(mode=0o755)
    if os.geteuid() != 0:
        yield Machine(folder, source, wheels, [], None)
    elif request.param == "user":
        os.chown(folder, 65534, 65534)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        yield Machine(folder, source, wheels, nobody, None)
    else:
        account = f"earshot-test-{os.getpid()}"
        yield Machine(folder, source, wheels, [], account)
        remove(account)


def remove(account: str) -> None:
    """What the server started ends soon after it; until then its account is in use."""
    until = time.monotonic() + PATIENCE
    while (done := shell("userdel", account)).returncode and time.monotonic() < until:
        time.sleep(0.2)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_it_installs_into_an_empty_folder_serves_and_is_upgraded(machine: Machine) -> None:
    said = machine.install()
    assert str(machine.prefix / "bin" / "earshot") in said
    assert "sign in at http://127.0.0.1:8000 with the token in " in said
    assert (
        not machine.data.exists() or list(machine.data.iterdir()) == []
    )  # of the attempt, nothing
    check_unit(machine)
    store = MemoryStore()
    with machine.running() as address:
        place = ("--server", address, "--data", str(machine.data))
        code = machine.earshot("invite", *place)
        with contextlib.closing(HttpTransport(address, signing_key(store))) as transport:
            enrol(store, transport, code)
        phase = machine.earshot("phase", "start", "--phones", "100", *place)
    token = machine.data / "operator.token"
    owner = machine.data.stat().st_uid
    assert (owner == 0) == (os.geteuid() == 0 and machine.installer == [] and not machine.account)
    assert (machine.data.stat().st_mode & 0o777, token.stat().st_mode & 0o777) == (0o700, 0o600)
    assert token.stat().st_uid == owner
    assert (machine.prefix / "environment").stat().st_mode & 0o077 == 0

    before = token.read_text()
    with (machine.prefix / "environment").open("a") as settings:
        settings.write("# ours\n")
    assert f"sign in at {address} with the token in {token}\n" in machine.install()
    assert token.read_text() == before
    assert "# ours" in (machine.prefix / "environment").read_text()
    with machine.running() as address:
        place = ("--server", address, "--data", str(machine.data))
        assert phase in machine.earshot("phase", "list", *place)
        with contextlib.closing(HttpTransport(address, signing_key(store))) as transport:
            enrol(store, transport, None)  # it is known
            assert transport.task() is not None  # a phase gathers


def check_unit(machine: Machine) -> None:
    """Complete, for whom it is, and to systemd's taste where that is here."""
    unit = machine.unit.read_text("utf-8")
    assert re.findall(r"@[A-Z]+@|^#system", unit, re.MULTILINE) == []
    assert ("ProtectSystem=strict" in unit) == (f"User={machine.account}" in unit)
    assert ("ProtectSystem=strict" in unit) == (machine.account is not None)
    if machine.account is not None and shutil.which("systemd-analyze"):
        verified = shell("systemd-analyze", "verify", str(machine.unit))
        assert (verified.returncode, verified.stderr) == (0, "")


# ------------------------------------------------------------- what the pages tell operators to do


def to_install_and_serve() -> list[str]:
    """By the README."""
    readme = (ROOT / "README.md").read_text("utf-8")
    first = blocks(section(readme, "Serving"), "sh")[0]
    return [line.partition(" #")[0].strip() for line in first.splitlines()]


def fifty_phones() -> list[str]:
    """To serve, and to run the phones of two phases, by the page of operations."""
    operations = (ROOT / "docs" / "operations.md").read_text("utf-8")
    return blocks(section(operations, "Fifty phones on one machine"), "sh")


def test_the_pages_install_serve_and_run_phones_by_both_routes() -> None:
    assert to_install_and_serve()[0] == "deploy/install.sh"
    serve, discovery, learning = fifty_phones()
    for line in (to_install_and_serve()[1], serve):
        assert "earshot serve --data" in line
    for phones in (discovery, learning):
        assert "seq 50" in phones
    assert "--discovery local" in learning
    assert "--discovery" not in discovery


@pytest.fixture
def home(open_folder: Path) -> Path:
    """Of somebody who is not root: for root there is another page."""
    home = Path(tempfile.mkdtemp(dir=open_folder))
    if os.geteuid() == 0:
        os.chown(home, 65534, 65534)
    return home


SHELL = ("/bin/bash", "-euc")


def nobody_s_shell() -> tuple[str, ...]:
    """Of whom `home` is."""
    as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
    return (*(as_nobody if os.geteuid() == 0 else ()), *SHELL)


@contextlib.contextmanager
def as_shown(shell: tuple[str, ...], serve: str, home: Path, path: str) -> Iterator[str]:
    """The server of a page, but for the port, which may be taken here; yields its address."""
    port = own_port()
    address = f"http://127.0.0.1:{port}"
    with (home.parent / f"{home.name}.log").open("w") as log:
        server = subprocess.Popen(  # noqa: S603 - the words of our pages
            [*shell, f"exec {serve} --port {port}"],
            cwd=home,
            env={"PATH": path, "HOME": str(home)},
            stdout=log,
            stderr=log,
        )
        try:
            await_(lambda: answers(f"{address}/health/ready"), "the server", PATIENCE)
            yield address
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)


@pytest.mark.slow
def test_what_the_readme_tells_operators_works_as_it_stands(
    home: Path, source: Path, wheels: Path
) -> None:
    install, serve = to_install_and_serve()
    installed = subprocess.run(  # noqa: S603 - the words of our pages
        [*nobody_s_shell(), install],
        cwd=source,
        env={"PATH": PATH, "HOME": str(home), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert installed.returncode == 0, installed.stderr
    with as_shown(nobody_s_shell(), serve, home, PATH):
        pass


@pytest.mark.slow
def test_fifty_phones_do_what_the_page_says_as_it_stands(open_folder: Path) -> None:
    """In two phases, of which the first names nearly every sound."""
    serve, discovery, learning = fifty_phones()
    home = open_folder / "trial"
    home.mkdir()
    path = f"{sys.prefix}/bin:{PATH}"
    with as_shown(SHELL, serve.strip(), home, path) as address:
        told = "\nearshot phase list --data ~/earshot-trial/server --json > ~/phases"
        crowd = subprocess.run(  # noqa: S603 - the words of our pages
            [*SHELL, (discovery + learning).replace("http://127.0.0.1:8000", address) + told],
            cwd=home,
            env={"PATH": path, "HOME": str(home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    assert crowd.returncode == 0, crowd.stderr[-3000:]
    phases = json.loads((home / "phases").read_text())["phases"]
    assert [phase["status"] for phase in phases] == ["published"] * 2, (
        phases, crowd.stdout[-3000:], crowd.stderr[-3000:]
    )  # fmt: skip
    (named,) = set(re.findall(r"^phase over: discovered: (.*)$", crowd.stdout, re.MULTILINE))
    assert len(named.split(", ")) >= 8
