"""Candidates of decoded answers: each change of the document once, with its probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

from ..edits.edit import Edit
from ..edits.syntax_errors import trim_to_valid
from ..errors import InvalidAnswer
from ..gate.features import with_features
from ..prompts.format import ParsedEdit, Prompt, PromptFormat
from ..records import LEAST_LOG, Candidate, Confidence, EditRequest, Source
from ..rules.diagnostics import put_mending_first
from .completion import Draft
from .next_edit import likelihood
from .sampling import confidence, line_logs


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the drafts of one request."""

    written_in: PromptFormat
    prompt: Prompt
    request: EditRequest
    vocab_bytes: Seq[bytes]

    def read(self, drafts: tuple[Draft, ...]) -> tuple[tuple[Candidate, ...], str]:
        """Return each change of the document once, best first, or the reason for no candidates."""
        request = self.request
        if request.conversation is not None:
            answers = (self._candidate(ParsedEdit(0, 0, draft.text), draft) for draft in drafts)
            return tuple(answers), ""
        found: dict[str, Candidate] = {}  # by the document it makes
        reason = ""
        for draft in drafts:
            ended = draft.ended or (draft.finish == "stop" and self.prompt.room > 0)
            try:
                change = self.written_in.parse(self.prompt, request, draft.text, ended)
            except InvalidAnswer as error:
                reason = reason or str(error)
                continue
            if change is None or request.text[change.start : change.end] == change.text:
                reason = reason or self._nothing(draft)
                continue
            change = self._whole(change)
            made = request.text[: change.start] + change.text + request.text[change.end :]
            first = found.get(made)
            one = self._candidate(change, draft)
            found[made] = one if first is None else _joined(first, draft)
        ordered = put_mending_first(
            request.text,
            request.diagnostics,
            [*found.values()],
            lambda one: math.log(max(likelihood(one.confidence), 1e-9)),
        )
        candidates = with_features(request, ordered[: request.candidates])
        return candidates, "" if candidates else reason

    def _whole(self, change: ParsedEdit) -> ParsedEdit:
        """Return a next edit without last lines that would break the file."""
        request = self.request
        if request.task != "next_edit":
            return change
        edit = Edit(request.text, change.start, change.end, change.text)
        kept = trim_to_valid(edit, request.path, request.language)
        return change if kept is edit else replace(change, text=kept.new)

    def _candidate(self, change: ParsedEdit, draft: Draft) -> Candidate:
        return Candidate(
            start=change.start,
            end=change.end,
            text=change.text,
            confidence=self._confidence(change, draft),
            tokens=len(draft.token_ids),
            steps=draft.steps,
            finish=draft.finish,
            source=draft.source,
            family=draft.family,
        )

    def _confidence(self, change: ParsedEdit, draft: Draft) -> Confidence:
        """Return the probabilities of an answer.

        Of a rewritten region only the tokens that change something count, and the first one behind
        them: repeating the rest is no merit.
        """
        logs = draft.confidence.logs
        if not logs:
            return draft.confidence
        if change.written is None:
            return self._with_lines(draft) if self.request.task == "infill" else draft.confidence
        first, last = (len(draft.text[:index].encode()) for index in change.written)
        probabilities, at = list[float](), 0
        for token, log in zip(draft.token_ids, logs, strict=False):
            begins, at = at, at + len(self.vocab_bytes[token])
            if at > first:
                probabilities.append(math.exp(log))
            if begins >= last:
                break
        return confidence(probabilities or [math.exp(logs[-1])])

    def _with_lines(self, draft: Draft) -> Confidence:
        """Return the confidence of ghost text with the log-probability of each of its lines."""
        logs = draft.confidence.logs
        tokens = [self.vocab_bytes[token] for token in draft.token_ids[: len(logs)]]
        skip = len(self.prompt.forced.encode())
        lines = line_logs(tokens, logs[: len(tokens)], skip)
        return replace(
            draft.confidence, lines=tuple(round(max(log, LEAST_LOG), 4) for log in lines)
        )

    def _nothing(self, draft: Draft) -> str:
        if self.request.task == "next_edit":
            return "The model would change nothing here."
        if self.prompt.room:
            return "The model would insert nothing at the cursor."
        written = draft.text[len(self.prompt.forced) :]
        if draft.finish == "stop":
            return "The answer begins with a stop string."
        if draft.finish == "unsure" and not written:
            return "The model is not sure enough of any text here."
        if written.strip():
            return "The model would only repeat what follows the cursor."
        if written or draft.finish == "length":
            return "The model would only start a new line here."
        return "The model would write nothing here."


def _joined(first: Candidate, draft: Draft) -> Candidate:
    """Return a candidate with the source of another answer that makes the same change."""
    source: Source = first.source if first.source == draft.source else "both"
    repeat = first.confidence.repeat
    if repeat is None:
        repeat = draft.confidence.repeat
    family = first.family or draft.family
    return replace(
        first, source=source, family=family, confidence=replace(first.confidence, repeat=repeat)
    )
