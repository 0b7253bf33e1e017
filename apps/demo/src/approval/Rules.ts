/**
 * Marks a Run with the rules that it was started under, so that it does not go on under others unless somebody says so.
 *
 * The mark is the name of a plugin whose list of guards is empty: core journals it, and refuses a resume without it.
 */
import { Plugin, Run } from "@waystone/core"
import { Permissions } from "@waystone/policy"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import { Unusable } from "../Complaint.ts"
import * as DefaultPolicy from "../DefaultPolicy.ts"
import { quoted } from "../Stores.ts"

const prefix = "rules-"

interface Service extends Plugin.Plugin {
  readonly name: string
  /** How a command names them; empty for the demo's own. */
  readonly flag: string
}

export class Rules extends Context.Service<Rules, Service>()("demo/Rules") {
  /** The mark of the Permissions that are provided. */
  static readonly layer = (file: string | undefined): Layer.Layer<Rules, never, Permissions.Permissions> =>
    Layer.effect(
      Rules,
      Permissions.Permissions.use(({ policy }) => {
        const name = markOf(policy)
        const flag = file === undefined ? "" : ` --policy ${quoted(file)}`
        return Effect.succeed({ name, flag, [Plugin.PluginId]: { name, guards: [] } })
      })
    )
}

/** Decoded by the same schema, so with keys in the same order wherever they stood in the file. */
const encode = Schema.encodeSync(Schema.fromJsonString(Permissions.Policy))

const markOf = (policy: Permissions.Policy): string =>
  prefix + createHash("sha256").update(encode(policy)).digest("hex").slice(0, 12)

/** What a `resume` of a Run has to say of its rules: only their digest is kept, not their file. */
export const reminder = (marks: ReadonlyArray<string>): string =>
  marks.every((mark) => mark === markOf(DefaultPolicy.policy)) ? "" : " --policy <the file of its rules>"

/** The marks that a Run bears. */
export const ofRun = (runId: string) =>
  Effect.map(
    Stream.runFold(
      Run.events(runId, { follow: false }),
      (): ReadonlyArray<string> => [],
      (plugins, { event }) =>
        event._tag === "RunStarted" || event._tag === "AttemptStarted" ? (event.plugins ?? plugins) : plugins
    ),
    (plugins) => plugins.filter((plugin) => plugin.startsWith(prefix))
  )

/** The marks of rules that the Run was under and that are no longer asked for; fails unless that is agreed to. */
export const left = Effect.fnUntraced(function* (runId: string, known: ReadonlyArray<string>, agreed: boolean) {
  const { flag, name } = yield* Rules
  const others = known.filter((one) => one !== name)
  if (others.length === 0 || agreed) return others
  const now = flag === "" ? "the demo's own" : `those of${flag.replace(" --policy", "")}`
  return yield* new Unusable({
    message: `run ${runId} was started under other rules than ${now}. Name their file by --policy, or agree to these by --new-rules. Nothing was done.`
  })
})
