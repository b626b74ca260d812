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
  assert.equal(sentence(shown('below threshold 0.20 < 0.44'), none('x')), 'not sure of this: below threshold 0.20 < 0.44');
});

test('where nothing is shown the reasons are told apart, and once where they are one', () => {
  assert.equal(sentence(none('it repeats'), none('The model is done.')), 'no text: it repeats · no edit: the model is done');
  assert.equal(sentence(none('snoozed'), none('snoozed')), 'nothing to show: snoozed');
  assert.equal(sentence(undefined, none('no edit')), 'nothing to show: no edit');
  assert.match(sentence(none(), none()), /^nothing to show: ./);
});

test('an answer that was overtaken is no news', () => {
  assert.equal(sentence(undefined, undefined), '');
});
