/**
 * The status item: what Redraft is doing, and why nothing is shown.
 */

import * as vscode from 'vscode';
import { type Status } from './client';
import { Paced } from './pace';

/** Reasons kept to be read later. */
const MOST = 50;

const ICONS: Record<Status['kind'], string> = {
  Normal: '$(sparkle)',
  Warning: '$(warning)',
  Error: '$(error)',
  Inactive: '$(circle-slash)',
};

export interface Told extends Status {
  readonly at: Date;
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('redraft', vscode.StatusBarAlignment.Right, 100);
  private readonly told: Told[] = [];
  private readonly paced = new Paced<Status>(
    (status) => this.draw(status),
    ({ busy }) => busy,
    (one, other) => one.busy === other.busy && one.kind === other.kind && one.message === other.message,
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

  private draw({ busy, kind, message }: Status): void {
    this.item.text = `${busy ? '$(loading~spin)' : ICONS[kind]} Redraft`;
    const { ThemeColor } = vscode;
    this.item.backgroundColor =
      kind === 'Error' ? new ThemeColor('statusBarItem.errorBackground') : undefined;
    this.item.tooltip = `Redraft: ${message}`;
    this.item.accessibilityInformation = { label: `Redraft: ${message}`, role: 'button' };
  }

  dispose(): void {
    this.paced.dispose();
    this.item.dispose();
  }
}
