// A browser for a test in another language, with VS Code or another page in it: one JSON command per
// line on stdin, one JSON answer per line on stdout. Knows VS Code's page; nothing of Redraft.
//
//   node driver.mjs PLAYWRIGHT_CORE CHROMIUM
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [, , folder, executablePath] = process.argv;
const { chromium } = createRequire(`${folder}/`)('playwright-core');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const EDITOR = '.monaco-editor .view-lines .view-line';
let page;

const commands = {
  /** Open a page and wait for an element: by default the editor of VS Code. */
  async open({ url, width = 1280, height = 800, selector = EDITOR, colorScheme = 'light' }) {
    await page?.context().close();
    const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: 1, colorScheme });
    page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(url, { timeout: 240_000 });
    await page.waitForSelector(selector, { timeout: 240_000 });
  },
  async press({ keys }) {
    for (const key of keys) await page.keyboard.press(key);
  },
  async type({ text, delay = 15 }) {
    await page.keyboard.type(text, { delay });
  },
  async click({ selector, count = 1 }) {
    await page.click(selector, { clickCount: count });
  },
  /** Until the expression, evaluated in the page, is true; its value. */
  async until({ expression, timeout = 60_000 }) {
    const handle = await page.waitForFunction(expression, undefined, { timeout, polling: 50 });
    return handle.jsonValue();
  },
  async evaluate({ expression }) {
    return page.evaluate(expression);
  },
  async screenshot({ path, clip }) {
    await page.screenshot({ path, ...(clip ? { clip } : {}) });
  },
  async close() {
    await browser.close();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...options } = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await commands[command](options)) ?? null };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
  if (command === 'close') break;
}
process.exit(0);
