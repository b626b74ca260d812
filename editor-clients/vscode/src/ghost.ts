/**
 * Ghost text at the cursor: asks the server when VS Code asks, and reports what becomes of it. A next
 * edit that can be shown as ghost text goes the same way.
 */

import * as vscode from 'vscode';
import { type Asked } from './asked';
import { setKey } from './keys';
import {
  ACCEPT_PART,
  type Command,
  DISMISS,
  type GhostAnswer,
  IGNORE,
  question,
  range,
  REJECT,
  SHOW_GHOST,
  span,
} from './messages';
import { type Recent } from './recent';
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
  readonly at: vscode.Position; // of the cursor
  readonly invoked: boolean; // a gesture asked for it
  readonly insertsOnly: boolean; // it replaces no text
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
    private readonly recent: Recent,
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
      const text = String(edit.item.insertText);
      this.show(document, edit.command, { insertText: text, at: position, invoked, insertsOnly: false });
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
    if (answer) {
      const text = item?.insertText ?? '';
      this.recent.add('Ghost text', document, position, text, item ? 'shown' : (answer.reason ?? ''));
    }
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
    const { insertText } = item;
    const replaced = range(item.range);
    const insertsOnly = replaced.isEmpty;
    this.show(document, item.command, { insertText, at: position, invoked, insertsOnly });
    this.server().report(SHOW_GHOST, { item });
    const shown = new vscode.InlineCompletionItem(insertText, replaced, item.command as never);
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

  private show(
    document: vscode.TextDocument,
    command: Command,
    item: Pick<Shown, 'insertText' | 'at' | 'invoked' | 'insertsOnly'>,
  ): void {
    const before = this.shown?.command.arguments[0] === command.arguments[0] ? this.shown : undefined;
    const invoked = item.invoked || (before?.invoked ?? false);
    const accepted = before?.accepted ?? 0;
    this.shown = { ...item, command, uri: document.uri.toString(), invoked, accepted };
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

  /** Tab at the start of a line: the line gets the indentation that the suggestion begins with, if it
   * lacks it, else the suggestion is taken. After a gesture it is taken at once. */
  async indentOrAccept(): Promise<void> {
    const indentation = this.missingIndentation();
    if (!indentation) return this.accept();
    // Typed, so that VS Code goes on showing the rest; not by `type`, which other extensions replace.
    await vscode.commands.executeCommand('default:type', { text: indentation });
  }

  private missingIndentation(): string {
    const { shown } = this;
    const editor = vscode.window.activeTextEditor;
    if (!shown || shown.invoked || !shown.insertsOnly || !editor) return '';
    const { active } = editor.selection;
    const before = editor.document.lineAt(active.line).text.slice(0, active.character);
    if (before.trim() || active.line !== shown.at.line) return '';
    const typed = Math.max(0, active.character - shown.at.character);
    return /^[ \t]*/.exec(shown.insertText)![0].slice(typed);
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

  /** Hide it for now. */
  dismiss(): Promise<void> {
    return this.hide(DISMISS);
  }

  /** The user does not want it. */
  reject(): Promise<void> {
    return this.hide(REJECT);
  }

  /** A gesture shows the next edit instead. */
  yieldToEdit(): Promise<void> {
    return this.hide(IGNORE);
  }

  private async hide(how: string): Promise<void> {
    const { id } = this;
    this.gone();
    await vscode.commands.executeCommand(HIDE);
    if (id) this.server().outcome(how, id);
  }
}
