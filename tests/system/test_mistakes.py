"""Fifty mistakes that people make at first: each is answered in words that say what would be right.

A row is a command, words of its answer, and the exit status where it is not 2. The folder in which
the commands run is made once, below the table.
"""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile
from support.api_caller import Server
from support.command import earshot, earshot_apart
from support.played_phase import PARAMETERS
from support.unsafe_postgres import UNSAFE
from werkzeug.serving import make_server

from earshot_client.commands import folder as phone_folder
from earshot_server.operator_client import TOKEN_VARIABLE
from earshot_server.processes.embedded import embedded
from earshot_server.store.database import Database

SMALL = (
    "simulate --phones 24 --recordings 8 --scenes 3 --jobs 1 --corrupted 0 --policy anything "
    "--summation ideal --epsilon 12 --cells 6"
)
SOUND = "simulate --phones 24 --recordings 8 --jobs 1 --policy anything --summation ideal --data"
VOTES = "--epsilon 9 --delta 1e-5 --out labels"
PHONE = "phone --data phone --server"


class Row(NamedTuple):
    """A mistake.

    Attributes:
        command: What stands behind `earshot`; {url} is a server's address and {free} one of nobody.
        words: What the answer must say: what was wrong, and what would be right.
        status: Exit status.
    """

    command: str
    words: Sequence[str]
    status: int = 2


MISTAKES: dict[str, list[Row]] = {
    "newcomer": [
        Row("simulat", ["did you mean simulate?"]),
        Row("--phones 5", ["name a command first", "earshot --help"]),
        Row("simulate --phnoes 10", ["Did you mean --phones?"]),
        Row("simulate stray", ["stray: not expected here", "earshot simulate --help"]),
        Row("compare run", ["B is missing", "earshot compare --help"]),
        Row("simulate --phones many", ["--phones 'many': must be a whole number"]),
        Row("simulate --phones -5", ["phones=-5", "from 3 to"]),
        Row("simulate --phones 24", ["at least 100 is accepted", "--policy anything"]),
        Row("simulate --dropout half", ["--dropout 'half': must be a number"]),
        Row("simulate --discovery thesis", ['Choose from: "secure-sum", "local", "both"']),
        Row("simulate --out run", ["not empty", "Name a new folder, or add --overwrite"]),
        Row("simulate --out notes.txt", ["notes.txt is a file; name a folder"]),
        Row("simulate --out /proc/there", ["nothing can be written there", "name another folder"]),
        Row("simulate --overwrite", ["add --out FOLDER"]),
        Row("simulate --data nowhere", ["no folder nowhere", "FOLDER/CLASS/NAME"]),
        Row("simulate --data notes.txt", ["notes.txt is a file", "FOLDER/CLASS/NAME"]),
        Row("simulate --data empty", ["empty holds no sound", "FOLDER/CLASS/NAME"]),
        Row(
            "simulate --data flat", ["in no class (0.wav)", "put each class in a folder of its own"]
        ),
        Row("simulate --data deep", ["within classes (a/b/0.wav)", "each class in a folder"]),
        Row(f"{SOUND} broken", ["park/0.wav is unreadable", "files of a second or more that play"]),
        Row(f"{SOUND} tiny", ["park/0.wav is too short", "files of a second or more"]),
        Row("simulate --data sound --scenes 5", ["in a folder each class is a scene", "leave it"]),
        Row("simulate --data sound --encoder contrast-2", ["contrast-1, contrast-3"]),
    ],
    "researcher": [
        Row("sweep nowhere.toml --out s", ["no such file; name a sweep file"]),
        Row("sweep notes.txt --out s", ["is not TOML", "line 1", "docs/research.md"]),
        Row("sweep unknown.toml --out s", ["fones", "did you mean phones?"]),
        Row("sweep range.toml --out s", ["phones=-3", "from 3 to"]),
        Row("sweep twice.toml --out s", ["epsilon=[1, 1]: a value occurs twice"]),
        Row("sweep both.toml --out s", ["in [settings] and in [grid]", "leave it out of one"]),
        Row("sweep seeds.toml --out s", ["seeds=[1, 1]", "a list of different ones"]),
        Row("compare run both", ["a run of each route; name one", "both/local"]),
        Row("compare run labelled", ["of a labelling phase", "discovery or learning phase"]),
        Row("compare run edited", ["was edited", "restore the file"]),
        Row("simulate --repeat run --seed 7", ["not with --repeat", "leave it out"]),
        Row("simulate --repeat other-sound", ["is not that of the run", "restore the original"]),
        Row("simulate --local-centroids 3 --discovery secure-sum", ["for --discovery local"]),
        Row(f"{SMALL} --adversary.wrong-shares .1", ["no shares", "--summation real"]),
        Row("simulate --data sound --encoder notes.txt", ["notes.txt: not an encoder file"]),
        Row("simulate --seed -1", ["seed=-1", "from 0 to "]),
        Row("probe --data sound --overwrite", ["add --out FOLDER"]),
        Row("train --data sound --out t --lessons 5", ["--lessons", "add --teacher FILE"]),
        Row("train --out t", ["--data: name a folder of sound", "--synthesized 1"]),
        Row("audit samplrs", ["nothing called 'samplrs'", "samplers"]),
    ],
    "operator": [
        Row("phase list --server {free}", ["does not answer", "earshot serve"]),
        Row("phase list --server 127.0.0.1:8000", ["not the URL of a server", "http://127.0.0.1"]),
        Row("phase list --server http://earshot.example:8000", ["others on the network", "https"]),
        Row("phase show ffff --server {url}", ["none begins with ffff"]),
        Row("phase show mine --server {url}", ["hexadecimal digits", "phase list"]),
        Row("phase start --server {url}", ["--phones is missing"]),
        Row("phase start --phones 2 --dry-run", ["phones=2", "from 3 to"]),
        Row("phase start --phones 900 --labels a,a --dry-run", ["every label is named once"]),
        Row("phase start --phones 900 --labels a --hierarchy b --dry-run", ["give one of them"]),
        Row("phase start --phones 900 --statistics --cells 9", ["but for --discovery secure-sum"]),
        Row("phase start --phones 900 --statistics --from soon", ["a day, such as 2026-03-31"]),
        Row("phase start --phones 900 --encoder notes.txt", ["'notes.txt': not an encoder file"]),
        Row("phase start --phones 900 --samples notes.txt", ["write one with numpy.save"]),
        Row("budget --phones 900 --discovery local --cells 9", ["but for --discovery secure-sum"]),
        Row("campaign plan notes.txt", ["notes.txt: is not TOML", "docs/campaigns.md"]),
        Row("invite --uses 0 --server {url}", ["Must be >= 1"]),
        Row("operator add Olga --server {url}", ["1 to 32 lower-case letters"]),
        Row("serve --port 99999", ["--port 99999: must be from 0 to 65535"]),
        Row("serve --host 0.0.0.0", ["listen at 127.0.0.1, or give --proxies 1"]),
    ],
    "app maker": [
        Row("phone --data phone", ["--server: give the server's URL"]),
        Row(f"{PHONE} http://earshot.example", ["use https"]),
        Row(f"{PHONE} {{url}} --once", ["not enrolled yet: it needs an invitation code"]),
        Row(f"{PHONE} {{url}} --once --invitation made-up", ["invitation"]),
        Row(f"{PHONE} {{url}} --hear flat --microphone", ["give one of them"]),
        Row(f"{PHONE} {{url}} --once --until-result", ["give one of them"]),
        Row(f"{PHONE} {{url}} --leave --hear flat", ["--leave runs alone: leave out --hear"]),
        Row(f"{PHONE} {{url}} --ask", ["--ask: only for new recordings", "add --hear FOLDER"]),
        Row(f"{PHONE} {{url}} --hear empty", ["empty holds no sound; give FOLDER/NAME"]),
        Row(f"{PHONE} {{url}} --hear broken/park", ["0.wav does not decode", "record again"]),
        Row(f"{PHONE} {{url}} --hear tiny", ["as long as a second", "record for a second"]),
        Row(f"{PHONE} {{url}} --limit 50", ["--limit '50'", "--limit.NAME VALUE"]),
        Row("ledger --data nowhere", ["no phone lives there", "name the --data of"]),
        Row("ledger --data damaged", ["damaged", "--recover"]),
        Row("ledger --data heard --export notes.txt", ["File exists", "name another"]),
    ],
    "holder of votes": [
        Row(f"pate label gnmax none.npy --sigma 9 {VOTES}", ["no such file; name a .npy file"]),
        Row(f"pate label gnmax notes.txt --sigma 9 {VOTES}", ["write one with numpy.save"]),
        Row(f"pate label gnmax text.npy --sigma 9 {VOTES}", ["must be numbers"]),
        Row(f"pate label gnmax line.npy --sigma 9 {VOTES}", ["must be counts (queries × classes)"]),
        Row(f"pate label gnmax nan.npy --sigma 9 {VOTES}", ["must be finite whole numbers"]),
        Row(f"pate label gnmax below.npy --sigma 9 {VOTES}", ["must not be negative", "--classes"]),
        Row(f"pate label powerset votes.npy --sigma 9 {VOTES}", ["add --teachers"]),
        Row(f"pate label gnmax votes.npy --sigma -1 {VOTES}", ["sigma=-1.0: must be a number"]),
        Row(f"pate label gnmax votes.npy --sigma 9 --threshold 3 {VOTES}", ["Unknown option"]),
        Row(f"pate label gnmax votes.npy --sigma 9 --most 0 {VOTES}", ["most=0", "at least 1"]),
        Row(f"pate label gnmax votes.npy --sigma 9 --dropout .3 {VOTES}", ["--tally federated"]),
        Row(f"pate label gnmax votes.npy --sigma .5 {VOTES}", ["no room for", "the noise larger"]),
        Row(f"pate label gnmax votes.npy --sigma .4 {VOTES}", ["no room for", "the noise larger"]),
    ],
}
"""Mistakes by who makes them."""

ELSEWHERE = [
    Row("serve --port {busy} --data new", ["Address already in use", "another --host or --port"]),
    Row("serve --port 0 --data notes.txt", ["cannot be written", "choose another --data"]),
    Row("serve --port 0 --data older", ["is of PostgreSQL 9; available are", "pg_dump"]),
]
"""Mistakes of operators whose command changes the process that it runs in."""


def _sound(folder: Path, *names: str, seconds: float = 2.0) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, int(16_000 * seconds))
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, noise, 16_000)


def _votes(folder: Path) -> None:
    counts = np.random.default_rng(1).multinomial(50, [0.5, 0.3, 0.2], size=10)
    spoilt = counts.astype(float)
    spoilt[2, 1] = np.nan
    for name, array in {
        "votes": counts,
        "below": counts - 30,
        "nan": spoilt,
        "line": counts[:, 0],
        "text": counts.astype(str),
    }.items():
        np.save(folder / f"{name}.npy", array)


def _sweeps(folder: Path) -> None:
    for name, seeds, settings, grid in (
        ("unknown", "[1]", "fones = 3", "epsilon = [1, 2]"),
        ("range", "[1]", "phones = -3", "epsilon = [1, 2]"),
        ("twice", "[1]", "phones = 240", "epsilon = [1, 1]"),
        ("both", "[1]", "epsilon = 1", "epsilon = [1, 2]"),
        ("seeds", "[1, 1]", "phones = 240", "epsilon = [1, 2]"),
    ):
        text = f"seeds = {seeds}\n[settings]\n{settings}\n[grid]\n{grid}\n"
        (folder / f"{name}.toml").write_text(text)


def _runs(folder: Path) -> None:
    def run(words: str) -> None:
        done = earshot(*shlex.split(words), XDG_CACHE_HOME=str(folder / "cache"))
        assert done.returncode == 0, done.stderr

    run(f"{SMALL} --out {folder / 'run'}")
    for copy in ("edited", "both/local", "both/secure-sum"):
        shutil.copytree(folder / "run", folder / copy)
    kept = folder / "edited" / "result.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"ari_test": -0.25}))
    common = "--phones 24 --scenes 3 --jobs 1 --corrupted 0 --policy anything --summation ideal"
    run(f"simulate labelling {common} --samples 3 --epsilon 20 --out {folder / 'labelled'}")
    run(f"{SOUND} {folder / 'sound'} --out {folder / 'other-sound'}")
    _sound(folder / "sound", "park/9.wav")


def _phones(folder: Path) -> None:
    for name in ("heard", "damaged"):
        phone_folder.opened(folder / name).close()
    (folder / "damaged" / "phone.db").write_bytes(b"x" * 9000)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the commands run."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("not what was wanted\n")
    (folder / "older" / "postgresql").mkdir(parents=True)
    (folder / "older" / "postgresql" / "PG_VERSION").write_text("9\n")
    every = [f"{place}/{number}.wav" for place in ("park", "street") for number in range(4)]
    _sound(folder / "flat", "0.wav", "1.wav")
    _sound(folder / "deep", "a/b/0.wav")
    _sound(folder / "tiny", *every, seconds=0.01)
    for name in ("sound", "broken"):
        _sound(folder / name, *every)
    for path in (folder / "broken" / "park").iterdir():
        path.write_text("this is not sound")
    _votes(folder)
    _sweeps(folder)
    _runs(folder)
    _phones(folder)
    return folder


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses of a server, of nobody, and a port that is taken; and the operator's token."""
    folder = tmp_path_factory.mktemp("server")
    with embedded(folder, UNSAFE) as postgres:
        database = Database(postgres.url, pool_size=4)
        database.migrate()
        server = Server.over(database, folder)
        listener = make_server("127.0.0.1", 0, server.app, threaded=True)
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        phase = server.start(PARAMETERS)
        with socket.create_server(("127.0.0.1", 0)) as free:
            unused = free.getsockname()[1]
        yield {
            "url": f"http://127.0.0.1:{listener.server_port}",
            "free": f"http://127.0.0.1:{unused}",
            "busy": str(listener.server_port),
            "phase": phase.hex(),
            "token": server.credentials.operator_token,
        }
        listener.shutdown()
        thread.join()
        listener.server_close()
        database.close()


def _check(row: Row, status: int, printed: str, said: str) -> None:
    assert status == row.status, said
    assert "Traceback" not in said
    assert printed == ""
    lines = said.splitlines()
    assert len(lines) <= 2, said
    assert lines[-1].startswith("earshot: ")
    for words in row.words:
        assert words in lines[-1]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{who}: {row.command}")
        for who, rows in MISTAKES.items()
        for row in rows
    ],
)
def test_a_mistake_is_answered_with_what_would_be_right(
    row: Row, desk: Path, addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    words = shlex.split(row.command.format(**addresses))
    own = {TOKEN_VARIABLE: addresses["token"], "XDG_CACHE_HOME": str(desk / "cache")}
    run = earshot(*words, **own)
    _check(row, run.returncode, run.stdout, run.stderr)


def test_a_run_over_a_few_broken_files_names_them(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    (desk / "sound" / "park" / "7.wav").write_text("this is not sound")
    run = earshot(*shlex.split(f"{SOUND} sound"), XDG_CACHE_HOME=str(desk / "cache"))
    (desk / "sound" / "park" / "7.wav").unlink()
    assert run.returncode == 0, run.stderr
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("left out"))
    assert line.split(maxsplit=2)[2] == "park/7.wav is unreadable"


@pytest.mark.parametrize("row", [pytest.param(row, id=row.command) for row in ELSEWHERE])
def test_a_server_that_cannot_start_says_what_would_help(
    row: Row, desk: Path, addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    run = earshot_apart(*shlex.split(row.command.format(**addresses)))
    _check(row, run.returncode, run.stdout, run.stderr)


def test_a_stranger_and_the_end_of_a_phase(addresses: dict[str, str]) -> None:
    """Wrong tokens are told whom to ask; a phase that is over stays as it is, and says so."""
    url, phase = addresses["url"], addresses["phase"]
    stranger = earshot("phase", "list", "--server", url, **{TOKEN_VARIABLE: "A" * 43})
    assert stranger.returncode == 2
    assert "Operators only" in stranger.stderr
    assert stranger.stderr.count("\n") == 1
    for expected in ("stopped", "had already ended"):
        stop = earshot(
            "phase", "stop", phase, "--server", url, **{TOKEN_VARIABLE: addresses["token"]}
        )
        assert expected in stop.stdout + stop.stderr
        assert "Traceback" not in stop.stderr
