import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columns, highlight, picture, untabbed } from '../src/paint';

const LOOK = { fontFamily: 'Menlo, "Courier New"', fontSize: 14, lineHeight: 19, tabSize: 4 };

test('tokens have their kinds and put together are the line', () => {
  const line = 'return self.area(2, "a # b")  # why';
  const tokens = highlight(line, 'python');
  assert.equal(tokens.map(({ text }) => text).join(''), line);
  const kind = (text: string): string | undefined => tokens.find((t) => t.text === text)?.kind;
  assert.deepEqual(
    ['return', 'area', '2', '"a # b"', '# why'].map(kind),
    ['keyword', 'call', 'number', 'string', 'comment'],
  );
});

test('what begins a comment depends on the language', () => {
  const kinds = (language: string): string[] => highlight('a // b', language).map(({ kind }) => kind);
  assert.ok(kinds('typescript').includes('comment'));
  assert.ok(!kinds('python').includes('comment'));
});

test('wide characters take two columns, tabs go to the next stop', () => {
  assert.equal(columns('a漢😀'), 5);
  assert.equal(untabbed('a\tb', 4), 'a   b');
  assert.equal(untabbed('\t', 4, 2), '  ');
});

test('a picture is as wide and high as its text', () => {
  const svg = picture(['ab', 'abcd'], 'python', LOOK, 'dark', true);
  assert.match(svg, /width="6ch" height="38"/);
  assert.match(picture(['ab'], 'python', LOOK, 'dark', false), /width="2ch" height="19"/);
});

test('a picture within a line has a line below, one beside the code a frame', () => {
  assert.match(picture(['ab'], 'python', LOOK, 'light', false), /<line [^>]*stroke="#1f1f1f"/);
  assert.doesNotMatch(picture(['ab'], 'python', LOOK, 'light', true), /<line /);
});

test('no text can break out of its picture', () => {
  const svg = picture(['</text><script>"&\0'], 'html', LOOK, 'light', false);
  assert.ok(!svg.includes('<script'));
  assert.ok(svg.includes('&lt;'));
  assert.ok(!svg.includes('\0'));
  assert.ok(svg.includes('Menlo, &quot;Courier New&quot;'));
});
