/**
 * Places of the server's command, and ways to install it.
 */

import * as path from 'node:path';
import { pathToFileURL } from 'node:url';

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly path: string; // the environment variable
  readonly home: string;
  readonly folders: readonly string[]; // of the workspace, if it is trusted
  readonly own: string; // the environment that the extension keeps
}

export function executable(name: string, platform: NodeJS.Platform): string {
  return platform === 'win32' && !/\.\w+$/.test(name) ? `${name}.exe` : name;
}

function flavour(platform: NodeJS.Platform): path.PlatformPath {
  return platform === 'win32' ? path.win32 : path.posix;
}

const bin = (platform: NodeJS.Platform): string => (platform === 'win32' ? 'Scripts' : 'bin');

/** Return the files to look for, best first: on the PATH, of installers, in environments. */
export function candidates(machine: Machine): string[] {
  const { join, delimiter } = flavour(machine.platform);
  const name = executable('redraft', machine.platform);
  const own = (folder: string): string => join(folder, bin(machine.platform), name);
  return [
    ...machine.path.split(delimiter).filter(Boolean).map((folder) => join(folder, name)),
    join(machine.home, '.local', 'bin', name),
    own(machine.own),
    ...machine.folders.map((folder) => own(join(folder, '.venv'))),
  ];
}

// --- installing -----------------------------------------------------------------------------------

export interface Step {
  /** A command line; '' is the command that was found. */
  readonly line: readonly string[];
  /** If this command line succeeds, the step is skipped. */
  readonly unless?: readonly string[];
}

export interface Installer {
  readonly label: string;
  readonly description: string;
  /** Commands to try: the first on the PATH that succeeds with the arguments `check` is used. */
  readonly commands: readonly string[];
  readonly check?: readonly string[];
  /** One after the other. */
  readonly steps: readonly Step[];
}

/** The oldest Python that the server runs on. */
const PYTHON = [3, 11] as const;
const OLDEST = PYTHON.join('.');

/** Succeeds if Python is new enough. */
const CHECK = `import sys; sys.exit(sys.version_info < (${PYTHON.join(', ')}))`;

/** Succeeds in an environment that pip can install into. */
const USABLE = `import pip; ${CHECK}`;

/** For pip: reinstall the same version, because two builds may share one. */
const ANEW = ['--upgrade', '--force-reinstall'];

/** Extras that are installed by default. */
const EXTRAS = '[cpu]';

/**
 * Return the requirement for an installer, in a form that all of them understand. Undefined if it is
 * the bundled server and there is none.
 *
 * @param wanted the setting: '' or extras alone for the bundled server, a file or folder with or
 *   without extras, or any other requirement.
 * @param bundled the wheel that comes with the extension.
 */
export function requirement(
  wanted: string,
  bundled: string | undefined,
  home: string,
  platform: NodeJS.Platform,
): string | undefined {
  const [, place = '', extras = ''] = /^(.*?)(\[[\w,\s-]*\])?$/s.exec(wanted.trim()) ?? [];
  const file = place ? place.replace(/^~(?=[/\\]|$)/, home) : bundled;
  if (!file) return undefined;
  if (!flavour(platform).isAbsolute(file)) return wanted.trim();
  const url = pathToFileURL(file, { windows: platform === 'win32' });
  return `redraft${extras || EXTRAS} @ ${url.href}`;
}

/** Return the ways to install `wanted`, or to replace an older version. */
export function installers(wanted: string, own: string, platform: NodeJS.Platform): Installer[] {
  const { join } = flavour(platform);
  const python = join(own, bin(platform), executable('python', platform));
  const versions = [14, 13, 12, 11].map((minor) => `python3.${minor}`);
  return [
    {
      label: 'uv tool',
      description: 'in an environment that uv keeps',
      commands: ['uv'],
      steps: [
        {
          line: ['', 'tool', 'install', '--python', `>=${OLDEST}`, '--force', '--reinstall-package', 'redraft', wanted],
        },
      ],
    },
    {
      label: 'pipx',
      description: 'in an environment that pipx keeps',
      commands: ['pipx'],
      steps: [{ line: ['', 'install', '--force', wanted] }],
    },
    {
      label: 'pip',
      description: `in an environment of its own, ${own}`,
      commands: ['python3', 'python', ...versions],
      check: ['-c', CHECK],
      // A working environment is not cleared: pip replaces nothing before it has everything, so the
      // installed server survives an attempt without a network.
      steps: [
        { line: ['', '-m', 'venv', '--clear', own], unless: [python, '-c', USABLE] },
        { line: [python, '-m', 'pip', 'install', '--disable-pip-version-check', ...ANEW, wanted] },
      ],
    },
  ];
}

/** Return the arguments that download a model, where `given` start the language server. */
export function pullArguments(given: readonly string[], name: string): string[] {
  // What stands before names the program: `ssh HOST redraft lsp`.
  return [...given.slice(0, Math.max(given.indexOf('lsp'), 0)), 'model', 'pull', name];
}
