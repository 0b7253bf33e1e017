/**
 * The command line of the demo.
 */
import { type Agent, MemoryStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type { Path } from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as WebCrypto from "effect/crypto/WebCrypto"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { fileURLToPath } from "node:url"
import type { repairer } from "./Agent.ts"
import * as Demo from "./Demo.ts"
import * as Handlers from "./Handlers.ts"
import * as OfflineModel from "./model/OfflineModel.ts"
import type { FileError } from "./ToolErrors.ts"
import { View } from "./View.ts"
import { Workspace } from "./Workspace.ts"

/** The project that is bundled with the demo. */
export const bundled = fileURLToPath(new URL("../project", import.meta.url))

/** The project's tests do not pass, or the Run did not complete. Everything was said, so it is not reported again. */
export class NotRepaired extends Schema.TaggedError<NotRepaired>()("NotRepaired", {}) {
  override readonly [Runtime.errorExitCode] = 1
  override readonly [Runtime.errorReported] = false
}

type Platform = FileSystem | Path | ChildProcessSpawner
type Services = Agent.Services<typeof repairer> | Workspace

/** Everything that a Run needs, for a copy of the given project. */
export const services = (project: string): Layer.Layer<Services, PlatformError, Platform> =>
  Layer.mergeAll(Handlers.layer, OfflineModel.layer, MemoryStore.layer).pipe(
    Layer.provideMerge(Workspace.copyOf(project))
  )

const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print every committed event and every delta as one JSON object a line, as it happens"),
  Flag.withDefault(false)
)

/** Runs the demo; fails if the project is not repaired. */
export const run: Effect.Effect<void, PlatformError | FileError | NotRepaired, Demo.Services> = Effect.gen(
  function* () {
    const crypto = yield* WebCrypto.WebCrypto
    const { repaired } = yield* Demo.run(`demo-${crypto.randomUUID()}`)
    if (!repaired) return yield* new NotRepaired()
  }
)

export const demo = Command.make("demo", { json }, ({ json }) =>
  Effect.provide(run, [services(bundled), View.layer({ json })])
).pipe(
  Command.withDescription(
    "An agent with four tools (list, read, edit, run the tests) repairs a temporary copy of a small Node project with a bug. " +
      "No key and no network are needed: the model's words are scripted, and the script reacts to what the tools " +
      "return. Files, tests, loop and events are real. Exits with 0 only if the project's tests pass afterwards."
  ),
  Command.withExamples([
    { command: "npm run demo", description: "Watch it" },
    { command: "npm run --silent demo -- --json", description: "The same, for programs" }
  ])
)
