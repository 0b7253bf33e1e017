/**
 * Names the keys: those of one Run share the hash tag of its id, those of the index share the tag of the prefix.
 *
 * Invariants
 *   K1  All keys of a Run are in one slot of a cluster, and so are all keys of the index (RI-018).
 *   K2  Two prefixes, or two run ids, never share a key: neither can hold a brace.
 *
 * @since 0.1.0
 */

/** The keys of one Run, in the order in which every script takes them. */
export type RunKeys = readonly [head: string, events: string]

export interface Keys {
  readonly run: (runId: string) => RunKeys
  /** The run id in the name of a head. */
  readonly runIdOf: (head: string) => string
  /** A pattern that the heads of all Runs match, and no other key of this store. */
  readonly heads: string
  /** A sorted set of the index, named after what its members have in common. */
  readonly index: (what: string) => string
  /** The mark of the index: whether it is whole (see `scripts/marked`). */
  readonly mark: string
  /** The channel on which outside appends are told. */
  readonly channel: string
}

/** 1 to 64 of `A-Z a-z 0-9 . _ : -`. */
export const isPrefix = (prefix: unknown): boolean =>
  typeof prefix === "string" && /^[A-Za-z0-9._:-]{1,64}$/.test(prefix)

export const make = (prefix: string): Keys => {
  const [before, after] = [`${prefix}:{`, "}:head"]
  return {
    run: (runId) => [`${before}${runId}${after}`, `${before}${runId}}:events`],
    runIdOf: (head) => head.slice(before.length, -after.length),
    heads: `${before}*${after}`,
    index: (what) => `{${prefix}}:index:${what}`,
    mark: `{${prefix}}:index:mark`,
    channel: `{${prefix}}:changed`
  }
}
