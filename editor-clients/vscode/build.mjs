// Bundles the extension into dist/; with --tests the unit tests instead, with --release all that goes
// into the package and into bundle/, with --server the server's wheel too, with --native the same in
// dist/native for editors that grant proposed APIs. Run by npm scripts.
//
// bundle/ is in git: 'redraft setup vscode' packs it where there is no Node. Its first line names the
// sources, so that a test can tell whether it was built from them.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

const common = { bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };

/** SHA-256 of the sources and of the versions of what is bundled with them. */
async function stamp() {
  const names = (await readdir('src')).filter((name) => name.endsWith('.ts')).sort();
  const hash = createHash('sha256');
  for (const file of [...names.map((name) => `src/${name}`), 'package-lock.json']) {
    hash.update((await readFile(file, 'utf8')).replaceAll('\r\n', '\n'));
  }
  return hash.digest('hex');
}

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
    banner: release ? { js: `// ${await stamp()}` } : {},
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
    const tracked = execFileSync('git', ['ls-files', '-z', '--', ':!tests'], { cwd: '../..' });
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
    await mkdir('bundle', { recursive: true });
    await writeFile('bundle/THIRD_PARTY_NOTICES.md', await notices(metafile));
    await copyFile('bundle/THIRD_PARTY_NOTICES.md', 'THIRD_PARTY_NOTICES.md');
    await copyFile('dist/extension.js', 'bundle/extension.js');
    await copyFile('../../LICENSE', 'LICENSE');
    if (process.argv.includes('--server')) await server();
    if (process.argv.includes('--native')) await native();
  }
}
