/**
 * The context keys that the manifest's key bindings ask for: each is set only when it changes.
 */

import * as vscode from 'vscode';

/**
 * - `edit`: a next edit can be accepted or jumped to.
 * - `ghost`: the ghost text that may be visible is ours.
 */
type Key = 'edit' | 'ghost';

const known = new Map<Key, boolean>();

export function setKey(key: Key, value: boolean): void {
  if (known.get(key) === value) return;
  known.set(key, value);
  void vscode.commands.executeCommand('setContext', `redraft.${key}`, value);
}
