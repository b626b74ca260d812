"""Finds one file in a package index: PEP 503 pages (HTML) and PEP 691 pages (JSON).

Knows nothing of downloading; asks a :class:`Downloader` for the page.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator
from html.parser import HTMLParser

from .transfer import Downloader, FetchFailed, without_credentials

_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)


def project_url(index: str, package: str) -> str:
    """The page of a package in an index."""
    normalised = re.sub(r"[-_.]+", "-", package).lower()
    return f"{index.rstrip('/')}/{normalised}/"


def find_file(downloader: Downloader, page_url: str, filename: str, sha256: str) -> str:
    """The address of ``filename`` as the page gives it.

    Raises:
        FetchFailed: the page cannot be had, does not list the file, or lists another content.
    """
    shown = without_credentials(page_url)
    base_url, content_type, body = downloader.page(page_url, _ACCEPT)
    text = body.decode("utf-8", "replace")
    links = _json_links(text, shown) if "json" in content_type else _html_links(text)
    for href, advertised in links:
        url = urllib.parse.urljoin(base_url, href)
        if urllib.parse.unquote(urllib.parse.urlsplit(url).path).rsplit("/", 1)[-1] != filename:
            continue
        if advertised not in ("", sha256):
            raise FetchFailed(f"{shown} lists {filename} with another SHA-256 ({advertised})")
        return urllib.parse.urldefrag(url).url
    raise FetchFailed(f"{shown} does not list {filename}")


def _json_links(text: str, shown: str) -> Iterator[tuple[str, str]]:
    try:
        files = json.loads(text)["files"]
        for file in files:
            yield str(file["url"]), str(file.get("hashes", {}).get("sha256", "")).lower()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FetchFailed(f"{shown} answers JSON that is not a package index") from error


def _html_links(text: str) -> Iterator[tuple[str, str]]:
    parser = _Anchors()
    parser.feed(text)
    for href in parser.hrefs:
        _, fragment = urllib.parse.urldefrag(href)
        algorithm, _, value = fragment.partition("=")
        absolute = urllib.parse.urljoin(parser.base, href) if parser.base else href
        yield absolute, value.lower() if algorithm == "sha256" else ""


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if href and tag == "a":
            self.hrefs.append(href)
        elif href and tag == "base" and not self.base:
            self.base = href
