"""What every test shares: one thread per worker, repeatable examples, and little to clean up."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings
from support.examples import USUAL
from support.timing import Deadline, Timing

# Before anything loads numpy: workers that each start a pool of threads only wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What one test has heard is no other's, nor the user's.
os.environ["EARSHOT_HEARINGS"] = os.devnull

# `make test` loads the quick one by its name.
settings.register_profile("earshot", derandomize=True, deadline=None, max_examples=USUAL)
settings.register_profile("quick", settings.get_profile("earshot"), max_examples=USUAL // 5)
settings.load_profile("earshot")

# Whoever starts us in the background has Ctrl-C ignored, and so would every process of ours.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, help="file that what each test costs is added to")
    parser.addoption("--begin-within", type=float, help="seconds after which no file is begun")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Timing(config))
    if (seconds := config.option.begin_within) is not None:
        config.pluginmanager.register(Deadline(config, seconds))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported by now stays: looking for garbage in it took a third of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
