"""Situations: what the gate and the filters decide by, from a snapshot and the memory."""

from __future__ import annotations

from redraft.model.gate.destruction import find_removed_names
from redraft.model.gate.filters import Situation
from redraft.model.records import Task

from ..snapshot import Snapshot
from .memory import Memory


def situation(
    task: Task, snapshot: Snapshot, memory: Memory, threshold: float, now_s: float
) -> Situation:
    """Return what a prediction for a snapshot is decided by.

    By a gesture, unsure ghost text and deleted text may be shown as well.
    """
    edits, uri = snapshot.edits, snapshot.uri
    is_future, by_key = snapshot.accepted is not None, task == "infill" and snapshot.is_invoked
    last = None if is_future else edits.last_edit(uri)
    return Situation(
        task=task,
        path=snapshot.path,
        language=snapshot.language,
        text=snapshot.text,
        cursor=snapshot.cursor,
        threshold=0.0 if by_key else threshold,
        changes=() if is_future or by_key else edits.changes(uri),
        above=snapshot.above.text if snapshot.above is not None else "",
        last_edit=last[1] if last is not None else None,
        removed=find_removed_names(snapshot.recent) if task == "next_edit" else frozenset(),
        pace=memory.pace.features(now_s),
        rejected=lambda edit: memory.rejections.has_rejected(
            uri, edit, is_invoked=snapshot.is_invoked
        ),
    )
