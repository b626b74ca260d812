"""Recognition of secrets by their text: private keys and access tokens.

Source that mentions a key's header, parses it or tests with it stays of use, so in code only a text
that *begins* with a private key counts. Settings, notes and other data count where they hold one
anywhere, its base64 included, and any short text that is little else than tokens of well-known
services. A secret that neither its name nor its content gives away is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.uris import code_language

_BEGIN = "-----BEGIN "
_HEADER = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"|PuTTY-User-Key-File-\d|AGE-SECRET-KEY-1[A-Z0-9]{20}"
)
#: What ``openssl`` and people write above a key, besides indented lines.
_ABOVE = ("#", "//", ";", "Bag Attributes", "Key Attributes", "\ufeff")
#: Anywhere: a header, and behind it what a key consists of. "\n" may be spelled out, as in JSON.
_HOLDS = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\r|\\n|\s|[\"'+]){1,80}"
    r"(?:[A-Za-z0-9+/=]{40}|Proc-Type:|Version:|Comment:)"
)
#: "PRIVATE" within the base64 of a header, by what stands before it, as in a kubeconfig.
_BASE64 = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{0,14}(?:UFJJVkFU|BSSVZBVE|QUklWQVRF)")

_TOKEN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,}|gl(?:pat|dt|rt|cbt)-[\w-]{20,}"
    r"|xox[abeprs]-[\w-]{20,}|(?:AKIA|ASIA)[0-9A-Z]{16}|sk-[\w-]{32,}|[sr]k_live_\w{20,}"
    r"|AIza[\w-]{35}|ya29\.[\w-]{20,}|npm_[A-Za-z0-9]{36}|pypi-AgEIcHlwaS5vcmc[\w-]{20,}"
    r"|hf_[A-Za-z]{30,}|hv[sb]\.[\w-]{24,}|SG\.[\w-]{20,}\.[\w-]{20,}|dop_v1_[0-9a-f]{64}"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,})"
)
_NAMED = re.compile(r"^[ \t]*(?:(?:export|set)[ \t]+)?[\w.-]{1,64}[ \t]*[:=]", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:#|//|;).*$", re.MULTILINE)
_MOSTLY = 0.8  # of what a text says, for it to consist of tokens
_SHORT = 4_096  # characters of a text that may be a token and little else
_HEAD = 4_096  # characters within which a key begins a text


def secret_in(text: str, path: str) -> str:
    """Return why ``text`` is a secret, or "".

    Args:
        text: of the file.
        path: of the file; its ending separates code from data.
    """
    if _begins_with_key(text):
        return "begins with a private key"
    if code_language(path) is None and _holds_key(text):
        return "holds a private key"
    if len(text) <= _SHORT and _is_of_tokens(text):
        return "consists of access tokens"
    return ""


def _begins_with_key(text: str) -> bool:
    for line in _lines_of(text[:_HEAD]):
        stripped = line.strip()
        if _HEADER.match(stripped):
            return True
        if stripped and not stripped.startswith(_ABOVE) and not line[0].isspace():
            return False
    return False


def _lines_of(head: str) -> Iterator[str]:
    """Yield lines one by one: mostly the first is enough."""
    start = 0
    while (end := head.find("\n", start)) >= 0:
        yield head[start:end]
        start = end + 1
    yield head[start:]


def _holds_key(text: str) -> bool:
    # Looking for one plain string costs a tenth of searching for the pattern.
    return (_BEGIN in text and _HOLDS.search(text) is not None) or (
        "LS0tLS1CRUdJTi" in text and _BASE64.search(text) is not None
    )


def _is_of_tokens(text: str) -> bool:
    """Return whether a text is nearly all tokens, names and comments aside."""
    tokens = sum(len(found[0]) for found in _TOKEN.finditer(text))
    if not tokens:
        return False
    rest = _NAMED.sub("", _COMMENT.sub("", text))
    return tokens > _MOSTLY * sum(len(word) for word in rest.split())
