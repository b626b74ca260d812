/**
 * Where the server's command may be, and the ways to install it: pure.
 */

import * as path from 'node:path';

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

export interface Installer {
  readonly label: string;
  readonly description: string;
  /** Any of these must be on the PATH. */
  readonly commands: readonly string[];
  /** Command lines, one after the other; '' stands for the command that was found. */
  readonly steps: readonly (readonly string[])[];
}

export function installers(wanted: string, own: string, platform: NodeJS.Platform): Installer[] {
  const { join } = flavour(platform);
  const python = join(own, bin(platform), executable('python', platform));
  return [
    {
      label: 'uv tool',
      description: `uv tool install ${wanted}`,
      commands: ['uv'],
      steps: [['', 'tool', 'install', wanted]],
    },
    {
      label: 'pipx',
      description: `pipx install ${wanted}`,
      commands: ['pipx'],
      steps: [['', 'install', wanted]],
    },
    {
      label: 'pip, in an environment of its own',
      description: own,
      commands: ['python3', 'python'],
      steps: [
        ['', '-m', 'venv', own],
        [python, '-m', 'pip', 'install', '--disable-pip-version-check', wanted],
      ],
    },
  ];
}
