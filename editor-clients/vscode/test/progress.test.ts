import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plain, progressOf } from '../src/progress';

const BAR = '   \u001b[38;5;197m━━━━━━━━━━\u001b[0m\u001b[38;5;237m╺━━━━━━━\u001b[0m \u001b[32m12.3/45.6 MB\u001b[0m \u001b[31m3.1 MB/s\u001b[0m';

test('a bar is never shown, whoever draws it', () => {
  for (const line of [
    BAR,
    '     |████████▌           | 12.3 MB 3.1 MB/s',
    '⠙ Preparing packages... (3/12)',
    'onnxruntime ------------------------------ 2.1 MiB/13.2 MiB',
    '\u001b[2K\r[######          ] 40%',
  ]) {
    assert.equal(plain(line), '', line);
    assert.equal(progressOf(line), undefined, line);
  }
});

test('what pip, pipx and uv say becomes words', () => {
  const said: Record<string, string> = {
    'Collecting onnxruntime>=1.22 (from redraft==0.1.0)': 'looking for onnxruntime',
    'Downloading onnxruntime-1.22.0-cp311-manylinux_2_28_x86_64.whl (16.4 MB)': 'downloading onnxruntime (16.4 MB)',
    'Downloading onnxruntime (13.2MiB)': 'downloading onnxruntime (13.2MiB)',
    '  Using cached numpy-2.3.1-cp311-cp311-linux_x86_64.whl (16 MB)': 'numpy is here already',
    'Installing collected packages: a, b, c': 'installing 3 packages',
    'Resolved 41 packages in 812ms': 'resolved 41 packages',
    'Successfully installed redraft-0.1.0': 'installed',
  };
  for (const [line, words] of Object.entries(said)) assert.equal(progressOf(line), words);
});

test('other lines are for the log, and an error keeps its words', () => {
  assert.equal(progressOf('Requirement already satisfied: pip in /x'), undefined);
  const error = '\u001b[31mERROR: No matching distribution found for redraft\u001b[0m';
  assert.equal(plain(error), 'ERROR: No matching distribution found for redraft');
});
