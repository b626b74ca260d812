// The playground: asks this server for text at the cursor and for next edits, as an editor does.
// Texts of the model are only ever set as text, never as HTML.

const TEXT_PAUSE_MS = 100; // after the last key; the language server waits as long
const EDIT_PAUSE_MS = 300; // the same for next edits
const STATUS_MS = 1_000; // between two questions whether the model is ready
const CONTEXT_LINES = 3; // of a hunk, as in training
const MAX_EDITS = 8; // more than the model is shown
const STAGES = ['queue', 'prompt', 'prefill', 'denoise', 'total'];
const SAMPLE = `"""Prices of a small shop."""

PRICES = {"tea": 2.5, "cake": 3.2}


def price(item):
    return PRICES[item]


def total(items):
    return`;

const [code, drawn, server, said, steps, path, key, eagerness] = [
  'code', 'drawn', 'server', 'said', 'steps', 'path', 'key', 'eagerness',
].map((id) => document.getElementById(id));

let text = SAMPLE; // as of the last change
let edits = []; // oldest first: { before, after, accepted }
let suggestion = null; // { kind: 'text', at, text } or { kind: 'edit', after, change }
let accepting = false;
let pause = 0; // timer of the next question
let asking = new AbortController(); // of the question under way

// --- the server ---------------------------------------------------------------------------------

function headers() {
  return key.value ? { Authorization: `Bearer ${key.value}` } : {};
}

async function post(route, body) {
  const response = await fetch(route, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers() },
    body: JSON.stringify(body),
    signal: asking.signal,
    credentials: 'omit',
  });
  if (response.ok) return response;
  if (response.status === 401) demandKey();
  throw new Error((await response.json()).error.message);
}

function demandKey() {
  key.setAttribute('aria-invalid', 'true');
  server.textContent = key.value
    ? '401: this is not the API key of the server. Correct it above.'
    : '401: the server demands its API key. Type it into the field "API key".';
}

/** Show the model and its state; ask again until it is ready. Without the right key only the state is sent. */
async function showStatus() {
  clearTimeout(showStatus.timer);
  let state = 'loading';
  try {
    const status = await (await fetch('health', { headers: headers(), credentials: 'omit' })).json();
    if (status.error) throw new Error(status.error.message);
    if (!('model' in status)) return demandKey();
    key.removeAttribute('aria-invalid');
    state = status.status;
    const progress = status.progress === null ? '' : ` ${Math.round(100 * status.progress)} %`;
    const why = state === 'ready' ? '' : ` ${status.message}`;
    server.textContent = `${status.model} ${status.provider}: ${state}${progress}${why}`;
  } catch (error) {
    server.textContent = `The server does not answer as expected: ${error.message}`;
  }
  if (state !== 'ready') showStatus.timer = setTimeout(showStatus, STATUS_MS);
}

/** Yield the pieces of a stream of server-sent events. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let held = ''; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (held + value).split('\n\n');
    held = parts.pop();
    for (const part of parts) if (part !== 'data: [DONE]') yield JSON.parse(part.slice('data: '.length));
  }
}

// --- the questions ------------------------------------------------------------------------------

async function askForText() {
  const at = code.selectionStart;
  const begun = performance.now();
  steps.replaceChildren();
  const response = await post('v1/fim/completions', {
    prompt: text.slice(0, at), suffix: text.slice(at), stream: true, diffusing: true,
    ...(restOfLine().trim() && { stop: ['\n'] }), // within a line only the rest of it
  });
  let last;
  for await (last of events(response)) {
    if (last.error) throw new Error(last.error.message);
    const step = last.choices[0].text || '(no text)'; // the final text is often that of the last step
    if (step !== steps.lastElementChild?.textContent) steps.append(element('li', step));
    steps.scrollTop = steps.scrollHeight;
  }
  const written = last.choices[0].text;
  report('text', last, begun, written ? 'shown' : '');
  if (!written) return false;
  if (code.selectionStart === at) suggest({ kind: 'text', at, text: written });
  return true;
}

async function askForEdit() {
  const begun = performance.now();
  const response = await post('v1/edit/completions', {
    messages: [{ role: 'user', content: editPrompt(code.selectionStart) }],
    eagerness: eagerness.value,
  });
  const answer = await response.json();
  const content = answer.choices[0].message.content;
  const after = content === 'None' ? text : content.slice('```\n'.length, -'\n```'.length);
  report('edit', answer, begun, after === text ? '' : 'shown');
  if (after !== text) suggest({ kind: 'edit', after, change: changeOf(text, after) });
}

/** Mercury's prompt of a next edit; the server narrows the region, which is the whole text. */
function editPrompt(cursor) {
  return [
    '<|recently_viewed_code_snippets|>', '', '<|/recently_viewed_code_snippets|>',
    '<|current_file_content|>', `current_file_path: ${path.value}`, '<|code_to_edit|>',
    `${text.slice(0, cursor)}<|cursor|>${text.slice(cursor)}`, '<|/code_to_edit|>',
    '<|/current_file_content|>', '<|edit_diff_history|>', ...edits.flatMap(diffOf),
    '<|/edit_diff_history|>', '',
  ].join('\n');
}

/** Ask for what is named, or after a pause for text at the cursor and, without any, for an edit. */
function ask(only) {
  clearTimeout(pause);
  asking.abort();
  const own = (asking = new AbortController());
  const wait = (ms) => new Promise((done) => { pause = setTimeout(done, ms); });
  const run = async () => {
    if (only === 'text') return askForText();
    if (only === 'edit') return askForEdit();
    await wait(TEXT_PAUSE_MS);
    // Not within code, but before what closes brackets and strings.
    if (/^[\s)\]}'"`:;,]*$/.test(restOfLine()) && !isRenaming() && (await askForText())) return;
    await wait(EDIT_PAUSE_MS - TEXT_PAUSE_MS);
    if (edits.length) await askForEdit();
  };
  run().catch((error) => { if (!own.signal.aborted) say(error.message); });
}

function restOfLine() {
  return text.slice(code.selectionEnd).split('\n', 1)[0];
}

// --- the edits of the user ----------------------------------------------------------------------

/** Return the range of lines that differs: its first line (0-based), its old and its new lines. */
function changeOf(before, after) {
  const [old, now] = [before.split('\n'), after.split('\n')];
  const most = Math.min(old.length, now.length);
  let first = 0;
  while (first < most && old[first] === now[first]) first++;
  let same = 0;
  while (same < most - first && old.at(-1 - same) === now.at(-1 - same)) same++;
  return { first, old: old.slice(first, old.length - same), now: now.slice(first, now.length - same) };
}

/** Return the characters [start, end) of `before` that differ, and what `after` has there. */
function spliceOf(before, after) {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start++;
  let same = 0;
  const most = Math.min(before.length, after.length) - start;
  while (same < most && before.at(-1 - same) === after.at(-1 - same)) same++;
  // No half of a surrogate pair is inserted.
  if (/[\uDC00-\uDFFF]/.test(after[start] ?? '')) start--;
  if (same && /[\uDC00-\uDFFF]/.test(after.at(-same))) same--;
  return [start, before.length - same, after.slice(start, after.length - same)];
}

/** Return whether the last edit changed a name: then edits elsewhere follow, and no text at the cursor. */
function isRenaming() {
  const { before, after } = edits.at(-1) ?? { before: '', after: '' };
  const [start, end, made] = spliceOf(before, after);
  return /^\w+ \w*$/.test(`${before.slice(start, end)} ${made}`);
}

/** Return the lines of an edit as a unified diff. */
function diffOf({ before, after, accepted }) {
  const { first, old, now } = changeOf(before, after);
  const lines = before.split('\n');
  const top = Math.max(0, first - CONTEXT_LINES);
  const above = lines.slice(top, first).map((line) => ` ${line}`);
  const below = lines.slice(first + old.length, first + old.length + CONTEXT_LINES).map((line) => ` ${line}`);
  const kept = above.length + below.length;
  return [
    ...(accepted ? ['// User accepted prediction:'] : []),
    `--- a/${path.value}`, `+++ b/${path.value}`,
    `@@ -${top + 1},${kept + old.length} +${top + 1},${kept + now.length} @@`,
    ...above, ...old.map((line) => `-${line}`), ...now.map((line) => `+${line}`), ...below,
  ];
}

/** Note a change. One that goes on in the lines of the last edit is part of it. */
function note(after) {
  const last = edits.at(-1);
  if (last && !last.accepted && !accepting) {
    const [earlier, change] = [changeOf(last.before, text), changeOf(text, after)];
    const end = earlier.first + earlier.now.length;
    if (change.first >= earlier.first && change.first + change.old.length <= end) {
      last.after = after;
      if (last.before === after) edits.pop();
      return;
    }
  }
  edits = [...edits, { before: text, after, accepted: accepting }].slice(-MAX_EDITS);
}

// --- what is shown ------------------------------------------------------------------------------

function say(message) {
  said.textContent = message;
}

function suggest(made) {
  suggestion = made;
  draw();
  if (made.kind === 'text') return say(`Text: ${made.text.trim()} — Tab takes it, Esc hides it.`);
  const { first, old, now } = made.change;
  const [from, to] = [old, now].map((lines) => lines.join('\n').trim() || 'nothing');
  return say(`Next edit, line ${first + 1}: ${from} becomes ${to} — Tab takes it, Esc hides it.`);
}

function element(tag, content, className = '') {
  const made = document.createElement(tag);
  made.textContent = content;
  made.className = className;
  return made;
}

function draw() {
  if (suggestion?.kind === 'text') {
    const { at, text: ghost } = suggestion;
    return drawn.replaceChildren(text.slice(0, at), element('span', ghost, 'ghost'), text.slice(at), '\n');
  }
  if (suggestion === null) return drawn.replaceChildren(text, '\n');
  const { first, old, now } = suggestion.change;
  const end = first + old.length;
  const indent = Math.min(...now.filter((line) => line.trim()).map((line) => line.search(/\S/)));
  const shown = now.map((line) => `+ ${line.slice(indent)}`).join('\n') || '− these lines';
  const parts = text.split('\n').flatMap((line, i) => [
    i >= first && i < end ? element('del', line) : line,
    ...(i === Math.max(0, end - 1) ? [element('ins', shown)] : []),
    '\n',
  ]);
  return drawn.replaceChildren(...parts);
}

/** Fill a row of the table: the result or why there is none, the confidence, the time of each stage. */
function report(kind, answer, begun, result) {
  const share = answer.confidence === null ? '–' : `${Math.round(100 * answer.confidence)} %`;
  const times = STAGES.map((stage) => answer.timings[`${stage}_ms`]?.toFixed(0) ?? '–');
  const cells = [result || answer.redraft?.reason || 'nothing', share, ...times, (performance.now() - begun).toFixed(0)];
  const row = document.getElementById(`${kind}-answer`);
  row.replaceChildren(row.firstElementChild, ...cells.map((cell) => element('td', cell)));
  if (!result) say(`${kind === 'text' ? 'No text' : 'No next edit'}: ${cells[0]}`);
}

// --- the user -----------------------------------------------------------------------------------

function accept() {
  const { kind, at, text: ghost, after } = suggestion;
  const [start, end, made] = kind === 'text' ? [at, at, ghost] : spliceOf(text, after);
  code.setSelectionRange(start, end);
  accepting = true;
  // As a command, so that Ctrl+Z takes it back; it fires the event "input".
  document.execCommand(made ? 'insertText' : 'delete', false, made);
  accepting = false;
}

function changed() {
  const at = code.selectionStart;
  const typed = code.value;
  const ghost = suggestion?.kind === 'text' && !accepting ? suggestion : null;
  const through = ghost && at > ghost.at && ghost.text.startsWith(typed.slice(ghost.at, at)) &&
    typed === text.slice(0, ghost.at) + typed.slice(ghost.at, at) + text.slice(ghost.at);
  note(typed);
  text = typed;
  const left = through ? ghost.text.slice(at - ghost.at) : '';
  if (left) return suggest({ kind: 'text', at, text: left });
  hide();
  return ask();
}

function hide() {
  suggestion = null;
  say('');
  draw();
}

code.addEventListener('input', changed);
code.addEventListener('keydown', (event) => {
  if (suggestion === null || event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  if (event.key !== 'Tab' && event.key !== 'Escape') return;
  event.preventDefault();
  if (event.key === 'Tab') return accept();
  const next = suggestion.kind === 'text' && edits.length;
  hide();
  if (next) ask('edit');
});
document.addEventListener('selectionchange', () => {
  if (suggestion?.kind === 'text' && code.selectionStart !== suggestion.at) hide();
});
for (const kind of ['text', 'edit']) {
  document.getElementById(`ask-${kind}`).addEventListener('click', () => {
    hide();
    code.focus();
    ask(kind);
  });
}
document.getElementById('options').addEventListener('submit', (event) => event.preventDefault());
key.addEventListener('change', showStatus);

code.value = text;
code.setSelectionRange(text.length, text.length);
draw();
showStatus();
