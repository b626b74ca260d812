/**
 * Sentences of hints, and shortened ones.
 */

/** Most characters of the reason in a hint. */
const REASON = 60;

/** What a hint says of an edit away from the cursor. */
export interface Away {
  readonly file: string; // '' for the user's own
  readonly line: number; // 0-based
  readonly why: string; // '' if unknown
  readonly more: number; // other places that need an edit
  readonly unsure: boolean;
  readonly key: string;
}

/** Return the hint to an edit away from the cursor. */
export function hint({ file, line, why, more, unsure, key }: Away): string {
  const place = file ? `${file}, line ${line + 1}` : `line ${line + 1}`;
  const where = `${file ? 'in' : 'at'} ${place}`;
  const mark = unsure ? '?' : '';
  const what = why ? `→ ${place}${mark}: ${brief(why, REASON)}` : `→ edit${mark} ${where}`;
  return [what, ...(more ? [`${more} more place${more === 1 ? '' : 's'}`] : []), key].join(' · ');
}

/** Return a sentence in `room` characters: first without brackets, then cut. */
export function brief(sentence: string, room: number): string {
  if (sentence.length <= room) return sentence;
  const short = sentence.replace(/ \([^()]*\)/g, '');
  return short.length <= room ? short : `${short.slice(0, room - 1)}…`;
}
