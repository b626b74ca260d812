/**
 * A next edit as data, and how it follows changes of its document.
 *
 * All places are offsets in UTF-16 units into the text of the editor, line ends included. The server
 * follows changes in the same way; doing it here as well avoids flicker until its answer arrives.
 */

/** Replaces `old`, which is `[start, end)`, by `text`. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly old: string;
  readonly text: string;
}

/** A change of a document: `[start, end)` became `text`. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

function commonHead(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let at = 0;
  while (at < most && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  return at > 0 && isHighSurrogate(one.charCodeAt(at - 1)) ? at - 1 : at;
}

function commonTail(one: string, other: string, most: number): number {
  let size = 0;
  while (
    size < most &&
    one.charCodeAt(one.length - 1 - size) === other.charCodeAt(other.length - 1 - size)
  ) {
    size += 1;
  }
  return size > 0 && isLowSurrogate(one.charCodeAt(one.length - size)) ? size - 1 : size;
}

/** Return the edit without the text that stays at either end. */
export function least(edit: Edit): Edit {
  const head = commonHead(edit.old, edit.text);
  const old = edit.old.slice(head);
  const text = edit.text.slice(head);
  const tail = commonTail(old, text, Math.min(old.length, text.length));
  return {
    start: edit.start + head,
    end: edit.end - tail,
    old: old.slice(0, old.length - tail),
    text: text.slice(0, text.length - tail),
  };
}

/**
 * Return the edit after `change`: shortened if the change was part of it, moved if the change was in
 * other lines, undefined if it is complete or no longer applies. `lineOf` returns the line of an
 * offset in the changed document.
 */
export function followed(
  edit: Edit,
  change: Change,
  lineOf: (offset: number) => number,
): Edit | undefined {
  const by = change.text.length - (change.end - change.start);
  if (change.start >= edit.start && change.end <= edit.end) {
    const from = change.start - edit.start;
    const now = edit.old.slice(0, from) + change.text + edit.old.slice(change.end - edit.start);
    if (now === edit.text || !isOnTheWay(now, edit.old, edit.text)) return undefined;
    return least({ start: edit.start, end: edit.end + by, old: now, text: edit.text });
  }
  if (change.end <= edit.start) {
    const apart = lineOf(change.start + change.text.length) < lineOf(edit.start + by);
    return apart ? { ...edit, start: edit.start + by, end: edit.end + by } : undefined;
  }
  return change.start >= edit.end && lineOf(edit.end) < lineOf(change.start) ? edit : undefined;
}

/** Return whether typing `text` over `old` passes through `now`. */
function isOnTheWay(now: string, old: string, text: string): boolean {
  if (old.startsWith(now)) return true;
  const written = commonHead(now, text);
  for (let at = written; at >= 0; at -= 1) {
    if (old.endsWith(now.slice(at))) return true;
  }
  return false;
}

// --- the pieces of an edit ------------------------------------------------------------------------

/** Number of tokens beyond which two texts are not compared in detail, because of its cost. */
const MOST_CELLS = 250_000;

/** Return the smallest changes within an edit, in order, with offsets into its `old`. */
export function pieces(old: string, text: string): Change[] {
  const before = tokens(old);
  const after = tokens(text);
  if (before.length * after.length > MOST_CELLS || !before.length || !after.length) {
    return old === text ? [] : [{ start: 0, end: old.length, text }];
  }
  return joined(old, changes(before, after));
}

const tokens = (text: string): string[] => text.match(/[\p{L}\p{N}_]+|\r?\n|[^\S\n]+|./gsu) ?? [];

function changes(before: string[], after: string[]): Change[] {
  const lengths = commonLengths(before, after);
  const found: Change[] = [];
  let i = 0;
  let j = 0;
  let at = 0;
  while (i < before.length || j < after.length) {
    const start = at;
    let text = '';
    while (i < before.length || j < after.length) {
      if (i < before.length && j < after.length && before[i] === after[j]) break;
      const down = lengths[i + 1]?.[j] ?? -1;
      const right = lengths[i]?.[j + 1] ?? -1;
      if (i < before.length && (j >= after.length || down >= right)) {
        at += before[i]!.length;
        i += 1;
      } else {
        text += after[j]!;
        j += 1;
      }
    }
    if (at > start || text) found.push({ start, end: at, text });
    if (i < before.length) at += before[i]!.length;
    i += 1;
    j += 1;
  }
  return found;
}

/** Return the length of the longest common subsequence of each pair of list ends. */
function commonLengths(before: string[], after: string[]): Uint32Array[] {
  const rows = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      const same = before[i] === after[j];
      const [here, below] = [rows[i]!, rows[i + 1]!];
      here[j] = same ? below[j + 1]! + 1 : Math.max(below[j]!, here[j + 1]!);
    }
  }
  return rows;
}

/** Join changes with only blanks between them. */
function joined(old: string, found: Change[]): Change[] {
  const result: Change[] = [];
  for (const change of found) {
    const last = result.at(-1);
    const gap = last && old.slice(last.end, change.start);
    if (last && gap !== undefined && /^[^\S\n]*$/.test(gap) && (last.text || change.text)) {
      result[result.length - 1] = {
        start: last.start,
        end: change.end,
        text: last.text + gap + change.text,
      };
    } else {
      result.push(change);
    }
  }
  return result;
}

// --- parts of an edit -----------------------------------------------------------------------------

/** Return the first word or line of an edit as an edit; the whole edit if there is no more. */
export function portion(edit: Edit, unit: 'word' | 'line'): Edit {
  const first = pieces(edit.old, edit.text)[0];
  if (!first) return edit;
  const pattern = unit === 'word' ? /^\s*(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+)?/u : /^[^\n]*\n?/;
  const part = pattern.exec(first.text)?.[0] ?? first.text;
  return {
    start: edit.start + first.start,
    end: edit.start + first.end,
    old: edit.old.slice(first.start, first.end),
    text: part,
  };
}

/**
 * Return the edit as ghost text that replaces `[cursor, end)`, or undefined if VS Code would not show
 * it. VS Code shows text that begins at or behind the cursor and keeps the characters there.
 */
export function asGhost(edit: Edit, cursor: number, lineEnd: number, line: string): Change | undefined {
  const { start, end, old, text } = edit;
  if (start < cursor || end > lineEnd || old.includes('\n')) return undefined;
  if (text.includes('\n') && end !== lineEnd) return undefined;
  if (!text || !isSubword(old, text)) return undefined;
  const between = line.slice(line.length - (lineEnd - cursor), line.length - (lineEnd - start));
  return { start: cursor, end, text: between + text };
}

/** Return whether `text` contains the characters of `word` in order. */
function isSubword(word: string, text: string): boolean {
  let at = 0;
  for (const unit of text) if (word.startsWith(unit, at)) at += unit.length;
  return at >= word.length;
}
