/**
 * Settings of the section `redraft`: those of this client, and those sent to the server.
 */

import * as vscode from 'vscode';

export const SECTION = 'redraft';

export type Renderer = 'auto' | 'decorations' | 'native';

/** Settings of the client. All others in the manifest are settings of the server. */
const OWN = ['server.', 'trace.', 'renderer', 'subtle'];

export interface ClientSettings {
  readonly path: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly package: string;
  readonly model: string;
  readonly renderer: Renderer;
  readonly subtle: boolean;
}

export function clientSettings(): ClientSettings {
  const section = vscode.workspace.getConfiguration(SECTION);
  // VS Code marks values of a wrong type in settings.json, but still returns them.
  const text = (name: string): string => String(section.get<unknown>(name) ?? '').trim();
  const given = section.get<unknown>('server.arguments');
  return {
    path: text('server.path'),
    arguments: Array.isArray(given) ? given.map(String) : text('server.arguments').split(/\s+/).filter(Boolean),
    environment: section.get('server.environment') ?? {},
    package: text('server.package'),
    model: text('server.model'),
    renderer: section.get<Renderer>('renderer', 'auto'),
    subtle: section.get('subtle', false),
  };
}

/**
 * Return all settings of the server, set or not, so that a setting that was reset is sent too. The
 * defaults of the manifest equal those of the server; a test compares them.
 */
export function serverSettings(extension: vscode.Extension<unknown>): Record<string, unknown> {
  const section = vscode.workspace.getConfiguration(SECTION);
  const manifest = extension.packageJSON as Manifest;
  const names = Object.keys(manifest.contributes.configuration.properties)
    .map((name) => name.slice(SECTION.length + 1))
    .filter((name) => !OWN.some((own) => name.startsWith(own)));
  return Object.fromEntries(names.map((name) => [name, section.get(name) ?? null]));
}

interface Manifest {
  readonly contributes: { readonly configuration: { readonly properties: Record<string, unknown> } };
}

/** Change a setting where it is set; otherwise for the workspace if `here`, or for the user. */
export async function change(name: string, value: unknown, here = false): Promise<void> {
  const section = vscode.workspace.getConfiguration(SECTION);
  const found = section.inspect(name);
  const workspace = vscode.workspace.workspaceFolders?.length || vscode.workspace.workspaceFile;
  const local = found?.workspaceValue !== undefined || (here && workspace);
  const { Workspace, Global } = vscode.ConfigurationTarget;
  await section.update(name, value, local ? Workspace : Global);
}
