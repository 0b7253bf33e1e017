/**
 * Where the command is: in its sources, and in the bundle that most tests start.
 */
import { join } from "node:path"

export const main = join(import.meta.dirname, "../src/main.ts")
/** The command starts some hundred times, so it is bundled (scripts/bundle.setup.ts); beside `src`, since it looks for `../project`. */
export const bundle = join(import.meta.dirname, "../.bundle")
