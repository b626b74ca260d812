/**
 * Messages between this client and the server, with the names of the protocol (lsp/protocol.md).
 */

import * as vscode from 'vscode';

export interface Place {
  readonly line: number;
  readonly character: number;
}

export interface Span {
  readonly start: Place;
  readonly end: Place;
}

/** `item.command`. Its first argument is the id of the suggestion in reports. */
export interface Command {
  readonly title: string;
  readonly command: string;
  readonly arguments: readonly [string];
}

export interface GhostAnswer {
  readonly items: readonly {
    readonly insertText: string;
    readonly range: Span;
    readonly filterText?: string;
    readonly command: Command;
    /** Why it would not be shown without a gesture. */
    readonly unsure?: string;
  }[];
  readonly reason?: string;
}

/** A rename of a definition at all of its uses, or another change at all of its places. */
export interface Rename {
  readonly old: string; // empty for another change
  readonly new: string;
  readonly label: string;
  readonly places: number; // without the definition
  readonly range: Span; // of the definition, which has the new name already
}

/** A `WorkspaceEdit` of the protocol, as the server sends it. */
export interface RenameEdit {
  readonly documentChanges: readonly {
    readonly textDocument: { readonly uri: string; readonly version: number | null };
    readonly edits: readonly { readonly range: Span; readonly newText: string }[];
  }[];
}

export interface EditAnswer {
  readonly edits: readonly {
    readonly text: string;
    readonly textDocument: { readonly uri: string; readonly version: number | null };
    readonly range: Span;
    readonly command: Command;
  }[];
  readonly id?: string;
  readonly reason?: string;
  /** Why it would not be shown without a gesture. */
  readonly unsure?: string;
  readonly cursor?: Place;
  /** Why the edit is at its place. */
  readonly why?: string;
  /** Other places that need an edit, if there are any. */
  readonly morePlaces?: number;
  /** Then the edit itself changes nothing. */
  readonly rename?: Rename;
}

export const SHOW_GHOST = 'textDocument/didShowCompletion';
export const SHOW_EDIT = 'textDocument/didShowInlineEdit';
export const ACCEPT_PART = 'textDocument/didPartiallyAcceptCompletion';
export const FOCUS = 'textDocument/didFocus';
export const ACCEPT = 'redraft.accept';
/** The user hid it. The server counts the second time as a rejection. */
export const DISMISS = 'redraft.dismiss';
/** The user accepted a whole rename. It answers with the edit. */
export const RENAME = 'redraft.rename';
export const REJECT = 'redraft.reject';
export const IGNORE = 'redraft.ignore';

/** Most diagnostics sent with a request; the model reads few. */
const MOST_DIAGNOSTICS = 50;

export const place = ({ line, character }: vscode.Position): Place => ({ line, character });

export const span = ({ start, end }: vscode.Range): Span => ({ start: place(start), end: place(end) });

export const range = ({ start, end }: Span): vscode.Range =>
  new vscode.Range(start.line, start.character, end.line, end.character);

/** Return the fields that all requests share. */
export function question(
  document: vscode.TextDocument,
  position: vscode.Position,
  invoked: boolean,
): Record<string, unknown> {
  // A document may be open in two columns; the user is in one of them.
  const { activeTextEditor, visibleTextEditors } = vscode.window;
  const editor = [activeTextEditor, ...visibleTextEditors].find((each) => each?.document === document);
  const selection = editor?.selection;
  return {
    textDocument: { uri: document.uri.toString(), version: document.version },
    position: place(position),
    context: { triggerKind: invoked ? 1 : 2 },
    cursors: editor?.selections.length ?? 1,
    ...(selection && !selection.isEmpty ? { selection: span(selection) } : {}),
  };
}

export function diagnostics(document: vscode.TextDocument): Record<string, unknown>[] {
  return vscode.languages
    .getDiagnostics(document.uri)
    .slice(0, MOST_DIAGNOSTICS)
    .map(({ range: where, message, severity }) => ({
      range: span(where),
      message,
      severity: severity + 1, // the protocol counts from 1
    }));
}
