"""HTTP for large files: retries with growing pauses, resume, proxies, credentials, certificates.

Blocking, on the standard library alone, because it serves one download at a time. Proxies come
from the environment or the system (``HTTPS_PROXY``, ``NO_PROXY``), credentials from the address or
``.netrc``, certificates from the system's store. Knows nothing of packages or weights.
"""

from __future__ import annotations

import base64
import http.client
import netrc
import os
import random
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import truststore

from ..errors import WeightsError
from .files import BytesCallback, explaining
from .pipconf import PackageSources

_ATTEMPTS = 4  # without progress; pauses of 0.5, 1 and 2 s between them
_PROGRESS = 1 << 20  # bytes that count as progress and start the attempts anew
_TIMEOUT_S = 30.0  # without a byte
_MAX_PAUSE_S = 30.0  # however long the server asks us to wait
_MAX_PAGE = 32 << 20  # bytes of an index page
_CHUNK = 1 << 18
_AGENT = "redraft-pull"

T = TypeVar("T")


class FetchFailed(WeightsError):
    """One source could not deliver; another may."""


class _Interrupted(Exception):
    """Worth another attempt."""

    def __init__(self, message: str, pause_s: float | None = None) -> None:
        super().__init__(message)
        self.pause_s = pause_s


def without_credentials(url: str) -> str:
    """``url`` as it may be shown and as urllib takes it."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class Downloader:
    """Opens addresses with this machine's proxy, certificates and credentials."""

    def __init__(self, sources: PackageSources, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self._logins: dict[str, str] = {}  # "host:port" -> value of the Authorization header
        for url in (*sources.indexes, *sources.links):
            self._remember_login(url)
        self._sources = sources
        self._made: urllib.request.OpenerDirector | None = None

    def page(self, url: str, accept: str) -> tuple[str, str, bytes]:
        """A small document: its final address, content type and bytes.

        Raises:
            FetchFailed: after the last attempt, or at once where another would not help.
        """
        shown = without_credentials(url)

        def attempt() -> tuple[str, str, bytes]:
            with self._open(shown, {"Accept": accept}) as response:
                body = _read(response, _MAX_PAGE + 1)
                if len(body) > _MAX_PAGE:
                    raise FetchFailed(f"{shown} answers more than {_MAX_PAGE >> 20} MB")
                return response.url, response.headers.get("Content-Type", ""), body

        return self._with_retries(attempt, lambda: 0)

    def download(self, url: str, part: Path, size: int, progress: BytesCallback) -> None:
        """Fill ``part`` up to ``size`` bytes, going on where it ends.

        Raises:
            FetchFailed: the source does not deliver; ``part`` stays for a later attempt.
            WeightsError: the disk does not take it.
        """
        shown = without_credentials(url)
        self._remember_login(url)
        self._with_retries(
            lambda: self._attempt(shown, part, size, progress), lambda: _size_of(part)
        )

    def _with_retries(self, attempt: Callable[[], T], reached: Callable[[], int]) -> T:
        failures = 0
        while True:
            before = reached()
            try:
                return attempt()
            except _Interrupted as interruption:
                failures = 1 if reached() - before >= _PROGRESS else failures + 1
                if failures >= _ATTEMPTS:
                    raise FetchFailed(f"{interruption} ({failures} attempts)") from interruption
                pause = 0.5 * 2 ** (failures - 1) * random.uniform(1.0, 1.3)
                self._sleep(min(max(pause, interruption.pause_s or 0.0), _MAX_PAUSE_S))

    def _attempt(self, url: str, part: Path, size: int, progress: BytesCallback) -> None:
        have = _size_of(part)
        if have > size:
            have = _restart(part)
        if have == size:
            return
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with self._open(url, headers, part) as response:
            have = _start_of(response, url, have, size)
            with explaining("write", part):
                file = part.open("r+b" if have else "wb")
            with file:
                file.seek(have)
                while chunk := _read(response, _CHUNK):
                    have += len(chunk)
                    if have > size:
                        raise FetchFailed(f"{url} delivers more than the expected {size} bytes")
                    with explaining("write", part):
                        file.write(chunk)
                        file.flush()
                    progress(have)
        if have < size:
            raise _Interrupted(f"the connection to {url} ended after {have} of {size} bytes")

    def _open(self, url: str, headers: dict[str, str], part: Path | None = None) -> Any:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise FetchFailed(f"{url} is not an http or https address")
        request = urllib.request.Request(url, headers={"User-Agent": _AGENT, **headers})
        self._authorize(request)
        try:
            return self._opener().open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416 and part is not None:  # nothing there to continue from
                    _restart(part)
                    raise _Interrupted(f"{url} refused to continue the download") from error
                raise _of_status(error, url) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _of_connection(error, url) from error

    # -------------------------------------------------------------- proxy, certificates, logins

    def _opener(self) -> urllib.request.OpenerDirector:
        if self._made is None:
            proxy = self._sources.proxy
            proxies = {"http": proxy, "https": proxy} if proxy else None
            self._made = urllib.request.build_opener(
                urllib.request.ProxyHandler(proxies),
                urllib.request.HTTPSHandler(context=_tls(self._sources.cert)),
                _Redirects(self._authorize),
            )
        return self._made

    def _authorize(self, request: urllib.request.Request) -> None:
        login = self._logins.get(_place(request.full_url)) or _netrc_login(request.full_url)
        if login:
            # Unredirected: another host must not see it.
            request.add_unredirected_header("Authorization", login)

    def _remember_login(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.username is not None and parts.hostname:
            self._logins[_place(url)] = _basic(
                urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or "")
            )


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, giving each host its own credentials only."""

    def __init__(self, authorize: Callable[[urllib.request.Request], None]) -> None:
        self._authorize = authorize

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        new = super().redirect_request(req, fp, code, msg, headers, without_credentials(newurl))
        if new is not None:
            self._authorize(new)
        return new


def _place(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return f"{parts.scheme}://{parts.hostname}:{port or {'https': 443}.get(parts.scheme, 80)}"


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _netrc_login(url: str) -> str | None:
    host = urllib.parse.urlsplit(url).hostname
    names = [os.environ["NETRC"]] if os.environ.get("NETRC") else ["~/.netrc", "~/_netrc"]
    for name in names:
        try:
            found = netrc.netrc(str(Path(name).expanduser())).authenticators(host or "")
        except (OSError, netrc.NetrcParseError, RuntimeError):
            continue  # absent or unusable: as if there were no credentials
        if found:
            return _basic(found[0], found[2] or "")
    return None


def _tls(cert: Path | None) -> ssl.SSLContext:
    if cert is None:
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if cert.is_dir():
            return ssl.create_default_context(capath=str(cert))
        return ssl.create_default_context(cafile=str(cert))
    except (OSError, ssl.SSLError) as error:
        raise WeightsError(
            f"cannot read the certificates {cert} ({error}). Correct 'cert' in pip's configuration "
            "or PIP_CERT or REQUESTS_CA_BUNDLE in the environment."
        ) from error


# ------------------------------------------------------------------------------ answers


def _read(response: Any, count: int) -> bytes:
    try:
        data: bytes = response.read(count)
        return data
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Interrupted(f"the connection to {response.url} broke: {error or 'cut'}") from error


def _size_of(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _restart(part: Path) -> int:
    with explaining("delete", part):
        part.unlink(missing_ok=True)
    return 0


def _start_of(response: Any, url: str, have: int, size: int) -> int:
    """The byte this answer starts at; ``have`` where the server went on from there."""
    if response.status == 206:
        match = re.fullmatch(
            r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip()
        )
        if match and int(match[1]) == have and match[2] in ("*", str(size)):
            return have
        raise FetchFailed(f"{url} does not continue the download where it ended")
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) != size:
        raise FetchFailed(f"{url} is {int(length)} bytes long, not {size}")
    return 0


def _of_status(error: urllib.error.HTTPError, url: str) -> Exception:
    status = error.code
    if status in (408, 425, 429) or status >= 500:
        after = error.headers.get("Retry-After", "") if error.headers else ""
        pause = float(after) if after.isdecimal() else None
        return _Interrupted(f"{url} answers {status} {error.reason}", pause)
    if status in (401, 403):
        return FetchFailed(
            f"{url} answers {status} {error.reason}: put user and password into the index address "
            "or .netrc"
        )
    if status == 407:
        return FetchFailed(f"the proxy wants a login (407): put it into HTTPS_PROXY ({url})")
    return FetchFailed(f"{url} answers {status} {error.reason}")


def _of_connection(error: Exception, url: str) -> Exception:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return FetchFailed(
            f"{url} shows a certificate that is not trusted ({cause.verify_message}): name your "
            "organisation's certificates with PIP_CERT or 'pip config set global.cert FILE'"
        )
    if "Tunnel connection failed" in str(cause):
        what = f"the proxy refuses {url} ({cause}): check HTTPS_PROXY and NO_PROXY"
        return FetchFailed(what) if " 4" in str(cause) else _Interrupted(what)
    if isinstance(error, ValueError):  # a malformed address or proxy
        return FetchFailed(f"{url} cannot be opened: {error}")
    return _Interrupted(f"no connection to {url} ({str(cause) or type(cause).__name__})")
