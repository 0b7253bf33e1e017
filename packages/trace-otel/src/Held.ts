/**
 * Counts the spans that are held in memory, and what there was no room for.
 *
 * @since 0.1.0
 */

export class Held {
  private readonly most: number
  private count = 0
  /** Runs whose spans there was no room for: they are read from the journal if they are kept. */
  cutRuns = 0
  /** Spans of others, under those of a Run, that there was no room for: no journal has them. */
  lostSpans = 0

  constructor(most: number) {
    this.most = most
  }

  get size(): number {
    return this.count
  }

  /** Makes room for that many, if there is any. */
  take(count: number): boolean {
    if (this.count + count > this.most) return false
    this.count += count
    return true
  }

  give(count: number): void {
    this.count -= count
  }
}
