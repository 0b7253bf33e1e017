/**
 * The options that every verb has, and what they mean.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { Unusable } from "../Complaint.ts"
import * as Choice from "../model/Choice.ts"
import { providers } from "../model/Providers.ts"
import * as RunTests from "../RunTests.ts"
import * as Stores from "../Stores.ts"

export const flags = {
  store: Flag.Redacted("store").pipe(
    Flag.withMetavar("file | redis://…"),
    Flag.withDescription(
      "Where Runs are kept: a SQLite file (by default one in your data folder), Redis (rediss:// for TLS), or memory"
    ),
    Flag.optional
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON object a line; of a Run every committed event and every delta, as it happens"),
    Flag.withDefault(false)
  )
}

/** The demo without its verbs, by which they read the options before or after their name. */
const demo = Command.make("demo").pipe(Command.withSharedFlags(flags))

/** The options of a verb about Runs that other processes have made. */
export const kept = Effect.gen(function* () {
  const { json, store: asked } = yield* demo
  const store = yield* Stores.parse(asked)
  if (store._tag === "Memory") {
    return yield* new Unusable({
      message: "--store memory holds no run of another process: there is nothing to look for."
    })
  }
  return { json, store }
})

export const run = Argument.String("run").pipe(Argument.withDescription("The id of a Run, as `runs` lists it"))

export const dir = Flag.String("dir").pipe(
  Flag.withMetavar("folder"),
  Flag.withDescription("Work on this folder instead, in place"),
  Flag.optional
)

const known = Choice.providers.map((provider) => ({ provider, ...providers[provider] }))
const names = known
  .map(({ address, api, provider }) => {
    const notes = [...(api === undefined ? [] : [api]), ...(address === undefined ? ["with --base-url"] : [])]
    return `${provider}:<name>${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`
  })
  .join(", ")
const keys = known
  .map(({ keys, needsKey }) => `${keys.join(" or ")}${needsKey ? "" : " (if your server wants one)"}`)
  .join(", ")
const addresses = known.flatMap(({ addressIn }) => addressIn ?? []).join(" and ")

/** Which model answers. */
export const model = {
  model: Flag.String("model").pipe(
    Flag.withMetavar("provider:name"),
    Flag.withDescription(
      `Ask a real model: ${names}. Keys are read from ${keys}; addresses also from ${addresses}. By default a scripted model answers, without network`
    ),
    Flag.optional
  ),
  baseUrl: Flag.String("base-url").pipe(
    Flag.withMetavar("https://host/v1"),
    Flag.withDescription("Where that model is asked"),
    Flag.optional
  ),
  textProtocol: Flag.Boolean("text-protocol").pipe(
    Flag.withDescription("That model has no tools of its own: tell it of them, and let it call them, in text"),
    Flag.withDefault(false)
  )
}

export const policy = Flag.String("policy").pipe(
  Flag.withMetavar("file"),
  Flag.withDescription(
    "A JSON file with the rules of what the agent may do (README of @waystone/policy); by default it may read and change the project, run its tests and look at its git history"
  ),
  Flag.optional
)

export const newRules = Flag.Boolean("new-rules").pipe(
  Flag.withDescription("Go on under other rules than the Run was started under: those of --policy, or the demo's own"),
  Flag.withDefault(false)
)

export const testLimit = Flag.Int("test-limit").pipe(
  Flag.withMetavar("seconds"),
  Flag.withDescription("How long a run of the project's tests may take before it is killed"),
  Flag.filter(
    (n) => n >= 1 && n <= Duration.toSeconds(RunTests.maxLimit),
    (n) => `the tests may take 1 to ${Duration.toSeconds(RunTests.maxLimit)} seconds, not ${n}`
  ),
  Flag.withDefault(Duration.toSeconds(RunTests.Limit.defaultValue()))
)

export const testNetwork = Flag.Boolean("test-network").pipe(
  Flag.withDescription(
    "Let the project's tests reach the network. Where bubblewrap (Linux) can keep them from it they reach none by default"
  ),
  Flag.withDefault(false)
)

/** A file as the user names it; npm runs scripts in the package's folder and says where the user was. */
export const file = Effect.fnUntraced(function* (name: Option.Option<string>) {
  const paths = yield* Path.Path
  return Option.map(name, (name) => paths.resolve(process.env["INIT_CWD"] ?? ".", name))
})

/** The real path of a folder; npm runs scripts in the package's folder and says where the user was. */
export const located = Effect.fnUntraced(function* (dir: Option.Option<string>) {
  if (Option.isNone(dir)) return Option.none<string>()
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = paths.resolve(process.env["INIT_CWD"] ?? ".", dir.value)
  const missing = new Unusable({ message: `There is no folder ${dir.value}.` })
  const info = yield* Effect.mapError(fs.stat(folder), () => missing)
  if (info.type !== "Directory") return yield* new Unusable({ message: `${dir.value} is not a folder.` })
  return Option.some(yield* Effect.mapError(fs.realPath(folder), () => missing))
})
