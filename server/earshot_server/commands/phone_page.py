"""`earshot phone-page`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file

app = App()


@app.default
def phone_page(*, out: Path, server: Annotated[tuple[str, ...], Parameter(negative=())]) -> None:
    """Write the phone page as files for any web host; see `docs/operations.md`.

    Args:
        out: Folder to write to. Earlier versions in it are kept, for people who stay with them.
        server: Origin of the server that phones of the page call, such as
            https://earshot.example.org; repeat the option for further ones.
    """
    from earshot_server.origins import read_origin
    from earshot_server.phone_page.assembling import (
        DIGESTS,
        FIELDS,
        NEWEST,
        assembled,
        header_fields,
    )

    origins = tuple(read_origin(each.removesuffix("/")) for each in server)
    files = assembled(origins)
    fields = "".join(f"{name}: {value}\n" for name, value in header_fields(origins).items())
    try:
        # Files in the root lead to the new version, so they come last: until then, the former
        # version is complete.
        for path in sorted({*files}, key=lambda path: ("/" not in path, path)):
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            replace_file(out / path, files[path])
        replace_file(out / FIELDS, fields)
    except OSError as error:
        raise InvalidInputError(
            f"--out {out}: cannot be written ({error.strerror}); name a folder that can"
        ) from error
    print(f"{out / 'index.html'}: {files[NEWEST].decode()}")
    print(f"{out / DIGESTS}: digests of all files; sha256sum --check {DIGESTS} compares them")
    print(f"{out / FIELDS}: header fields that the host has to send with every file")
