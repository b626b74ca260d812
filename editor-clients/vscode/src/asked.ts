/**
 * The result of asking by a gesture, as a sentence for the status bar.
 */

import { brief } from './words';

/** Most characters of a sentence in the status bar. */
const ROOM = 80;

/** The result for one kind of suggestion. */
export interface Asked {
  readonly shown: boolean;
  /** Why nothing is shown, or would be shown without the gesture; '' if there is no reason. */
  readonly why: string;
}

/** Return the sentence, or '' if something is shown. An undefined result was superseded. */
export function sentence(ghost: Asked | undefined, edit: Asked | undefined): string {
  const shown = [ghost, edit].find((each) => each?.shown);
  if (shown) return shown.why && brief(`unsure: ${shown.why}`, ROOM);
  if (ghost?.why) return named('Ghost text', ghost.why);
  if (edit?.why) return named('Next edit', edit.why);
  return ghost || edit ? 'nothing to show: the model would change nothing here' : '';
}

/** Return a reason that names the kind of suggestion. */
const named = (kind: string, why: string): string =>
  brief(/ghost text|next edit|^no suggestions/i.test(why) ? why : `${kind}: ${why}`, ROOM);
