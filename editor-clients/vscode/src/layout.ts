/**
 * Places where the parts of an edit are drawn.
 *
 * Removed text is tinted in place. New text is drawn within its line if no line is added or removed;
 * otherwise in a box beside the code, because extensions cannot insert lines between two lines.
 */

import { type Edit, pieces } from './edit';

/** The document. Lines are 0-based and without line ends. */
export interface Lines {
  lineOf(offset: number): number;
  startOf(line: number): number;
  textOf(line: number): string;
}

export interface Layout {
  /** Removed text, as offsets. */
  readonly removed: readonly { readonly start: number; readonly end: number }[];
  /** New text within a line, at an offset. */
  readonly added: readonly { readonly at: number; readonly text: string }[];
  /** New lines beside `line`. */
  readonly box?: { readonly line: number; readonly lines: readonly string[] };
  /** Line above which new lines are inserted. */
  readonly above?: number;
}

export function layout(edit: Edit, doc: Lines): Layout {
  const [old, text] = [edit.old.split('\n'), edit.text.split('\n')];
  return old.length === text.length ? withinLines(edit, old, text) : besideLines(edit, doc);
}

function withinLines(edit: Edit, old: string[], text: string[]): Layout {
  const removed = [];
  const added = [];
  let start = edit.start;
  for (const [at, line] of old.entries()) {
    for (const piece of pieces(line, text[at]!)) {
      if (piece.end > piece.start) {
        removed.push({ start: start + piece.start, end: start + piece.end });
      }
      if (piece.text) added.push({ at: start + piece.end, text: piece.text.replace(/\r/g, '') });
    }
    start += line.length + 1;
  }
  return { removed, added };
}

function besideLines(given: Edit, doc: Lines): Layout {
  const edit = aligned(given, doc);
  const first = doc.lineOf(edit.start);
  const last = doc.lineOf(edit.end);
  const head = doc.textOf(first).slice(0, edit.start - doc.startOf(first));
  const tail = doc.textOf(last).slice(edit.end - doc.startOf(last));
  const removed = pieces(edit.old, edit.text)
    .filter((piece) => piece.end > piece.start)
    .map((piece) => ({ start: edit.start + piece.start, end: edit.start + piece.end }));
  if (!edit.text.trim()) return { removed, added: [] };
  const lines = edit.text.split(/\r?\n/);
  if (!edit.old && !head && edit.text.endsWith('\n')) {
    const line = Math.max(0, first - 1);
    return { removed, added: [], box: { line, lines: dedented(lines.slice(0, -1)) }, above: first };
  }
  if (!edit.old && !tail && !lines[0]) {
    const line = first;
    return { removed, added: [], box: { line, lines: dedented(lines.slice(1)) }, above: first + 1 };
  }
  lines[0] = head + lines[0]!;
  lines[lines.length - 1] += tail;
  return { removed, added: [], box: { line: first, lines: dedented(lines) } };
}

/**
 * Return the edit as one of whole lines, if possible. The smallest edit that adds or removes lines
 * begins behind the indentation that they share with the line below.
 */
function aligned(edit: Edit, doc: Lines): Edit {
  const { start, end, old, text } = edit;
  const line = doc.lineOf(start);
  const head = doc.textOf(line).slice(0, start - doc.startOf(line));
  const slides = (part: string): boolean => part === '' || part.endsWith(head);
  if (!head || (old && text) || !slides(old) || !slides(text)) return edit;
  const slid = (part: string): string => part && head + part.slice(0, part.length - head.length);
  return { start: start - head.length, end: end - head.length, old: slid(old), text: slid(text) };
}

/** Return the lines without the indentation that all of them share. */
export function dedented(lines: readonly string[]): string[] {
  const indents = lines.filter((line) => line.trim()).map((line) => /^\s*/.exec(line)![0]);
  let shared = indents[0] ?? '';
  for (const indent of indents) while (!indent.startsWith(shared)) shared = shared.slice(0, -1);
  return lines.map((line) => (line.startsWith(shared) ? line.slice(shared.length) : line.trimStart()));
}
