import assert from 'node:assert/strict';
import { test } from 'node:test';
import { candidates, installers, pullArguments, requirement } from '../src/places';
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
  for (const { steps } of [uv!, pipx!, pip!]) assert.equal(steps.at(-1)!.line.at(-1), spec);
  assert.ok(uv!.steps[0]!.line.includes('--force') && uv!.steps[0]!.line.includes('--reinstall-package'));
  assert.ok(pipx!.steps[0]!.line.includes('--force'));
  assert.ok(pip!.steps[1]!.line.includes('--force-reinstall'));
});

test('pip clears an environment only where that cannot be installed into', () => {
  const python = '/data/server/bin/python';
  const [make, fill] = installers('x', '/data/server', 'linux').at(-1)!.steps;
  assert.deepEqual(make!.line, ['', '-m', 'venv', '--clear', '/data/server']);
  assert.equal(make!.unless![0], python);
  assert.match(make!.unless!.at(-1)!, /import pip.*version_info < \(3, 11\)/);
  assert.equal(fill!.line[0], python);
  assert.equal(fill!.unless, undefined);
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

test('a model is downloaded where the server runs', () => {
  const pull = ['model', 'pull', 'redraft-1.5b'];
  assert.deepEqual(pullArguments(['lsp', '--variant', 'q4'], 'redraft-1.5b'), pull);
  assert.deepEqual(pullArguments([], 'redraft-1.5b'), pull);
  const there = pullArguments(['gpu.local', 'redraft', 'lsp'], 'redraft-1.5b');
  assert.deepEqual(there, ['gpu.local', 'redraft', ...pull]);
});
