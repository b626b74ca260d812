/**
 * Output of installers as text for a notification, without the bars and colours for terminals.
 */

const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007]*\u0007?|.)/g;
/** Box drawing, blocks, braille and pip's older bars. */
const BARS = /[\u2500-\u259f\u2800-\u28ff]|[#=\-*]{6,}/u;
const LONGEST = 80;

/** Return a line without escapes and overwritten text; '' if only a bar is left. */
export function plain(line: string): string {
  const last = line.replace(ESCAPES, '').split('\r').filter((each) => each.trim()).at(-1) ?? '';
  return BARS.test(last) ? '' : last.trim();
}

const name = (requirement: string): string => /^[\w.-]+/.exec(requirement)?.[0] ?? requirement;

const SENTENCES: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [/^Collecting (\S+)/, ([, what = '']) => `looking for ${name(what)}`],
  [
    /^Downloading (?:\S*\/)?([\w.]+?)(?:-\d\S*)?(?: (\([\d.]+ ?[kMG]i?B\)))?$/,
    ([, what = '', size]) => `downloading ${what}${size ? ` ${size}` : ''}`,
  ],
  [/^Using cached ([\w.]+?)-\d/, ([, what]) => `${what} is here already`],
  [
    /^Installing collected packages: (.*)/,
    ([, all = '']) => `installing ${all.split(',').length} packages`,
  ],
  [/^(?:Resolved|Prepared|Installed) \d+ packages?/, ([all]) => all.toLowerCase()],
  [/^Successfully installed/, () => 'installed'],
  [/^(?:Building|Created|Creating|Processing|Preparing|Getting) /, () => 'preparing'],
];

/** Return the text of a notification for a line, or undefined if there is nothing new. */
export function progressOf(line: string): string | undefined {
  const text = plain(line);
  for (const [pattern, sentence] of SENTENCES) {
    const found = pattern.exec(text);
    if (found) return sentence(found).slice(0, LONGEST);
  }
  return undefined;
}
