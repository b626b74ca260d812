/**
 * Ghost text at the cursor: asks the server when VS Code asks, and reports outcomes. A next edit that
 * can be shown as ghost text is handled in the same way.
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

/** A next edit as an item at the cursor. */
export interface EditItem {
  readonly item: vscode.InlineCompletionItem;
  readonly command: Command;
}

interface Shown {
  readonly command: Command;
  readonly uri: string;
  readonly insertText: string;
  readonly at: vscode.Position; // of the cursor
  readonly invoked: boolean; // asked for by a gesture
  readonly insertsOnly: boolean; // without replacing text
  accepted: number; // UTF-16 units accepted by words and lines
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
  /** True if we caused the next request of VS Code, not a gesture of the user. */
  private prompted = false;
  /** The number of texts in the last answer. */
  private texts = 0;
  /** The result of the last gesture. */
  private invoked: Asked | undefined;

  constructor(
    private readonly server: () => Server,
    private readonly editItem: (
      document: vscode.TextDocument,
      position: vscode.Position,
    ) => EditItem | undefined,
    /** Called in subtle mode where ghost text is available. */
    private readonly hintAt: (document: vscode.TextDocument, position: vscode.Position) => void,
    private readonly recent: Recent,
  ) {}

  /** Return the id of the suggestion that may be visible, or ''. */
  get id(): string {
    return this.shown?.command.arguments[0] ?? '';
  }

  /** Let VS Code ask again at once. */
  async trigger(): Promise<void> {
    this.prompted = true;
    await vscode.commands.executeCommand(TRIGGER);
  }

  /** Ask by a gesture. Returns undefined if VS Code did not send a request. */
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
    const items = answer?.items ?? [];
    const [item] = items;
    if (answer) this.texts = items.length;
    if (token.isCancellationRequested) return undefined;
    if (answer) {
      const text = item?.insertText ?? '';
      this.recent.add('Ghost text', document, position, text, item ? 'shown' : (answer.reason ?? ''));
    }
    if (invoked && answer) {
      this.invoked = { shown: !!item, why: (item ? item.unsure : answer.reason) ?? '' };
    }
    if (!item) {
      this.forget();
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
    return items.map((each) => {
      const made = new vscode.InlineCompletionItem(each.insertText, range(each.range), each.command as never);
      if (each.filterText !== undefined) made.filterText = each.filterText;
      return made;
    });
  }

  /** Take what VS Code shows off the screen; nothing is reported. */
  async leaveScreen(): Promise<void> {
    await vscode.commands.executeCommand(HIDE);
  }

  /** Go to another text for the cursor. VS Code asks again by itself, as by a gesture. Returns whether
   * there is one. */
  async another(to: 'Next' | 'Previous'): Promise<boolean> {
    this.prompted = false;
    await vscode.commands.executeCommand(`editor.action.inlineSuggest.show${to}`);
    return this.texts !== 1;
  }

  /** Ask the server, and again if it had another version of the text. */
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

  /** Note that VS Code hides the item, or shows one of another extension. */
  forget(): void {
    this.shown = undefined;
    setKey('ghost', false);
  }

  // --- actions of the user -----------------------------------------------------------------

  async accept(): Promise<void> {
    await vscode.commands.executeCommand(COMMIT);
  }

  /** Handle Tab at the start of a line: first add the indentation of the suggestion if it is missing,
   * then accept. After a gesture, accept at once. */
  async indentOrAccept(): Promise<void> {
    const indentation = this.missingIndentation();
    if (!indentation) return this.accept();
    // Inserted like typing, so that VS Code keeps showing the rest. Extensions may replace `type`.
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

  /** Accept a word or a line. */
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

  /** Hide it. */
  dismiss(): Promise<void> {
    return this.hide(DISMISS);
  }

  /** Reject it. */
  reject(): Promise<void> {
    return this.hide(REJECT);
  }

  /** Hide it because a gesture shows the next edit. */
  yieldToEdit(): Promise<void> {
    return this.hide(IGNORE);
  }

  private async hide(how: string): Promise<void> {
    const { id } = this;
    this.forget();
    this.recent.ended('Ghost text', how);
    await vscode.commands.executeCommand(HIDE);
    if (id) this.server().outcome(how, id);
  }
}
