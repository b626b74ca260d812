/**
 * Where the server's command may be, and the ways to install it: pure.
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

/** Files to look for, best first: the PATH, then where installers put commands, then environments. */
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
  /** A command line; '' stands for the command that was found. */
  readonly line: readonly string[];
  /** Where this command line ends well, the step is not needed. */
  readonly unless?: readonly string[];
}

export interface Installer {
  readonly label: string;
  readonly description: string;
  /** The first of these that is on the PATH, and ends well with the arguments `check`, is used. */
  readonly commands: readonly string[];
  readonly check?: readonly string[];
  /** One after the other. */
  readonly steps: readonly Step[];
}

/** The oldest Python that the server runs on. */
const PYTHON = [3, 11] as const;
const OLDEST = PYTHON.join('.');

/** Ends well where the Python that runs it is not too old. */
const CHECK = `import sys; sys.exit(sys.version_info < (${PYTHON.join(', ')}))`;

/** Ends well in an environment that pip can install into. */
const USABLE = `import pip; ${CHECK}`;

/** For pip: also over the same version, as two builds may have one. */
const ANEW = ['--upgrade', '--force-reinstall'];

/** What is installed along with the server where nobody says otherwise. */
const EXTRAS = '[cpu]';

/**
 * What an installer is told to install, in the one form that all of them understand; undefined where
 * the server that comes with the extension is wanted and none does.
 *
 * @param wanted the setting: '' or extras alone for the server that comes with the extension, a file or
 *   folder, with or without extras, or whatever else an installer understands.
 * @param bundled that server, as a wheel.
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

/** The ways to install `wanted`, also over an older one. */
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
      // An environment that works is not cleared: pip replaces nothing before it has everything, so that
      // the server there outlives an install without a network.
      steps: [
        { line: ['', '-m', 'venv', '--clear', own], unless: [python, '-c', USABLE] },
        { line: [python, '-m', 'pip', 'install', '--disable-pip-version-check', ...ANEW, wanted] },
      ],
    },
  ];
}
