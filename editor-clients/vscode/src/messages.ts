/**
 * What travels between this client and the server, and the questions as the server wants them. Names
 * are those of the protocol (lsp/protocol.md).
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

/** `item.command`: its first argument is what a suggestion is called in reports. */
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
    /** Why it would not be shown, had nobody asked by hand. */
    readonly unsure?: string;
  }[];
  readonly reason?: string;
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
  /** Why it would not be shown, had nobody asked by hand. */
  readonly unsure?: string;
  readonly cursor?: Place;
}

export const SHOW_GHOST = 'textDocument/didShowCompletion';
export const SHOW_EDIT = 'textDocument/didShowInlineEdit';
export const ACCEPT_PART = 'textDocument/didPartiallyAcceptCompletion';
export const FOCUS = 'textDocument/didFocus';
export const ACCEPT = 'redraft.accept';
/** The user hid it for now. A second time counts as a rejection, which the server decides. */
export const DISMISS = 'redraft.dismiss';
export const REJECT = 'redraft.reject';
export const IGNORE = 'redraft.ignore';

/** Diagnostics that go along with a question; the model is shown few. */
const MOST_DIAGNOSTICS = 50;

export const place = ({ line, character }: vscode.Position): Place => ({ line, character });

export const span = ({ start, end }: vscode.Range): Span => ({ start: place(start), end: place(end) });

export const range = ({ start, end }: Span): vscode.Range =>
  new vscode.Range(start.line, start.character, end.line, end.character);

/** The parts that all questions about a suggestion have. */
export function question(
  document: vscode.TextDocument,
  position: vscode.Position,
  invoked: boolean,
): Record<string, unknown> {
  // The same document may stand in two columns; the user is in one of them.
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
