import assert from 'node:assert/strict';
import { test } from 'node:test';
import { candidates, installers, requirement } from '../src/places';
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

const WHEEL = '/ext/dist/server/redraft-1.0-py3-none-any.whl';
const wanted = (setting: string, wheel?: string): string | undefined =>
  requirement(setting, wheel, '/home/ada', 'linux');

test('what is installed is the server that comes with the extension, else what the setting names', () => {
  assert.equal(wanted('', WHEEL), `redraft[cpu] @ file://${WHEEL}`);
  assert.equal(wanted('[gpu]', WHEEL), `redraft[gpu] @ file://${WHEEL}`);
  assert.equal(wanted('/work/my redraft', WHEEL), 'redraft[cpu] @ file:///work/my%20redraft');
  assert.equal(wanted(' ~/redraft[gpu,train] '), 'redraft[gpu,train] @ file:///home/ada/redraft');
  assert.equal(wanted('redraft[cpu]==2.0', WHEEL), 'redraft[cpu]==2.0');
});

test('no name is looked up on a registry unless the user says so', () => {
  assert.equal(wanted(''), undefined);
  assert.equal(wanted('[gpu]'), undefined);
});

test('what is wanted goes to each tool as one argument, and an older server gives way', () => {
  const spec = 'redraft[cpu] @ file:///a%20b';
  const [uv, pipx, pip] = installers(spec, '/data/server', 'linux');
  for (const { steps } of [uv!, pipx!, pip!]) assert.equal(steps.at(-1)!.at(-1), spec);
  assert.ok(uv!.steps[0]!.includes('--force') && uv!.steps[0]!.includes('--reinstall-package'));
  assert.ok(pipx!.steps[0]!.includes('--force'));
  assert.deepEqual(pip!.steps[0], ['', '-m', 'venv', '--clear', '/data/server']);
  assert.equal(pip!.steps[1]![0], '/data/server/bin/python');
});

test('only a Python that is new enough counts', () => {
  const { commands, check } = installers('x', '/data/server', 'linux').at(-1)!;
  assert.ok(commands.includes('python3') && commands.includes('python3.12'));
  assert.match(check!.join(' '), /version_info < \(3, 11\)/);
});

test('a server that keeps ending is left alone after a while, one that ends rarely never', () => {
  const often = new Restarts();
  const answers = Array.from({ length: MOST }, (_, at) => often.allow(at * 1000));
  assert.deepEqual(answers, [...Array.from({ length: MOST - 1 }, () => true), false]);
  const rarely = new Restarts();
  for (let at = 0; at < 20; at += 1) assert.ok(rarely.allow(at * WITHIN_MS));
});
