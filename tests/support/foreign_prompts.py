"""Prompts in the formats of other projects' models, over tokenizers of bytes."""

from __future__ import annotations

from redraft.model.config import ModelConfig
from redraft.model.prompts.format import ParsedEdit, Prompt
from redraft.model.prompts.registry import format_of
from redraft.model.prompts.tokenizer import END
from redraft.model.records import EditRequest, RecentEdit, RelatedFile

from support.models import tiny
from support.models.tiny import byte_tokenizer

QWEN = (
    "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_sep|>",
    "<|repo_name|>",
)  # fmt: skip

SEED = ("<[end▁of▁sentence]>", "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<filename>")

MELLUM = ("<|endoftext|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>")

DEEPSEEK = ("<｜end▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")

DREAM = ("<|endoftext|>", "<|beginoftext|>", "<|mask|>", "<|expand|>")

BARE = ("</s>",)

VOCABULARIES = {
    "fim-qwen": QWEN, "fim-seed": SEED, "fim-mellum": MELLUM, "fim-deepseek": DEEPSEEK,
    "prefix": BARE, "in-place": DREAM, "sweep": QWEN, "sweep-v2": QWEN, "zeta-2": SEED,
    "zeta-2.1": SEED,
}  # fmt: skip

TOKENIZERS = {name: byte_tokenizer(names) for name, names in VOCABULARIES.items()}

LINES = [
    "import os", "", "", "def area(width, height):", "    size = width * height", "    return size",
    "", "", "class Box:", '    """Holds things."""', "", "    def __init__(self, width, height):",
    "        self.width = width", "        self.height = height", "",
    "    def area(self):", "        return area(self.width, self.height)", "",
    "    def show(self):", "        print(self.width)", "        print(self.height)", "", "",
    "def main():", "    box = Box(1, 2)", "    box.show()", "    print(box.area())", "", "",
    'if __name__ == "__main__":', "    main()", "",
]  # fmt: skip

TEXT = "\n".join(LINES)

CURSOR = TEXT.index("        self.height = height")

EDIT = RecentEdit(
    "box.py", 11, "-    def __init__(self, width):\n+    def __init__(self, width, height):\n"
    "         self.width = width\n",
)  # fmt: skip

REQUEST = EditRequest(
    task="next_edit",
    path="box.py",
    text=TEXT,
    cursor=CURSOR,
    related=(RelatedFile("shapes.py", "PI = 3.14\n"), RelatedFile("lib/b.py", "def b(): ...")),
    edits=(RecentEdit("other.py", 0, "-a\n+b\n", accepted=True), EDIT),
)


def rendered(name: str, request: EditRequest, budget: int = 20_000) -> Prompt:
    config = ModelConfig(prompt_format=name, end_token=TOKENIZERS[name].mark(END))
    return tiny.rendered(request, TOKENIZERS[name], config, budget)


def read(name: str, request: EditRequest, answer: str, ended: bool = True) -> ParsedEdit | None:
    """``answer`` read back; what of it the prompt already holds is not written again."""
    prompt = rendered(name, request)
    return format_of(name).parse(prompt, request, answer.removeprefix(prompt.begun), ended)


def made(request: EditRequest, found: ParsedEdit | None) -> str:
    assert found is not None
    return request.text[: found.start] + found.text + request.text[found.end :]
