/**
 * Denies the agent's shell what reaches the demo itself: its program, and the store that holds the answers.
 *
 * A command is refused if its words name them in any quoting. That cannot find every way to them; so every other command is
 * asked about, and `Inside` refuses the answers of whatever the agent has started.
 */
import { Guard, Plugin } from "@waystone/core"
import { Shell } from "@waystone/tools"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import { fileURLToPath } from "node:url"
import type { Store } from "../Stores.ts"
import { commandOf } from "./Asked.ts"
import { mark } from "./Inside.ts"

export const name = "own"

/** This program and its package, wherever they are. */
const program = [fileURLToPath(new URL("../main.ts", import.meta.url)), process.argv[1] ?? ""]

/** Verbs that answer, however the program is called. */
const answers = /\b(npm|pnpm|npx|yarn)\b.*\bdemo\b|\bwaystone\b|\bdemo\b.*\b(approve|deny|answer|approvals)\b/s

/** Why a command is refused; undefined if it is not. */
export const objection = (command: string, places: ReadonlyArray<string>): string | undefined => {
  // What the shell takes away before it looks for a program or a file.
  const plain = command.replaceAll(/[\\'"`]|\$\{?@\}?/g, "").replaceAll(/\/+/g, "/")
  if (plain.includes(mark)) return `it touches ${mark}, by which the demo knows the agent's commands`
  if (answers.test(plain) || program.some((path) => path !== "" && plain.includes(path))) {
    return "it starts the demo itself: what waits for a person is answered by a person"
  }
  return places.some((place) => place !== "" && plain.includes(place))
    ? "it reaches the store of the demo, which holds what persons have answered"
    : undefined
}

export class OwnGuard extends Context.Service<OwnGuard, Plugin.Plugin>()("demo/OwnGuard") {
  static readonly layer = (store: Store): Layer.Layer<OwnGuard, never, Path.Path> =>
    Layer.effect(
      OwnGuard,
      Effect.map(Path.Path, (paths) => {
        const places = store._tag === "File" ? [store.file, paths.basename(store.file)] : ["redis-cli", "valkey-cli"]
        return { [Plugin.PluginId]: { name, guards: [guard(places)] } }
      })
    )
}

const guard = (places: ReadonlyArray<string>) =>
  Guard.make({
    name,
    stage: "limits",
    initial: undefined,
    fold: () => undefined,
    check: ({ proposal }) => {
      if (proposal._tag !== "Call" || proposal.call.name !== Shell.tool.name) return Guard.allow
      const command = Option.getOrUndefined(
        commandOf({ ...proposal.call, id: proposal.call.callId, arguments: proposal.arguments })
      )
      const why = command === undefined ? "it cannot be read" : objection(command, places)
      return why === undefined ? Guard.allow : Guard.deny(`this command is not allowed: ${why}`)
    }
  })
