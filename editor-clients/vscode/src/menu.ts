/**
 * The menu of the status item. Every entry changes a setting or runs a command of the server.
 */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import { messageOf, type Server } from './client';
import { change, clientSettings } from './settings';
import { type Answer, type Recent } from './recent';
import { type StatusItem, worded } from './status';

/** Time that the menu waits for the server before it opens without its answer, ms. */
const PATIENCE_MS = 1_000;
const COMMAND_MS = 30_000;

const EAGERNESS = {
  low: 'only what is nearly sure',
  medium: 'what is probably right',
  high: 'everything that the model comes up with',
};

/** The answer to `redraft.status`. */
interface Standing {
  readonly version: string;
  readonly model: { readonly name: string; readonly provider: string };
  readonly snoozedS: number;
  readonly load: { readonly effort: string; readonly why: string };
  readonly settings: {
    readonly enabled: boolean;
    readonly disabledLanguages: readonly string[];
    readonly eagerness: keyof typeof EAGERNESS;
  };
}

/** The answer to `redraft.record status`. */
interface Recording {
  readonly on: boolean;
  readonly folder: string;
  readonly problem: string;
}

interface Entry extends vscode.QuickPickItem {
  readonly run?: () => unknown;
}

export interface Actions {
  readonly server: Server;
  readonly status: StatusItem;
  readonly recent: Recent;
  readonly log: vscode.LogOutputChannel;
  /** The command of the server, if there is one. */
  command(): Promise<string | undefined>;
  start(): Promise<void>;
  install(): Promise<void>;
}

export async function showMenu(actions: Actions): Promise<void> {
  const entries = actions.server.running ? await whileRunning(actions) : [];
  entries.push(...always(actions));
  await pick(entries, worded(actions.status.last));
}

async function pick(entries: readonly Entry[], title: string, placeHolder?: string): Promise<void> {
  const options = { title, matchOnDescription: true, ...(placeHolder ? { placeHolder } : {}) };
  const chosen = await vscode.window.showQuickPick(entries, options);
  await chosen?.run?.();
}

const separator = (label: string): Entry => ({ label, kind: vscode.QuickPickItemKind.Separator });

// --- entries --------------------------------------------------------------------------------------

async function whileRunning(actions: Actions): Promise<Entry[]> {
  const { server, status } = actions;
  const [standing, recording] = await Promise.all([
    answer<Standing>(server, 'redraft.status'),
    answer<Recording>(server, 'redraft.record', 'status'),
  ]);
  const settings = standing?.settings;
  const language = vscode.window.activeTextEditor?.document.languageId;
  const entries: Entry[] = [
    { label: '$(question) Why is nothing shown?', description: status.last.message, run: () => why(actions) },
    separator('suggestions'),
  ];
  if (standing?.load.why) {
    const { effort, why } = standing.load;
    entries.push({
      label: `$(plug) Redraft is ${effort}`,
      description: why,
      run: () => vscode.commands.executeCommand('workbench.action.openSettings', 'redraft.onBattery redraft.underLoad'),
    });
  }
  if (settings) {
    const { enabled } = settings;
    entries.push({
      label: enabled ? '$(circle-slash) Switch off here' : '$(play) Switch on here',
      run: () => change('enabled', !enabled, true),
    });
    if (language) entries.push(languageEntry(language, settings.disabledLanguages));
    entries.push({
      label: '$(settings) Eagerness',
      description: settings.eagerness,
      run: () => pickEagerness(settings.eagerness),
    });
  }
  entries.push(...snoozeEntries(server, standing?.snoozedS ?? 0), subtleEntry(), separator('model'));
  entries.push(modelEntry(standing), statisticsEntry(), ...recordEntries(server, recording));
  return entries;
}

function languageEntry(language: string, disabled: readonly string[]): Entry {
  const off = disabled.includes(language);
  const value = off ? disabled.filter((each) => each !== language) : [...disabled, language];
  return {
    label: off ? `$(play) Switch on for ${language}` : `$(circle-slash) Switch off for ${language}`,
    run: () => change('disabledLanguages', value),
  };
}

/** Choose from the palette. The present value is marked if the server answers in time. */
export async function chooseEagerness({ server }: Actions): Promise<void> {
  const standing = server.running ? await answer<Standing>(server, 'redraft.status') : undefined;
  await pickEagerness(standing?.settings.eagerness ?? '');
}

const pickEagerness = (now: string): Promise<void> =>
  pick(
    Object.entries(EAGERNESS).map(([label, detail]) => ({
      label,
      detail,
      ...(label === now ? { description: 'now' } : {}),
      run: () => change('eagerness', label),
    })),
    'How readily suggestions are shown',
  );

function snoozeEntries(server: Server, snoozedS: number): Entry[] {
  const snooze = (minutes: number) => () => command(server, 'redraft.snooze', minutes);
  if (snoozedS > 0) {
    const description = `${Math.ceil(snoozedS / 60)} min left`;
    return [{ label: '$(bell) Wake up', description, run: snooze(0) }];
  }
  const lengths = [5, 15, 60].map((minutes) => ({ label: `${minutes} minutes`, run: snooze(minutes) }));
  return [{ label: '$(bell-slash) Snooze…', run: () => pick(lengths, 'Suggest nothing for') }];
}

function subtleEntry(): Entry {
  const { subtle } = clientSettings();
  return {
    label: subtle ? '$(eye) Show suggestions at once' : '$(eye-closed) Subtle mode',
    description: subtle ? 'subtle mode is on' : 'a hint until you ask with Alt+\\',
    run: () => change('subtle', !subtle),
  };
}

function modelEntry(standing: Standing | undefined): Entry {
  const { name = '', provider = '' } = standing?.model ?? {};
  return {
    label: '$(server) Model',
    description: `${name} ${provider}`.trim() || clientSettings().model,
    run: () => vscode.commands.executeCommand('redraft.chooseModel'),
  };
}

const statisticsEntry = (): Entry => ({
  label: '$(graph) Statistics',
  description: 'what became of suggestions',
  run: () => vscode.commands.executeCommand('redraft.showStatistics'),
});

function recordEntries(server: Server, state: Recording | undefined): Entry[] {
  if (!state) return [];
  const { on, folder, problem } = state;
  return [
    {
      label: on ? '$(stop-circle) Stop recording' : '$(record) Record my edits',
      description: problem || (on ? `into ${folder}` : 'for evaluation; stays on this machine'),
      run: () => command(server, 'redraft.record', on ? 'off' : 'on'),
    },
  ];
}

/** Start or stop recording, and say which. */
export async function record(server: Server): Promise<void> {
  try {
    const before = await server.command<Recording>('redraft.record', 'status');
    const now = await server.command<Recording>('redraft.record', before.on ? 'off' : 'on');
    const state = now.on ? `recording into ${now.folder}` : 'not recording';
    if (now.problem) void vscode.window.showErrorMessage(`Redraft: ${now.problem}`);
    else void vscode.window.showInformationMessage(`Redraft: ${state}`);
  } catch (error) {
    void vscode.window.showErrorMessage(`Redraft: ${messageOf(error)}`);
  }
}

function always({ log, start, install, server, status }: Actions): Entry[] {
  return [
    separator('server'),
    { label: '$(book) Take the tour', description: 'six small scenes', run: () => vscode.commands.executeCommand('redraft.tour') },
    ...(status.last.kind === 'Error' && !server.running ? [{ label: '$(cloud-download) Install the server', run: install }] : []),
    { label: '$(refresh) Restart', run: start },
    { label: '$(output) Open log', run: () => log.show() },
    {
      label: '$(gear) All settings',
      run: () => vscode.commands.executeCommand('workbench.action.openSettings', '@ext:redraft.redraft'),
    },
  ];
}

// --- actions ---------------------------------------------------------------------------------

/** Show the latest answers with their places, and the status. Enter goes to the place and asks there. */
export async function why({ status, recent }: Actions): Promise<void> {
  const entries: Entry[] = [];
  if (status.last.kind !== 'Normal') entries.push({ label: worded(status.last) });
  entries.push(...recent.all.map(answerEntry));
  const troubles = status.reasons.filter(({ kind }) => kind !== 'Normal');
  if (troubles.length) entries.push(separator('server'));
  entries.push(
    ...troubles.map(({ at, message, kind }) => ({
      label: message,
      description: `${at.toLocaleTimeString()} · ${kind.toLowerCase()}`,
    })),
  );
  if (!vscode.workspace.getConfiguration('editor').get('inlineSuggest.enabled', true)) {
    entries.unshift({
      label: "VS Code's own setting editor.inlineSuggest.enabled is off: there is no ghost text",
      run: () => vscode.commands.executeCommand('workbench.action.openSettings', '@id:editor.inlineSuggest.enabled'),
    });
  }
  const title = 'Latest suggestions, and why nothing was shown. Enter goes there and asks again.';
  await pick(entries.length ? entries : [{ label: 'Nothing happened yet' }], title);
}

function answerEntry({ kind, uri, position, text, code, reason, at }: Answer): Entry {
  const active = vscode.window.activeTextEditor?.document.uri.toString();
  const file = uri.toString() === active ? '' : `${vscode.workspace.asRelativePath(uri)}, `;
  const [first = ''] = (text.trim() || code).split('\n');
  return {
    label: `${kind}, ${file}line ${position.line + 1}`,
    description: first,
    detail: `${reason || 'nothing here'} (${at.toLocaleTimeString()})`,
    run: async () => {
      const selection = new vscode.Range(position, position);
      await vscode.window.showTextDocument(uri, { selection });
      await vscode.commands.executeCommand('redraft.suggest');
    },
  };
}

export async function chooseModel(actions: Actions): Promise<void> {
  const file = await actions.command();
  if (!file) return actions.install();
  try {
    const models = JSON.parse(await output(file, 'model', 'list', '--json')) as { name: string; version: string; ready: string[]; summary: string }[];
    const entries = models.map(({ name, version, ready, summary }) => ({
      label: name,
      description: `${version} · ${ready.length ? `ready: ${ready.join(', ')}` : 'fetched on first use'}`,
      detail: summary,
      run: () => change('server.model', name),
    }));
    await pick(entries, 'The model that Redraft runs');
  } catch (error) {
    void vscode.window.showErrorMessage(`Redraft: the models cannot be listed: ${messageOf(error)}`);
  }
}

/** Return what a run of the server's command prints. */
export async function output(file: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, ...clientSettings().environment };
  return (await promisify(execFile)(file, args, { env, timeout: COMMAND_MS })).stdout;
}

/** Return the answer of the server, or undefined if there is none in time. */
async function answer<T>(server: Server, name: string, ...args: unknown[]): Promise<T | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), PATIENCE_MS));
  return Promise.race([server.command<T>(name, ...args).catch(() => undefined), late]);
}

export async function command(server: Server, name: string, ...args: unknown[]): Promise<void> {
  try {
    await server.command(name, ...args);
  } catch (error) {
    void vscode.window.showErrorMessage(`Redraft: ${messageOf(error)}`);
  }
}
