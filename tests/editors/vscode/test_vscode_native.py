"""Next edits by VS Code's proposed API, which code-server grants to any extension that asks.

The package of ``npm run package:native`` asks for it.

Skipped where ``test_vscode.py`` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.editors.vscode_desk import BODY, CALL, CODE, POSITION, change_signature, window
from support.editors.vscode_studio import Studio, missing, studio

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[Studio]:
    with studio(tmp_path_factory.mktemp("native"), pictures, native=True) as opened:
        yield opened


#: The line number beside the edit that VS Code shows.
MARK = "(document.querySelector('.inline-edits-view-gutter-indicator')?.textContent.trim() ?? '')"


def test_a_distant_edit_is_shown_by_vscode_itself(native: Studio, tmp_path: Path) -> None:
    script = {"answers": [{"ghost": "", "edits": [CALL, BODY]}]}
    with window(native, tmp_path, "native", {"a.py": CODE}, script) as w:
        change_signature(w)
        w.until(f"{MARK} === '13'")
        assert w.hints() == ""  # nothing is drawn twice
        w.press("Tab")  # there
        w.until(f"{POSITION}.startsWith('Ln 13')")
        w.press("Tab")  # take it
        w.await_outcome("was accepted")
        w.until(f"{MARK} === '9'")
        w.press("Tab")
        w.until(f"{POSITION}.startsWith('Ln 9,')")
        w.press("Tab")
        w.await_outcome("was accepted", times=2)
        wanted = CODE.replace("area(r)", "area(r, pi)").replace(*CALL).replace(*BODY)
        assert w.saved("a.py") == wanted


def test_an_edit_that_vscode_shows_is_rejected_by_key(native: Studio, tmp_path: Path) -> None:
    script = {"answers": [{"ghost": "", "edits": [CALL]}]}
    with window(native, tmp_path, "native-rejected", {"a.py": CODE}, script) as w:
        change_signature(w)
        w.until(f"{MARK} === '13'")
        w.press("Alt+Backspace")
        w.await_outcome("was rejected")
        w.until(f"{MARK} === ''")
        w.go_to(5, 1)
        w.press("End")
        w.type("  # area")
        w.await_reason("you rejected this edit before")
        assert (w.evaluate(MARK), w.hints()) == ("", "")
