/**
 * Says how many entries sets of the index have.
 *
 * KEYS  sets of the index, then its mark.
 * Gives the size of each; or nil if one of them was lost, or the index was never built whole.
 *
 * Guarantee: reads only.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import { marked } from "./marked.ts"

export interface Args {
  readonly sets: ReadonlyArray<string>
  readonly mark: string
}

export const sizes = Redis.script(({ mark, sets }: Args) => [...sets, mark], {
  numberOfKeys: ({ sets }: Args) => sets.length + 1,
  lua: `${marked}
if not isWhole() then return nil end
local found = {}
for i = 1, #KEYS - 1 do found[i] = sizeOf(KEYS[i]) end
return found`
}).withReturnType<ReadonlyArray<number> | null>()
