/**
 * The tour: small scenes to try Redraft on, which its command copies into the user's home.
 */

import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { messageOf } from './client';
import { type Actions, output } from './menu';

/** Key of the file to open in the next window. */
const FIRST = 'tour';

/** Copy the tour and open its folder. Files that the user changed stay as they are. */
export async function takeTour(actions: Actions, state: vscode.Memento): Promise<void> {
  const command = await actions.command();
  if (!command) return actions.install();
  try {
    const first = (await output(command, 'tour', path.join(os.homedir(), 'redraft-tour'))).trim();
    await state.update(FIRST, first);
    const { workspaceFolders } = vscode.workspace;
    if (isHere(first)) return await openFirst(state);
    const forceNewWindow = workspaceFolders !== undefined;
    await vscode.commands.executeCommand('vscode.openFolder', vscode.Uri.file(path.dirname(first)), { forceNewWindow });
  } catch (error) {
    void vscode.window.showErrorMessage(`Redraft: the tour cannot be opened: ${messageOf(error)}`);
  }
}

/** Open the first file, in the window that was opened for it. */
export async function openFirst(state: vscode.Memento): Promise<void> {
  const first = state.get<string>(FIRST);
  if (!first || !isHere(first)) return;
  await state.update(FIRST, undefined);
  await vscode.window.showTextDocument(vscode.Uri.file(first));
}

const isHere = (first: string): boolean =>
  vscode.workspace.workspaceFolders?.[0]?.uri.fsPath === vscode.Uri.file(path.dirname(first)).fsPath;
