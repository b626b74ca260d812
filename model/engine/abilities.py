"""What weights can do, as far as their configuration and their chat template tell.

Said to clients before they ask; what refuses a request that goes beyond it is ``answer.py``.
"""

from __future__ import annotations

from ..config import ModelConfig
from ..prompt.formats import predicts_edits, takes_grammars
from ..records import Ability


def abilities_of(config: ModelConfig) -> tuple[Ability, ...]:
    """Outside conversations."""
    found: list[Ability] = ["infill"]
    if config.verifier == "ar" and predicts_edits(config.prompt_format):
        found.append("next_edit")
    if config.verifier == "ar" and takes_grammars(config.prompt_format):
        found.append("grammar")
    return tuple(found)


def chat_abilities_of(config: ModelConfig, knows_tools: bool) -> tuple[Ability, ...]:
    """In conversations, for weights that have a chat template."""
    found: list[Ability] = ["grammar"]
    if config.verifier == "ar":
        found.append("decide")
    if knows_tools:
        found.append("tools")
    return tuple(found)
