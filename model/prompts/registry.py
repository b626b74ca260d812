"""Prompt formats by name, and the format of a received prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..errors import RedraftError, SettingsError
from .excerpt import Excerpt, Unreadable
from .fim import STYLES, Fim, InfillFormat, InPlace, Middle, read_fim
from .format import PromptFormat
from .redraft3 import Redraft3
from .sweep import Sweep1, Sweep2, read_sweep
from .zeta import Zeta, read_zeta1, read_zeta2

# --- formats of weights -----------------------------------------------------------------------

REDRAFT_2, REDRAFT_3 = "redraft-2", "redraft-3"
#: Format of diffusion weights that see the text behind a canvas.
IN_PLACE = "in-place"
#: Formats of other projects' weights.
OTHERS: Mapping[str, PromptFormat] = MappingProxyType(
    {
        **{name: Fim(style) for name, style in STYLES.items()},
        "prefix": Fim(None),
        IN_PLACE: InPlace(),
        "sweep": Sweep1(),
        "sweep-v2": Sweep2(),
        "zeta-2": Zeta(markers=False),
        "zeta-2.1": Zeta(markers=True),
    }
)
#: All formats, by the name that ``ModelConfig.prompt_format`` has.
FORMATS: Mapping[str, PromptFormat] = MappingProxyType(
    {REDRAFT_2: Redraft3(predicts_edits=False), REDRAFT_3: Redraft3(), **OTHERS}
)
#: Parts of the names of weights that were trained on a format which their vocabulary does not show,
#: the more particular ones first.
_BY_NAME = (
    ("zeta-2.1", "zeta-2.1"), ("zeta2.1", "zeta-2.1"), ("zeta-2", "zeta-2"), ("zeta2", "zeta-2"),
    ("sweep-next-edit-v2", "sweep-v2"), ("sweep-next-edit", "sweep"),
)  # fmt: skip


def format_of(name: str) -> PromptFormat:
    """Return the format that weights were trained on.

    Raises:
        RedraftError: this version does not write it.
    """
    if name not in FORMATS:
        raise RedraftError(
            f"These weights were made for prompt format {name!r}, this Redraft writes "
            f"{REDRAFT_3!r}. Run 'redraft model pull' again."
        )
    return FORMATS[name]


def predicts_edits(name: str) -> bool:
    """Return whether a format has next edits; all have infills."""
    return name != REDRAFT_2 and not isinstance(FORMATS.get(name), InfillFormat)


def takes_grammars(name: str) -> bool:
    """Return whether an answer can be held to a grammar.

    It must be written from left to right, and be only what belongs at the cursor.
    """
    return isinstance(FORMATS.get(name), Redraft3 | Fim)


def check_format(name: str, special: Iterable[str]) -> None:
    """Check that autoregressive weights can be used with a format.

    Raises:
        SettingsError: there is no such format, or the vocabulary cannot write it.
    """
    choices = [each for each in OTHERS if each != IN_PLACE]  # which no causal weights can read
    if name not in choices:
        raise SettingsError(f"Unknown format {name!r}: choose one of {', '.join(choices)}.")
    missing = sorted(set(OTHERS[name].needs) - set(special))
    if missing:
        raise SettingsError(
            f"The format {name} needs the tokens {missing}, which this vocabulary does not have. "
            "Leave --format out, or choose the one these weights were trained on."
        )


def native_format(special: Iterable[str], names: Iterable[str]) -> str:
    """Return the format that autoregressive weights were most likely trained on.

    Args:
        special: names of the vocabulary's special tokens.
        names: of the weights: of the file or folder, and in their metadata.
    """
    known, called = set(special), " ".join(names).lower().replace("_", "-")
    for part, name in _BY_NAME:
        if part in called and known.issuperset(OTHERS[name].needs):
            return name
    fitting = (name for name in STYLES if known.issuperset(OTHERS[name].needs))
    return next(fitting, "prefix")


# --- received prompts -------------------------------------------------------------------------

_READERS: tuple[Callable[[str], Excerpt | Middle | None], ...] = (
    *(read_zeta2, read_sweep, read_zeta1, read_fim),
)
#: Markers of formats that are not answered: chat and edit templates of other models.
_MARKERS = re.compile(
    r"<\|[a-z][a-z0-9_]*\|>|<｜[^\n｜]{1,40}｜>|<\[fim-(?:prefix|suffix|middle)\]>"
    r"|^### User Excerpt:|^<<<<<<< CURRENT$|\[INST\]",
    re.MULTILINE,
)
#: Beginnings of all of them. Most files hold none, which is found a hundred times sooner so.
_MARKERS_BEGIN = ("<|", "<｜", "<[fim-", "### User Excerpt:", "<<<<<<< CURRENT", "[INST]")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A prompt made for another kind of model, or one that cannot be read."""

    reason: str  # why nothing is suggested, for people


def recognise(prompt: str) -> Middle | Excerpt | Unknown:
    """Return what a prompt without a ``suffix`` field means, by its markers alone.

    A model's name says nothing: clients send each model's markers under any name. With the markers
    of an edit format it is the region between them, with those of fill-in-the-middle the text
    around the middle, and without markers a file that ends at the cursor, as clients mean that
    leave an empty suffix out. With other markers, and with such that occur in the code too, it is
    unknown, because an answer at the wrong place would put nonsense into the user's file.
    """
    try:
        for read in _READERS:
            if (found := read(prompt)) is not None:
                return found
    except Unreadable as error:
        return Unknown(str(error))
    marker = any(begin in prompt for begin in _MARKERS_BEGIN) and _MARKERS.search(prompt)
    if not marker:
        return Middle(prompt, "")
    return Unknown(f"The prompt holds {marker[0]!r}, which belongs to no format known here.")
