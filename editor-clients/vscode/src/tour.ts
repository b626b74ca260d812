/**
 * The tour: small scenes to try Redraft on, which its command copies into the user's home.
 */

import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { messageOf } from './client';
import { type Actions, output } from './menu';

const FOLDER = path.join(os.homedir(), 'redraft-tour');
const FIRST = vscode.Uri.file(path.join(FOLDER, 'tour1_parameter.py'));

/** Copy the tour and open its folder. Files that the user changed stay as they are. */
export async function takeTour(actions: Actions): Promise<void> {
  const command = await actions.command();
  if (!command) return actions.install();
  try {
    await output(command, 'tour', FOLDER);
    if (isHere()) return void (await vscode.window.showTextDocument(FIRST));
    const forceNewWindow = vscode.workspace.workspaceFolders !== undefined;
    await vscode.commands.executeCommand('vscode.openFolder', vscode.Uri.file(FOLDER), { forceNewWindow });
  } catch (error) {
    void vscode.window.showErrorMessage(`Redraft: the tour cannot be opened: ${messageOf(error)}`);
  }
}

/** In a window of the tour without a file, open the first one: `openFolder` does not take files. */
export async function showFirst(): Promise<void> {
  if (isHere() && vscode.window.tabGroups.all.every(({ tabs }) => !tabs.length)) {
    await vscode.window.showTextDocument(FIRST);
  }
}

const isHere = (): boolean =>
  vscode.workspace.workspaceFolders?.[0]?.uri.fsPath === vscode.Uri.file(FOLDER).fsPath;
