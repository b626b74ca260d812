import assert from 'node:assert/strict';
import { test } from 'node:test';
import { candidates, installers } from '../src/places';
import { MOST, Restarts, WITHIN_MS } from '../src/restarts';

const MACHINE = {
  platform: 'linux' as const,
  path: '/usr/bin:/opt/bin',
  home: '/home/ada',
  folders: ['/work/project'],
  own: '/data/server',
};

test('the PATH comes first and the workspace last', () => {
  assert.deepEqual(candidates(MACHINE), [
    '/usr/bin/redraft',
    '/opt/bin/redraft',
    '/home/ada/.local/bin/redraft',
    '/data/server/bin/redraft',
    '/work/project/.venv/bin/redraft',
  ]);
});

test('Windows has other names for all of it', () => {
  const places = candidates({ ...MACHINE, platform: 'win32', path: 'C:\\bin', own: 'D:\\server', folders: [] });
  assert.ok(places.includes('C:\\bin\\redraft.exe'));
  assert.ok(places.includes('D:\\server\\Scripts\\redraft.exe'));
});

test('pip installs into an environment of its own', () => {
  const pip = installers('redraft[cpu]', '/data/server', 'linux').at(-1)!;
  assert.deepEqual(pip.steps[0], ['', '-m', 'venv', '/data/server']);
  assert.equal(pip.steps[1]![0], '/data/server/bin/python');
  assert.equal(pip.steps[1]!.at(-1), 'redraft[cpu]');
});

test('a server that keeps ending is left alone after a while, one that ends rarely never', () => {
  const often = new Restarts();
  const answers = Array.from({ length: MOST }, (_, at) => often.allow(at * 1000));
  assert.deepEqual(answers, [...Array.from({ length: MOST - 1 }, () => true), false]);
  const rarely = new Restarts();
  for (let at = 0; at < 20; at += 1) assert.ok(rarely.allow(at * WITHIN_MS));
});
