/**
 * How often a server that ends by itself is started again: pure.
 */

/** Ends within this time are a pattern, not bad luck. */
export const WITHIN_MS = 180_000;
export const MOST = 5;

export class Restarts {
  private ends: number[] = [];

  /** The server ended at `now` (ms). Is it to be started again? */
  allow(now: number): boolean {
    this.ends = [...this.ends.filter((at) => now - at < WITHIN_MS), now];
    return this.ends.length < MOST;
  }

  forget(): void {
    this.ends = [];
  }
}
