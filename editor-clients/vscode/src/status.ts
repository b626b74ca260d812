/**
 * The status item: the state of Redraft, and why nothing is shown.
 */

import * as vscode from 'vscode';
import { type Status } from './client';
import { Paced } from './pace';
import { brief } from './words';

/** Most reasons kept. */
const MOST = 50;

/** Most characters of a reason in the status bar. */
const ROOM = 60;

/** The default key of "Suggest Now"; extensions cannot read the key that the user chose. */
const ASK_KEY = process.platform === 'darwin' ? '⌥\\' : 'Alt+\\';

const ICONS: Record<Status['kind'], string> = {
  Normal: '$(sparkle)',
  Warning: '$(warning)',
  Error: '$(error)',
  Inactive: '$(circle-slash)',
};

export interface TimedStatus extends Status {
  readonly at: Date;
}

const READY = 'ready: ';

const STARTING: Status = { busy: true, kind: 'Normal', message: 'the server is starting' };

/** Return a message without what changes with progress. */
const kept = (message: string): string => message.replace(/ \([^()]*\)|\d+/g, '');

/** Return the whole message, with the key that shows a hidden suggestion. */
export function worded({ message, revealable }: Status): string {
  const text = message.startsWith(READY) ? message.slice(READY.length).replace(/^[^;]*/, '$&, ready') : message;
  return `Redraft: ${text}${revealable ? ` ${ASK_KEY} shows it.` : ''}`;
}

/** Return the message shortened for the status bar, or ''. */
function reasonOf({ message, revealable, kind }: Status, room: number): string {
  const isNews = !/^(|idle|thinking|.* shown\.?)$/.test(message);
  if (!isNews || (kind === 'Normal' && message.startsWith(READY))) return '';
  return brief(message, room) + (revealable ? ` ${ASK_KEY} shows it.` : '');
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('redraft', vscode.StatusBarAlignment.Right, 100);
  private readonly statuses: TimedStatus[] = [];
  private readonly paced = new Paced<Status>(
    (status) => this.draw(status),
    ({ busy }) => busy,
    (one, other) =>
      one.busy === other.busy &&
      one.kind === other.kind &&
      one.message === other.message &&
      one.revealable === other.revealable,
  );

  constructor() {
    this.item.name = 'Redraft';
    this.item.command = 'redraft.menu';
    this.show(STARTING);
    this.item.show();
  }

  get last(): TimedStatus {
    return this.statuses.at(-1)!;
  }

  /** The last reasons, newest first, without "thinking". */
  get reasons(): readonly TimedStatus[] {
    return this.statuses.filter(({ message }) => message !== 'thinking' && message !== 'idle').reverse();
  }

  show(status: Status): void {
    const { kind, message } = this.statuses.at(-1) ?? {};
    if (kind === 'Warning' && kept(message!) === kept(status.message)) this.statuses.pop();
    this.statuses.push({ ...status, at: new Date() });
    if (this.statuses.length > MOST) this.statuses.shift();
    this.paced.tell(status);
  }

  private draw(status: Status): void {
    const { busy, kind } = status;
    const reason = reasonOf(status, ROOM);
    this.item.text = `${busy ? '$(loading~spin)' : ICONS[kind]} Redraft${reason && `: ${reason}`}`;
    const { ThemeColor } = vscode;
    this.item.backgroundColor =
      kind === 'Error' ? new ThemeColor('statusBarItem.errorBackground') : undefined;
    this.item.tooltip = worded(status);
    this.item.accessibilityInformation = { label: worded(status), role: 'button' };
  }

  dispose(): void {
    this.paced.dispose();
    this.item.dispose();
  }
}
