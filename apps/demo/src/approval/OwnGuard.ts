/**
 * Denies the agent's shell what reaches the demo itself: its program, and the store that holds the answers.
 *
 * `OwnCommand` says what is seen of that in a command, and what is not.
 */
import { Guard, Plugin } from "@waystone/core"
import { CommandRunner, Shell } from "@waystone/tools"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import { fileURLToPath } from "node:url"
import { Project } from "../Project.ts"
import type { Store } from "../Stores.ts"
import { commandOf } from "./Asked.ts"
import * as OwnCommand from "./OwnCommand.ts"

export const name = "own"

/** This program, wherever it is. */
const programs = [fileURLToPath(new URL("../main.ts", import.meta.url)), process.argv[1] ?? ""].filter(
  (file) => file !== ""
)

/** What is the demo's own where Runs are kept in this store. */
export const ownOf = (store: Store, paths: Path.Path): OwnCommand.Own => {
  switch (store._tag) {
    case "Memory":
      return { files: [], folders: [], programs, servers: [] }
    case "File":
      // The folder of a file that the user named holds other things, too.
      return { files: [store.file], folders: store.named ? [] : [paths.dirname(store.file)], programs, servers: [] }
    case "Redis":
      return { files: [], folders: [], programs, servers: ["redis-cli", "valkey-cli", ...address(store.url)] }
  }
}

const address = (url: Redacted.Redacted): ReadonlyArray<string> => {
  const text = Redacted.value(url)
  return URL.canParse(text) && new URL(text).host !== "" ? [new URL(text).host] : []
}

type Services = Path.Path | FileSystem.FileSystem | Project

export class OwnGuard extends Context.Service<OwnGuard, Plugin.Plugin>()("demo/OwnGuard") {
  static readonly layer = (store: Store): Layer.Layer<OwnGuard, never, Services> =>
    Layer.effect(
      OwnGuard,
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const { folder: cwd } = yield* Project
        const names = new Set(CommandRunner.defaultEnv)
        const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => names.has(name)))
        const own = ownOf(store, path)
        const judge = (command: string) => OwnCommand.objection({ cwd, env, fs, path }, own, command)
        return { [Plugin.PluginId]: { name, guards: [guard(judge)] } }
      })
    )
}

const guard = (judge: (command: string) => Effect.Effect<OwnCommand.Objection | undefined>) =>
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
      if (command === undefined) return Guard.deny("this command is not allowed: it cannot be read")
      return Effect.map(judge(command), verdict)
    }
  })

const verdict = (objection: OwnCommand.Objection | undefined): Guard.Verdict => {
  if (objection === undefined) return Guard.allow
  const { action, why } = objection
  return action === "deny"
    ? Guard.deny(`this command is not allowed: ${why}`)
    : Guard.ask(`this command may reach the demo itself: ${why}`)
}
