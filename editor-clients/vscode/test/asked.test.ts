import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sentence } from '../src/asked';

const shown = (why = ''): { shown: boolean; why: string } => ({ shown: true, why });
const none = (why = ''): { shown: boolean; why: string } => ({ shown: false, why });

test('what is shown and sure speaks for itself', () => {
  assert.equal(sentence(shown(), none('no edit')), '');
  assert.equal(sentence(none('nothing fits'), shown()), '');
});

test('what is shown only because somebody asked says so', () => {
  assert.equal(sentence(shown('8 % likely to be kept'), none('x')), 'unsure: 8 % likely to be kept');
});

test('where nothing is shown one reason is told, which names its kind', () => {
  assert.equal(sentence(none('it repeats'), none('The model is done.')), 'Ghost text: it repeats');
  assert.equal(sentence(none('Ghost text hidden: rejected.'), none('x')), 'Ghost text hidden: rejected.');
  assert.equal(sentence(none('No ghost text: paused.'), undefined), 'No ghost text: paused.');
  assert.equal(sentence(undefined, none('rejected here')), 'Next edit: rejected here');
  assert.match(sentence(none(), none()), /^nothing to show: ./);
});

test('an answer that was overtaken is no news', () => {
  assert.equal(sentence(undefined, undefined), '');
});
