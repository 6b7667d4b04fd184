"""A user without a name or a home, who cannot write to the package folder: `docker run --user`."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from earshot_client.home import writable_home
from earshot_server.processes.embedded import EmbeddedDatabaseError, EmbeddedPostgres

# Root may write anywhere and has a home: what refuses other users is refused here by its library.
NOBODY = """
import pwd
import sys

def absent(number):
    raise KeyError(number)

pwd.getpwuid = absent
"""
READ_ONLY_PACKAGES = """
from numba.core.caching import InTreeCacheLocator
InTreeCacheLocator.from_function = classmethod(lambda *_: None)
"""
NO_CACHE = """
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []
"""
COMMAND = """
from earshot_client.command import main
main()
"""


def nobody(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python as such a user in the folder `here`, with `temporary` beside it."""
    here, temporary = folder / "here", folder / "temporary"
    here.mkdir()
    temporary.mkdir()
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", NOBODY + program, *words],
        env={"PATH": os.defpath, "LANG": "C", "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"},
        cwd=here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert list(temporary.iterdir()) == []
    assert not (here / "~").exists()
    return done


def test_help_is_as_always(tmp_path: Path) -> None:
    done = nobody(tmp_path, COMMAND, "simulate", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--phones" in done.stdout


@pytest.mark.slow
def test_the_order_of_points_is_compiled_where_nothing_can_be_kept(tmp_path: Path) -> None:
    program = """
import numpy as np
from earshot_server.discovery.reachability import reachability
print(len(reachability(np.eye(9), 2).ordering))
"""
    done = nobody(tmp_path, NO_CACHE + program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "9\n", "")


@pytest.mark.slow
def test_a_learning_phase_over_sound_is_simulated(tmp_path: Path) -> None:
    done = nobody(
        tmp_path,
        READ_ONLY_PACKAGES + COMMAND,
        *("simulate", "--discovery", "both", "--phones", "40", "--recordings", "10", "--pool", "5"),
        *("--scenes", "3"),
        *(
            "--data",
            "soundscapes",
            "--policy",
            "anything",
            "--summation",
            "ideal",
            "--jobs",
            "1",
            "--out",
            "run",
        ),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no home (HOME)") == 1
    assert "Matplotlib" not in done.stderr
    assert (tmp_path / "here" / "run" / "report.html").exists()


@pytest.mark.slow
def test_librosa_loads_within_a_command(tmp_path: Path) -> None:
    """It wants a place for numba's cache and one for its examples before it does anything."""
    program = """
import numpy as np
from earshot_client.home import writable_home
from earshot_studies.muschiol.tagging.mel_power import MelSettings, mel_power
with writable_home():
    settings = MelSettings(16_000, 400, 160, 8, 1.0)
    print(mel_power(np.zeros((1, settings.samples)), settings).shape == (1, *settings.shape))
"""
    done = nobody(tmp_path, READ_ONLY_PACKAGES + program)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


# ------------------------------------------------------------------------------------ the home


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", absent)
    for name in ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "KERAS_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nameless")
def test_who_has_no_home_gets_a_closed_one_until_the_end() -> None:
    before = dict(os.environ)
    with writable_home() as lacking:
        home = Path.home()
        assert lacking
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert Path(os.environ["XDG_CACHE_HOME"]).parent == home
        if (child := os.fork()) == 0:
            os._exit(_left_by_a_fork(home))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not home.exists()
    assert dict(os.environ) == before


def _left_by_a_fork(home: Path) -> int:
    """Leave the context as a forked worker does that ends by an exception."""
    import gc

    left = [each for each in gc.get_objects() if type(each).__name__ == "generator"]
    for each in left:
        if each.gi_code.co_name == "writable_home":
            each.close()
            return 0 if home.exists() else 1
    return 2


def test_a_home_that_can_only_be_read_is_still_read(
    nameless: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.TemporaryFile

    def refused(*, dir: Path) -> object:
        if dir == tmp_path:
            raise PermissionError(dir)
        return made(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MPLCONFIGDIR", "/chosen")
    with writable_home() as lacking:
        assert lacking
        assert os.environ["HOME"] == str(tmp_path)
        assert os.environ["MPLCONFIGDIR"] == "/chosen"
        assert not os.environ["XDG_CACHE_HOME"].startswith(str(tmp_path))


@pytest.mark.parametrize("home", ["file", "absent", "relative"])
def test_what_is_no_folder_is_no_home(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", home if home == "relative" else str(tmp_path / home))
    with writable_home() as lacking:
        assert lacking
        assert Path.home().is_dir()
        assert Path.home().is_absolute()


def test_a_home_stays_and_a_relative_cache_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    before = dict(os.environ)
    with writable_home() as lacking:
        assert not lacking
        assert dict(os.environ) == {k: v for k, v in before.items() if k != "XDG_CACHE_HOME"}
    assert dict(os.environ) == before


@pytest.mark.usefixtures("nameless")
def test_no_room_for_a_home_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with writable_home() as lacking:
        assert lacking
        assert "HOME" not in os.environ


@pytest.mark.usefixtures("nameless")
def test_a_database_for_a_user_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedDatabaseError, match=r"has none: .* --database"):
        EmbeddedPostgres(tmp_path)
