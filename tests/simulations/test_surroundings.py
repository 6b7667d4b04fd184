"""Simulations as part of another program: threads, pools, and nothing global left changed."""

from __future__ import annotations

import gc
import io
import locale
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from support.esc_folder import write_esc_folder
from support.simulated import KINDS, decided
from threadpoolctl import threadpool_info

from earshot_client.encoder import default_encoder
from earshot_models.datasets.opening import open_dataset
from earshot_simulations import Settings, simulate, sweep
from earshot_simulations.populations.hearing import FOLDER
from earshot_simulations.probing.probe import probe

LEARNING, DISCOVERY = KINDS["local"], KINDS["secure-sum"]
SOUND = replace(DISCOVERY, data="soundscapes", phones=16, cells=None, epsilon=None)


def surroundings() -> dict[str, Any]:
    """Everything of this process that its other parts could notice."""
    gc.collect()
    root = logging.getLogger()
    mask = os.umask(0)
    os.umask(mask)
    own = psutil.Process()
    return {
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "root logger": (
            root.level,
            list(root.handlers),
            root.disabled,
            logging.root.manager.disable,
        ),
        "loggers": {
            name: (log.level, list(log.handlers), log.propagate)
            for name, log in root.manager.loggerDict.items()
            if isinstance(log, logging.Logger) and (log.handlers or log.level)
        },
        "warnings": list(warnings.filters),
        "showwarning": warnings.showwarning,
        "environment": dict(os.environ),
        "random": repr(np.random.get_state(legacy=False)),  # noqa: NPY002 - it must not change
        "errors": np.geterr(),
        "printing": np.get_printoptions(),
        "locale": locale.setlocale(locale.LC_ALL),
        "folder": os.getcwd(),
        "mask": mask,
        "threads of libraries": {
            (each["filepath"], each["num_threads"]) for each in threadpool_info()
        },
        "start": multiprocessing.get_start_method(allow_none=True),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.displayhook),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "path": (list(sys.path), list(sys.meta_path), list(sys.argv)),
        "limits": (sys.getrecursionlimit(), sys.getswitchinterval()),
        "temporary": (tempfile.gettempdir(), sorted(os.listdir(tempfile.gettempdir()))),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "processes": sorted(child.pid for child in own.children(recursive=True)),
        "files": sorted(os.listdir("/proc/self/fd")),
    }


def changed(work: Callable[[], object]) -> dict[str, tuple[Any, Any]]:
    """Run twice, and return what the second time leaves changed, by its name.

    The first time loads libraries, which may start threads and set variables of their own.
    """
    work()
    before = surroundings()
    work()
    after = surroundings()
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv(FOLDER, str(tmp_path / "hearings"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [LEARNING, replace(DISCOVERY, jobs=2), SOUND], ids=["learning", "jobs", "sound"]
)
def test_a_simulation_leaves_nothing_global_changed(settings: Settings) -> None:
    assert changed(lambda: simulate(settings)) == {}


@pytest.mark.slow
def test_an_interrupted_simulation_leaves_nothing_global_changed() -> None:
    def interrupt(what: str, done: int, total: int, line: str | None = None) -> None:
        if what != "hear" and done:
            raise KeyboardInterrupt

    settings = replace(DISCOVERY, jobs=2)
    assert changed(lambda: simulate(settings, interrupt)) == {}


@pytest.mark.slow
def test_a_sweep_leaves_nothing_global_changed(place: Path) -> None:
    folders = iter((place / "first", place / "second"))
    work = lambda: sweep(DISCOVERY, [{}], next(folders), seeds=2, processes=2)  # noqa: E731
    assert changed(work) == {}


@pytest.mark.slow
def test_a_probe_leaves_nothing_global_changed(place: Path) -> None:
    folder = place / "clips"
    folder.mkdir()
    dataset = open_dataset(write_esc_folder(folder, ("rain", "train"), clips=4, seconds=2))

    def work() -> None:
        probe(dataset, lambda _: default_encoder())

    assert changed(work) == {}


def test_the_comparison_sees_what_changes() -> None:
    def worsen() -> None:
        os.environ["EARSHOT_CHANGED"] = str(len(os.environ))
        np.random.default_rng()
        np.random.random()  # noqa: NPY002 - it is to be seen
        kept.append(io.FileIO(os.devnull))
        logging.getLogger().setLevel(logging.getLogger().level + 1)

    kept: list[io.FileIO] = []
    level = logging.getLogger().level
    try:
        assert set(changed(worsen)) == {"environment", "random", "files", "root logger"}
    finally:
        logging.getLogger().setLevel(level)
        del os.environ["EARSHOT_CHANGED"]
        for file in kept:
            file.close()


@pytest.mark.slow
def test_threads_at_once_have_each_the_result_of_running_alone() -> None:
    asked = [replace(LEARNING, seed=1), replace(DISCOVERY, seed=2, jobs=2), replace(SOUND, seed=3)]
    alone = [decided(simulate(settings)) for settings in asked]
    with ThreadPoolExecutor(6) as threads:
        runs = list(threads.map(simulate, asked * 2))
    assert [decided(run) for run in runs] == alone * 2


FIRST = """
import sys, threading, time
from importlib.abc import MetaPathFinder
from earshot_simulations import PolicyChoice, Settings, SummationChoice, simulate

begun, over = threading.Event(), threading.Event()

class Slow(MetaPathFinder):
    # The first thread is half-way through joblib when the other begins.
    def find_spec(self, name, path, target=None):
        if name == "joblib.parallel":
            begun.set()
            over.wait(3)

sys.meta_path.insert(0, Slow())
settings = Settings(
    phones=24, recordings=5, scenes=2, policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL, jobs=int(sys.argv[1]),
)
found = []

def run():
    try:
        found.append(simulate(settings).interrupted)
    except BaseException as error:
        found.append(repr(error))
    over.set()

threads = [threading.Thread(target=run) for _ in range(3)]
threads[0].start()
assert begun.wait(60), "joblib was loaded before"
for thread in threads[1:]:
    thread.start()
for thread in threads:
    thread.join()
print(found)
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_first_simulations_of_a_process_may_be_in_threads(jobs: str) -> None:
    done = subprocess.run(  # noqa: S603 - the program is written above
        [sys.executable, "-c", FIRST, jobs], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[None, None, None]\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_daemonic_processes_has_the_result_of_running_alone(method: str) -> None:
    asked = [replace(DISCOVERY, jobs=2), replace(SOUND, jobs=2)]
    alone = [decided(simulate(settings)) for settings in asked]
    with multiprocessing.get_context(method).Pool(2) as pool:
        runs = pool.map(simulate, asked, chunksize=1)
    assert [decided(run) for run in runs] == alone


UNGUARDED = """
from earshot_simulations import PolicyChoice, Settings, SummationChoice, simulate, sweep
settings = Settings(
    phones=24, recordings=5, scenes=2, policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL, jobs=2,
)
print(simulate(settings).interrupted)
print(len(sweep(settings, [{}], FOLDER, seeds=2, processes=2).figures[0]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("interactive", [False, True])
def test_a_program_needs_no_guard(interactive: bool, place: Path) -> None:
    text = f"from pathlib import Path\nFOLDER = Path({str(place / 'out')!r})\n{UNGUARDED}"
    program = place / "program.py"
    program.write_text(text)
    done = subprocess.run(  # noqa: S603 - the program is written above
        [sys.executable, *([] if interactive else [str(program)])],
        input=text if interactive else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("None\n2\n", "")
