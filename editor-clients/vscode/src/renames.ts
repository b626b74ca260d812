/**
 * Whole renames: applied by the rename provider of the language if it knows all places, otherwise by the
 * edit of the server.
 */

import * as vscode from 'vscode';
import { range, type Rename, type RenameEdit } from './messages';

/** Time for the rename provider, ms. A user who renames by hand waits longer and sees a progress bar. */
const PROVIDER_MS = 3_000;

/** Apply a rename that the user accepted; false if the text has changed meanwhile. */
export async function applyRename(
  editor: vscode.TextEditor,
  rename: Rename,
  edit: RenameEdit,
): Promise<boolean> {
  const { document, selection } = editor;
  const text = document.getText();
  if (await byProvider(editor, rename)) return true;
  if (document.getText() !== text || !isCurrent(edit, document)) return false;
  editor.selection = selection; // putting the name back has moved it
  return apply(fromServer(edit));
}

/**
 * Rename by the provider of the language. It no longer finds the uses of a definition that has the new
 * name already, so the old name is put back while it works. It is not used if it knows fewer places.
 */
async function byProvider(editor: vscode.TextEditor, rename: Rename): Promise<boolean> {
  if (!rename.old) return false; // another change than a rename
  const { document } = editor;
  const place = range(rename.range);
  if (document.getText(place) !== rename.new || !(await put(editor, place, rename.old))) return false;
  const { version } = document;
  const found = await provided(document, place.start, rename.new);
  const isWhole = document.version === version && found && count(found) > rename.places;
  if (isWhole && (await apply(found))) return true;
  const former = new vscode.Range(place.start, place.start.translate(0, rename.old.length));
  if (document.getText(former) === rename.old) await put(editor, former, rename.new);
  return false;
}

/** Replace a name without an undo step: putting it back and forth changes nothing. */
function put(editor: vscode.TextEditor, where: vscode.Range, name: string): Thenable<boolean> {
  const options = { undoStopBefore: false, undoStopAfter: false };
  return editor.edit((builder) => builder.replace(where, name), options);
}

/** Return the edit of the rename provider, undefined if there is none or it takes too long. */
async function provided(
  document: vscode.TextDocument,
  place: vscode.Position,
  name: string,
): Promise<vscode.WorkspaceEdit | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), PROVIDER_MS));
  const command = 'vscode.executeDocumentRenameProvider';
  const asked = vscode.commands.executeCommand<vscode.WorkspaceEdit>(command, document.uri, place, name);
  try {
    return await Promise.race([asked, late]);
  } catch {
    return undefined; // there is no provider, or it refuses
  }
}

const count = (edit: vscode.WorkspaceEdit): number =>
  edit.entries().reduce((sum, [, edits]) => sum + edits.length, 0);

/** Whether the other open documents are those that the server has seen. */
function isCurrent({ documentChanges }: RenameEdit, own: vscode.TextDocument): boolean {
  return documentChanges.every(({ textDocument: { uri, version } }) => {
    const wanted = vscode.Uri.parse(uri).toString();
    const open = vscode.workspace.textDocuments.find((each) => each.uri.toString() === wanted);
    return open === own || version === null || open?.version === version;
  });
}

function fromServer({ documentChanges }: RenameEdit): vscode.WorkspaceEdit {
  const made = new vscode.WorkspaceEdit();
  for (const { textDocument, edits } of documentChanges) {
    const uri = vscode.Uri.parse(textDocument.uri);
    for (const edit of edits) made.replace(uri, range(edit.range), edit.newText);
  }
  return made;
}

/** Apply an edit as a refactoring: VS Code saves files that were not open, and undoes it in one step. */
const apply = (edit: vscode.WorkspaceEdit): Thenable<boolean> =>
  vscode.workspace.applyEdit(edit, { isRefactoring: true });
