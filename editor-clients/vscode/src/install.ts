/**
 * Where the server is, and how to get it where it is not. Knows nothing of how it is run.
 */

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { said } from './client';
import { candidates, executable, type Installer, installers } from './places';
import { change, clientSettings } from './settings';

/** The command of the server; undefined: there is none. */
export async function find(context: vscode.ExtensionContext): Promise<string | undefined> {
  const set = clientSettings().path;
  if (set) return found(set);
  const places = candidates({
    platform: process.platform,
    path: process.env['PATH'] ?? '',
    home: os.homedir(),
    folders: vscode.workspace.isTrusted ? folders() : [],
    own: environment(context),
  });
  for (const place of places) if (await isExecutable(place)) return place;
  return undefined;
}

/** What the setting names: a file, or a command on the PATH. */
async function found(set: string): Promise<string | undefined> {
  const file = set.replace(/^~(?=[/\\])/, os.homedir());
  if (/[/\\]/.test(file)) return (await isExecutable(file)) ? file : undefined;
  return onPath([executable(file, process.platform)]);
}

async function onPath(names: readonly string[]): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(path.delimiter)) {
    for (const name of names) {
      const file = path.join(folder, name);
      if (folder && (await isExecutable(file))) return file;
    }
  }
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, process.platform === 'win32' ? constants.F_OK : constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const folders = (): string[] =>
  (vscode.workspace.workspaceFolders ?? [])
    .filter(({ uri }) => uri.scheme === 'file')
    .map(({ uri }) => uri.fsPath);

/** The Python environment that this extension keeps for the server. */
const environment = (context: vscode.ExtensionContext): string =>
  path.join(context.globalStorageUri.fsPath, 'server');

// --- installing -----------------------------------------------------------------------------------

/** Ask whether and how. True once the server is there. */
export async function offer(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
): Promise<boolean> {
  const set = clientSettings().path;
  const text = set
    ? `Redraft: ${set}, named by redraft.server.path, cannot be run.`
    : 'Redraft needs its language server, a Python package that runs on this machine.';
  const answer = await vscode.window.showInformationMessage(text, 'Install', 'Choose file…', 'Not now');
  if (answer === 'Install') return install(context, log);
  return answer === 'Choose file…' && choose();
}

async function choose(): Promise<boolean> {
  const [file] = (await vscode.window.showOpenDialog({ title: "Redraft's command", canSelectMany: false })) ?? [];
  if (!file) return false;
  await change('server.path', file.fsPath);
  return true;
}

export async function install(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
): Promise<boolean> {
  const known = installers(clientSettings().package, environment(context), process.platform);
  const there: (Installer & { file: string })[] = [];
  for (const installer of known) {
    const file = await onPath(installer.commands.map((name) => executable(name, process.platform)));
    if (file) there.push({ ...installer, file });
  }
  if (!there.length) {
    void vscode.window.showErrorMessage(
      'Redraft: neither uv, pipx nor Python 3.11 or later is on the PATH. Install one of them, then try again.',
    );
    return false;
  }
  const chosen = await vscode.window.showQuickPick(there, { title: 'How to install the server of Redraft' });
  return chosen ? run(chosen, log) : false;
}

async function run(installer: Installer & { file: string }, log: vscode.LogOutputChannel): Promise<boolean> {
  const options = {
    location: vscode.ProgressLocation.Notification,
    title: 'Installing Redraft',
    cancellable: true,
  };
  try {
    await vscode.window.withProgress(options, async (progress, token) => {
      for (const step of installer.steps) {
        const [command = installer.file, ...args] = step;
        const file = command === '' ? installer.file : command;
        log.info(`$ ${[file, ...args].join(' ')}`);
        await finished(file, args, token, (line) => {
          log.info(line);
          progress.report({ message: line.slice(0, 80) });
        });
      }
    });
    return true;
  } catch (error) {
    log.error(said(error));
    const text = `Redraft could not be installed: ${said(error)}`;
    if ((await vscode.window.showErrorMessage(text, 'Open log')) === 'Open log') log.show();
    return false;
  }
}

function finished(
  command: string,
  args: string[],
  token: vscode.CancellationToken,
  heard: (line: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const hear = (data: Buffer): void => {
      for (const line of data.toString().split(/[\r\n]+/)) if (line.trim()) heard(line.trim());
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    token.onCancellationRequested(() => child.kill());
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(token.isCancellationRequested ? 'cancelled' : `${command} ended with code ${code}`));
    });
  });
}
