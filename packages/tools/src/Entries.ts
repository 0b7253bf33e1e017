/**
 * Reads the names of the files and folders in a folder; links and everything else are left out.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import { opendir } from "node:fs/promises"
import { attempt, type Fault } from "./Fault.ts"

/** At most `max` names, in no order; those of folders end with a slash. */
export const read = (folder: string, max: number): Effect.Effect<ReadonlyArray<string>, Fault> =>
  attempt(async () => {
    const names: Array<string> = []
    for await (const entry of await opendir(folder)) {
      if (names.length >= max) break
      if (entry.isDirectory()) names.push(`${entry.name}/`)
      else if (entry.isFile()) names.push(entry.name)
    }
    return names
  })
