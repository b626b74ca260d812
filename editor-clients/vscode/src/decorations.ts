/**
 * Draws a next edit with decorations, which every extension may use.
 */

import * as vscode from 'vscode';
import { type Edit } from './edit';
import { type Layout, layout, type Lines } from './layout';
import { columns, type Look, picture, type Theme, untabbed } from './paint';

/** A column behind every line end; VS Code moves it to that of the line as it then is. */
const FAR_RIGHT = 2 ** 30;

/** Columns between the code and a box, and the last column at which a box begins. */
const GAP = 4;
const FARTHEST = 80;

/** Assumed width of a window in columns; extensions cannot read it. One of 830 pixels has 80. */
const WIDEST = 80;
/** Columns behind any line, however long it is. */
const LEAST_ROOM = 40;

/** Keeps VS Code from collapsing blanks and from aligning the picture with the base line. */
const INLINE = 'none; vertical-align: top; cursor: pointer';
const BOX = 'none; position: absolute; top: 0; z-index: 10; cursor: pointer';

export class Painter implements vscode.Disposable {
  private clean = true; // nothing is drawn, so that most keys cost nothing
  private teasing = false;
  private readonly removed = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor('diffEditor.removedTextBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.modifiedForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Left,
    textDecoration: 'line-through; text-decoration-thickness: 1px; opacity: 0.75',
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.addedForeground'),
    overviewRulerLane: vscode.OverviewRulerLane.Right,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly above = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderWidth: '1px 0 0 0',
    borderStyle: 'dashed',
    borderColor: new vscode.ThemeColor('editorOverviewRuler.addedForeground'),
  });
  private readonly hints = vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.OpenOpen,
  });

  private readonly teasers = vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.OpenOpen,
  });

  /** Draw the edit in every editor that shows its document. */
  edit(edit: Edit, document: vscode.TextDocument): void {
    this.clean = false;
    const drawn = layout(edit, linesOf(document));
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document === document) this.paint(editor, drawn);
      else for (const type of [this.removed, this.added, this.above]) editor.setDecorations(type, []);
    }
  }

  private paint(editor: vscode.TextEditor, drawn: Layout): void {
    const { document } = editor;
    const at = (offset: number): vscode.Position => document.positionAt(offset);
    const look = lookOf(editor);
    const [language, lines] = [document.languageId, linesOf(document)];
    editor.setDecorations(
      this.removed,
      drawn.removed.map(({ start, end }) => new vscode.Range(at(start), at(end))),
    );
    const added = drawn.added.map((piece): vscode.DecorationOptions => {
      const where = at(piece.at);
      const image = themed((theme) => picture([piece.text], language, look, theme, false));
      return { range: new vscode.Range(where, where), ...attached(image, { textDecoration: INLINE }) };
    });
    if (drawn.box) {
      const { line, lines: shown } = drawn.box;
      const end = document.lineAt(line).range.end;
      const image = themed((theme) => picture(shown, language, look, theme, true));
      const margin = `0 0 0 ${boxOffset(lines, document.lineCount, line, shown.length, look)}ch`;
      const css = { textDecoration: BOX, margin };
      added.push({ range: new vscode.Range(end, end), ...attached(image, css) });
    }
    editor.setDecorations(this.added, added);
    const above = drawn.above === undefined ? [] : [Math.min(drawn.above, document.lineCount - 1)];
    editor.setDecorations(
      this.above,
      above.map((line) => new vscode.Range(line, 0, line, 0)),
    );
  }

  /** Draw a hint behind the code of a line, in place of the previous one; the hover has the `whole`. */
  hint(editor: vscode.TextEditor, line: number, text: string, whole: string): void {
    this.clean = false;
    this.word(this.hints, editor, line, text, whole);
  }

  /** In subtle mode, draw a mark on a line with hidden ghost text; without a line, remove it. */
  teaser(editor?: vscode.TextEditor, line = 0): void {
    if (editor) this.word(this.teasers, editor, line, '··· Alt+\\');
    else if (this.teasing) this.wipe(this.teasers);
    this.teasing = editor !== undefined;
  }

  private word(
    type: vscode.TextEditorDecorationType,
    editor: vscode.TextEditor,
    line: number,
    text: string,
    whole = '',
  ): void {
    // Behind the end also when the line has grown, of which extensions hear a frame later.
    const end = new vscode.Position(lineWithRoom(editor, line, text.length), FAR_RIGHT);
    const after: vscode.ThemableDecorationAttachmentRenderOptions = {
      contentText: text.replaceAll(' ', '\u00a0'),
      color: new vscode.ThemeColor('editorInlayHint.foreground'),
      backgroundColor: new vscode.ThemeColor('editorInlayHint.background'),
      margin: `0 0 0 ${GAP / 2}ch`,
      textDecoration: 'none; padding: 0 0.6ch; border-radius: 3px; font-size: 0.9em',
    };
    const hoverMessage = whole && new vscode.MarkdownString().appendText(whole);
    const range = new vscode.Range(end, end);
    editor.setDecorations(type, [{ range, renderOptions: { after }, ...(hoverMessage && { hoverMessage }) }]);
    for (const other of vscode.window.visibleTextEditors) {
      if (other !== editor) other.setDecorations(type, []);
    }
  }

  /** Remove the diff and keep the hint. */
  clearDiff(): void {
    for (const type of [this.removed, this.added, this.above]) this.wipe(type);
  }

  clear(): void {
    if (this.clean) return;
    this.clean = true;
    this.clearDiff();
    this.wipe(this.hints);
  }

  private wipe(type: vscode.TextEditorDecorationType): void {
    for (const editor of vscode.window.visibleTextEditors) editor.setDecorations(type, []);
  }

  dispose(): void {
    const all = [this.removed, this.added, this.above, this.hints, this.teasers];
    for (const type of all) type.dispose();
  }
}

function linesOf(document: vscode.TextDocument): Lines {
  return {
    lineOf: (offset) => document.positionAt(offset).line,
    startOf: (line) => document.offsetAt(new vscode.Position(line, 0)),
    textOf: (line) => document.lineAt(line).text,
  };
}

/** Return the line, or the one beside it if the hint would not fit in the window. */
function lineWithRoom(editor: vscode.TextEditor, line: number, hint: number): number {
  const near = linesAt(editor, line);
  const room = near.map((at) => roomBehind(editor, at));
  return near.find((_, i) => room[i]! >= hint) ?? near[room.indexOf(Math.max(...room))]!;
}

/** Return how many columns a hint may have at a line or beside it. */
export function roomAt(editor: vscode.TextEditor, line: number): number {
  return Math.max(LEAST_ROOM, ...linesAt(editor, line).map((at) => roomBehind(editor, at)));
}

function linesAt({ document }: vscode.TextEditor, line: number): number[] {
  const last = document.lineCount - 1;
  const first = Math.min(line, last);
  return [first, first + 1, first - 1].filter((at) => at >= 0 && at <= last);
}

function roomBehind(editor: vscode.TextEditor, line: number): number {
  const tabSize = Number(editor.options.tabSize) || 4;
  return WIDEST - GAP - columns(untabbed(editor.document.lineAt(line).text, tabSize));
}

/** Return the columns between the end of its line and a box, so that the box covers no code. */
function boxOffset(lines: Lines, count: number, line: number, height: number, look: Look): number {
  const width = (at: number): number => columns(untabbed(lines.textOf(at), look.tabSize));
  let widest = 0;
  for (let at = line; at < Math.min(count, line + height); at += 1) {
    widest = Math.max(widest, width(at));
  }
  return Math.max(GAP, Math.min(widest, Math.max(FARTHEST, width(line))) - width(line) + GAP);
}

type Pictures = Record<Theme, vscode.Uri>;

function themed(draw: (theme: Theme) => string): Pictures {
  const uri = (theme: Theme): vscode.Uri => {
    const data = Buffer.from(draw(theme)).toString('base64');
    return vscode.Uri.parse(`data:image/svg+xml;base64,${data}`);
  };
  return { dark: uri('dark'), light: uri('light') };
}

function attached(
  image: Pictures,
  css: vscode.ThemableDecorationAttachmentRenderOptions,
): Pick<vscode.DecorationOptions, 'renderOptions'> {
  const after = (theme: Theme) => ({ after: { contentIconPath: image[theme], ...css } });
  return { renderOptions: { dark: after('dark'), light: after('light') } };
}

/** Return the font of the editor. Without a setting, the line height is VS Code's golden ratio. */
function lookOf(editor: vscode.TextEditor): Look {
  const config = vscode.workspace.getConfiguration('editor', editor.document);
  const fontSize = config.get('fontSize', 14);
  const set = config.get('lineHeight', 0);
  const ratio = process.platform === 'darwin' ? 1.5 : 1.35;
  const lineHeight = set <= 0 ? ratio * fontSize : set < 8 ? set * fontSize : set;
  const tabSize = Number(editor.options.tabSize) || 4;
  const fontFamily = config.get('fontFamily', 'monospace');
  return { fontFamily, fontSize, lineHeight: Math.max(8, Math.round(lineHeight)), tabSize };
}
