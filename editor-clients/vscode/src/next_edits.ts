/**
 * The next edit: requested after a change, a move or an acceptance; shown, jumped to and accepted. The
 * server decides what is shown and when.
 */

import * as vscode from 'vscode';
import { type Asked } from './asked';
import { messageOf, type Server } from './client';
import { type Painter, roomAt } from './decorations';
import { asGhost, type Edit, followed, least, portion } from './edit';
import { type EditItem, type Ghost } from './ghost';
import { setKey } from './keys';
import {
  ACCEPT,
  ACCEPT_PART,
  type Command,
  diagnostics,
  DISMISS,
  type EditAnswer,
  IGNORE,
  type Place,
  question,
  range,
  REJECT,
  type Rename,
  RENAME,
  type RenameEdit,
  SHOW_EDIT,
} from './messages';
import { type Recent } from './recent';
import { applyRename } from './renames';
import { clientSettings } from './settings';
import { type Speech } from './speech';
import { brief, hint, whole } from './words';

/** Time within which a change and its movement of the cursor cause one request, ms. The server waits
 * for pauses in typing. */
const TOGETHER_MS = 10;

/** Lines from the cursor within which an edit counts as in sight. */
const NEAR_LINES = 2;

/** The proposed API by which VS Code itself shows edits away from the cursor. */
const PROPOSAL = 'inlineCompletionsAdditions';

interface Shown {
  readonly id: string;
  readonly command: Command;
  readonly document: vscode.TextDocument;
  readonly version: number;
  readonly edit: Edit; // the smallest
  readonly cursor: Place | undefined; // after the whole edit
  readonly unsure: boolean; // shown only because of a gesture
  readonly accepted: number; // UTF-16 units accepted by words and lines
  readonly why: string; // it is at its place; '' if unknown
  readonly more: number; // other places that need an edit
  readonly rename: Rename | undefined; // then the edit marks the definition and changes nothing
}

/** How an edit is shown at the present cursor. */
type Mode = 'ghost' | 'native' | 'near' | 'far' | 'elsewhere' | 'rename' | 'subtle' | 'waiting' | 'nothing';

/** True if it is drawn by decorations: our keys apply, not those of VS Code. */
const isDrawn = (mode: Mode): boolean => ['near', 'far', 'elsewhere', 'rename'].includes(mode);

export class NextEdits implements vscode.Disposable {
  private shown: Shown | undefined;
  private reported = ''; // id
  private revealed = ''; // id; asked for in subtle mode
  private drawn = ''; // describes what is on the screen
  private applying = false;
  /** Whether the user has typed since the answer: no key jumps out of that. */
  private typing = false;
  /** The cursor after a jump; the edit scrolls into view. */
  private held: vscode.Position | undefined;
  private jumped = ''; // id
  private turn: Promise<void> = Promise.resolve();
  private waiting: NodeJS.Timeout | undefined;
  private asking: vscode.CancellationTokenSource | undefined;
  private readonly native: boolean;
  private readonly parts: vscode.Disposable[];

  constructor(
    private readonly server: () => Server,
    private readonly painter: Painter,
    private readonly ghost: () => Ghost,
    extension: vscode.Extension<unknown>,
    private readonly recent: Recent,
    private readonly speech: Speech,
  ) {
    const granted = (extension.packageJSON as { enabledApiProposals?: string[] }).enabledApiProposals;
    this.native = granted?.includes(PROPOSAL) ?? false;
    const { workspace, window } = vscode;
    this.parts = [
      workspace.onDidChangeTextDocument((event) => this.changed(event)),
      workspace.onDidCloseTextDocument((closed) => {
        if (this.shown?.document === closed) this.hide();
      }),
      window.onDidChangeTextEditorSelection((event) => this.moved(event)),
      window.onDidChangeTextEditorVisibleRanges(() => this.refresh()),
      window.onDidChangeVisibleTextEditors(() => {
        this.drawn = ''; // a new editor shows nothing yet
        this.refresh();
      }),
      window.onDidChangeActiveTextEditor((editor) => this.entered(editor)),
    ];
  }

  dispose(): void {
    this.hide();
    clearTimeout(this.waiting);
    for (const part of this.parts) part.dispose();
  }

  // --- asking -------------------------------------------------------------------------------------

  private later(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => void this.ask(false), TOGETHER_MS);
  }

  /** Ask for the next edit; `invoked` by a gesture, `another` than the one shown. Returns undefined if
   * superseded. */
  async ask(invoked: boolean, another = false): Promise<Asked | undefined> {
    clearTimeout(this.waiting);
    this.asking?.cancel();
    const editor = vscode.window.activeTextEditor;
    if (!editor || !this.server().serves(editor.document)) return undefined;
    if (invoked && this.shown && !another) {
      this.revealed = this.shown.id;
      this.refresh();
      return { shown: true, why: '' };
    }
    const source = new vscode.CancellationTokenSource();
    this.asking = source;
    const { document } = editor;
    const params = question(document, editor.selection.active, invoked);
    const answer = await this.server().request<EditAnswer>(
      'redraft/nextEdit',
      {
        ...params,
        diagnostics: diagnostics(document),
        otherDocuments: true,
        unopenedFiles: true,
        wholeRenames: true,
        another,
      },
      source.token,
    );
    if (source.token.isCancellationRequested || !answer) return undefined;
    if (await opens(answer)) {
      if (source.token.isCancellationRequested) return undefined;
      this.forget();
      return this.ask(invoked); // the server knows the text of the file by now
    }
    if (invoked) this.revealed = answer.id ?? '';
    // VS Code keeps the item that it shows, even if the next answer has another one.
    if (another) await this.ghost().leaveScreen();
    this.take(answer);
    const shown = this.shown !== undefined;
    const text = answer.edits[0]?.text ?? '';
    this.recent.add('Next edit', document, this.place() ?? editor.selection.active, text, shown ? 'shown' : (answer.reason ?? ''));
    return { shown, why: (shown ? answer.unsure : answer.reason) ?? '' };
  }

  private take(answer: EditAnswer): void {
    const [found] = answer.edits;
    if (!found) return this.forget();
    const uri = vscode.Uri.parse(found.textDocument.uri).toString();
    const document = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri);
    const { version } = found.textDocument;
    if (!document || (version !== null && version !== document.version)) return this.forget();
    const { rename } = answer;
    const where = range(rename?.range ?? found.range);
    const [start, end] = [document.offsetAt(where.start), document.offsetAt(where.end)];
    const edit = least({ start, end, old: document.getText(where), text: rename?.new ?? found.text });
    const id = found.command.arguments[0];
    const accepted = this.shown?.id === id ? this.shown.accepted : 0;
    const { cursor } = answer;
    const { command } = found;
    const unsure = answer.unsure !== undefined;
    const { why = '', morePlaces: more = 0 } = answer;
    const { version: now } = document;
    this.shown = { id, command, document, version: now, edit, cursor, unsure, accepted, why, more, rename };
    this.typing = false;
    // VS Code may have hidden its item, for instance without focus: let it ask again.
    if (/ (?:ghost|native) /.test(this.drawn)) this.drawn = '';
    this.refresh();
  }

  // --- events -------------------------------------------------------------------------------------

  private changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (!contentChanges.length || this.applying) return;
    const isActive = document === vscode.window.activeTextEditor?.document;
    if (isActive) this.typing = true;
    if (this.shown?.document === document) this.follow(contentChanges);
    else if (isActive) this.refresh();
    if (isActive) this.later();
  }

  /** Follow changes until the server answers, so that nothing flickers. */
  private follow(changes: readonly vscode.TextDocumentContentChangeEvent[]): void {
    const { document, edit, rename } = this.shown!;
    if (rename) return this.forget();
    const [change] = changes;
    const lineOf = (offset: number): number => document.positionAt(offset).line;
    const { rangeOffset: start, rangeLength, text } = change!;
    const now =
      changes.length === 1
        ? followed(edit, { start, end: start + rangeLength, text }, lineOf)
        : undefined;
    if (!now) return this.forget();
    this.shown = { ...this.shown!, edit: now, version: document.version };
    this.refresh();
  }

  private moved({ textEditor: editor, kind }: vscode.TextEditorSelectionChangeEvent): void {
    if (editor !== vscode.window.activeTextEditor || this.applying) return;
    // Our own movements arrive late and in parts; only those of the user count.
    const { Keyboard, Mouse } = vscode.TextEditorSelectionChangeKind;
    if (kind === Keyboard || kind === Mouse) this.held = undefined;
    this.refresh();
    this.later();
  }

  private entered(editor: vscode.TextEditor | undefined): void {
    const { shown } = this;
    // The user chose another file: the edit is not what they work on.
    if (shown && editor && editor.document !== shown.document) this.hide();
    this.refresh();
    this.later();
  }

  // --- showing ------------------------------------------------------------------------------------

  private mode(shown: Shown, editor: vscode.TextEditor): Mode {
    const { renderer, subtle } = clientSettings();
    const { document, edit } = shown;
    if (subtle && this.revealed !== shown.id) return 'subtle';
    if (editor.document !== document) return this.typing ? 'waiting' : 'elsewhere';
    if (shown.rename) return 'rename';
    if (renderer !== 'decorations') {
      if (this.asGhost(shown, editor)) return 'ghost';
      if (this.native) return 'native';
      if (renderer === 'native') return 'nothing';
    }
    const [first, last] = [document.positionAt(edit.start), document.positionAt(edit.end)];
    const { line } = editor.selection.active;
    // After a jump it scrolls into view.
    if (this.jumped === shown.id && this.isHeld(editor)) return 'near';
    const away = Math.max(0, first.line - line, line - last.line);
    const inSight = editor.visibleRanges.some((visible) => visible.contains(first));
    if (away <= NEAR_LINES && inSight) return 'near';
    return this.typing ? 'waiting' : 'far';
  }

  private asGhost({ document, edit }: Shown, editor: vscode.TextEditor): vscode.Range | undefined {
    const { active } = editor.selection;
    const line = document.lineAt(active.line);
    const lineEnd = document.offsetAt(line.range.end);
    const found = asGhost(edit, document.offsetAt(active), lineEnd, line.text);
    return found && new vscode.Range(active, document.positionAt(found.end));
  }

  /** Return the item that VS Code shows at the cursor in place of a completion. */
  ghostItem(document: vscode.TextDocument, position: vscode.Position): EditItem | undefined {
    const editor = vscode.window.activeTextEditor;
    const { shown } = this;
    if (!shown || editor?.document !== document || shown.version !== document.version) return undefined;
    if (shown.document !== document || !editor.selection.active.isEqual(position)) return undefined;
    const mode = this.mode(shown, editor);
    if (mode !== 'ghost' && mode !== 'native') return undefined;
    const { edit, command } = shown;
    const end = document.positionAt(edit.end);
    const start = mode === 'ghost' ? position : document.positionAt(edit.start);
    const kept = document.getText(new vscode.Range(start, document.positionAt(edit.start)));
    const item = new vscode.InlineCompletionItem(kept + edit.text, new vscode.Range(start, end));
    item.command = command as never;
    // Part of a proposed API; VS Code ignores it if that is not granted.
    if (mode === 'native') Object.assign(item, { isInlineEdit: true });
    return { item, command };
  }

  private refresh(): void {
    if (this.applying) return; // the edit is for the text before
    const editor = vscode.window.activeTextEditor;
    const { shown } = this;
    const mode = shown && editor ? this.mode(shown, editor) : 'nothing';
    this.draw(mode);
    setKey('edit', isDrawn(mode));
    if (!shown || mode === 'subtle' || mode === 'waiting' || this.reported === shown.id) return;
    this.reported = shown.id;
    if (mode === 'nothing') return this.server().tell('this next edit needs the renderer "decorations"');
    this.server().report(SHOW_EDIT, { item: { command: shown.command } });
    if (isDrawn(mode)) void this.speech.announce(shown.id);
  }

  private isHeld(editor: vscode.TextEditor): boolean {
    return this.held?.isEqual(editor.selection.active) ?? false;
  }

  private draw(mode: Mode): void {
    const { shown } = this;
    const editor = vscode.window.activeTextEditor;
    const hint = shown && editor ? this.hint(shown, editor, mode) : [];
    const drawn = [shown?.id, shown?.version, mode, editor?.document.uri, ...hint].join(' ');
    if (drawn === this.drawn) return; // scrolling and moving change nothing
    this.drawn = drawn;
    if (!shown || !editor || mode === 'nothing' || mode === 'waiting') return this.painter.clear();
    if (mode === 'ghost' || mode === 'native') {
      this.painter.clear();
      return void this.ghost().trigger();
    }
    if (isDrawn(mode)) this.painter.edit(shown.edit, shown.document);
    else this.painter.clearDiff();
    this.painter.hint(editor, ...this.hint(shown, editor, mode));
  }

  /** Return the line of the hint, its text, and the same uncut. */
  private hint(shown: Shown, editor: vscode.TextEditor, mode: Mode): [number, string, string] {
    const { document, edit, unsure, rename, why, more } = shown;
    const here = editor.selection.active.line;
    const key = mode === 'subtle' ? 'Alt+\\' : 'Tab';
    const room = roomAt(editor, here);
    if (rename) return [here, `${brief(rename.label, room - key.length - 3)} · ${key}`, rename.label];
    if (mode === 'near') return [document.positionAt(edit.end).line, unsure ? `unsure · ${key}` : key, ''];
    const file = document === editor.document ? '' : vscode.workspace.asRelativePath(document.uri);
    const { line } = document.positionAt(edit.start);
    const away = { file, line, why, more, unsure, key };
    return [here, hint({ ...away, room }), whole(away)];
  }

  /** Drop the edit, which the server knows about. */
  private forget(): void {
    this.shown = undefined;
    this.refresh();
  }

  /** Drop the edit because the user continued elsewhere. */
  private hide(): void {
    const { shown } = this;
    this.forget();
    if (shown) this.server().outcome(IGNORE, shown.id);
  }

  // --- actions of the user -----------------------------------------------------------------

  /** Return the start of the visible edit, if it is in the active editor. */
  private place(): vscode.Position | undefined {
    const { shown } = this;
    if (shown?.document !== vscode.window.activeTextEditor?.document) return undefined;
    return shown?.document.positionAt(shown.edit.start);
  }

  /** Whether an edit is shown, by decorations or as ghost text. */
  get visible(): boolean {
    return this.shown !== undefined;
  }

  /** What the edit changes, to compare it with the next one. */
  get change(): string {
    const { document, edit, rename } = this.shown ?? {};
    return JSON.stringify([document?.uri, edit, rename?.label]);
  }

  /** Hide it because a gesture shows ghost text. */
  yieldToGhost(): void {
    this.hide();
  }

  /** Whether an edit is drawn that the keys apply to. */
  get acceptable(): boolean {
    const editor = vscode.window.activeTextEditor;
    return this.shown !== undefined && editor !== undefined && isDrawn(this.mode(this.shown, editor));
  }

  /** Whether a word or a line can be accepted, also of an edit that VS Code draws and accepts only as
   * a whole. */
  get divisible(): boolean {
    const editor = vscode.window.activeTextEditor;
    if (!this.shown || !editor) return false;
    const mode = this.mode(this.shown, editor);
    return (isDrawn(mode) && mode !== 'rename') || mode === 'native';
  }

  /** Handle Tab: jump to an edit out of sight, otherwise apply it. Further Tabs wait. */
  async accept(unit?: 'word' | 'line'): Promise<void> {
    this.turn = this.turn.then(
      () => this.step(unit),
      () => this.step(unit),
    );
    return this.turn;
  }

  private async step(unit?: 'word' | 'line'): Promise<void> {
    const { shown } = this;
    const editor = vscode.window.activeTextEditor;
    if (!shown || !editor) return;
    const mode = this.mode(shown, editor);
    if (shown.rename && mode === 'rename') await this.rename(shown.id, shown.rename, editor);
    else if (mode === 'far' || mode === 'elsewhere') await this.jump(shown);
    // In subtle mode the next edit may be hidden: Tab does not accept it.
    else if (!['subtle', 'waiting', 'nothing'].includes(mode)) await this.make(shown, editor, unit);
  }

  private async rename(id: string, rename: Rename, editor: vscode.TextEditor): Promise<void> {
    this.forget();
    this.recent.ended('Next edit', ACCEPT);
    this.applying = true;
    try {
      const { edit } = await this.server().command<{ edit: RenameEdit }>(RENAME, id);
      const made = await applyRename(editor, rename, edit);
      if (!made) this.server().tell('the text changed while it was renamed; nothing was done');
    } catch (error) {
      this.server().tell(messageOf(error));
    } finally {
      this.applying = false;
    }
    void this.ask(false);
  }

  private async jump({ document, edit, id }: Shown): Promise<void> {
    this.jumped = id;
    const to = document.positionAt(edit.start);
    this.held = to;
    let editor = vscode.window.activeTextEditor;
    if (editor?.document !== document) {
      const viewColumn = columnOf(document);
      editor = await vscode.window.showTextDocument(document, { viewColumn });
    }
    editor.selection = new vscode.Selection(to, to);
    const { InCenterIfOutsideViewport } = vscode.TextEditorRevealType;
    editor.revealRange(new vscode.Range(to, to), InCenterIfOutsideViewport);
    this.refresh();
  }

  private async make(shown: Shown, editor: vscode.TextEditor, unit?: 'word' | 'line'): Promise<void> {
    const { document, edit, id } = shown;
    if (document.version !== shown.version) return this.forget();
    const part = unit ? portion(edit, unit) : edit;
    const where = new vscode.Range(document.positionAt(part.start), document.positionAt(part.end));
    this.applying = true;
    this.painter.clear(); // first: otherwise the new text is struck through until we hear of it
    this.drawn = '';
    const made = await editor.edit((builder) => builder.replace(where, part.text)).then(undefined, () => false);
    this.applying = false;
    if (!made) return document.version === shown.version ? this.refresh() : this.hide();
    const change = { start: part.start, end: part.end, text: part.text };
    const rest = followed(edit, change, (offset) => document.positionAt(offset).line);
    const to = this.landing(shown, part, rest === undefined);
    this.held = to;
    editor.selection = new vscode.Selection(to, to);
    editor.revealRange(new vscode.Range(to, to));
    if (rest) this.keep(shown, rest, part.text.length);
    else this.done(id);
    // Not awaited: the next Tab must not wait for a model.
    void this.ask(false);
  }

  private landing({ document, cursor }: Shown, part: Edit, whole: boolean): vscode.Position {
    if (whole && cursor) return document.validatePosition(new vscode.Position(cursor.line, cursor.character));
    return document.positionAt(part.start + part.text.length);
  }

  private done(id: string): void {
    this.forget();
    this.recent.ended('Next edit', ACCEPT);
    this.server().outcome(ACCEPT, id);
  }

  private keep(shown: Shown, edit: Edit, taken: number): void {
    const accepted = shown.accepted + Math.max(1, taken);
    this.shown = { ...shown, edit, accepted, version: shown.document.version };
    this.server().report(ACCEPT_PART, { item: { command: shown.command }, acceptedLength: accepted });
    this.refresh();
  }

  /** Hide it. */
  dismiss(): void {
    this.end(DISMISS);
  }

  /** Reject it. */
  reject(): void {
    this.end(REJECT);
  }

  private end(how: string): void {
    const { shown } = this;
    this.forget();
    this.recent.ended('Next edit', how);
    if (shown) this.server().outcome(how, shown.id);
  }

  /** Note that the user hid an edit that VS Code showed. */
  hidden(id: string): void {
    if (this.shown?.id === id) this.forget();
  }
}

/** Open the file of an edit, without showing it. Return false if it is open, or cannot be opened. */
async function opens({ edits: [found] }: EditAnswer): Promise<boolean> {
  if (!found) return false;
  const uri = vscode.Uri.parse(found.textDocument.uri);
  const is = (each: vscode.TextDocument): boolean => each.uri.toString() === uri.toString();
  if (vscode.workspace.textDocuments.some(is)) return false;
  try {
    return is(await vscode.workspace.openTextDocument(uri));
  } catch {
    return false;
  }
}

/** Return the column in which a document is open, so that it is not opened twice. */
function columnOf(document: vscode.TextDocument): vscode.ViewColumn {
  const open = vscode.window.visibleTextEditors.find((editor) => editor.document === document);
  return open?.viewColumn ?? vscode.ViewColumn.Active;
}
