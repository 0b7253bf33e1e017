import { Guard, Plugin } from "@waystone/core"
import { Context, Layer } from "effect"

type Counts = Readonly<Record<string, number>>

/** The endings of calls that did, or may have done, something: a refused or superseded call does not count. */
const Happened: ReadonlySet<string> = new Set(["executed", "reconciled", "answered", "unknown"])

const callCap = (max: Counts) =>
  Guard.make({
    name: "call-cap",
    stage: "permissions",
    initial: {} as Counts,
    fold: (done, event) =>
      event._tag === "ToolCallCompleted" && Happened.has(event.ending)
        ? { ...done, [event.name]: (done[event.name] ?? 0) + 1 }
        : done,
    check: ({ state, memory, proposal }) => {
      if (proposal._tag !== "Call") return Guard.allow
      const { callId, name } = proposal.call
      // All calls of a reply are checked before the first one starts: the open ones ahead of this one count too.
      const index = state.calls.findIndex((call) => call.callId === callId)
      const ahead = state.calls.filter((call, i) => i < index && call.name === name && call.settled === undefined)
      const count = (memory[name] ?? 0) + ahead.length
      return count < (max[name] ?? Infinity) ? Guard.allow : Guard.ask(`${name}: ${count} calls in this Run already`)
    }
  })

/** Lets a Run call each named tool so many times; every further call waits for a person. */
export class CallCap extends Context.Service<CallCap, Plugin.Plugin>()("example/CallCap") {
  static readonly layer = (max: Counts) =>
    Layer.succeed(CallCap, { [Plugin.PluginId]: { name: "call-cap", guards: [callCap(max)] } })
}
