"""Write the files of a release, which every later version must open (`test_former_files.py`).

At the tag of a release, into a folder that is named after it and is then kept:

    PYTHONPATH=tests python tests/system/former/make.py tests/system/former/0.1.0
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from support.former import write

from earshot_server.processes.embedded import embedded


def main(folder: Path) -> None:
    """Write everything into a folder, which must be new."""
    folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="earshot-") as name:
        scratch = Path(name)
        with embedded(scratch / "database") as postgres:
            write(folder, postgres, scratch)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
