/**
 * The statistics of suggestions, as a read-only document with the text of the server.
 */

import * as vscode from 'vscode';
import { messageOf, type Server } from './client';

const SCHEME = 'redraft-statistics';

export class Statistics implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly uri = vscode.Uri.from({ scheme: SCHEME, path: 'Redraft Statistics' });
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private text = '';

  constructor(private readonly server: Server) {}

  dispose(): void {
    this.registered.dispose();
    this.changed.dispose();
  }

  provideTextDocumentContent(): string {
    return this.text;
  }

  /** Ask the server for the statistics and show them. */
  async show(): Promise<void> {
    try {
      ({ text: this.text } = await this.server.command<{ text: string }>('redraft.statistics'));
    } catch (error) {
      void vscode.window.showErrorMessage(`Redraft: ${messageOf(error)}`);
      return;
    }
    this.changed.fire(this.uri); // a document that is still open gets the new text
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(this.uri));
  }
}
