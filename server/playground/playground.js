// The playground: asks this server for text at the cursor and for next edits, as an editor does.
// Texts of the model are only ever set as text, never as HTML.

const TEXT_PAUSE_MS = 100; // after the last key; the language server waits as long
const EDIT_PAUSE_MS = 300; // the same for next edits
const STATUS_MS = 1_000; // between two questions whether the model is ready
const CONTEXT_LINES = 3; // of a hunk, as in training
const MAX_EDITS = 8; // more than the model is shown
const STAGES = ['queue', 'prompt', 'prefill', 'denoise', 'total'];
const WORDS = /\n|[^\S\n]+|[\p{L}\p{N}_]+|./gu;
const MAX_PAIRS = 250_000; // of words: texts with more are not compared word by word
// The example before and after the edit that the user has just made when the page opens.
const [BEGUN, EXAMPLE] = ['owner', 'holder'].map((parameter) => `class Account:
    def __init__(self, ${parameter}, balance=0):
        self.name = owner
        self.balance = balance

    def deposit(self, amount):
        self.balance `);

const [code, drawn, server, said, steps, path, key, eagerness] = [
  'code', 'drawn', 'server', 'said', 'steps', 'path', 'key', 'eagerness',
].map((id) => document.getElementById(id));

let text = EXAMPLE; // as of the last change
let edits = [{ before: BEGUN, after: EXAMPLE, accepted: false }]; // oldest first
let ghost = null; // suggested text at the cursor: { at, text }
let edit = null; // suggested next edit: { start, end, made }, characters and what replaces them
let opening = true; // nothing was asked yet
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
  else if (opening) ask('both');
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
  if (code.selectionStart === at) {
    ghost = { at, text: written };
    show();
  }
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
  if (after === text) return;
  const [start, end, made] = spliceOf(text, after);
  edit = { start, end, made };
  const mark = markOfEdit();
  if (ghost && mark.start <= ghost.at && ghost.at <= mark.end) ghost = null; // one suggestion in a line
  show();
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

/** Ask for 'text', an 'edit' or 'both', or after a pause for text at the cursor and, without any, for an edit. */
function ask(only) {
  opening = false;
  clearTimeout(pause);
  asking.abort();
  const own = (asking = new AbortController());
  const wait = (ms) => new Promise((done) => { pause = setTimeout(done, ms); });
  const run = async () => {
    if (only === 'text') return askForText();
    if (only === 'both') await askForText();
    if (only) return askForEdit();
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

/** Draw the suggestions and say them. */
function show() {
  draw();
  const parts = ghost ? [`Text: ${ghost.text.trim()}`] : [];
  if (edit) {
    const { first, old, now } = changeOf(text, edited());
    const [from, to] = [old, now].map((lines) => lines.join('\n').trim() || 'nothing');
    parts.push(`Next edit, line ${first + 1}: ${from} becomes ${to}`);
  }
  const takes = parts.length === 2 ? 'the text, then the edit' : 'it';
  say(parts.length ? `${parts.join('. ')} — Tab takes ${takes}, Esc hides it.` : '');
}

/** Return the text after the next edit. */
function edited() {
  return text.slice(0, edit.start) + edit.made + text.slice(edit.end);
}

function element(tag, content, className = '') {
  const made = document.createElement(tag);
  made.textContent = content;
  made.className = className;
  return made;
}

function draw() {
  const marks = ghost ? [{ start: ghost.at, end: ghost.at, nodes: [element('span', ghost.text, 'ghost')] }] : [];
  if (edit) marks.push(markOfEdit());
  marks.sort((one, other) => one.start - other.start);
  const parts = [];
  let at = 0;
  for (const { start, end, nodes } of marks) {
    parts.push(text.slice(at, start), ...nodes);
    at = end;
  }
  drawn.replaceChildren(...parts, text.slice(at), '\n');
}

/** Return the lines [start, end) of the next edit in characters, and what is drawn there: the old
 * words, struck out where they go, and a label with the new words of a line, or with new lines. */
function markOfEdit() {
  const { first, old, now } = changeOf(text, edited());
  const start = text.split('\n').slice(0, first).join('\n').length + (first && 1);
  const above = old.length ? start : Math.max(0, start - 1); // new lines are shown beside the line above
  const [gone, made] = [old, now].map((lines) => lines.join('\n').match(WORDS) ?? []);
  const [stay, known] = commonWords(gone, made);
  const nodes = gone.map((word, i) => (stay.has(i) ? word : element('del', word)));
  const fresh = made.map((_, i) => !known.has(i));
  const isLine = old.length === 1 && now.length === 1;
  const [from, to] = isLine ? [fresh.indexOf(true), fresh.lastIndexOf(true) + 1] : [0, made.length];
  const indent = isLine ? 0 : Math.min(...now.filter((line) => line.trim()).map((line) => line.search(/\S/)));
  const label = element('ins', '');
  for (let i = from; i < to; i++) {
    const word = i === 0 || made[i - 1] === '\n' ? made[i].replace(/^\s+/, (space) => space.slice(indent)) : made[i];
    label.append(fresh[i] ? element('b', word) : word);
  }
  if (fresh.includes(true)) nodes.push(label); // else words only go
  return { start: above, end: above + old.join('\n').length, nodes };
}

/** Return the indices of the words that stay, in the old and in the new words. */
function commonWords(old, now) {
  const [inOld, inNow] = [new Set(), new Set()];
  if (old.length * now.length > MAX_PAIRS) return [inOld, inNow];
  const common = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      common[i][j] = old[i] === now[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  for (let i = 0, j = 0; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) {
      inOld.add(i++);
      inNow.add(j++);
    } else if (common[i + 1][j] >= common[i][j + 1]) i++;
    else j++;
  }
  return [inOld, inNow];
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
  const [start, end, made] = ghost ? [ghost.at, ghost.at, ghost.text] : [edit.start, edit.end, edit.made];
  code.setSelectionRange(start, end);
  accepting = true;
  // As a command, so that Ctrl+Z takes it back; it fires the event "input".
  document.execCommand(made ? 'insertText' : 'delete', false, made);
  accepting = false;
}

function changed() {
  const at = code.selectionStart;
  const typed = code.value;
  const shown = ghost;
  const more = shown && at > shown.at ? typed.slice(shown.at, at) : '';
  const through = more && shown.text.startsWith(more) &&
    typed === text.slice(0, shown.at) + more + text.slice(shown.at);
  note(typed);
  text = typed;
  if (!through) {
    hide();
    return ask();
  }
  ghost = more === shown.text ? null : { at, text: shown.text.slice(more.length) };
  if (edit && edit.start >= shown.at) edit = { ...edit, start: edit.start + more.length, end: edit.end + more.length };
  show();
  if (!ghost && !edit) ask();
}

function hide() {
  ghost = edit = null;
  show();
}

code.addEventListener('input', changed);
code.addEventListener('keydown', (event) => {
  if (!(ghost || edit) || event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  if (event.key !== 'Tab' && event.key !== 'Escape') return;
  event.preventDefault();
  if (event.key === 'Tab') return accept();
  const next = ghost && !edit && edits.length;
  if (ghost) ghost = null; // a second Esc hides the edit
  else edit = null;
  show();
  if (next) ask('edit');
});
document.addEventListener('selectionchange', () => {
  if (!ghost || code.selectionStart === ghost.at) return;
  ghost = null;
  show();
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
