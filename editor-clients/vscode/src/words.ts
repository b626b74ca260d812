/**
 * Shortened sentences.
 */

/** Return a sentence in `room` characters: first without brackets, then cut. */
export function brief(sentence: string, room: number): string {
  if (sentence.length <= room) return sentence;
  const short = sentence.replace(/ \([^()]*\)/g, '');
  return short.length <= room ? short : `${short.slice(0, room - 1)}…`;
}
