/**
 * Refuses what no reader would take: stored once, it would make the Run unreadable for ever.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { EncodeFailed } from "./RunError.ts"
import { check, type Draft } from "./RunEvent.ts"

/** Fails with the path of the first field that cannot be stored. */
export const storable = (draft: Draft): Effect.Effect<void, EncodeFailed> => {
  const path = check(draft)
  if (path === undefined) return Effect.void
  return Effect.fail(new EncodeFailed({ what: draft._tag, detail: `${path} is missing or of the wrong type` }))
}
