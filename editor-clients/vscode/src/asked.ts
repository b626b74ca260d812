/**
 * What came of asking by hand, in a sentence for the status bar: pure functions.
 */

/** Of one kind of suggestion. */
export interface Asked {
  readonly shown: boolean;
  /** Why nothing is shown, or why it would not be, had nobody asked; '' where there is no more to say. */
  readonly why: string;
}

/** '' where what is shown speaks for itself; undefined is an answer that was overtaken. */
export function sentence(ghost: Asked | undefined, edit: Asked | undefined): string {
  const shown = [ghost, edit].find((each) => each?.shown);
  if (shown) return shown.why && `not sure of this: ${shown.why}`;
  if (!ghost && !edit) return '';
  const [text, next] = [ghost?.why ?? '', edit?.why ?? ''];
  if (text && next && text !== next) return `no text: ${brief(text)} · no edit: ${brief(next)}`;
  return `nothing to show: ${brief(text || next || 'the model would change nothing here')}`;
}

/** The status bar has room for some seventy characters. */
const brief = (why: string): string => why.charAt(0).toLowerCase() + why.slice(1).replace(/\.$/, '');
