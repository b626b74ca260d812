"""The architecture and conventions of one set of weights; saved as ``config.json`` beside them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .errors import WeightsError
from .release import HOW_TO_UPGRADE

RopeScaling = Literal["none", "linear", "ntk", "yarn"]

#: The name in settings that leaves the choice of the model to Redraft.
AUTO = "auto"
#: Names of the seven linear maps of a block, in the order they run.
LINEARS = ("attn.q", "attn.k", "attn.v", "attn.o", "mlp.gate", "mlp.up", "mlp.down")
#: Those that an adapter on masks changes: each product it is in costs two small ones more.
ON_MASKS = ("mlp.gate", "mlp.up")
#: Tensors of the masks' sampler; and the likeliest tokens of a mask, of which it chooses one.
SAMPLER = ("sampler.enter.weight", "sampler.enter.bias", "sampler.mix.weight",
           "sampler.mix.bias", "sampler.leave.weight")  # fmt: skip
CANDIDATES = 32


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of the network and the conventions its weights were trained with.

    Tensor names, shared by checkpoints, torch and the ONNX graphs::

        embed.weight                                  [vocab, hidden]
        blocks.{i}.norm_attn.weight                   [hidden]
        blocks.{i}.attn.{q,k,v,o}.weight (.bias)      [out, in]
        blocks.{i}.attn.{q_norm,k_norm}.weight        [head_dim], where qk_norm
        blocks.{i}.norm_mlp.weight                    [hidden]
        blocks.{i}.mlp.{gate,up,down}.weight          [out, in]
        norm.weight                                   [hidden]
        head.weight                                   [vocab, hidden], where not tied
        sampler.enter.{weight,bias}                   [sampler, 2 hidden], [sampler]
        sampler.mix.{weight,bias}                     [sampler, sampler], [sampler]
        sampler.leave.weight                          [hidden, sampler], all three of an adapter

    Rotary embedding rotates halves (first half with second half), as Hugging Face checkpoints do.

    ``attention`` says who sees whom. ``canvas``: the context is read causally, a canvas sees all of
    it and itself. ``bidirectional``: every token sees every other, so nothing can be cached.
    ``block``: a token sees all ``block`` positions of its block and those before it, so finished
    blocks can be cached.
    """

    name: str = ""
    vocab: int = 49_152
    hidden: int = 576
    layers: int = 30
    heads: int = 9
    kv_heads: int = 3
    head_dim: int = 64
    intermediate: int = 1_536
    rope_base: float = 100_000.0
    norm_eps: float = 1e-5
    tied: bool = True
    qkv_bias: bool = False
    qk_norm: bool = False
    max_positions: int = 8_192  # trained positions; beyond them rope_scaling applies
    rope_scaling: RopeScaling = "yarn"  # only past max_positions
    canvas_width: int = 16  # B: inputs and predictions of one denoise step
    logit_shift: bool = True  # window = last context token + B-1 masks; input i predicts i + 1
    adapter: Literal["none", "canvas", "all", "masks"] = "none"  # where the adapter is active;
    # masks: on masks that stand behind judged tokens, see masks
    verifier: Literal["none", "ar"] = "none"  # may the causal pass judge drafts?
    prompt_format: str = "redraft-3"
    mask_token: int = 16
    end_token: int = 0
    special_tokens: int = 17  # ids below this are special; of them only END may be predicted
    # Written and hashed only where they differ from these defaults, so that descriptions and ready
    # folders of earlier releases stay as they are; but for the first, of imported weights alone.
    draft_after: int = 0  # where the causal pass judges drafts: 0 where canvases draft for it, else
    # more than any answer has
    masks: int = 0  # most masks of a group behind a judged token that guess what comes after the
    # judge's next token; read in the judge's own pass, with an adapter that acts on them alone
    mask_rank: int = 0  # of that adapter
    sampler: int = 0  # width of what makes a mask's guess follow the token before it, which is
    # known when the pass is over; 0: each guess stands alone
    special_from: int = 0  # ids from here on are special too; 0: none
    specials_end: bool = False  # any special token ends an answer: it is read as END. For weights
    # that were trained to end in one of several
    expand_token: int = 0  # becomes two masks while denoising, and END takes its position out; 0:
    # canvases do not grow
    attention: Literal["canvas", "bidirectional", "block"] = "canvas"  # who sees whom, see below
    block: int = 0  # tokens of a block, where attention is by blocks
    rope_yarn: tuple[float, ...] = ()  # YaRN from the first position on: factor, fast and slow
    # turns, positions, factor of the magnitude
    rope_llama3: tuple[float, ...] = ()  # Llama 3: factor, low and high frequency factor, positions
    rope_divisors: tuple[float, ...] = ()  # of the frequencies, one for each pair or one for all

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that define these weights; :meth:`from_dict` reads them."""
        fields = dataclasses.asdict(self)
        is_usual = {name: fields[name] == _DEFAULTS[name] for name in _RARE}
        return {name: value for name, value in fields.items() if not is_usual.get(name)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    @property
    def has_canvases(self) -> bool:
        """Return whether these weights write or draft on canvases."""
        return self.verifier == "none" or (self.adapter != "masks" and not self.draft_after)

    @property
    def ends(self) -> tuple[int, ...]:
        """The special tokens that may be written, END first.

        If any special token ends an answer, all are read as END.
        """
        if not self.specials_end:
            return (self.end_token, self.expand_token) if self.expand_token else (self.end_token,)
        text = self.text_ids
        others = (*range(text.start), *range(text.stop, self.vocab))
        return (self.end_token, *(i for i in others if i != self.end_token))

    @property
    def text_ids(self) -> range:
        """The tokens of text; all others are special. END is not among them."""
        return range(self.special_tokens, self.special_from or self.vocab)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ModelConfig:
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(data) - known):
            raise WeightsError(
                f"config.json has unknown fields {unknown}: these weights were made by a newer "
                f"Redraft. To upgrade, {HOW_TO_UPGRADE}."
            )
        return cls(**data | {name: tuple(data.get(name, ())) for name in _LISTS})


_DEFAULTS = {field.name: field.default for field in dataclasses.fields(ModelConfig)}
_RARE = (
    "draft_after", "masks", "mask_rank", "sampler", "special_from", "specials_end", "expand_token",
    "attention", "block", "rope_yarn", "rope_llama3", "rope_divisors",
)  # fmt: skip
_LISTS = ("rope_yarn", "rope_llama3", "rope_divisors")


def tensor_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a network, by our names.

    Args:
        config: the fields of a :class:`ModelConfig`.
    """
    hidden, intermediate = config["hidden"], config["intermediate"]
    queries, keys = config["heads"] * config["head_dim"], config["kv_heads"] * config["head_dim"]
    linears = {
        "attn.q": (queries, hidden),
        "attn.k": (keys, hidden),
        "attn.v": (keys, hidden),
        "attn.o": (hidden, queries),
        "mlp.gate": (intermediate, hidden),
        "mlp.up": (intermediate, hidden),
        "mlp.down": (hidden, intermediate),
    }
    block: dict[str, tuple[int, ...]] = {
        "norm_attn.weight": (hidden,),
        "norm_mlp.weight": (hidden,),
    }
    block |= {f"{name}.weight": shape for name, shape in linears.items()}
    if config["qkv_bias"]:
        block |= {f"attn.{part}.bias": (linears[f"attn.{part}"][0],) for part in "qkv"}
    if config["qk_norm"]:
        block |= {f"attn.{part}_norm.weight": (config["head_dim"],) for part in "qk"}
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (config["vocab"], hidden)}
    for i in range(config["layers"]):
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
    shapes["norm.weight"] = (hidden,)
    if not config["tied"]:
        shapes["head.weight"] = (config["vocab"], hidden)
    return shapes
