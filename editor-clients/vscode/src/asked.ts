/**
 * What came of asking by a gesture, in a sentence for the status bar: pure functions.
 */

import { brief } from './words';

/** Characters that the status bar has room for. */
const ROOM = 80;

/** Of one kind of suggestion. */
export interface Asked {
  readonly shown: boolean;
  /** Why nothing is shown, or why it would not be, had nobody asked; '' where there is no more to say. */
  readonly why: string;
}

/** '' where what is shown speaks for itself; undefined is an answer that was overtaken. */
export function sentence(ghost: Asked | undefined, edit: Asked | undefined): string {
  const shown = [ghost, edit].find((each) => each?.shown);
  if (shown) return shown.why && brief(`unsure: ${shown.why}`, ROOM);
  if (ghost?.why) return named('Ghost text', ghost.why);
  if (edit?.why) return named('Next edit', edit.why);
  return ghost || edit ? 'nothing to show: the model would change nothing here' : '';
}

/** With the kind that a reason is about, where it does not say so itself. */
const named = (kind: string, why: string): string =>
  brief(/ghost text|next edit|^no suggestions/i.test(why) ? why : `${kind}: ${why}`, ROOM);
