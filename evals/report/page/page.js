// The browser of single episodes. Rows are drawn as they scroll into view; every text reaches the
// page as text (textContent), never as markup. Knows the columns that report/episodes.py names.
"use strict";
(() => {
  const ROW = 52; // px, as in the style sheet
  const data = JSON.parse(document.getElementById("episodes").textContent);
  const at = Object.fromEntries(data.columns.map((name, place) => [name, place]));
  const root = document.getElementById("browser");
  if (!root || !data.runs.length) return;

  const text = (row, name) => data.texts[row[at[name]]];
  const state = { run: 0, only: "all", language: "", part: "", find: "", order: "run", picked: null };

  // --- small things ---------------------------------------------------------------------------

  function make(name, kind, content) {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (content !== undefined) made.textContent = content;
    return made;
  }

  function choice(label, options, pick) {
    const made = make("select");
    made.setAttribute("aria-label", label);
    for (const [value, shown] of options) {
      const option = make("option", "", shown);
      option.value = value;
      made.append(option);
    }
    made.addEventListener("change", () => pick(made.value));
    return made;
  }

  const percent = (share) => `${Math.round(share * 100)} %`;
  const lines = (whole) => (whole ? whole.replace(/\n$/, "").split("\n") : []);

  // --- which episodes -------------------------------------------------------------------------

  const TESTS = {
    all: () => true,
    shown: (row) => row[at.shown] === 1,
    "not shown": (row) => row[at.shown] === 0,
    right: (row) => row[at.shown] === 1 && row[at.right] === 1,
    wrong: (row) => row[at.shown] === 1 && row[at.right] === 0,
    exact: (row) => row[at.exact] === 1,
  };
  const ORDERS = {
    run: null,
    sure: (a, b) => (b[at.score] ?? -1) - (a[at.score] ?? -1),
    unsure: (a, b) => (a[at.score] ?? 2) - (b[at.score] ?? 2),
    slow: (a, b) => (b[at.ms] ?? -1) - (a[at.ms] ?? -1),
  };

  let filtered = []; // rows, in the order shown

  function fitting() {
    const find = state.find.toLowerCase();
    return data.runs[state.run].rows.filter((row) =>
      (!state.language || text(row, "language") === state.language) &&
      (!state.part || text(row, "part") === state.part) &&
      (!find || ["id", "predicted", "expected", "outcome"].some((name) =>
        text(row, name).toLowerCase().includes(find))));
  }

  function refresh() {
    const rows = fitting();
    for (const [name, chip] of chips) {
      chip.setAttribute("aria-pressed", String(state.only === name));
      chip.lastChild.textContent = rows.filter(TESTS[name]).length.toLocaleString("en");
    }
    filtered = rows.filter(TESTS[state.only]);
    if (ORDERS[state.order]) filtered.sort(ORDERS[state.order]);
    list.scrollTop = 0;
    draw();
    const same = filtered.find((row) => row[at.id] === state.picked);
    show(same || filtered[0] || null);
  }

  // --- the list, only what is in view ---------------------------------------------------------

  const tools = make("div", "tools");
  const panes = make("div", "panes");
  const list = make("div", "list");
  const space = make("div");
  const detail = make("div", "detail");
  list.tabIndex = 0;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Episodes");
  list.append(space);
  panes.append(list, detail);

  function draw() {
    space.style.height = `${filtered.length * ROW}px`;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
    const last = Math.min(filtered.length, first + Math.ceil((list.clientHeight || 600) / ROW) + 8);
    const drawn = [];
    for (let place = first; place < last; place++) drawn.push(item(filtered[place], place));
    if (!filtered.length) drawn.push(make("div", "empty", "No episode is like this."));
    space.replaceChildren(...drawn);
  }

  function item(row, place) {
    const made = make("div", "item");
    made.id = `item${place}`;
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", String(row[at.id] === state.picked));
    made.style.top = `${place * ROW}px`;
    const first = make("div", "first");
    const sure = row[at.score] === null ? "" : row[at.score].toFixed(2);
    first.append(make("span", `dot ${mood(row)}`), make("span", "what", gist(row)),
      make("span", "sure", sure));
    made.append(first, make("div", "where", text(row, "id")));
    made.addEventListener("click", () => show(row));
    return made;
  }

  const mood = (row) =>
    row[at.shown] !== 1 || row[at.right] === null ? "" : row[at.right] ? "good" : "bad";

  function gist(row) {
    if (row[at.shown] !== 1) return text(row, "outcome");
    const before = new Set(lines(text(row, "was")));
    const after = lines(text(row, "predicted"));
    const fresh = after.find((line) => line.trim() && !before.has(line));
    return (fresh ?? (after.length ? after[0] : "removes lines")).trim().slice(0, 120) || "a blank line";
  }

  // --- one episode ----------------------------------------------------------------------------

  function show(row) {
    state.picked = row ? row[at.id] : null;
    draw();
    detail.replaceChildren();
    detail.scrollTop = 0;
    if (!row) return;
    const path = text(row, "path");
    detail.append(make("h3", "", text(row, "id")));
    const tags = make("div", "tags");
    const told = [
      [text(row, "outcome"), mood(row)],
      [text(row, "language"), ""],
      [row[at.score] === null ? "" : `${percent(row[at.score])} sure`, ""],
      [row[at.ms] === null ? "" : `${Math.round(row[at.ms]).toLocaleString("en")} ms`, ""],
      [path && !text(row, "id").includes(path) ? path : "", ""],
    ];
    for (const [what, kind] of told) if (what) tags.append(make("span", `tag ${kind}`, what));
    const diffs = make("div", "diffs");
    const label = row[at.shown] === 1 ? "Predicted" : "Predicted, not shown";
    diffs.append(diff(label, row, "predicted"), diff("What it became", row, "expected"));
    detail.append(tags, diffs, facts(row), others(row));
  }

  function facts(row) {
    const table = make("table", "facts");
    for (const line of lines(text(row, "facts"))) {
      const [name, value] = line.split("\t");
      const made = make("tr");
      made.append(make("th", "", name), make("td", "", value));
      table.append(made);
    }
    return table;
  }

  function others(row) {
    const made = make("div", "others");
    data.runs.forEach((run, number) => {
      if (number === state.run) return;
      const same = run.rows.find((other) => other[at.id] === row[at.id]);
      if (!same) return;
      const button = make("button");
      const first = make("span", `dot ${mood(same)}`);
      first.classList.add("key");
      button.append(first, make("span", "", `${run.name}: ${text(same, "outcome")}`));
      button.addEventListener("click", () => {
        state.picked = row[at.id];
        runs.value = String(number);
        pickRun(number);
      });
      made.append(button);
    });
    if (made.childNodes.length) made.prepend(make("h4", "soft", "The same in other runs"));
    return made;
  }

  // --- differences ----------------------------------------------------------------------------

  function diff(label, row, name) {
    const made = make("div", "diff");
    const code = make("div", "code");
    made.append(make("h4", "", label), code);
    let number = row[at.line] + 1;
    const add = (sign, kind, parts, counts) => {
      const line = make("div", `row ${kind}`);
      const body = make("span");
      body.append(...parts);
      line.append(make("span", "no", counts ? String(number) : ""), make("span", "sign", sign), body);
      code.append(line);
      if (counts) number += 1;
    };
    const plain = (line) => {
      if (line.startsWith(data.left_out)) {
        add("", "gap", [line], false);
        number += Number((line.match(/\d+/) || [0])[0]);
      } else add("", "", [line], true);
    };
    lines(text(row, "above")).forEach(plain);
    for (const step of changes(lines(text(row, "was")), lines(text(row, name)))) {
      if (step.same !== undefined) plain(step.same);
      else {
        step.del.forEach((line, i) => add("−", "del", marked(line, step.ins[i]), false));
        step.ins.forEach((line, i) => add("+", "ins", marked(line, step.del[i]), true));
      }
    }
    lines(text(row, "below")).forEach(plain);
    if (!code.childNodes.length) code.append(make("div", "row gap", "  nothing"));
    return made;
  }

  // Lines that stay, and runs of lines that go and come, by a longest common subsequence.
  function changes(was, now) {
    const size = Array.from({ length: was.length + 1 }, () => new Uint16Array(now.length + 1));
    for (let i = was.length - 1; i >= 0; i--)
      for (let j = now.length - 1; j >= 0; j--)
        size[i][j] = was[i] === now[j] ? size[i + 1][j + 1] + 1
          : Math.max(size[i + 1][j], size[i][j + 1]);
    const steps = [];
    let open = null;
    let i = 0, j = 0;
    while (i < was.length || j < now.length) {
      if (i < was.length && j < now.length && was[i] === now[j]) {
        steps.push({ same: was[i] });
        open = null; i++; j++;
        continue;
      }
      if (!open) steps.push((open = { del: [], ins: [] }));
      if (j >= now.length || (i < was.length && size[i + 1][j] >= size[i][j + 1]))
        open.del.push(was[i++]);
      else open.ins.push(now[j++]);
    }
    return steps;
  }

  // The line with the part marked in which it differs from its partner.
  function marked(line, other) {
    if (other === undefined) return [line];
    let head = 0;
    while (head < line.length && line[head] === other[head]) head++;
    let tail = 0;
    const most = Math.min(line.length, other.length) - head;
    while (tail < most && line[line.length - 1 - tail] === other[other.length - 1 - tail]) tail++;
    const shared = line.slice(0, head).trim().length + tail;
    if (shared * 3 < Math.min(line.trim().length, other.trim().length)) return [line];
    return [line.slice(0, head), make("mark", "", line.slice(head, line.length - tail)),
      line.slice(line.length - tail)];
  }

  // --- the tools ------------------------------------------------------------------------------

  const runs = choice("Run", data.runs.map((run, i) => [String(i), `${run.name} · ${run.title}`]),
    (value) => pickRun(Number(value)));
  const byLanguage = choice("Language", [], (value) => { state.language = value; refresh(); });
  const byPart = choice("Kind", [], (value) => { state.part = value; refresh(); });
  const order = choice("Order",
    [["run", "as asked"], ["sure", "surest first"], ["unsure", "least sure first"], ["slow", "slowest first"]],
    (value) => { state.order = value; refresh(); });
  const search = make("input");
  search.type = "search";
  search.placeholder = "Find in names and texts";
  search.setAttribute("aria-label", "Find");
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { state.find = search.value; refresh(); }, 150);
  });
  const chips = new Map();
  const group = make("div", "chips");
  for (const name of Object.keys(TESTS)) {
    const chip = make("button", "chip", name);
    chip.append(make("span", "", ""));
    chip.addEventListener("click", () => { state.only = name; refresh(); });
    chips.set(name, chip);
    group.append(chip);
  }

  function options(select, name, every) {
    const found = [...new Set(data.runs[state.run].rows.map((row) => text(row, name)))].sort();
    select.replaceChildren(...["", ...found].map((value) => {
      const option = make("option", "", value || every);
      option.value = value;
      return option;
    }));
    select.hidden = found.length < 2;
  }

  function pickRun(number) {
    Object.assign(state, { run: number, language: "", part: "" });
    options(byLanguage, "language", "all languages");
    options(byPart, "part", "all kinds");
    refresh();
  }

  let waiting = false;
  list.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!step || !filtered.length) return;
    event.preventDefault();
    const now = filtered.findIndex((row) => row[at.id] === state.picked);
    const next = Math.min(filtered.length - 1, Math.max(0, now + step));
    if (next * ROW < list.scrollTop) list.scrollTop = next * ROW;
    if ((next + 1) * ROW > list.scrollTop + list.clientHeight)
      list.scrollTop = (next + 1) * ROW - list.clientHeight;
    show(filtered[next]);
    list.setAttribute("aria-activedescendant", `item${next}`);
  });

  tools.append(runs, group, byLanguage, byPart, order, search);
  root.append(tools, panes);
  pickRun(0);
})();
