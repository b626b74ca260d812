"""The records that cross package borders, and the interface between front ends and the engine.

Frozen dataclasses only: no I/O, no torch, no onnxruntime. A field names its unit and base. Its type
limits the values from outside (``validation.py``) and is not checked for records made here. Text
offsets are ``str`` indices (code points); only ``lsp/documents/positions.py`` knows UTF-16. Texts
use ``\n`` line ends; clients' line ends are converted on the way in and out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

from .validation import AnyText, AtLeastOne, Exactly, Flag, Number, Text, Whole

Task = Literal["infill", "next_edit", "chat"]
Quality = Literal["low", "medium", "high"]
#: Why an answer ends: the model ended it, a limit, a stop string, or the next line is too unlikely.
Finish = Literal["end", "length", "stop", "unsure"]
#: Who thought of a candidate: the model, a recent edit that is repeated, or both alike.
Source = Literal["model", "repeat", "both"]

#: Where a draft that the causal pass judges came from: a copy of what followed the same tokens
#: elsewhere, a canvas, masks behind a judged token, or the grammar that leaves no choice.
DraftSource = Literal["copy", "canvas", "mask", "forced"]
#: How a :class:`Grammar` is written.
GrammarKind = Literal["json_schema", "regex", "lark"]
Role = Literal["system", "user", "assistant", "tool"]
#: What of a prompt is read ahead: what stays while the newest edit is typed, or all of it. "":
#: nothing, the request wants an answer.
ReadPart = Literal["", "stable", "all"]

# Limits of a request, whichever route it takes.
MIN_CONTEXT_TOKENS = 64  # below it the marks and the path crowd the text out
MAX_CONTEXT_TOKENS = 32_768
MAX_ANSWER_TOKENS = 4_096  # keeps caches within their size classes
MAX_TEMPERATURE = 2
MAX_CANDIDATES = 16
MAX_STOPS = 16  # clients of many models list the stop strings of all

#: Natural logarithm in place of that of a probability of 0: JSON knows no infinity.
LEAST_LOG = -1e4

Temperature = Annotated[float, Exactly(0, MAX_TEMPERATURE)]
TopP = Annotated[float, Exactly(0, 1)]
ContextTokens = Annotated[int, Exactly(1, MAX_CONTEXT_TOKENS)]
# A hair above 1, or 0 of a logarithm, is float32 rounding of a softmax, not a fault.
Share = Annotated[float, Exactly(0, 1.001)]
Log = Annotated[float, Exactly(LEAST_LOG, 0.01)]
Feature = Annotated[float, Exactly(-1e6, 1e6)]

#: The family of rules whose edits are shown without a gate: imports of a module of the standard
#: library for a name that nothing defines. The rule is wrong at 14 of 16,000 moments.
STANDARD = "standard"

#: What pydantic shall do with fields that a request does not have.
_REFUSE = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class RelatedFile:
    """An excerpt of another file that helps to predict this one."""

    path: Text  # as shown to the model, relative to the workspace, "/" separated
    text: Text
    why: Text = ""  # why it was chosen, for people: "definition of parse_args"
    pinned: bool = False  # the user wants it in every prompt
    is_above: bool = False  # the document continues it, as a cell continues those above it
    __pydantic_config__ = _REFUSE


@dataclass(frozen=True, slots=True)
class RecentEdit:
    """A finished edit of the user, as the body of a unified diff hunk."""

    path: Text
    line: Whole  # 0-based first line of the hunk in the file after the edit
    diff: Text  # lines beginning with " ", "-" or "+", each ended by "\n"
    accepted: Flag = False  # it came from an accepted suggestion
    __pydantic_config__ = _REFUSE


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message of a compiler or linter about a place, as the client passes it on."""

    line: Whole  # 0-based
    message: Text
    severity: Whole = 1  # 1 error, 2 warning, 3 information, 4 hint
    __pydantic_config__ = _REFUSE


@dataclass(frozen=True, slots=True)
class Importable:
    """A name that one place of the workspace alone defines, as the document would import it."""

    name: Text  # as it stands in the document
    module: Text  # as an import there names it: "a.b", "./util", "crate::a", "com.acme"
    whole: Flag = False  # the name is that of the module, or of what it exports by default
    is_type: Flag = False  # TypeScript: it names a type and nothing else
    __pydantic_config__ = _REFUSE


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar that an answer must match from its first character to its last."""

    kind: GrammarKind
    text: Text  # a JSON schema as JSON, a regular expression, or a grammar in Lark's notation
    field: Text = ""  # by which a request brought it; errors name it


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that an assistant wanted called."""

    id: Text
    name: Text
    arguments: Text  # a JSON object


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation."""

    role: Role
    content: Text
    name: Text = ""
    tool_calls: tuple[ToolCall, ...] = ()  # of an assistant
    tool_call_id: Text = ""  # of a tool: which call this answers


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns so far; the answer is the next turn of the assistant."""

    messages: tuple[Message, ...]
    tools: Text = ""  # a JSON array of functions, as templates take them; "" none
    think: Flag = True  # whether a model that can reason before it answers shall
    begins: Text = ""  # what the answer begins with: written into the prompt, marks included
    labels: tuple[Text, ...] = ()  # answers that are priced, each as the whole one; none is written


@dataclass(frozen=True, slots=True)
class EditRequest:
    """Everything the engine needs to predict; made by ``lsp`` or by an HTTP wire.

    A conversation (``task`` "chat") has neither text nor cursor: its candidates begin and end at 0.
    """

    task: Task
    path: Text  # as shown to the model; its suffix gives the language
    text: Text  # the whole document
    cursor: Whole  # index into text, 0 … len(text)
    language: Text = ""  # LSP language id, "" when unknown
    related: tuple[RelatedFile, ...] = ()  # least relevant first
    edits: tuple[RecentEdit, ...] = ()  # oldest first
    diagnostics: tuple[Diagnostic, ...] = ()  # next edit: what is reported of the document
    importable: tuple[Importable, ...] = ()  # next edit: names just written, where they come from
    region: tuple[Whole, Whole] | None = None  # next edit: 0-based lines [first, last) to replace
    context_tokens: ContextTokens | None = None  # None: what this machine prefills in time
    max_tokens: AtLeastOne = 64  # of the answer
    min_tokens: Whole = 0  # written before END may come; 1: an answer in any case, however unsure
    max_lines: AtLeastOne | None = None  # cut an infill after so many lines; None: no limit
    least_total: Log = LEAST_LOG  # log: an infill that gets less likely than this is given up
    quality: Quality = "medium"
    temperature: Temperature = 0.0  # 0: always the most likely token
    top_p: TopP = 1.0
    seed: Whole | None = None  # None: draws differ from call to call
    stop: tuple[Text, ...] = ()  # infill: cut before the first of these
    candidates: AtLeastOne = 1  # how many to return at most
    grammar: Grammar | None = None  # infill and chat: what the answer must be
    conversation: Conversation | None = None  # chat
    #: Only read the prompt into the prefix cache, while no request needs the engine; no candidates.
    read_ahead: ReadPart = ""
    __pydantic_config__ = _REFUSE

    @property
    def text_above(self) -> str:
        """The text that the document continues, each line with its end; "" if there is none."""
        texts = (file.text for file in self.related if file.is_above)
        return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts)


@dataclass(frozen=True, slots=True)
class Confidence:
    """The probabilities of a candidate's tokens.

    Values are in 0 … 1, and for the gate natural logarithms of probabilities, LEAST_LOG … 0.
    """

    mean: Share  # geometric mean over the tokens, END included
    minimum: Share
    first: Share  # of the first token
    total: Log = 0.0  # log: of the whole answer, END included
    place: Log | None = None  # log: next edit: of its range of lines, whatever is written there
    nothing: Log | None = None  # log: next edit: of no edit at all, at the same moment
    #: That this is the next edit, as a rule has it that repeats a recent one or knows its place.
    repeat: Share | None = None
    logs: tuple[Log, ...] = ()  # log: of each token, END included; (): unknown
    #: Log: infill: of each line that is not blank, with the break or the END behind it. Blank lines
    #: count with the next one. (): unknown.
    lines: tuple[Log, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A replacement of ``request.text[start:end]``."""

    start: Whole  # index into request.text
    end: Whole  # index into request.text, >= start; infill: the cursor itself
    text: AnyText
    confidence: Confidence
    tokens: Whole  # tokens the denoiser placed, END included
    steps: Whole  # denoise steps (forward passes over the canvas)
    finish: Finish
    source: Source = "model"
    #: What the gate weighs besides the confidence, by name; see ``gate/features.py``.
    features: dict[Text, Feature] = field(default_factory=dict)
    family: str = ""  # of rules that proposed it, as model/rules/ names them; "": none did


@dataclass(frozen=True, slots=True)
class DraftCount:
    """Counts of the drafts of one source.

    Entry j is about drafts in place j (0-based) behind the last token known to be right.
    """

    source: DraftSource
    drafted: tuple[Whole, ...]  # judged
    reached: tuple[Whole, ...]  # of those, all before it were right
    right: tuple[Whole, ...]  # of those, it was right too


@dataclass(frozen=True, slots=True)
class Stats:
    """The cost of one prediction."""

    prompt_tokens: Whole = 0
    reused_tokens: Whole = 0  # prompt tokens found in the prefix cache
    computed_tokens: Whole = 0  # tokens run through prefill, committed canvases included
    canvas_tokens: Whole = 0  # tokens of the answers, END included; of next edits the whole region
    denoise_steps: Whole = 0  # passes over the canvas, denoising and verifying ones
    repaired_tokens: Whole = 0  # drafted tokens that the causal pass replaced
    queue_ms: Number = 0.0
    prompt_ms: Number = 0.0  # rendering and tokenising
    prefill_ms: Number = 0.0
    denoise_ms: Number = 0.0  # committing canvases included
    total_ms: Number = 0.0
    cut: Text = ""  # what was left out of the context for length, for people; "" nothing
    drafts: tuple[DraftCount, ...] = ()  # that the causal pass judged, by source

    @property
    def tokens_per_step(self) -> float:
        return self.canvas_tokens / self.denoise_steps if self.denoise_steps else 0.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """The engine's answer: candidates, best first, or the reason why there is none."""

    request_id: Text
    model: Text  # "name variant", such as "redraft-0.5b int8"
    candidates: tuple[Candidate, ...] = ()
    reason: Text = ""  # why candidates is empty, for people
    stats: Stats = field(default_factory=Stats)
    weights: Text = ""  # version of the model's weights, "" for those that have none
    is_given_up: Flag = False  # no candidates, because the text became too improbable


@dataclass(frozen=True, slots=True)
class CanvasState:
    """The answer as it stands after a denoise step; ``None`` marks a position still masked."""

    step: Whole  # 1-based, counted over all canvases of the answer
    pieces: tuple[AnyText | None, ...]  # text of each position so far, earlier canvases included
    sure: Whole = 0  # the first so many pieces stay as they are

    def show(self, mask: str = "░") -> str:
        return "".join(mask if piece is None else piece for piece in self.pieces)


#: What a model can do: fill in at the cursor, predict the next edit, keep to a grammar; say how
#: likely a given answer is, and call tools, in conversations.
Ability = Literal["infill", "next_edit", "grammar", "decide", "tools"]


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The state of the engine, and how far it is or why it failed if it cannot answer.

    An engine whose model is unloaded answers, too: the next request loads the model first.
    """

    state: Literal["absent", "downloading", "loading", "ready", "unloaded", "failed"]
    model: Text  # "name variant"
    provider: Text = ""  # "CPU", "CUDA"
    progress: Share | None = None  # 0 … 1 of the present state; None: unknown
    message: Text = ""  # for people; says what to do when failed
    context_tokens: Whole = 0  # the budget that "auto" picked; 0 until ready
    longest_tokens: Whole = 0  # of a conversation and its answer; 0 until ready
    chat_model: Text = ""  # name of the model that answers conversations; "" none
    abilities: tuple[Ability, ...] = ()  # outside conversations; () until ready
    chat_abilities: tuple[Ability, ...] = ()  # of ``chat_model`` in conversations
    prompt_format: Text = ""  # that the weights were trained on; "" until ready
    reads_ahead: Flag = False  # it knows ``EditRequest.read_ahead``
    larger: Text = ""  # name of a model of Redraft's that its user may want to download
    #: For people: what that one brings and costs; without it, why a larger one that is there does
    #: not run. "": neither.
    about_larger: Text = ""

    @property
    def can_answer(self) -> bool:
        """Return whether a request is answered, if need be after the model was loaded again."""
        return self.state in ("ready", "unloaded")


StepCallback = Callable[[CanvasState], None]


class Predictor(Protocol):
    """The seam between front ends and the engine: in this process or over HTTP.

    Cancelling the task that awaits :meth:`predict` stops the computation within one denoise step
    or one prefill chunk.

    Raises:
        ModelNotReady: the weights are still being fetched or loaded; try again later.
        Overloaded: too many requests wait already; carries seconds to wait.
        InvalidRequest: the request cannot be answered as it is; says which field and why.
        EngineGone: the engine process cannot be reached.
    """

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction: ...

    async def status(self) -> ModelStatus: ...

    async def close(self) -> None: ...
