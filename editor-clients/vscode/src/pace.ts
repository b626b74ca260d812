/**
 * Limits how often a changing value is shown.
 */

/** Least time between two visible changes, ms: more than two per second flicker. */
export const PACE_MS = 500;

/**
 * Shows the latest value, at most once per `PACE_MS`, and no value twice. A `passing` value (busy for
 * a moment) is shown only if no other arrives within that time.
 */
export class Paced<T> {
  private timer: NodeJS.Timeout | undefined;
  private latest: T | undefined;
  private seen: T | undefined;
  private seenAt = -Infinity;

  constructor(
    private readonly show: (value: T) => void,
    private readonly passing: (value: T) => boolean,
    private readonly same: (one: T, other: T) => boolean,
  ) {}

  tell(value: T): void {
    this.latest = value;
    const since = Date.now() - this.seenAt;
    if (!this.passing(value) && since >= PACE_MS) return this.now();
    this.timer ??= setTimeout(() => this.now(), this.passing(value) ? PACE_MS : PACE_MS - since);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private now(): void {
    this.dispose();
    const value = this.latest!;
    if (this.seen !== undefined && this.same(this.seen, value)) return;
    this.seen = value;
    this.seenAt = Date.now();
    this.show(value);
  }
}
