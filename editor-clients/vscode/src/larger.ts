/**
 * The offer of a larger model, which the server makes where one suits the machine.
 */

import * as vscode from 'vscode';
import { messageOf, type Larger, type Server } from './client';
import { complain, execute } from './install';
import { pullArguments } from './places';
import { clientSettings } from './settings';

/** Ask whether to download a larger model. No is remembered by the server, for all editors. */
export async function offerModel(
  { name, offer }: Larger,
  server: Server,
  command: () => Promise<string | undefined>,
): Promise<void> {
  if (!vscode.window.state.focused) return; // every window has a server that offers it
  const answer = await vscode.window.showInformationMessage(`Redraft: ${offer}`, 'Download', 'No');
  try {
    if (answer === 'No') await server.command('redraft.declineModel', name);
    else if (answer === 'Download') await download(name, server, await command());
  } catch (error) {
    if (error instanceof vscode.CancellationError) return;
    const text = `${name} is not used, the smaller model goes on: ${messageOf(error)}`;
    server.tell(text, 'Warning');
    complain(`Redraft: ${text}`, { 'Open log': () => server.log.show() });
  }
}

async function download(name: string, server: Server, file: string | undefined): Promise<void> {
  if (!file) throw new Error("the command 'redraft' is not found");
  const { arguments: given, environment } = clientSettings();
  const location = vscode.ProgressLocation.Notification;
  const options = { location, title: `Downloading ${name} for Redraft`, cancellable: true };
  const onLine = (line: string): void => server.log.info(line);
  await vscode.window.withProgress(options, (_, token) =>
    execute(file, pullArguments(given, name), onLine, token, environment),
  );
  void vscode.window.showInformationMessage(`Redraft: ${name} is here and runs from the next suggestion on.`);
}
