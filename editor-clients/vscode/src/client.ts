/**
 * The connection to `redraft lsp`: start, restart, requests and reports.
 */

import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State,
} from 'vscode-languageclient/node';
import { Restarts } from './restarts';
import { clientSettings, SECTION, serverSettings } from './settings';

/** A larger model that suits the machine, and a sentence on what it brings and costs. */
export interface Larger {
  readonly name: string;
  readonly offer: string;
}

/** The status: `didChangeStatus` of the server, or the state of the connection. */
export interface Status {
  readonly busy: boolean;
  readonly kind: 'Normal' | 'Warning' | 'Error' | 'Inactive';
  readonly message: string;
  /** True if a gesture would show a hidden suggestion. */
  readonly revealable?: boolean;
  /** In one status of a server, where there is one to offer. */
  readonly larger?: Larger;
}

const DOCUMENTS = [
  { scheme: 'file' },
  { scheme: 'untitled' },
  { scheme: 'vscode-notebook-cell' },
] as const;

/** Time for the server to shut down, ms. */
const STOP_MS = 2_000;
/** Pause before a server that ended is restarted, ms. */
const AGAIN_MS = 300;

/** Send errors to the status item and the log; the library would open a popup for each. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private turns = 0; // number of starts and stops
  private readonly restarts = new Restarts();
  private readonly statuses = new vscode.EventEmitter<Status>();
  readonly onStatus = this.statuses.event;

  constructor(
    private readonly extension: vscode.Extension<unknown>,
    readonly log: vscode.LogOutputChannel,
    private readonly middleware: Middleware,
  ) {}

  get running(): boolean {
    return this.client?.state === State.Running;
  }

  serves(document: vscode.TextDocument): boolean {
    return this.running && DOCUMENTS.some(({ scheme }) => document.uri.scheme === scheme);
  }

  tell(message: string, kind: Status['kind'] = 'Normal', busy = false): void {
    this.statuses.fire({ busy, kind, message });
  }

  // --- start and stop ---------------------------------------------------------------------------------------

  async start(command: string): Promise<void> {
    this.restarts.forget();
    await this.launch(command);
  }

  private async launch(command: string): Promise<void> {
    const stopped = this.stop();
    const turn = this.turns;
    await stopped;
    if (turn !== this.turns) return; // superseded by another start or stop
    const { arguments: given, environment, model } = clientSettings();
    const args = model ? [...given, '--model', model] : [...given];
    this.log.info(`starting ${[command, ...args].join(' ')}`);
    this.tell('the server is starting', 'Normal', true);
    const run = { command, args, options: { env: { ...process.env, ...environment } } };
    const isCurrent = (): boolean => this.client === client;
    const closed = (): void => {
      if (isCurrent()) this.ended(command);
    };
    const client: LanguageClient = new QuietClient(SECTION, 'Redraft', run, this.options(closed));
    this.client = client;
    client.onNotification('didChangeStatus', (status: Status) => {
      if (isCurrent()) this.statuses.fire(status);
    });
    try {
      await client.start();
      if (client.state !== State.Running) return; // it ended at once; `ended` has reported it
      this.log.info(`connected to ${client.initializeResult?.serverInfo?.version ?? 'the server'}`);
    } catch (error) {
      this.log.error(`the server did not start: ${messageOf(error)}`);
      if (isCurrent()) this.tell(`the server did not start (${messageOf(error)}); the log says more`, 'Error');
    }
  }

  async stop(): Promise<void> {
    this.turns += 1;
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose(STOP_MS);
    } catch (error) {
      this.log.warn(`the server did not end in good order: ${messageOf(error)}`);
    }
  }

  /** Restart a server that ended unexpectedly, unless it ends too often. */
  private ended(command: string): void {
    this.client = undefined;
    const again = this.restarts.allow(Date.now());
    this.log.warn(again ? 'the server ended; starting it again' : 'the server keeps ending');
    if (!again) return this.tell('the server ended several times in a row; restart it from the menu', 'Error');
    this.tell('the server ended and is started again', 'Warning', true);
    const turn = this.turns;
    setTimeout(() => {
      if (turn === this.turns) void this.launch(command);
    }, AGAIN_MS);
  }

  dispose(): void {
    void this.stop();
    this.statuses.dispose();
  }

  /** Send changed settings to the server. */
  settingsChanged(): void {
    this.report('workspace/didChangeConfiguration', { settings: this.settings() });
  }

  private settings(): { [SECTION]: Record<string, unknown> } {
    return { [SECTION]: serverSettings(this.extension) };
  }

  private options(closed: () => void): LanguageClientOptions {
    return {
      documentSelector: [...DOCUMENTS],
      initializationOptions: this.settings(),
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          closed(); // restarts it without the popups of the library
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
      middleware: {
        ...this.middleware,
        // A light bulb would wait for the model. Tab and the hint take its place.
        provideCodeActions: () => [],
        workspace: {
          configuration: () => [serverSettings(this.extension)],
          // settingsChanged sends them, without the settings of the client.
          didChangeConfiguration: async () => {},
        },
      },
    };
  }

  // --- messages ---------------------------------------------------------------------------------------

  /** Send a request. Returns undefined if there is no answer, or a superseded one. */
  async request<T>(
    method: string,
    params: unknown,
    token?: vscode.CancellationToken,
  ): Promise<T | undefined> {
    if (!this.running) return undefined;
    try {
      // The library would take an undefined token for a second parameter of the message.
      return await this.client!.sendRequest<T>(method, params, ...(token ? [token] : []));
    } catch (error) {
      // The document changed or the request was superseded: another one is on its way.
      if (!token?.isCancellationRequested) this.log.debug(`${method}: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** Send a notification. */
  report(method: string, params: unknown): void {
    if (!this.running) return;
    this.client!.sendNotification(method, params).catch((error: unknown) => {
      this.log.debug(`${method}: ${messageOf(error)}`);
    });
  }

  /** Report the outcome of a suggestion. */
  outcome(command: string, id: string): void {
    this.command(command, id).catch((error: unknown) => this.log.debug(`${command}: ${messageOf(error)}`));
  }

  /**
   * Run a command of the server.
   *
   * @throws the message of the server if it refuses.
   */
  async command<T>(command: string, ...args: unknown[]): Promise<T> {
    if (!this.running) throw new Error(`the server is ${this.client ? 'starting' : 'not running'}`);
    return this.client!.sendRequest<T>('workspace/executeCommand', { command, arguments: args });
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
