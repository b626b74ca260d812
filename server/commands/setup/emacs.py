"""Emacs: a block of the init file that makes copilot.el or lsp-mode start our server."""

from __future__ import annotations

import json
from pathlib import Path

from .changes import Record, SetupPlan, run
from .clients import find_program
from .marked_block import with_block, without_block


def find() -> str:
    """Return where Emacs is, "" if it is not on the PATH."""
    return find_program("emacs")


def plan(record: Record, program: str) -> SetupPlan:
    file = _init_file()
    text = record.text_before(file, without_block)
    path = json.dumps(program, ensure_ascii=False)  # JSON's strings are strings of Lisp, too
    changed = with_block(text, "emacs", _LINES.replace("PROGRAM", path), ";;")
    by_hand = (
        "Install the package copilot (M-x package-install RET copilot, from MELPA) or lsp-mode, "
        "if you have neither; you do not sign in."
    )
    return SetupPlan(edits={file: changed.encode()}, by_hand=by_hand)


def _init_file() -> Path:
    """Return the file that Emacs reads at its start, by Emacs's order."""
    said = run(find(), "--batch", "-Q", "--eval", "(princ user-emacs-directory)")
    folder = Path(said.strip()).expanduser()
    home = Path.home()
    doom = home / ".config" / "doom" / "config.el"  # there, init.el is Doom's
    candidates = (doom, home / ".emacs.el", home / ".emacs")
    return next(filter(Path.exists, candidates), folder / "init.el")


_LINES = """\
(with-eval-after-load 'copilot
  (setq copilot-server-executable PROGRAM
        copilot-server-args '("lsp" "--stdio")))
(if (fboundp 'copilot-mode)
    (progn (add-hook 'prog-mode-hook #'copilot-mode)
           (when (fboundp 'copilot-nes-mode)
             (add-hook 'prog-mode-hook #'copilot-nes-mode)))
  (with-eval-after-load 'lsp-mode
    (lsp-register-client
     (make-lsp-client :new-connection (lsp-stdio-connection '(PROGRAM "lsp"))
                      :activation-fn (lambda (_file mode) (provided-mode-derived-p mode 'prog-mode))
                      :server-id 'redraft
                      :add-on? t))))
"""
