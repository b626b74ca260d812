/**
 * Limits how often a server that ends unexpectedly is restarted.
 */

/** Ends within this time count together, ms. */
export const WITHIN_MS = 180_000;
export const MOST = 5;

export class Restarts {
  private ends: number[] = [];

  /** Note an end at `now`, ms; return whether to restart. */
  allow(now: number): boolean {
    this.ends = [...this.ends.filter((at) => now - at < WITHIN_MS), now];
    return this.ends.length < MOST;
  }

  forget(): void {
    this.ends = [];
  }
}
