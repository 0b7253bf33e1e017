/**
 * Words what is shown, for programs: one JSON object a line.
 */
import type { Shown } from "./Shown.ts"

/** One line. Committed events carry their `seq`, which has no gaps; deltas have none. */
export const line = (shown: Shown): string => `${JSON.stringify(shown)}\n`
