"""The playground: a page that shows suggestions while its reader types, ``GET /``.

Its files hold no data of this server, so they are sent without the key. The page calls the public
routes with the key that its reader types. Its policy lets it load and call this server alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from aiohttp import web

routes = web.RouteTableDef()

#: Name and media type of the file of each path. The types are written here because Windows lets
#: other programs change those that Python knows.
FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "/": ("index.html", "text/html"),
        "/playground.css": ("playground.css", "text/css"),
        "/playground.js": ("playground.js", "text/javascript"),
    }
)

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",  # a new release has a new page
    }
)


@routes.get("/")
@routes.get("/playground.css")
@routes.get("/playground.js")
async def playground(http: web.Request) -> web.Response:
    """Return a file of the page to try suggestions on."""
    name, media_type = FILES[http.path]
    return web.Response(text=_text(name), content_type=media_type, charset="utf-8", headers=HEADERS)


@cache
def _text(name: str) -> str:
    return (files("redraft.server") / "playground" / name).read_text(encoding="utf-8")
