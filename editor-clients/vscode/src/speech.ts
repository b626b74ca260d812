/**
 * Suggestions for screen readers: the server's sentence, in a notification, which VS Code announces.
 * VS Code announces ghost text itself.
 */

import * as vscode from 'vscode';
import { type Server } from './client';
import { question } from './messages';

interface Described {
  /** The suggestion, or '' if there is none. */
  readonly id: string;
  readonly text: string;
}

/** Time that an announcement stays on the screen, ms. VS Code would say "Progress" after three seconds. */
const SHOWN_MS = 2_500;

export class Speech {
  private finish: () => void = () => {};

  constructor(private readonly server: () => Server) {}

  /** Read what is shown, or why nothing is, by a command of the user. */
  async read(): Promise<void> {
    const described = await this.describe();
    const text = described?.text ?? 'Redraft is not active in this editor; its status item says why.';
    void vscode.window.showInformationMessage(text);
  }

  /** Announce the suggestion with this id, if a screen reader is on. */
  async announce(id: string): Promise<void> {
    const support = vscode.workspace.getConfiguration('editor').get('accessibilitySupport');
    if (support !== 'on') return;
    const described = await this.describe();
    if (described?.id === id) this.show(described.text);
  }

  private async describe(): Promise<Described | undefined> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return undefined;
    const params = question(editor.document, editor.selection.active, false);
    return this.server().request<Described>('redraft/describe', params);
  }

  /** Show a notification that goes by itself, in place of the one before. */
  private show(title: string): void {
    this.finish();
    const gone = new Promise<void>((resolve) => {
      this.finish = resolve;
      setTimeout(resolve, SHOWN_MS);
    });
    void vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, () => gone);
  }
}
