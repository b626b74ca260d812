"""What a stream of text may tell while the answer is being written. Pure."""

from __future__ import annotations

from redraft.model.records import CanvasState


class StreamedText:
    """What was told of one answer so far.

    Args:
        stops: what may turn out to end the answer where it stands is not told.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self.text = ""
        self._held = max(map(len, stops), default=0)

    def more(self, state: CanvasState) -> str:
        """What can be told now: of what stays, all that was not told and begins no stop string."""
        sure = "".join(piece or "" for piece in state.pieces[: state.sure])
        upto = max(len(sure) - self._held, 0)
        new = sure[len(self.text) : upto] if sure.startswith(self.text) else ""
        self.text += new
        return new
