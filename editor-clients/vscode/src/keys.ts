/**
 * The context keys that the manifest's key bindings ask for: each is set only when it changes.
 */

import * as vscode from 'vscode';

/**
 * - `edit`: a next edit can be accepted or jumped to.
 * - `tab`: Tab does that here (not in leading white space, unless we brought the cursor there).
 * - `ghost`: the ghost text that may be visible is ours.
 * - `leading`: only white space is before the cursor: Tab indents.
 */
type Key = 'edit' | 'tab' | 'ghost' | 'leading';

const known = new Map<Key, boolean>();

export function setKey(key: Key, value: boolean): void {
  if (known.get(key) === value) return;
  known.set(key, value);
  void vscode.commands.executeCommand('setContext', `redraft.${key}`, value);
}

/** Is nothing but white space before the cursor? */
export function isLeading(editor: vscode.TextEditor): boolean {
  const { line, character } = editor.selection.active;
  return !editor.document.lineAt(line).text.slice(0, character).trim();
}
