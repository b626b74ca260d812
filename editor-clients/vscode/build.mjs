// Bundles the extension into dist/; with --tests the unit tests instead, with --release all that goes
// into the package, with --server the server's wheel too, with --native the same in dist/native for
// editors that grant proposed APIs. Run by npm scripts.
import { execFileSync } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

const common = { bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };

async function bundle(release) {
  const { metafile } = await build({
    ...common,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    format: 'cjs',
    external: ['vscode'],
    minify: release,
    sourcemap: !release,
    metafile: true,
  });
  return metafile;
}

async function bundleTests() {
  const names = (await readdir('test')).filter((name) => name.endsWith('.test.ts'));
  const entryPoints = names.map((name) => `test/${name}`);
  const outExtension = { '.js': '.mjs' };
  await build({ ...common, entryPoints, outdir: 'dist/test', format: 'esm', outExtension });
}

/** The licences of all that was bundled, as they demand. */
async function notices(metafile) {
  const folders = Object.keys(metafile.inputs).map(
    (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0],
  );
  const parts = ['# What is in the bundle besides Redraft\n'];
  for (const folder of [...new Set(folders)].filter(Boolean).sort()) {
    const { name, version } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} comes without a licence file: look at it before shipping it`);
    const text = (await readFile(`${folder}/${file}`, 'utf8')).trim();
    parts.push(`## ${name} ${version}\n\n\`\`\`text\n${text}\n\`\`\`\n`);
  }
  return parts.join('\n');
}

/**
 * The server as a wheel in dist/server, of the files that git tracks: what lies about in a clone, an
 * old build above all, is no part of it. Needs git and Python 3.11 or later with pip: `PYTHON`, else
 * python3.
 */
async function server() {
  const python = process.env.PYTHON ?? (process.platform === 'win32' ? 'python' : 'python3');
  const copy = await mkdtemp(join(tmpdir(), 'redraft-'));
  try {
    const tracked = execFileSync('git', ['ls-files', '-z', '--', ':!tests', ':!editor-clients'], { cwd: '../..' });
    for (const file of tracked.toString().split('\0').filter(Boolean)) {
      await mkdir(dirname(join(copy, file)), { recursive: true });
      await copyFile(join('../..', file), join(copy, file));
    }
    await rm('dist/server', { recursive: true, force: true });
    const args = ['-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', 'dist/server', copy];
    execFileSync(python, args, { stdio: 'inherit' });
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** The package with the proposed API that shows edits away from the cursor; no marketplace takes it. */
async function native() {
  const manifest = JSON.parse(await readFile('package.json', 'utf8'));
  manifest.enabledApiProposals = ['inlineCompletionsAdditions'];
  delete manifest.scripts;
  await mkdir('dist/native', { recursive: true });
  await writeFile('dist/native/package.json', JSON.stringify(manifest, null, 2));
  for (const file of ['README.md', 'LICENSE', 'THIRD_PARTY_NOTICES.md', '.vscodeignore']) {
    await copyFile(file, `dist/native/${file}`);
  }
  await cp('dist/extension.js', 'dist/native/dist/extension.js');
  await cp('dist/server', 'dist/native/dist/server', { recursive: true });
  await cp('media', 'dist/native/media', { recursive: true });
}

if (process.argv.includes('--tests')) {
  await bundleTests();
} else {
  const release = process.argv.includes('--release');
  const metafile = await bundle(release);
  if (release) {
    await writeFile('THIRD_PARTY_NOTICES.md', await notices(metafile));
    await copyFile('../../LICENSE', 'LICENSE');
    if (process.argv.includes('--server')) await server();
    if (process.argv.includes('--native')) await native();
  }
}
