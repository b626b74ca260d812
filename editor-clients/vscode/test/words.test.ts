import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brief } from '../src/words';

test('a sentence that has room stays whole', () => {
  assert.equal(brief('Hidden (medium).', 16), 'Hidden (medium).');
});

test('a longer sentence loses what stands in brackets, then its end', () => {
  const sentence = 'Ghost text hidden: 8 % likely to be kept (medium shows from 25 %).';
  assert.equal(brief(sentence, 60), 'Ghost text hidden: 8 % likely to be kept.');
  assert.equal(brief(sentence, 20), 'Ghost text hidden: …');
});
