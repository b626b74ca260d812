"""Every format of prompts by its name: how a request is written for a model, and its answer read.

``ModelConfig.prompt_format`` names the one that weights were trained on. Redraft's own are in
``render.py`` and ``answers.py``; those of others stand in a file each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from ..config import ModelConfig
from ..errors import SettingsError
from ..records import EditRequest
from .fim import STYLES, Fim, InPlace
from .foreign import Declined, Read
from .redraft3 import Redraft3
from .render import REDRAFT_3, Prompt
from .sweep import FILE, Sweep
from .sweep_v2 import SweepV2
from .tokens import Tokenizer
from .zeta import MIDDLE, PREFIX, SUFFIX, Zeta


class Format(Protocol):
    """How prompts are written and answers read."""

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        """Tokens of ``request``, at most ``budget`` as far as the format allows, or why the model
        is not asked."""
        ...

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        """What to do with the document; None: nothing.

        Args:
            ended: whether the model ended the answer itself.

        Raises:
            InvalidAnswer: the answer breaks the format.
        """
        ...


#: Redraft's own; and the one before, whose infills are the same and whose next edits are gone.
_REDRAFT_3, _REDRAFT_2 = Redraft3(), Redraft3(predicts_edits=False)
#: Of diffusion weights that see what stands behind a canvas.
IN_PLACE = "in-place"
#: Those of others, by name.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        **{name: Fim(style) for name, style in STYLES.items()},
        "prefix": Fim(None),
        IN_PLACE: InPlace(),
        "sweep": Sweep(),
        "sweep-v2": SweepV2(),
        "zeta-2": Zeta(markers=False),
        "zeta-2.1": Zeta(markers=True),
    }
)
#: Which special tokens a vocabulary needs for one.
_NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{name: (style.prefix, style.suffix, style.middle) for name, style in STYLES.items()},
        "prefix": (),
        IN_PLACE: (),
        "sweep": (FILE.name,),
        "sweep-v2": (FILE.name,),
        "zeta-2": (SUFFIX.name, PREFIX.name, MIDDLE.name),
        "zeta-2.1": (SUFFIX.name, PREFIX.name, MIDDLE.name),
    }
)
#: Parts of the names of weights that were trained on a format which their vocabulary does not
#: tell, the more particular ones first.
_BY_NAME = (
    ("zeta-2.1", "zeta-2.1"), ("zeta2.1", "zeta-2.1"), ("zeta-2", "zeta-2"), ("zeta2", "zeta-2"),
    ("sweep-next-edit-v2", "sweep-v2"), ("sweep-next-edit", "sweep"),
)  # fmt: skip


def format_of(name: str) -> Format:
    """The format that a configuration names; any other name is one of Redraft's own, which
    ``render`` checks."""
    return _REDRAFT_3 if name == REDRAFT_3 else FORMATS.get(name, _REDRAFT_2)


def predicts_edits(name: str) -> bool:
    """Return whether a format can ask for the next edit; all can ask what goes in at the cursor."""
    return format_of(name) is not _REDRAFT_2 and not isinstance(format_of(name), Fim | InPlace)


def takes_grammars(name: str) -> bool:
    """Whether an answer in a format can be held to a grammar: it is written from left to right, and
    is what goes in at the cursor and no more."""
    return isinstance(format_of(name), Redraft3 | Fim)


def check_format(name: str, special: Iterable[str]) -> None:
    """Whether autoregressive weights can be asked in a format.

    Raises:
        SettingsError: there is no such format, or the vocabulary cannot write it.
    """
    chosen = [each for each in FORMATS if each != IN_PLACE]  # which no causal weights can read
    if name not in chosen:
        raise SettingsError(f"Unknown format {name!r}: choose one of {', '.join(chosen)}.")
    missing = sorted(set(_NEEDS[name]) - set(special))
    if missing:
        raise SettingsError(
            f"The format {name} needs the tokens {missing}, which this vocabulary does not have. "
            "Leave --format out, or choose the one these weights were trained on."
        )


def native_format(special: Iterable[str], names: Iterable[str]) -> str:
    """What autoregressive weights were most likely trained on.

    Args:
        special: names of the vocabulary's special tokens.
        names: of the weights: the file's or folder's, and what their metadata call them.
    """
    known, called = set(special), " ".join(names).lower().replace("_", "-")
    for part, name in _BY_NAME:
        if part in called and known.issuperset(_NEEDS[name]):
            return name
    fitting = (name for name in STYLES if known.issuperset(_NEEDS[name]))
    return next(fitting, "prefix")
