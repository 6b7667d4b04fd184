"""Files of the page: a folder for its version, and files in the root that lead to it.

Paths contain the version, and the version a digest of the contents, so that the content of a path
never changes, and people who have agreed to a version keep getting it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable

from earshot_protocol import distribution
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, packaged

LAUNCH = "index.html"
"""File that leads to the version that a person has agreed to, initially the newest."""
NEWEST = "newest.json"
DIGESTS = "digests.txt"
FIELDS = "headers.txt"
_MAIN, _START = "page/main.js", "page/launch.js"
_IMPORTED = re.compile(r'(?:\bfrom|\bimport)"(\.{1,2}/[^"]+)"')
"""Import of another script, as the bundler writes it."""


def policy(servers: Sequence[str]) -> str:
    """Return the Content-Security-Policy of the page: its own files, these servers, nothing else.

    Args:
        servers: Origins of the servers that its phones may call, in addition to the page's own.
    """
    connected = " ".join(("'self'", *servers))
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"manifest-src 'self'; worker-src 'self'; connect-src {connected}; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types earshot"
    )


def header_fields(servers: Sequence[str]) -> dict[str, str]:
    """Return the header fields with which every file of the page should be served.

    The page also contains its policy, but its workers have only the one of their response.

    Args:
        servers: Origins of the servers that its phones may call, in addition to the page's own.
    """
    return {
        "Content-Security-Policy": f"{policy(servers)}; frame-ancestors 'none'",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def assembled(servers: Sequence[str]) -> Mapping[str, bytes]:
    """Return all files of the page by their paths.

    The bytes depend only on Earshot's version and the servers, not on the machine.

    Args:
        servers: Origins of the servers that its phones may call, in addition to the page's own.
    """
    files = dict(_packaged(resources.files("earshot_server.phone_page") / "files"))
    launch = files.pop("page/launch.html").decode()
    files[f"{DEFAULT_ENCODER}.tflite"] = packaged(DEFAULT_ENCODER)
    files["page/index.html"] = _filled(
        files["page/index.html"].decode(), files, _MAIN, "../", policy=policy(servers)
    )
    # The files that the page's service worker caches.
    files["files.json"] = json.dumps(sorted(files)).encode()
    digest = hashlib.sha256(_listed(files)).hexdigest()
    version = f"{distribution.version()}-{digest[:8]}"
    whole = {f"{version}/{path}": content for path, content in files.items()}
    whole[LAUNCH] = _filled(
        launch, files, _START, f"{version}/", policy=policy(()), version=version
    )
    whole[NEWEST] = json.dumps({"version": version, "digest": digest}).encode()
    return whole | {DIGESTS: _listed(whole)}


def _packaged(folder: Traversable, prefix: str = "") -> Mapping[str, bytes]:
    """Return the files below a folder of the package by their paths."""
    found: dict[str, bytes] = {}
    for each in folder.iterdir():
        path = prefix + each.name
        found |= _packaged(each, f"{path}/") if each.is_dir() else {path: each.read_bytes()}
    return found


def _filled(page: str, files: Mapping[str, bytes], script: str, root: str, **values: str) -> bytes:
    """Fill a page's placeholders with values and with the digests of all scripts that it loads."""
    modules = "\n".join(
        f'<link rel="modulepreload" href="{root}{path}" integrity="{_integrity(files[path])}">'
        for path in _reached(script, files)
    )
    values = {**values, "modules": modules, "main": _integrity(files[script])}
    for name, value in values.items():
        page = page.replace(f"{{{name}}}", value)
    return page.encode()


def _reached(script: str, files: Mapping[str, bytes]) -> list[str]:
    """Return the scripts that a script imports, directly or indirectly."""
    known, waiting = set[str](), [script]
    while waiting:
        here = waiting.pop()
        for other in _IMPORTED.findall(files[here].decode()):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(here), other))
            if path not in known:
                known.add(path)
                waiting.append(path)
    return sorted(known)


def _integrity(content: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}"


def _listed(files: Mapping[str, bytes]) -> bytes:
    """Return the digests of files in the format of `sha256sum --check`."""
    lines = (f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files))
    return "".join(lines).encode()
