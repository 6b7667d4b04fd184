"""A phone's key in a file: never where others could read it, whatever the file system keeps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from earshot_client.store.key_file import KeyFileError, key_in


def test_no_key_is_made_on_a_file_system_that_keeps_no_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.open

    def as_on_exfat(path: Path, flags: int, mode: int = 0o777) -> int:
        handle = make(path, flags, mode)
        if flags & os.O_CREAT:
            os.fchmod(handle, 0o777)
        return handle

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", as_on_exfat)
        with pytest.raises(KeyFileError, match=r"phone\.key can be read by others.*no permissions"):
            key_in(tmp_path / "phone.key", may_create=True)
    assert list(tmp_path.iterdir()) == []
    assert len(key_in(tmp_path / "phone.key", may_create=True)) == 32
    (tmp_path / "phone.key").chmod(0o640)
    with pytest.raises(KeyFileError, match="chmod 600"):
        key_in(tmp_path / "phone.key", may_create=False)
