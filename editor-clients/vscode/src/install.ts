/**
 * Finds the command of the server, and installs it.
 */

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir, readFile, stat } from 'node:fs/promises';
import * as os from 'node:os';
import * as path from 'node:path';
import { createInterface } from 'node:readline';
import * as vscode from 'vscode';
import { messageOf } from './client';
import { candidates, executable, type Installer, installers, requirement } from './places';
import { plain, progressOf } from './progress';
import { change, clientSettings } from './settings';

/** Return the command of the server, or undefined if there is none. */
export async function find(context: vscode.ExtensionContext): Promise<string | undefined> {
  const set = clientSettings().path;
  if (set) return fromSetting(set);
  const places = await packaged(context);
  const usual = candidates({
    platform: process.platform,
    path: process.env['PATH'] ?? '',
    home: os.homedir(),
    folders: vscode.workspace.isTrusted ? folders() : [],
    own: environment(context),
  });
  for (const place of [...places, ...usual]) if (await isExecutable(place)) return place;
  return undefined;
}

/** Return the command that `redraft setup` wrote into the package, in a list that may be empty. */
async function packaged(context: vscode.ExtensionContext): Promise<string[]> {
  const file = path.join(context.extensionPath, 'dist', 'server-command');
  return readFile(file, 'utf8').then((command) => [command], () => []);
}

/** Return the file that the setting names, by path or as a command on the PATH. */
async function fromSetting(set: string): Promise<string | undefined> {
  const file = set.replace(/^~(?=[/\\])/, os.homedir());
  if (/[/\\]/.test(file)) return (await isExecutable(file)) ? file : undefined;
  return onPath(file);
}

async function onPath(command: string): Promise<string | undefined> {
  const name = executable(command, process.platform);
  const folders = (process.env['PATH'] ?? '').split(path.delimiter).filter(Boolean);
  // uv and pipx install commands here, which is not on every PATH.
  for (const folder of [...folders, path.join(os.homedir(), '.local', 'bin')]) {
    const file = path.join(folder, name);
    if (await isExecutable(file)) return file;
  }
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, process.platform === 'win32' ? constants.F_OK : constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

const folders = (): string[] =>
  (vscode.workspace.workspaceFolders ?? [])
    .filter(({ uri }) => uri.scheme === 'file')
    .map(({ uri }) => uri.fsPath);

/** The Python environment in which this extension installs the server. */
const environment = (context: vscode.ExtensionContext): string =>
  path.join(context.globalStorageUri.fsPath, 'server');

// --- installing -----------------------------------------------------------------------------------

/**
 * Ask what to do without a server. Returns when the user answers or changes the setting.
 */
export async function offer(): Promise<'install' | undefined> {
  const set = clientSettings().path;
  const { window } = vscode;
  if (set) {
    const text = `Redraft: ${set}, named by redraft.server.path, cannot be run.`;
    const answer = await window.showWarningMessage(text, 'Choose file…', 'Clear the setting', 'Not now');
    if (answer === 'Clear the setting') await change('server.path', undefined);
    else if (answer === 'Choose file…') await choose();
    return undefined;
  }
  const text = 'Redraft needs its language server, a Python program that runs on this machine.';
  const answer = await window.showInformationMessage(text, 'Install', 'Choose file…', 'Not now');
  if (answer === 'Choose file…') await choose();
  return answer === 'Install' ? 'install' : undefined;
}

async function choose(): Promise<void> {
  const [file] = (await vscode.window.showOpenDialog({ title: "Redraft's command", canSelectMany: false })) ?? [];
  if (file) await change('server.path', file.fsPath);
}

/**
 * Install the server, or replace an older one, as the user chooses. Returns whether it is installed.
 *
 * @param stop stops the running server, because Windows cannot replace files in use.
 */
export async function install(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
  stop: () => Promise<void>,
): Promise<boolean> {
  const { platform } = process;
  const wheel = await bundled(context);
  const wanted = requirement(clientSettings().package, wheel, os.homedir(), platform);
  if (!wanted) {
    complain(NOTHING, { 'Open settings': () => showSetting('redraft.server.package') });
    return false;
  }
  const there: (Installer & { file: string })[] = [];
  for (const installer of installers(wanted, environment(context), platform)) {
    const file = await usable(installer);
    if (file) there.push({ ...installer, file });
  }
  if (!there.length) {
    complain('Redraft: neither uv, pipx nor Python 3.11 or later is on the PATH. Install one of them, then try again.');
    return false;
  }
  const title = 'How to install the server of Redraft';
  const chosen = there.length === 1 ? there[0] : await vscode.window.showQuickPick(there, { title });
  if (!chosen) return false;
  await stop();
  if (!(await run(chosen, log))) return false;
  if (await find(context)) return true;
  complain(LOST, { 'Choose file…': choose, 'Open log': () => log.show() });
  return false;
}

/** Return the wheel that comes with this extension, if there is one. */
async function bundled(context: vscode.ExtensionContext): Promise<string | undefined> {
  const folder = path.join(context.extensionPath, 'dist', 'server');
  const names = await readdir(folder).catch(() => []);
  const name = names.find((each) => each.endsWith('.whl'));
  return name && path.join(folder, name);
}

/** Refuse to install from a registry: the package of this name there is not ours. */
const NOTHING =
  'Redraft: this build of the extension comes without the server. Name a clone of Redraft, or a wheel of it, ' +
  "in redraft.server.package, then install it. Where Redraft is installed, run 'redraft setup vscode' instead.";

const LOST =
  "Redraft is installed, but its command 'redraft' is not found. Name it in redraft.server.path; the log says where it is.";

const showSetting = (id: string): Thenable<unknown> =>
  vscode.commands.executeCommand('workbench.action.openSettings', `@id:${id}`);

/** Show an error. Not awaited, because a notification may stay open for hours. */
export function complain(text: string, answers: Record<string, () => unknown> = {}): void {
  void vscode.window
    .showErrorMessage(text, ...Object.keys(answers))
    .then((answer) => (answer ? answers[answer]?.() : undefined));
}

async function usable({ commands, check }: Installer): Promise<string | undefined> {
  for (const name of commands) {
    const file = await onPath(name);
    if (file && (!check || (await succeeds([file, ...check])))) return file;
  }
  return undefined;
}

async function run(installer: Installer & { file: string }, log: vscode.LogOutputChannel): Promise<boolean> {
  const options = {
    location: vscode.ProgressLocation.Notification,
    title: 'Installing Redraft',
    cancellable: true,
  };
  try {
    await vscode.window.withProgress(options, async (progress, token) => {
      for (const { line, unless } of installer.steps) {
        if (unless && (await succeeds(unless))) continue;
        if (token.isCancellationRequested) throw new vscode.CancellationError();
        const [command, ...args] = line;
        const file = command || installer.file;
        log.info(`$ ${[file, ...args].join(' ')}`);
        const onLine = (line: string): void => {
          log.info(line);
          const message = progressOf(line);
          if (message) progress.report({ message });
        };
        await execute(file, args, onLine, token);
      }
    });
    return true;
  } catch (error) {
    if (error instanceof vscode.CancellationError) return false;
    log.error(messageOf(error));
    complain(`Redraft could not be installed: ${messageOf(error)}`, { 'Open log': () => log.show() });
    return false;
  }
}

const succeeds = ([command = '', ...args]: readonly string[]): Promise<boolean> =>
  execute(command, args).then(() => true, () => false);

/**
 * Run a command to its end.
 *
 * @throws CancellationError, or an error with the last line of its output.
 */
export function execute(
  command: string,
  args: readonly string[],
  onLine: (line: string) => void = () => {},
  token?: vscode.CancellationToken,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...environment, PIP_PROGRESS_BAR: 'off', NO_COLOR: '1' };
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const cancelling = token?.onCancellationRequested(() => child.kill());
    let last = '';
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        const text = plain(line);
        if (!text) return;
        last = text;
        onLine(text);
      });
    }
    child.on('error', reject);
    child.on('close', (code) => {
      cancelling?.dispose();
      if (token?.isCancellationRequested) reject(new vscode.CancellationError());
      else if (code === 0) resolve();
      else reject(new Error(`${path.basename(command)} ended with code ${code}. ${last.slice(0, 200)}`.trim()));
    });
  });
}
