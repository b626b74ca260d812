/**
 * Sentences of hints, and shortened ones.
 */

/** Most characters of the reason in a hint, and fewest: fewer say nothing. */
const REASON = 60;
const LEAST = 12;

/** What a hint says of an edit away from the cursor. */
interface Facts {
  readonly file: string; // '' for the user's own
  readonly line: number; // 0-based
  readonly why: string; // '' if unknown
  readonly more: number; // other places that need an edit
  readonly unsure: boolean;
  readonly key: string;
}

export interface Away extends Facts {
  readonly room: number; // characters; a hint without a reason may take more
}

/** Return the hint to an edit away from the cursor; without room, of its file the name alone, then no
 * reason and no number of other places. */
export function hint(away: Away): string {
  const { why, room } = away;
  const name = { ...away, file: away.file.slice(away.file.lastIndexOf('/') + 1) };
  for (const each of [away, name]) {
    const free = room - whole({ ...each, why: '?' }).length + 1;
    const least = Math.min(why.length, each === away ? REASON : LEAST);
    if (why && free >= least) return whole({ ...each, why: brief(why, Math.min(free, REASON)) });
  }
  const shorter = [away, name, { ...name, more: 0 }].map((each) => whole({ ...each, why: '' }));
  return shorter.find((each) => each.length <= room) ?? shorter.at(-1)!;
}

/** Return the hint in full. */
export function whole({ file, line, why, more, unsure, key }: Facts): string {
  const place = file ? `${file}, line ${line + 1}` : `line ${line + 1}`;
  const where = `${file ? 'in' : 'at'} ${place}`;
  const mark = unsure ? '?' : '';
  const what = why ? `→ ${place}${mark}: ${why}` : `→ edit${mark} ${where}`;
  return [what, ...(more ? [`${more} more place${more === 1 ? '' : 's'}`] : []), key].join(' · ');
}

/** Return a sentence in `room` characters: first without brackets, then cut. */
export function brief(sentence: string, room: number): string {
  if (sentence.length <= room) return sentence;
  const short = sentence.replace(/ \([^()]*\)/g, '');
  return short.length <= room ? short : `${short.slice(0, room - 1)}…`;
}
