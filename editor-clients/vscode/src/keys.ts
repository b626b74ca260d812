/**
 * Context keys of the key bindings in the manifest. Each is set only when it changes.
 */

import * as vscode from 'vscode';

/**
 * - `edit`: a next edit can be accepted or jumped to.
 * - `ghost`: ghost text of Redraft may be visible.
 */
type Key = 'edit' | 'ghost';

const known = new Map<Key, boolean>();

export function setKey(key: Key, value: boolean): void {
  if (known.get(key) === value) return;
  known.set(key, value);
  void vscode.commands.executeCommand('setContext', `redraft.${key}`, value);
}
