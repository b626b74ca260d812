/**
 * How often something that changes is shown: pure but for timers. Knows neither VS Code nor what is
 * shown.
 */

/** ms between two changes that are seen: twice a second is read, more often flickers. */
export const PACE_MS = 500;

/**
 * Shows the latest of what it is told, at most once in `PACE_MS`, and nothing twice. What is `passing`
 * (busy for a moment) is shown only if nothing took its place within that time: a question that is
 * answered while somebody types is no news.
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
