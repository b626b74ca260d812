import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Edit, least } from '../src/edit';
import { dedented, layout, type Lines } from '../src/layout';

const CODE = 'def other(x):\n    y = x + 1\n    return y\n';

function edit(old: string, text: string, code = CODE): Edit {
  const start = code.indexOf(old);
  return least({ start, end: start + old.length, old, text });
}

function linesOf(code: string): Lines {
  const lines = code.split('\n');
  const startOf = (line: number): number => lines.slice(0, line).join('\n').length + (line ? 1 : 0);
  const lineOf = (offset: number): number => code.slice(0, offset).split('\n').length - 1;
  return { lineOf, startOf, textOf: (line) => lines[line]!.replace('\r', '') };
}

test('a change within a line is drawn within it', () => {
  const drawn = layout(edit('x + 1', 'x + 2'), linesOf(CODE));
  const at = CODE.indexOf('1');
  assert.deepEqual(drawn.removed, [{ start: at, end: at + 1 }]);
  assert.deepEqual(drawn.added, [{ at: at + 1, text: '2' }]);
  assert.equal(drawn.box, undefined);
});

test('changes in several lines that stay are drawn in each of them', () => {
  const drawn = layout(edit('x + 1\n    return y', 'x + 2\n    return x'), linesOf(CODE));
  assert.deepEqual(
    drawn.added.map(({ text }) => text),
    ['2', 'x'],
  );
});

test('new lines stand in a box beside the line above, without their indentation', () => {
  const drawn = layout(edit('    return y\n', '    z = 1\n    return y\n'), linesOf(CODE));
  assert.deepEqual(drawn.box, { line: 1, lines: ['z = 1'] });
  assert.equal(drawn.above, 2);
  assert.deepEqual(drawn.removed, []);
});

test('lines that go are tinted and need no box', () => {
  const drawn = layout(edit('    y = x + 1\n', ''), linesOf(CODE));
  const start = CODE.indexOf('    y');
  assert.deepEqual(drawn, { removed: [{ start, end: start + 14 }], added: [] });
});

test('one line that becomes two is whole in its box', () => {
  const drawn = layout(edit('y = x + 1', 'y = 2 * x\n    z = y + 1'), linesOf(CODE));
  assert.deepEqual(drawn.box, { line: 1, lines: ['y = 2 * x', 'z = y + 1'] });
});

test('line ends of DOS leave no trace in what is drawn', () => {
  const code = CODE.replaceAll('\n', '\r\n');
  const drawn = layout(edit('    return y\r\n', '    z = 1\r\n    return y\r\n', code), linesOf(code));
  assert.deepEqual(drawn.box?.lines, ['z = 1']);
});

test('indentation that lines do not share stays', () => {
  assert.deepEqual(dedented(['  if x:', '', '    y']), ['if x:', '', '  y']);
});
