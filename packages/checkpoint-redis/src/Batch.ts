/**
 * Packs the events of one append into an entry of a stream, and unpacks them again.
 *
 * An entry has the id `<seq of its last event>-0`, so that a range of ids is a range of seqs (FACTS 21), and the fields `e`
 * (epoch), `n` (the length of each body in UTF-16 units) and `b` (the bodies, one after the other). Lengths let a body hold
 * anything and show when some of it is gone.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import { count } from "./Row.ts"
import type * as Read from "./scripts/read.ts"

export const pack = (events: ReadonlyArray<string>): { readonly lengths: string; readonly bodies: string } => ({
  lengths: events.map(({ length }) => length).join(","),
  bodies: events.join("")
})

/** The events of one append; undefined if the entry is damaged. */
export const unpack = ([id, epochText, lengths, bodies]: Read.Row):
  | ReadonlyArray<CheckpointStore.StoredEvent>
  | undefined => {
  const last = count(/^(\d+)-0$/.exec(id)?.[1])
  const epoch = count(epochText)
  if (last === undefined || epoch === undefined || lengths === null || bodies === null) return undefined
  const sizes = lengths.split(",").map(count)
  const events: Array<CheckpointStore.StoredEvent> = []
  let at = 0
  for (const [i, size] of sizes.entries()) {
    if (size === undefined) return undefined
    const ends = i === sizes.length - 1
    events.push({ seq: last - sizes.length + i + 1, epoch, body: bodies.slice(at, at + size), ends })
    at += size
  }
  return at === bodies.length ? events : undefined
}
