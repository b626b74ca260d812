/**
 * The latest answers: suggestions with their places, or the reasons for none.
 */

import * as vscode from 'vscode';
import { ACCEPT, DISMISS, REJECT } from './messages';

/** Most answers kept. */
const MOST = 50;

/** What became of a suggestion, by the command that reports it. */
const ENDS: Readonly<Record<string, string>> = {
  [ACCEPT]: 'accepted',
  [DISMISS]: 'hidden; it may come back',
  [REJECT]: 'rejected; it does not come back',
};

export type Kind = 'Ghost text' | 'Next edit';

export interface Answer {
  readonly kind: Kind;
  readonly uri: vscode.Uri;
  readonly position: vscode.Position;
  /** The suggestion, or '' if unknown. */
  readonly text: string;
  /** The line of code. */
  readonly code: string;
  reason: string;
  readonly at: Date;
}

export class Recent {
  private readonly answers: Answer[] = [];

  /** Newest first. */
  get all(): readonly Answer[] {
    return [...this.answers].reverse();
  }

  /** Say what became of the suggestion of a kind that was shown. */
  ended(kind: Kind, how: string): void {
    for (const each of this.answers) {
      if (each.kind === kind && each.reason === 'shown') each.reason = ENDS[how] ?? 'it was shown before';
    }
  }

  /** Keep an answer. It replaces one of the same kind for the same line. */
  add(
    kind: Kind,
    document: vscode.TextDocument,
    position: vscode.Position,
    text: string,
    reason: string,
  ): void {
    this.ended(kind, '');
    const { uri } = document;
    const line = Math.min(position.line, document.lineCount - 1);
    const code = document.lineAt(line).text.trim();
    const same = this.answers.findIndex(
      (each) => each.kind === kind && each.position.line === line && each.uri.toString() === uri.toString(),
    );
    if (same >= 0) this.answers.splice(same, 1);
    this.answers.push({ kind, uri, position, text, code, reason, at: new Date() });
    if (this.answers.length > MOST) this.answers.shift();
  }
}
