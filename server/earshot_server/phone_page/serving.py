"""The phone's page, served by the phones' own server, for trials.

The host of the page is trusted with everything, and should not be the server of the protocol
(docs/threat-model.md).
"""

from __future__ import annotations

import gzip
import mimetypes
from functools import cache

from flask import Blueprint, Response, abort, request

from earshot_server.origins import HERE_PATH
from earshot_server.phone_page.assembling import LAUNCH, assembled, header_fields

PHONE_PAGE = "phone-page"
"""Name of the blueprint."""
_FOREVER = "public, max-age=31536000, immutable"
_TYPES = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}


def phone_page() -> Blueprint:
    """Return the endpoints of the phone's page."""
    pages = Blueprint(PHONE_PAGE, __name__)
    files = cache(assembled)
    compressed = cache(lambda path: gzip.compress(files(())[path], mtime=0))

    @pages.get(HERE_PATH, defaults={"path": LAUNCH})
    @pages.get(f"{HERE_PATH}<path:path>")
    def file(path: str) -> Response:
        """Return one file of the page."""
        path += "index.html" if path.endswith("/") else ""
        content = files(()).get(path)
        if content is None:
            abort(404)
        response = Response(content, content_type=_type(path))
        response.headers.update(header_fields(()))
        response.vary.add("Accept-Encoding")
        if request.accept_encodings.quality("gzip") > 0:
            response.set_data(compressed(path))
            response.content_encoding = "gzip"
        if "/" in path:  # in the folder of its version, so it never changes
            response.headers["Cache-Control"] = _FOREVER
        return response

    return pages


def _type(path: str) -> str:
    ending = path[path.rfind(".") :]
    return _TYPES.get(ending) or mimetypes.types_map.get(ending, "application/octet-stream")
