"""`earshot serve`, `phase` and `invite` as an operator uses them."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from support.command import earshot, earshot_apart
from support.networked import PATIENCE, ServerProcess, await_
from support.played_phase import PHONES
from support.unsafe_postgres import UNSAFE

from earshot_protocol.api import TASK, Invite, StartPhase
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_server.operator_client import OperatorClient, read_token
from earshot_server.processes.embedded import EmbeddedPostgres, embedded

PAGES = ("capacitor://localhost", "https://phone.example.org")
"""Origins of pages that hold phones."""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with embedded(tmp_path_factory.mktemp("database"), UNSAFE) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, postgres: EmbeddedPostgres
) -> Iterator[ServerProcess]:
    options = ("--phone-origin", PAGES[0], "--phone-page", PAGES[1] + "/phone")
    with ServerProcess(tmp_path_factory.mktemp("server"), postgres.url, *options) as running:
        yield running


def at(server: ServerProcess) -> tuple[str, ...]:
    return "--server", server.address, "--data", str(server.data)


@pytest.mark.parametrize("origin", [*PAGES, "https://other.example.org"])
def test_pages_that_hold_phones_are_let_in(server: ServerProcess, origin: str) -> None:
    """Also where the application sees nothing of their requests."""
    for method, more, status in (("OPTIONS", {}, 204), ("POST", {}, 415), ("POST", None, 431)):
        fields = {"Origin": origin} | ({f"X-{i}": "a" for i in range(110)} if more is None else {})
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request(method, TASK, headers=fields)
        response = connection.getresponse()
        assert response.status == status
        told = response.headers.get("Access-Control-Allow-Origin")
        assert told == (origin if origin in PAGES else None)
        connection.close()


# ------------------------------------------------------------------------------------- operators


def test_an_operator_starts_watches_and_stops_a_phase(
    server: ServerProcess, tmp_path: Path
) -> None:
    few = ("phase", "start", "--phones", str(PHONES), "--gather-hours", "1", *at(server))
    refused = earshot(*few)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"do not take part: phones={PHONES}; at least 100" in refused.stderr.splitlines()[-1]
    started = earshot(*few, "--anyway")
    assert started.returncode == 0, started.stderr
    phase = started.stdout.strip()
    assert len(bytes.fromhex(phase)) == 16

    listed = earshot("phase", "list", *at(server))
    assert phase in listed.stdout
    assert f"0 of {PHONES} phones" in listed.stdout
    as_json = json.loads(earshot("phase", "list", "--json", *at(server)).stdout)
    assert as_json["phases"][0]["phase"] == phase
    assert as_json["phases"][0]["parameters"]["type"] == "discovery"

    # As the dashboard prints it, and as people copy it.
    for written in (phase, phase[:8], f" {phase[:8]}… ", phase[:6].upper()):
        assert "gathering" in earshot("phase", "show", written, *at(server)).stdout
    stopped = earshot("phase", "stop", phase[:8], *at(server))
    assert (stopped.returncode, stopped.stdout[:18]) == (0, f"stopped: {phase[:9]}")
    again = earshot("phase", "stop", phase, *at(server))
    assert again.returncode == 0
    assert again.stdout == (
        f"phase {phase} had already ended: stopped just now: stopped by an operator\n"
    )
    assert "stopped: stopped by an operator" in earshot("phase", "show", phase, *at(server)).stdout

    out = tmp_path / "phase.json"
    assert earshot("phase", "export", phase, "--out", str(out), *at(server)).returncode == 0
    exported = json.loads(out.read_text())
    assert exported["phase"]["status"] == "stopped"
    assert exported["ending"]["type"] == "failed"


def test_a_data_folder_remembers_its_server(server: ServerProcess, tmp_path: Path) -> None:
    assert earshot("phase", "list", "--data", server.data).returncode == 0
    shutil.copy(server.data / "address.json", tmp_path)
    again = earshot_apart("serve", "--data", str(tmp_path))
    assert again.returncode == 2
    assert f"cannot listen at 127.0.0.1:{server.port}" in again.stderr


def test_a_second_server_on_a_data_folder_is_refused_before_it_touches_anything(
    server: ServerProcess, postgres: EmbeddedPostgres
) -> None:
    def contents() -> dict[Path, tuple[int, bytes]]:
        files = [each for each in server.data.rglob("*") if each.is_file() and each != server.log]
        return {each: (each.stat().st_mtime_ns, each.read_bytes()) for each in files}

    before = contents()
    for database in (postgres.url, ""):
        again = earshot_apart(
            *("serve", "--data", str(server.data), "--port", "0"), EARSHOT_DATABASE=database
        )
        assert (again.returncode, again.stdout) == (2, "")
        assert f"{server.data} is in use by another server: stop" in again.stderr.splitlines()[-1]
    assert contents() == before
    assert server.is_ready()


def test_no_line_that_informs_is_called_an_error(server: ServerProcess) -> None:
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    informing = [line for line in lines if line["level"] == "INFO"]
    assert any(line["message"].startswith("Listening at") for line in informing)
    assert not any("error" in line["logger"] for line in informing)


def test_digits_with_which_several_phases_begin_are_answered_by_their_names(
    server: ServerProcess,
) -> None:
    start = ("phase", "start", "--phones", "100", "--labels", "bus,park", *at(server))
    first = earshot(*start).stdout.strip()
    client = OperatorClient(server.address, read_token(server.data))
    parameters = client.phase(first).parameters
    while True:
        names = [each.phase for each in client.phases()]
        alike = [name for name in names if name[0] == names[0][0]]
        if len(alike) > 1:
            break
        client.start(StartPhase(parameters=parameters))
    shown = earshot("phase", "show", names[0][0], *at(server))
    assert shown.returncode == 2
    assert all(f"{name} (" in shown.stderr for name in alike)
    for name in names:
        client.stop(name)


@pytest.mark.slow
def test_a_dry_run_says_what_would_come_of_it_and_starts_nothing(server: ServerProcess) -> None:
    before = earshot("phase", "list", *at(server)).stdout
    usual = ("phase", "start", "--phones", "300", "--dry-run", "--verbose")
    with_server, without = earshot(*usual, *at(server)), earshot(*usual, "--data", "/nowhere")
    for done in (with_server, without):
        assert done.returncode == 0, done.stderr
        assert "a default phone accepts this phase" in done.stdout
    assert "phones are enrolled" in with_server.stdout
    *_, verdict = with_server.stdout.splitlines()
    assert verdict == (
        "300 phones can learn up to 10 of 11 labels here; 300 must join, and 0 are enrolled: enrol "
        "more (earshot invite)"
    )
    short = earshot(*usual[:-1], *at(server))
    assert short.stdout.splitlines() == [verdict]
    assert "enrolled phones are not known" in without.stderr
    local = (*usual, "--discovery", "local", "--anyway", "--data", "/nowhere")
    for name in SHIPPED_ENCODERS:
        asked = earshot(*local, "--encoder", name)
        assert asked.returncode == 0, asked.stderr
        refused = f"about embeddings of '{name}'" in asked.stdout
        assert refused == (name != DEFAULT_ENCODER)
    few = ("phase", "start", "--phones", "60", "--dry-run", *at(server))
    doomed = earshot(*few, "--verbose")
    assert doomed.returncode == 1
    assert "a default phone refuses this phase:\n  phones=60" in doomed.stdout
    assert earshot(*few, "--anyway").returncode == 0
    as_json = json.loads(earshot(*few, "--json").stdout)
    assert as_json["phase"] is None
    assert as_json["forecast"]["refusals"][0]["rule"] == "least_phones"
    assert as_json["verdict"].startswith("60 phones can learn")
    assert as_json["enrolled"] == as_json["free"] == 0
    assert earshot("phase", "list", *at(server)).stdout == before


def test_names_and_cohorts_are_given_and_shown(server: ServerProcess) -> None:
    code = earshot("invite", "--cohort", "north", "--uses", "5", *at(server)).stdout.strip()
    assert b"north" in base64.urlsafe_b64decode(code)
    start = ("phase", "start", "--phones", "200", "--cohort", "north", "--name", "Week 12")
    nobody = earshot(*start, *at(server))
    assert nobody.returncode == 2
    assert "cohort north has no phones" in nobody.stderr
    phase = earshot(*start, "--anyway", *at(server)).stdout.strip()
    shown = earshot("phase", "show", phase, *at(server)).stdout
    assert "“Week 12”" in shown
    assert "cohorts: north" in shown
    assert earshot("phase", "cohorts", *at(server)).returncode == 0
    earshot("phase", "stop", phase, *at(server))


def test_a_statistics_phase_is_started_too(server: ServerProcess) -> None:
    started = earshot(
        *("phase", "start", "--statistics", "--phones", "100", "--budget", "histogram=0.4"),
        *("--labels", "bus, park", "--contacts", "9", "--json", *at(server)),
        *("--from", "2026-01-01", "--until", "2026-01-08"),
    )
    assert started.returncode == 0, started.stderr
    phase = json.loads(started.stdout)["phase"]
    shown = json.loads(earshot("phase", "show", phase, "--json", *at(server)).stdout)
    parameters = shown["phase"]["parameters"]
    assert parameters["type"] == "statistics"
    assert (parameters["noise"], parameters["contacts"]) == (pytest.approx(10.7, abs=0.01), 9)
    assert (parameters["since"], parameters["until"]) == ("2026-01-01", "2026-01-08")
    assert parameters["labels"] == ["bus", "park"]
    earshot("phase", "stop", phase, *at(server))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--statistics", "--from", "2026-01-01"), "two dates"),
        (("--statistics", "--from", "2026-01-08", "--until", "2026-01-01"), "before it ends"),
        (("--statistics", "--from", "yesterday", "--until", "2026-01-08"), "'yesterday'"),
        (("--from", "2026-01-01", "--until", "2026-01-08"), "but for --statistics"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(
    server: ServerProcess, words: tuple[str, ...], said: str
) -> None:
    refused = earshot("phase", "start", "--phones", "100", *words, *at(server))
    assert refused.returncode == 2
    assert said in refused.stderr


def test_an_invitation_is_printed(server: ServerProcess) -> None:
    printed = earshot("invite", "--uses", "3", *at(server))
    assert printed.returncode == 0, printed.stderr
    assert len(printed.stdout.split()) == 1
    as_json = json.loads(earshot("invite", "--json", *at(server)).stdout)
    assert as_json["uses"] == 1


KNOWN = ", ".join(SHIPPED_ENCODERS)
LOCAL = ("phase", "start", "--phones", "100", "--discovery", "local")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("phase", "start", "--phones", "2"), "phones=2"),
        (("phase", "start", "--phones", "100", "--dropout", "0.96"), "together"),
        ((*LOCAL, "--budget", "clustring=1"), "clustering"),
        ((*LOCAL, "--budget", "selection=x"), "selection"),
        ((*LOCAL, "--epsilon", "1", "--cells", "9"), "--cells: not for --discovery local"),
        (("phase", "start", "--phones", "100", "--budget", "selection=1"), "--budget: not for"),
        (("phase", "start", "--phones", "100", "--cells", "30"), "it has 10 in 8, 20 in 8, 40 in"),
        (("phase", "start", "--phones", "100", "--epsilon", "nan"), "epsilon=nan: must be a pos"),
        (("phase", "start", "--phones", "100", "--label-share", "1"), "label_share=1.0: must be"),
        (("phase", "start", "--phones", "100", "--encoder", "contrast-1"), "it has none at all"),
        (
            ("phase", "start", "--phones", "9", "--statistics", "--discovery", "local"),
            "one of them",
        ),
        (("phase", "start", "--phones", "100", "--least-phones", "101"), "least_phones=101"),
        (("phase", "start", "--phones", "100", "--encoder", "mine-1"), f"give {KNOWN}, or"),
        ((*LOCAL, "--dimensions", "500"), "dimensions=500: must be at most"),
        (("phase", "show", "0" * 32), "no such phase"),
        (("phase", "show", "../../metrics"), "is not a phase"),
        (("phase", "stop", "0" * 9), "no such phase"),
        (("invite", "--uses", "1", "--days", "-1"), "days"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    server: ServerProcess, arguments: tuple[str, ...], said: str
) -> None:
    done = earshot(*arguments, *at(server))
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_operator_without_the_token_is_told_where_it_is(
    server: ServerProcess, tmp_path: Path
) -> None:
    without = earshot("phase", "list", "--server", server.address, "--data", str(tmp_path))
    assert without.returncode == 2
    assert "operator.token" in without.stderr
    wrong = earshot("phase", "list", *at(server), EARSHOT_OPERATOR_TOKEN="A" * 43)
    assert wrong.returncode == 2
    assert "Operators only" in wrong.stderr
    nobody = earshot("phase", "list", "--server", "http://127.0.0.1:9", "--data", str(server.data))
    assert "does not answer" in nobody.stderr


# -------------------------------------------------------------------------------------- the start


def test_an_address_in_use_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = earshot_apart("serve", "--data", str(tmp_path), "--port", str(port))
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1:{port}" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--port", "99999"), "--port 99999: must be from 0 to 65535"),
        (("--port", "-1"), "from 0 to 65535"),
        (("--log-level", "loud"), "--log-level LOUD: must be one of debug, info"),
        (("--workers", "5000"), "--workers 5000: must be from 1 to 64"),
        (("--workers", "0"), "from 1 to 64"),
        (("--threads", "-3"), "from 1 to 256"),
        (("--workers", "64", "--threads", "256"), "at most 500"),
        (("--pause", "nan"), "from 0.01 to 30"),
        (("--keep-days", "inf"), "from 0 to 36500"),
        (("--proxies", "-1"), "from 0 to 16"),
        (("--requests-per-minute", "0"), "--requests-per-minute 0: must be from 1"),
        (("--address-connections", "0"), "--address-connections 0: must be from 1"),
        (("--host", "0.0.0.0"), "--host '0.0.0.0': other machines would reach the server"),  # noqa: S104
        (("--host", "nowhere.invalid", "--proxies", "1"), "choose another --host"),
        (("--host", "\udcff" * 70, "--proxies", "1"), "choose another --host"),
        (("--data", "/dev/null"), "the data folder /dev/null cannot be written"),
        (("--data", "/proc/earshot"), "the data folder /proc/earshot cannot be written"),
        (("--database", "mysql://x@y/z"), "postgresql://user:password@host"),
        (("--web-database", "postgresql://web@x/y"), "give both together with --database"),
    ],
)
def test_an_option_with_which_nobody_can_serve_is_said_in_one_line(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    given = {"--data": str(tmp_path), "--port": "0"} | dict(zip(options[::2], options[1::2]))  # noqa: B905
    # Where a server began to listen, the end of its process may be what closes the socket.
    listens = options[0] in ("--host", "--data", "--database")
    run = earshot_apart if listens else earshot
    done = run("serve", *(word for option in given.items() for word in option))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_web_and_driver_have_sql_roles_of_their_own_and_know_no_other(
    server: ServerProcess, postgres: EmbeddedPostgres
) -> None:
    assert server.operator().phases() is not None
    with psycopg.connect(postgres.url) as connection:
        users = connection.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity"
            " WHERE application_name = 'earshot' AND pid <> pg_backend_pid()"
        ).fetchall()
    assert set(users) == {("earshot_web",), ("earshot_driver",)}
    supervisor, *others = server.processes()
    assert "EARSHOT_DATABASE" in supervisor.environ()
    assert len(others) >= 4  # driver, arbiter, workers
    for each in others:
        assert not {name for name in each.environ() if name.endswith("_DATABASE")}
    assert "permission denied" not in server.log.read_text()


@pytest.mark.slow
def test_with_one_url_the_server_works_as_before_and_says_what_it_lacks(
    tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE one_url")
    url = postgres.url.replace("/postgres?", "/one_url?")
    everywhere = ("--host", "0.0.0.0", "--proxies", "1")  # noqa: S104 - and an address to open
    with ServerProcess(tmp_path, url, *everywhere, separate=False) as server:
        assert server.operator().phases() == ()
        await_(lambda: "see --web-database" in server.log.read_text(), "what the server lacks")


@pytest.mark.slow
def test_a_second_host_needs_the_credentials_of_the_first(
    tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE hosts")
    url = postgres.url.replace("/postgres?", "/hosts?")
    with ServerProcess(tmp_path / "first", url):
        pass
    second = ("serve", "--data", str(tmp_path / "second"), "--port", "0")
    done = earshot_apart(*second, EARSHOT_DATABASE=url)
    assert done.returncode == 2
    assert "copy operator.token and invitation.key" in done.stderr.splitlines()[-1]
    for name in ("operator.token", "invitation.key"):
        (tmp_path / "second" / name).write_bytes((tmp_path / "first" / name).read_bytes())
    with ServerProcess(tmp_path / "second", url) as server:
        assert server.operator().phases() == ()
    (tmp_path / "first" / "operator.token").unlink()
    with ServerProcess(tmp_path / "first", url, "--renew-credentials") as server:
        assert server.operator().phases() == ()


def test_a_database_that_cannot_be_reached_is_said_without_its_password(tmp_path: Path) -> None:
    url = "postgresql://earshot:secret-word@127.0.0.1:9/earshot"
    done = earshot_apart("serve", "--data", str(tmp_path), "--port", "0", "--database", url)
    assert done.returncode == 2
    assert "database cannot be used" in done.stderr
    assert "secret-word" not in done.stderr


def test_a_newer_schema_is_refused_and_left_alone(
    tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE newer")
    url = postgres.url.replace("/postgres?", "/newer?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE schema_version (version integer PRIMARY KEY, name text NOT NULL,"
            " applied timestamptz DEFAULT now())"
        )
        connection.execute("INSERT INTO schema_version VALUES (999, 'of the future')")
        done = earshot_apart("serve", "--data", str(tmp_path), "--port", "0", EARSHOT_DATABASE=url)
        assert done.returncode == 2
        assert "999" in done.stderr
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        ).fetchall()
    assert tables == [("schema_version",)]


def test_credentials_that_others_may_read_are_refused(
    tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    (tmp_path / "operator.token").write_text("A" * 43)
    (tmp_path / "operator.token").chmod(0o644)
    done = earshot_apart(
        "serve", "--data", str(tmp_path), "--port", "0", EARSHOT_DATABASE=postgres.url
    )
    assert done.returncode == 2
    assert "chmod 600" in done.stderr


# ---------------------------------------------------------------------------------- life and death


@pytest.mark.slow
def test_its_own_database_survives_a_kill_and_stops_in_good_order(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", None, "--threads", "60")
    server.start()
    phase = earshot("phase", "start", "--phones", "100", *at(server)).stdout.strip()
    code = server.operator().invite(Invite()).code
    server.kill()
    server.start()  # adopts the database that was left behind
    try:
        assert server.operator().phase(phase).status == "gathering"
        assert server.operator().invite(Invite()).code != code
        pid = int((server.data / "postgresql" / "postmaster.pid").read_text().split()[0])
        psutil.Process(pid).kill()
        await_(lambda: not psutil.pid_exists(pid) or not _lives(pid), "the end of PostgreSQL")
        await_(server.is_ready, "the database")
        assert server.operator().phase(phase).status == "gathering"
        family = [each.pid for each in server.processes()]
        assert len(family) >= 5  # supervisor, driver, arbiter, two workers
        with psycopg.connect(EmbeddedPostgres(server.data).url) as connection:
            row = connection.execute("SHOW max_connections").fetchone()
        assert row is not None
        assert int(row[0]) > 2 * 60  # what its threads may hold
    finally:
        assert server.stop() == 0
    await_(lambda: not any(map(_lives, family)), "the end of all processes")
    held = [each for each in psutil.process_iter(["cmdline"]) if _of(each, tmp_path)]
    assert held == []
    assert (tmp_path / "data" / "operator.token").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_figures_are_in_no_folder_and_outlast_those_who_count(
    tmp_path: Path, postgres: EmbeddedPostgres
) -> None:
    """Whatever the data folder leads to elsewhere may vanish: requests and figures go on."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE metrics")

    def ask(server: ServerProcess, path: str) -> tuple[int, str]:
        token = (tmp_path / "operator.token").read_text().strip()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        status, text = response.status, response.read().decode()
        connection.close()
        return status, text

    with ServerProcess(tmp_path, postgres.url.replace("/postgres?", "/metrics?")) as server:
        for link in filter(Path.is_symlink, list(tmp_path.rglob("*"))):
            shutil.rmtree(link.resolve())
        before = server.workers()
        for worker in before:
            assert ask(server, "/nothing")[0] == 404
            worker.kill()
        await_(lambda: not any(_lives(each.pid) for each in before), "the end of the workers")
        await_(server.is_ready, "new workers")
        assert ask(server, "/nothing")[0] == 404
        status, text = ask(server, "/metrics")
        assert status == 200
        assert 'endpoint="none",method="none",status="404"} 3.0' in text


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _of(process: psutil.Process, folder: Path) -> bool:
    return any(str(folder) in word for word in process.info["cmdline"] or ())


def test_what_ends_without_being_told_to_is_started_again(server: ServerProcess) -> None:
    assert server.process is not None
    children = psutil.Process(server.process.pid).children()
    roles = {each.pid: each for each in children if each.children() or _is_python(each)}
    assert len(roles) >= 2
    below = [each for role in roles.values() for each in role.children() if _is_python(each)]
    assert below  # the workers of the web server
    for each in roles.values():
        each.send_signal(signal.SIGKILL)
    await_(
        lambda: len(set(map(_pid, _running_children(server))) - set(roles)) >= 2, "new processes"
    )
    await_(lambda: not any(_lives(each.pid) for each in below), "the end of those they had begun")
    await_(server.is_ready, "the server")
    assert server.operator().phases() is not None


def _running_children(server: ServerProcess) -> list[psutil.Process]:
    assert server.process is not None
    return [each for each in psutil.Process(server.process.pid).children() if _is_python(each)]


def _is_python(process: psutil.Process) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _pid(process: psutil.Process) -> int:
    return int(process.pid)


def test_logs_are_json_and_hold_no_secrets(server: ServerProcess) -> None:
    code = server.operator().invite(Invite()).code
    token = (server.data / "operator.token").read_text().strip()
    await_(lambda: '"/v1/invitations"' in server.log.read_text(), "the invitation in the log")
    lines = server.log.read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert code not in server.log.read_text()
    assert token not in server.log.read_text()


POST = b"POST /v1/answer HTTP/1.1\r\nHost: x\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
HOSTILE = (
    b"\r\n\r\n",
    b"GET /\r\n\r\n",
    b"G\x00T / HTTP/1.1\r\nHost: x\r\n\r\n",
    POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    POST + b"Content-Length: 1\r\nContent-Length: 9\r\n\r\n123456789",
    POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
    POST + b"Content-Length: -1\r\n\r\n",
    POST + b"Content-Length: 99999999999999\r\n\r\nx",
    GET + b"X: " + b"a" * 20_000 + b"\r\n\r\n",
    GET + b"X: a\r\n" * 500 + b"\r\n",
    b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : x\r\nAuthorization\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
)
UNKNOWN_CODING, UNKNOWN_VERSION = b"501", b"505"
"""What RFC 9112 and RFC 9110 ask for where a client speaks another HTTP."""


@pytest.mark.parametrize("request_", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_http_is_refused_and_smuggles_nothing(
    server: ServerProcess, request_: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(request_)
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while received := connection.recv(65_536):
            said += received
    statuses = [line.split()[1] for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.")]
    assert len(statuses) <= 1  # what stood behind a request was not taken for another one
    assert all(
        status.startswith(b"4") or status in (UNKNOWN_CODING, UNKNOWN_VERSION)
        for status in statuses
    )
    assert b"Traceback" not in said
    assert b"earshot_requests" not in said
    assert server.is_ready()
