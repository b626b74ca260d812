/**
 * Ghost text at the cursor: asks the server when VS Code asks, and reports what becomes of it. A next
 * edit that can be shown as ghost text goes the same way.
 */

import * as vscode from 'vscode';
import { type Asked } from './asked';
import { setKey } from './keys';
import { ACCEPT_PART, type Command, type GhostAnswer, question, range, REJECT, SHOW_GHOST, span } from './messages';
import { type Server } from './client';
import { clientSettings } from './settings';

/** A next edit, as an item that VS Code shows at the cursor. */
export interface EditItem {
  readonly item: vscode.InlineCompletionItem;
  readonly command: Command;
}

interface Shown {
  readonly command: Command;
  readonly uri: string;
  readonly insertText: string;
  accepted: number; // UTF-16 units, by words and lines
}

const TRIGGER = 'editor.action.inlineSuggest.trigger';
const COMMIT = 'editor.action.inlineSuggest.commit';
const HIDE = 'editor.action.inlineSuggest.hide';
const PART = {
  word: 'editor.action.inlineSuggest.acceptNextWord',
  line: 'editor.action.inlineSuggest.acceptNextLine',
} as const;

export class Ghost {
  private shown: Shown | undefined;
  /** The next question of VS Code is our own doing, not the user's gesture. */
  private prompted = false;
  /** What came of the user's last gesture. */
  private invoked: Asked | undefined;

  constructor(
    private readonly server: () => Server,
    private readonly editItem: (
      document: vscode.TextDocument,
      position: vscode.Position,
    ) => EditItem | undefined,
    /** In subtle mode: something could be shown here. */
    private readonly hintAt: (document: vscode.TextDocument, position: vscode.Position) => void,
  ) {}

  /** What the suggestion that may be visible is called in reports; '' where there is none. */
  get id(): string {
    return this.shown?.command.arguments[0] ?? '';
  }

  /** Have VS Code ask again, at once. */
  async trigger(): Promise<void> {
    this.prompted = true;
    await vscode.commands.executeCommand(TRIGGER);
  }

  /** The user asks for it. What came of that; undefined where VS Code asked for none. */
  async invoke(): Promise<Asked | undefined> {
    this.prompted = false;
    this.invoked = undefined;
    await vscode.commands.executeCommand(TRIGGER);
    return this.invoked;
  }

  async provide(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.InlineCompletionItem[] | undefined> {
    const invoked =
      context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke && !this.prompted;
    this.prompted = false;
    const edit = this.editItem(document, position);
    if (edit) {
      this.show(document, edit.command, String(edit.item.insertText));
      if (invoked) this.invoked = { shown: true, why: '' };
      return [edit.item];
    }
    const chosen = context.selectedCompletionInfo;
    const params = question(document, position, invoked);
    if (chosen) {
      const info = { text: chosen.text, range: span(chosen.range) };
      params['context'] = { ...(params['context'] as object), selectedCompletionInfo: info };
    }
    const answer = await this.ask(document, params, token);
    const item = answer?.items[0];
    if (token.isCancellationRequested) return undefined;
    if (invoked && answer) {
      this.invoked = { shown: !!item, why: (item ? item.unsure : answer.reason) ?? '' };
    }
    if (!item) {
      this.gone();
      return undefined;
    }
    if (clientSettings().subtle && !invoked) {
      this.hintAt(document, position);
      return undefined;
    }
    this.show(document, item.command, item.insertText);
    this.server().report(SHOW_GHOST, { item });
    const shown = new vscode.InlineCompletionItem(item.insertText, range(item.range), item.command as never);
    if (item.filterText !== undefined) shown.filterText = item.filterText;
    return [shown];
  }

  /** VS Code asks once; where the server had another state of the text just then, it is asked again. */
  private async ask(
    document: vscode.TextDocument,
    params: object,
    token: vscode.CancellationToken,
  ): Promise<GhostAnswer | undefined> {
    const { version } = document;
    const asked = (): Promise<GhostAnswer | undefined> =>
      this.server().request<GhostAnswer>('textDocument/inlineCompletion', params, token);
    const answer = await asked();
    const again = !answer && !token.isCancellationRequested && document.version === version;
    return again ? asked() : answer;
  }

  private show(document: vscode.TextDocument, command: Command, insertText: string): void {
    const id = command.arguments[0];
    const before = this.shown?.command.arguments[0] === id ? this.shown.accepted : 0;
    this.shown = { command, uri: document.uri.toString(), insertText, accepted: before };
    setKey('ghost', true);
  }

  /** VS Code shows it no longer, or shows another's. */
  gone(): void {
    this.shown = undefined;
    setKey('ghost', false);
  }

  // --- what the user does with it -----------------------------------------------------------------

  async accept(): Promise<void> {
    await vscode.commands.executeCommand(COMMIT);
  }

  /** Take a word or a line of it. */
  async acceptPart(unit: 'word' | 'line'): Promise<void> {
    const shown = this.shown;
    const lengths: number[] = [];
    const watching = vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (document.uri.toString() !== shown?.uri) return;
      lengths.push(...contentChanges.map(({ text, rangeLength }) => text.length - rangeLength));
    });
    try {
      await vscode.commands.executeCommand(PART[unit]);
    } finally {
      watching.dispose();
    }
    const taken = lengths.reduce((sum, length) => sum + length, 0);
    if (!shown || taken <= 0) return;
    shown.accepted += taken;
    const item = { insertText: shown.insertText, command: shown.command };
    this.server().report(ACCEPT_PART, { item, acceptedLength: shown.accepted });
  }

  /** The user turns it down. */
  async dismiss(): Promise<void> {
    const { id } = this;
    this.gone();
    await vscode.commands.executeCommand(HIDE);
    if (id) this.server().outcome(REJECT, id);
  }
}
