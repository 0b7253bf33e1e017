/**
 * Knows whether this process was started by the agent: then it is the agent that speaks, and it may not answer for a person.
 *
 * Two signs, and either is enough: a variable that every command of the agent gets, here or in a process above, and a
 * process above that drives the Run. (A command can hide from both by leaving its parents and its environment; then it is
 * killed when the agent's command ends, and before that a person has approved it.)
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"

/** Every command of the agent has it in its environment. */
export const mark = "WAYSTONE_AGENT"

/** As long as a chain of processes may be. */
const maxDepth = 64

/** True if the process that drives the Run (`owner`, as ProcessOwner names it), or a command of the agent, is above this one. */
export const isInside = Effect.fnUntraced(function* (owner: string | undefined) {
  if (process.env[mark] !== undefined) return true
  const fs = yield* FileSystem.FileSystem
  const [, , , driver, since] = owner?.split(" ") ?? []
  let pid = String(process.ppid)
  for (let depth = 0; depth < maxDepth && pid !== "0"; depth++) {
    const environment = yield* Effect.orElseSucceed(fs.readFileString(`/proc/${pid}/environ`), () => "")
    if (environment.split("\0").some((entry) => entry.startsWith(`${mark}=`))) return true
    const stat = yield* Effect.orElseSucceed(fs.readFileString(`/proc/${pid}/stat`), () => "")
    // After the name in parentheses, which may hold anything: state, parent, … and the start time.
    const [, parent, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    if (pid === driver && rest[17] === since) return true
    if (parent === undefined || stat === "") return false
    pid = parent
  }
  return false
})
