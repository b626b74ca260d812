/**
 * Code as an SVG picture in the colours of an editor.
 *
 * Extensions cannot colour text that is not in a document, and cannot insert lines or text in several
 * colours. A picture can show all of that.
 */

export type Kind = 'plain' | 'keyword' | 'string' | 'number' | 'comment' | 'call' | 'type';

export interface Token {
  readonly text: string;
  readonly kind: Kind;
}

/** The look of the editor. */
export interface Look {
  readonly fontFamily: string;
  readonly fontSize: number; // px
  readonly lineHeight: number; // px
  readonly tabSize: number; // columns
}

export type Theme = 'dark' | 'light';

/** Close to the colours of the default themes of VS Code. */
const COLOURS: Record<Theme, Record<Kind | 'background' | 'border', string>> = {
  dark: {
    plain: '#d4d4d4',
    keyword: '#c586c0',
    string: '#ce9178',
    number: '#b5cea8',
    comment: '#6a9955',
    call: '#dcdcaa',
    type: '#4ec9b0',
    background: '#203424',
    border: '#3f6b48',
  },
  light: {
    plain: '#1f1f1f',
    keyword: '#af00db',
    string: '#a31515',
    number: '#098658',
    comment: '#008000',
    call: '#795e26',
    type: '#267f99',
    background: '#e6f5e6',
    border: '#8fc38f',
  },
};

const KEYWORDS = new Set(
  (
    'abstract and as assert async await begin break case catch class const continue def default defer ' +
    'del delete do elif else elseif elsif end enum except export extends extern false False final ' +
    'finally fn for foreach from func function global go goto if impl implements import in include ' +
    'instanceof interface is lambda let local loop match mod module mut namespace new nil None nonlocal ' +
    'not null of or override package pass private protected public raise return self static struct ' +
    'super switch then this throw trait true True try type typeof union unless until use using var ' +
    'virtual void when where while with yield'
  ).split(' '),
);

const HASH_COMMENTS =
  /^(?:python|ruby|shellscript|yaml|toml|perl|r|julia|elixir|makefile|dockerfile|coffeescript)$/;
const DASH_COMMENTS = /^(?:lua|sql|haskell|ada)$/;

function commentOf(language: string): string {
  if (HASH_COMMENTS.test(language)) return '#.*';
  if (DASH_COMMENTS.test(language)) return '--.*';
  return String.raw`\/\/.*|\/\*.*?(?:\*\/|$)`;
}

/** Return the tokens of a line, which may be a part of a line of code. */
export function highlight(line: string, language: string): Token[] {
  const strings = String.raw`"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|${'`'}(?:\\.|[^${'`'}\\])*${'`'}?`;
  const pattern = new RegExp(
    String.raw`(?<comment>${commentOf(language)})|(?<string>${strings})` +
      String.raw`|(?<number>\b\d[\w.]*)|(?<name>[\p{L}_$][\p{L}\p{N}_$]*)|[^\S]+|.`,
    'gu',
  );
  const found: Token[] = [];
  for (const match of line.matchAll(pattern)) {
    const kind = kindOf(match, line);
    const last = found.at(-1);
    if (last?.kind === kind) found[found.length - 1] = { text: last.text + match[0], kind };
    else found.push({ text: match[0], kind });
  }
  return found;
}

function kindOf(match: RegExpExecArray, line: string): Kind {
  const { comment, string, number, name } = match.groups ?? {};
  if (comment !== undefined) return 'comment';
  if (string !== undefined) return 'string';
  if (number !== undefined) return 'number';
  if (name === undefined) return 'plain';
  if (KEYWORDS.has(name)) return 'keyword';
  if (line.startsWith('(', match.index + name.length)) return 'call';
  return /^\p{Lu}.*\p{Ll}/u.test(name) ? 'type' : 'plain';
}

/** Return the columns of `text` in a monospaced font. */
export function columns(text: string): number {
  let count = 0;
  for (const character of text) count += isWide(character.codePointAt(0)!) ? 2 : 1;
  return count;
}

const isWide = (code: number): boolean =>
  code >= 0x1100 &&
  (code <= 0x115f ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0x1f300 && code <= 0x1faff));

/** Return `text` with tabs expanded, if it begins at `column`. */
export function untabbed(text: string, tabSize: number, column = 0): string {
  let result = '';
  for (const character of text) {
    const at = column + columns(result);
    result += character === '\t' ? ' '.repeat(tabSize - (at % tabSize)) : character;
  }
  return result;
}

/**
 * Return a picture of `lines`: `framed` beside the code, or within a line, as high as one and with a
 * line below, so that nothing differs by colour alone.
 */
export function picture(
  lines: readonly string[],
  language: string,
  look: Look,
  theme: Theme,
  framed: boolean,
): string {
  const colours = COLOURS[theme];
  const shown = lines.map((line) => untabbed(line, look.tabSize));
  const width = Math.max(1, ...shown.map(columns));
  const [pad, height] = [framed ? 1 : 0, look.lineHeight * lines.length];
  const baseline = (look.lineHeight + look.fontSize * 0.7) / 2;
  const rows = shown.map((line, at) => {
    const spans = highlight(line, language)
      .map(({ text, kind }) => `<tspan fill="${colours[kind]}">${escaped(text)}</tspan>`)
      .join('');
    const y = (at * look.lineHeight + baseline).toFixed(1);
    return `<text x="${pad}ch" y="${y}" xml:space="preserve">${spans}</text>`;
  });
  const font = `font:${look.fontSize}px ${look.fontFamily};white-space:pre`;
  const edge = framed ? ` stroke="${colours.border}"` : '';
  const bottom = height - 1.5;
  const line = `<line x1="0" x2="100%" y1="${bottom}" y2="${bottom}" stroke="${colours.plain}" stroke-dasharray="2 2"/>`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width + 2 * pad}ch" height="${height}" ` +
    `style="${escaped(font)}"><rect width="100%" height="100%" rx="3" fill="${colours.background}"${edge}/>` +
    `${rows.join('')}${framed ? '' : line}</svg>`
  );
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  // Control characters would make the picture unreadable as a whole.
  return text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, '\u00b7').replace(/[&<>"]/g, (c) => ENTITIES[c]!);
}
