/**
 * Runs the demo in this process, on a project of the test's own, and keeps what it shows.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import { offline } from "../src/model/Choice.ts"
import { Pace } from "../src/model/OfflineModel.ts"
import { bundled, Project } from "../src/Project.ts"
import type { Scenario } from "../src/scenario/Scenario.ts"
import * as Layers from "../src/Layers.ts"
import type { Shown } from "../src/Shown.ts"
import { start } from "../src/Drive.ts"
import { View } from "../src/View.ts"

/** A scoped copy of the bundled project with another source. */
export const project = Effect.fnUntraced(function* (change: (source: string) => string = (source) => source) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "waystone-demo-test-" })
  yield* fs.copy(bundled, folder, { overwrite: true })
  const source = paths.join(folder, "src/cart.js")
  yield* fs.writeFileString(source, change(yield* fs.readFileString(source)))
  return folder
})

/** A scoped folder with these files; an ES module package unless it says otherwise. */
export const written = Effect.fnUntraced(function* (files: Readonly<Record<string, string>>, name = "project") {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = paths.join(yield* fs.makeTempDirectoryScoped({ prefix: "waystone-demo-test-" }), name)
  const manifest = { "package.json": '{ "type": "module", "scripts": { "test": "node --test" } }' }
  for (const [path, text] of Object.entries({ ...manifest, ...files })) {
    yield* fs.makeDirectory(paths.dirname(paths.join(folder, path)), { recursive: true })
    yield* fs.writeFileString(paths.join(folder, path), text)
  }
  return folder
})

/** What a Run in place on `folder` needs, kept in memory. */
export const services = (folder: string, runId: string, scenario?: Scenario) =>
  Layers.layer({
    project: Project.layer({ _tag: "InPlace", folder }, runId),
    store: { _tag: "Memory" },
    model: offline,
    scenario
  })

interface Options {
  /** Takes the place of some of the services. */
  readonly override?: Layer.Layer<never>
  readonly scenario?: Scenario
  readonly task?: string
}

/** Runs the demo in place on `folder`. */
export const demo = Effect.fnUntraced(function* (folder: string, { override = Layer.empty, ...about }: Options = {}) {
  const shown: Array<Shown> = []
  const view = Layer.succeed(View, { show: (one) => Effect.sync(() => void shown.push(one)) })
  const runId = `demo-${crypto.randomUUID()}`
  const real = services(folder, runId, about.scenario)
  const all = Layer.mergeAll(real, view, override).pipe(Layer.provide(Layer.succeed(Pace, 0)))
  const exit = yield* Effect.exit(Effect.provide(start({ runId, ...about }), all))
  let code: number | undefined
  Runtime.defaultTeardown(exit, (given) => {
    code = given
  })
  const verified = shown.find((one) => one._tag === "Verified")
  const proof = shown.find((one) => one._tag === "Proof")
  const events = shown.flatMap((one) => (one._tag === "Committed" ? [one.event] : []))
  return { code, verified, proof, shown, events }
})

/** Runs a test on the real file system, and removes what it made. */
export const real = <A, E>(effect: Effect.Effect<A, E, NodeServices.NodeServices | Scope.Scope>) =>
  Effect.scoped(effect).pipe(Effect.provide(NodeServices.layer))
