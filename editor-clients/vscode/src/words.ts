/**
 * Sentences in little room: pure functions.
 */

/** The sentence in `room` characters: without what stands in brackets if it is longer, then cut. */
export function brief(sentence: string, room: number): string {
  if (sentence.length <= room) return sentence;
  const short = sentence.replace(/ \([^()]*\)/g, '');
  return short.length <= room ? short : `${short.slice(0, room - 1)}…`;
}
