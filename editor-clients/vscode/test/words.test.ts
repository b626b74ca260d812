import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brief, hint } from '../src/words';

const AWAY = { file: '', line: 213, why: '', more: 0, unsure: false, key: 'Tab', room: 100 };

test('a hint names the place, the reason and the number of other places', () => {
  const why = 'same call, `timeout` was added';
  assert.equal(hint(AWAY), '→ edit at line 214 · Tab');
  assert.equal(hint({ ...AWAY, file: 'src/cart.py' }), '→ edit in src/cart.py, line 214 · Tab');
  assert.equal(hint({ ...AWAY, why }), '→ line 214: same call, `timeout` was added · Tab');
  assert.equal(
    hint({ ...AWAY, why, file: 'cart.py', more: 3 }),
    '→ cart.py, line 214: same call, `timeout` was added · 3 more places · Tab',
  );
  assert.equal(hint({ ...AWAY, why: 'like your last edit', more: 1, unsure: true }), '→ line 214?: like your last edit · 1 more place · Tab');
  assert.equal(hint({ ...AWAY, unsure: true }), '→ edit? at line 214 · Tab');
});

test('the reason in a hint is short', () => {
  assert.ok(hint({ ...AWAY, why: 'x'.repeat(80) }).endsWith('x… · Tab'));
});

test('a hint stays in its room, and its key is seen', () => {
  const away = { ...AWAY, file: 'packages/shop/src/invoice.py', why: 'expected 0 positional arguments, but got 2', more: 12 };
  for (let room = 20; room < 120; room += 1) {
    const shown = hint({ ...away, room });
    assert.ok(shown.endsWith(' · Tab'));
    assert.ok(shown.length <= Math.max(room, 40), `${room}: ${shown}`);
  }
  assert.match(hint({ ...away, room: 60 }), /^→ invoice\.py, line 214/);
  assert.match(hint({ ...away, why: '', room: 40 }), /^→ edit in invoice\.py, line 214/);
});

test('a sentence that has room stays whole', () => {
  assert.equal(brief('Hidden (medium).', 16), 'Hidden (medium).');
});

test('a longer sentence loses what stands in brackets, then its end', () => {
  const sentence = 'Ghost text hidden: 8 % likely to be kept (medium shows from 25 %).';
  assert.equal(brief(sentence, 60), 'Ghost text hidden: 8 % likely to be kept.');
  assert.equal(brief(sentence, 20), 'Ghost text hidden: …');
});
