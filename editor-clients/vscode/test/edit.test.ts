import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGhost, type Change, type Edit, followed, least, pieces, portion } from '../src/edit';

const CODE = 'def area(r):\n    return 3.14 * r\n\nprint(area(2))\n';

/** The edit that makes `old` of `text` into `now`. */
function edit(text: string, old: string, now: string): Edit {
  const start = text.indexOf(old);
  assert.ok(start >= 0, `${old} is in the text`);
  return least({ start, end: start + old.length, old, text: now });
}

/** `text` after `change`, and the edit then. */
function after(text: string, made: Edit, change: Change): [string, Edit | undefined] {
  const now = text.slice(0, change.start) + change.text + text.slice(change.end);
  const lineOf = (offset: number): number => now.slice(0, offset).split('\n').length - 1;
  return [now, followed(made, change, lineOf)];
}

const applied = (text: string, { start, end, text: now }: Edit): string =>
  text.slice(0, start) + now + text.slice(end);

test('an edit is cut to what changes', () => {
  const made = edit(CODE, 'print(area(2))', 'print(area(2, 3.14))');
  assert.deepEqual([made.old, made.text], ['', ', 3.14']);
  assert.equal(made.start, CODE.indexOf('2))') + 1);
});

test('half a character never changes alone', () => {
  const made = edit('a😀b', 'a😀b', 'a😁b');
  assert.deepEqual([made.old, made.text], ['😀', '😁']);
});

test('an edit that is typed becomes less', () => {
  const made = edit(CODE, 'area(2)', 'area(2, 3.14)');
  const [text, rest] = after(CODE, made, { start: made.start, end: made.start, text: ', ' });
  assert.equal(rest?.text, '3.14');
  assert.equal(applied(text, rest!), applied(CODE, made));
});

test('typing something else ends it, and typing all of it does', () => {
  const made = edit(CODE, 'area(2)', 'area(2, 3.14)');
  const at = { start: made.start, end: made.start };
  assert.equal(after(CODE, made, { ...at, text: '5' })[1], undefined);
  assert.equal(after(CODE, made, { ...at, text: ', 3.14' })[1], undefined);
});

test('what an edit replaces may be deleted first', () => {
  const made = edit('x = circle\n', 'circle', 'square');
  const [text, rest] = after('x = circle\n', made, { start: 4, end: 6, text: '' });
  assert.equal(applied(text, rest!), 'x = square\n');
});

test('edits in other lines move it, edits in its own line end it', () => {
  const made = edit(CODE, 'area(2)', 'area(2, 3.14)');
  const [text, moved] = after(CODE, made, { start: 10, end: 10, text: ', pi' });
  assert.equal(applied(text, moved!), applied(CODE, made).replace('(r)', '(r, pi)'));
  const below = after(`${CODE}x\n`, made, { start: CODE.length, end: CODE.length, text: 'y' });
  assert.deepEqual(below[1], made);
  const inLine = CODE.indexOf('print');
  assert.equal(after(CODE, made, { start: inLine, end: inLine, text: '# ' })[1], undefined);
});

test('pieces put together make the new text', () => {
  const pairs = [
    ['y = x + 1', 'y = 2 * x + math.pi'],
    ['', 'new'],
    ['all of it', ''],
    ['f(a, b, c)\nreturn', 'f(a, c)\nreturn c'],
    ['a\r\nb', 'a\r\nc\r\nb'],
    ['same', 'same'],
  ];
  for (const [old = '', text = ''] of pairs) {
    let made = old;
    for (const { start, end, text: piece } of pieces(old, text).reverse()) {
      made = made.slice(0, start) + piece + made.slice(end);
    }
    assert.equal(made, text);
  }
});

test('only what differs is a piece', () => {
  assert.deepEqual(pieces('f(a, b)', 'f(a, x)'), [{ start: 5, end: 6, text: 'x' }]);
});

test('texts too long to compare are one piece', () => {
  const [old, text] = ['a '.repeat(1000), 'b '.repeat(1000)];
  assert.deepEqual(pieces(old, text), [{ start: 0, end: old.length, text }]);
});

test('a word, then a line, then the rest, leave an edit that is still true', () => {
  const text = 'x = 1\n';
  const wanted = 'x = first + second\ny = third\n';
  let made: Edit | undefined = edit(text, text, wanted);
  let now = text;
  for (const unit of ['word', 'word', 'line', 'line'] as const) {
    if (!made) break;
    const part = portion(made, unit);
    [now, made] = after(now, made, { start: part.start, end: part.end, text: part.text });
  }
  assert.equal(made, undefined);
  assert.equal(now, wanted);
});

test('a word is no more than a word', () => {
  const made = edit('area(2)', 'area(2)', 'area(2, 3.14)');
  assert.equal(portion(made, 'word').text, ',');
});

test('an insertion behind the cursor on its line can be ghost text', () => {
  const line = 'print(area(2))';
  const made = edit(line, 'area(2)', 'area(2, 3.14)');
  const ghost = asGhost(made, 6, line.length, line);
  assert.deepEqual(ghost, { start: 6, end: 12, text: 'area(2, 3.14' });
});

test('what is before the cursor, takes away, or breaks a line in two is no ghost text', () => {
  const line = 'print(area(2))';
  const insertion = edit(line, 'area(2)', 'area(2, 3.14)');
  assert.equal(asGhost(insertion, 14, line.length, line), undefined);
  assert.equal(asGhost(edit(line, 'area', 'size'), 0, line.length, line), undefined);
  assert.equal(asGhost(edit(line, 'area(2)', 'area()'), 0, line.length, line), undefined);
  assert.equal(asGhost(edit(line, 'area(2)', 'area(\n2)'), 0, line.length, line), undefined);
  const other = insertion.start + 100;
  assert.equal(asGhost({ ...insertion, start: other, end: other }, 0, line.length, line), undefined);
});
