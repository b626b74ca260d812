import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PACE_MS, Paced } from '../src/pace';

interface State {
  readonly busy: boolean;
  readonly message: string;
}

const idle: State = { busy: false, message: 'nothing to write here' };
const thinking: State = { busy: true, message: 'thinking' };

/** What is seen of states, with the time at which it is, ms. */
function watched(context: TestContext): { paced: Paced<State>; seen: [number, string][] } {
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 });
  const seen: [number, string][] = [];
  const paced = new Paced<State>(
    ({ message }) => seen.push([Date.now(), message]),
    ({ busy }) => busy,
    (one, other) => one.busy === other.busy && one.message === other.message,
  );
  return { paced, seen };
}

test('typing for five seconds changes what is seen at most twice a second', (context) => {
  const { paced, seen } = watched(context);
  for (let key = 0; key < 50; key += 1) {
    paced.tell(thinking);
    context.mock.timers.tick(60);
    paced.tell({ busy: false, message: `below threshold 0.${key}` });
    context.mock.timers.tick(40);
  }
  context.mock.timers.tick(PACE_MS);
  const gaps = seen.slice(1).map(([at], i) => at - seen[i]![0]);
  assert.ok(seen.length > 1);
  assert.ok(gaps.every((gap) => gap >= PACE_MS), String(gaps));
  assert.deepEqual(seen.at(-1)?.[1], 'below threshold 0.49');
});

test('the same answer to every key is seen once, and no spinner between', (context) => {
  const { paced, seen } = watched(context);
  for (let key = 0; key < 50; key += 1) {
    paced.tell(thinking);
    context.mock.timers.tick(60);
    paced.tell(idle);
    context.mock.timers.tick(40);
  }
  context.mock.timers.tick(10 * PACE_MS);
  assert.deepEqual(seen.map(([, message]) => message), [idle.message]);
});

test('what takes long is seen to take long', (context) => {
  const { paced, seen } = watched(context);
  paced.tell(idle);
  context.mock.timers.tick(2_000);
  paced.tell(thinking);
  context.mock.timers.tick(PACE_MS);
  assert.deepEqual(seen, [[0, idle.message], [2_000 + PACE_MS, 'thinking']]);
});

test('an error after a quiet time is seen at once, and nothing after the end', (context) => {
  const { paced, seen } = watched(context);
  paced.tell(idle);
  context.mock.timers.tick(2_000);
  paced.tell({ busy: false, message: 'the server ended' });
  assert.deepEqual(seen.at(-1), [2_000, 'the server ended']);
  paced.tell(thinking);
  paced.dispose();
  context.mock.timers.tick(2_000);
  assert.equal(seen.length, 2);
});
