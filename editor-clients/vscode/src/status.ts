/**
 * The status item: what Redraft is doing, and why nothing is shown.
 */

import * as vscode from 'vscode';
import { type Status } from './client';
import { Paced } from './pace';
import { brief } from './words';

/** Reasons kept to be read later. */
const MOST = 50;

/** Characters of a reason in the status bar. */
const ROOM = 60;

/** The key that the manifest gives to "Suggest Now"; VS Code does not tell which the user chose. */
const ASK_KEY = process.platform === 'darwin' ? '⌥\\' : 'Alt+\\';

const ICONS: Record<Status['kind'], string> = {
  Normal: '$(sparkle)',
  Warning: '$(warning)',
  Error: '$(error)',
  Inactive: '$(circle-slash)',
};

export interface Told extends Status {
  readonly at: Date;
}

const READY = 'ready: ';

/** The whole message, with the key that shows what is hidden. */
export function worded({ message, revealable }: Status): string {
  const said = message.startsWith(READY) ? `${message.slice(READY.length)}, ready` : message;
  return `Redraft: ${said}${revealable ? ` ${ASK_KEY} shows it.` : ''}`;
}

/** What of it the status bar has room for; '' where there is nothing to say. */
function reasonOf({ message, revealable, kind }: Status, room: number): string {
  const isNews = !/^(|idle|thinking|.* shown\.?)$/.test(message);
  if (!isNews || (kind === 'Normal' && message.startsWith(READY))) return '';
  return brief(message, room) + (revealable ? ` ${ASK_KEY} shows it.` : '');
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('redraft', vscode.StatusBarAlignment.Right, 100);
  private readonly told: Told[] = [];
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
    this.show({ busy: false, kind: 'Normal', message: 'not started yet' });
    this.item.show();
  }

  get last(): Told {
    return this.told.at(-1)!;
  }

  /** The last reasons, newest first, without what only says that it is thinking. */
  get reasons(): readonly Told[] {
    return this.told.filter(({ message }) => message !== 'thinking' && message !== 'idle').reverse();
  }

  show(status: Status): void {
    this.told.push({ ...status, at: new Date() });
    if (this.told.length > MOST) this.told.shift();
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
