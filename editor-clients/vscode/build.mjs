// Bundles the extension into dist/, with --tests the unit tests too. Run by npm scripts.
import { readdir } from 'node:fs/promises';
import { build } from 'esbuild';

const common = { bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };
const minify = process.argv.includes('--minify');
if (process.argv.includes('--tests')) {
  const tests = (await readdir('test')).filter((name) => name.endsWith('.test.ts'));
  const entryPoints = tests.map((name) => `test/${name}`);
  await build({ ...common, entryPoints, outdir: 'dist/test', format: 'esm', outExtension: { '.js': '.mjs' } });
} else {
  const entryPoints = ['src/extension.ts'];
  const outfile = 'dist/extension.js';
  await build({ ...common, entryPoints, outfile, format: 'cjs', external: ['vscode'], minify, sourcemap: !minify });
}
