/**
 * Entry point of Redraft in VS Code. The extension shows suggestions and reports their outcomes; the
 * language server decides what is suggested, and when.
 */

import * as vscode from 'vscode';
import { sentence } from './asked';
import { Server } from './client';
import { Painter } from './decorations';
import { Ghost } from './ghost';
import { find, install, offer } from './install';
import { type Actions, chooseEagerness, chooseModel, command, record, showMenu, why } from './menu';
import { offerModel } from './larger';
import { FOCUS } from './messages';
import { NextEdits } from './next_edits';
import { Recent } from './recent';
import { change, clientSettings, SECTION } from './settings';
import { Speech } from './speech';
import { Statistics } from './statistics';
import { StatusItem } from './status';
import { showFirst, takeTour } from './tour';

/** Time that the result of a gesture stays in the status bar, ms. */
const MESSAGE_MS = 8_000;

/** Settings that need a new server process. */
const RESTARTING = ['server.path', 'server.arguments', 'server.environment', 'server.model'];

export function activate(context: vscode.ExtensionContext): void {
  const redraft = new Redraft(context);
  context.subscriptions.push(redraft);
  void redraft.start(); // not awaited: a server that hangs must not delay the start of VS Code
  void showFirst();
}

class Redraft implements vscode.Disposable {
  private readonly log = vscode.window.createOutputChannel('Redraft', { log: true });
  private readonly status = new StatusItem();
  private readonly painter = new Painter();
  private readonly recent = new Recent();
  private readonly speech = new Speech(() => this.server);
  private readonly server: Server;
  private readonly ghost: Ghost;
  private readonly edits: NextEdits;
  private readonly statistics: Statistics;
  private readonly parts: vscode.Disposable[];
  private offered = false;

  constructor(private readonly context: vscode.ExtensionContext) {
    this.ghost = new Ghost(
      () => this.server,
      (document, position) => this.edits.ghostItem(document, position),
      (document, position) => this.hintGhost(document, position),
      this.recent,
    );
    this.server = new Server(context.extension, this.log, {
      provideInlineCompletionItems: (document, position, asked, token) =>
        this.ghost.provide(document, position, asked, token),
    });
    this.edits = new NextEdits(
      () => this.server,
      this.painter,
      () => this.ghost,
      context.extension,
      this.recent,
      this.speech,
    );
    this.statistics = new Statistics(this.server);
    this.parts = [
      this.statistics,
      this.server.onStatus((status) => {
        this.status.show(status);
        if (status.larger) void offerModel(status.larger, this.server, () => find(this.context));
      }),
      ...this.commands(),
      ...this.events(),
    ];
  }

  dispose(): void {
    for (const part of [...this.parts, this.edits, this.server, this.painter, this.status, this.log]) {
      part.dispose();
    }
  }

  /** Find and start the server, or offer to install it. Without a gesture it is offered once. */
  async start(asked = false): Promise<void> {
    const command = await find(this.context);
    if (command) return this.server.start(command);
    await this.server.stop();
    this.server.tell('the server is not installed', 'Error');
    if (this.offered && !asked) return;
    this.offered = true;
    // Not awaited: the notification stays until it is answered.
    void offer().then((answer) => (answer === 'install' ? this.install() : undefined));
  }

  private async install(): Promise<void> {
    let stopped = false;
    const stop = async (): Promise<void> => {
      stopped = true;
      await this.server.stop();
    };
    const there = await install(this.context, this.log, stop);
    if (there || stopped) await this.start(there);
  }

  private commands(): vscode.Disposable[] {
    const { ghost, edits } = this;
    const actions: Actions = {
      server: this.server,
      status: this.status,
      recent: this.recent,
      log: this.log,
      command: () => find(this.context),
      start: () => this.start(true),
      install: () => this.install(),
    };
    const part = (unit: 'word' | 'line') => () =>
      edits.divisible ? edits.accept(unit) : ghost.acceptPart(unit);
    const all: Record<string, () => unknown> = {
      acceptSuggestion: () => (edits.acceptable ? edits.accept() : ghost.accept()),
      indentOrAccept: () => ghost.indentOrAccept(),
      acceptWord: part('word'),
      acceptLine: part('line'),
      hideSuggestion: () => {
        if (edits.acceptable) return edits.dismiss();
        edits.hidden(ghost.id);
        return ghost.dismiss();
      },
      rejectSuggestion: () => this.reject(),
      suggest: () => this.suggest(),
      nextAlternative: () => this.another('Next'),
      previousAlternative: () => this.another('Previous'),
      read: () => this.speech.read(),
      menu: () => showMenu(actions),
      why: () => why(actions),
      tour: () => takeTour(actions),
      chooseModel: () => chooseModel(actions),
      chooseEagerness: () => chooseEagerness(actions),
      toggleSubtle: () => change('subtle', !clientSettings().subtle),
      showStatistics: () => this.statistics.show(),
      toggleRecording: () => record(this.server),
      restart: () => this.start(true),
      install: () => this.install(),
      openLog: () => this.log.show(),
      snooze5: () => command(this.server, 'redraft.snooze', 5),
      snooze15: () => command(this.server, 'redraft.snooze', 15),
      snooze60: () => command(this.server, 'redraft.snooze', 60),
      wake: () => command(this.server, 'redraft.snooze', 0),
    };
    return Object.entries(all).map(([name, run]) =>
      vscode.commands.registerCommand(`redraft.${name}`, run),
    );
  }

  /** Ask by a gesture, and show the result or say why there is none. */
  private async suggest(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (!document) return;
    if (!this.server.serves(document)) {
      const { message } = this.status.last;
      return this.say(this.server.running ? `a ${document.uri.scheme} document is not looked at` : message);
    }
    const before = this.edits.visible;
    const [ghost, edit] = await Promise.all([this.ghost.invoke(), this.edits.ask(true)]);
    if (ghost?.shown && this.edits.acceptable) await this.showOne(before);
    this.say(sentence(ghost, edit));
  }

  /** Show one of both after a gesture: the edit if it was shown before and the line has code. */
  private async showOne(before: boolean): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const lineHasCode = !!editor?.document.lineAt(editor.selection.active.line).text.trim();
    if (before && lineHasCode) await this.ghost.yieldToEdit();
    else this.edits.yieldToGhost();
  }

  /** Show another suggestion in place of the one that is shown, or say that there is none. */
  private async another(to: 'Next' | 'Previous'): Promise<void> {
    const { edits, ghost } = this;
    if (edits.visible) {
      const before = edits.change;
      await edits.ask(true, true);
      if (before === edits.change) this.say('there is no other edit here');
    } else if (!(await ghost.another(to))) {
      this.say('there is no other text here');
    }
  }

  /** Reject the suggestion, and ask for another. */
  private async reject(): Promise<void> {
    const { ghost, edits } = this;
    if (edits.acceptable) edits.reject();
    else {
      edits.hidden(ghost.id);
      await ghost.reject();
    }
    await Promise.all([edits.ask(false), ghost.trigger()]);
  }

  private say(what: string): void {
    if (what) vscode.window.setStatusBarMessage(`$(sparkle) Redraft: ${what}`, MESSAGE_MS);
  }

  private events(): vscode.Disposable[] {
    const { window, workspace } = vscode;
    return [
      workspace.onDidChangeConfiguration((event) => this.configured(event)),
      window.onDidChangeTextEditorSelection(() => this.painter.teaser()),
      window.onDidChangeActiveTextEditor((editor) => this.focused(editor)),
      window.onDidChangeWindowState(({ focused }) => {
        this.focused(focused ? window.activeTextEditor : undefined);
      }),
    ];
  }

  private focused(editor: vscode.TextEditor | undefined): void {
    if (!editor) return this.server.report(FOCUS, {});
    if (!this.server.serves(editor.document)) return;
    this.server.report(FOCUS, { textDocument: { uri: editor.document.uri.toString() } });
  }

  private configured(event: vscode.ConfigurationChangeEvent): void {
    if (!event.affectsConfiguration(SECTION)) return;
    const restarts = RESTARTING.some((name) => event.affectsConfiguration(`${SECTION}.${name}`));
    if (restarts) void this.start(true);
    else {
      this.server.settingsChanged();
      void this.edits.ask(false); // updates the status item at once
    }
  }

  /** In subtle mode, draw a mark where ghost text is available. */
  private hintGhost(document: vscode.TextDocument, position: vscode.Position): void {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document === document) this.painter.teaser(editor, position.line);
  }
}
