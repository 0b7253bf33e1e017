/**
 * Keeps secrets out of journal, model and traces, and marks what came from outside as data.
 *
 * It changes what tools give back, each try of it, before anybody else sees it; on request also what the model says and
 * what it hands to tools. It never decides, and it is no proof against a tool that hides a secret on purpose: see
 * `Secrets` for what is not found.
 *
 * Invariants
 *   SA1  What it cannot look at is withheld, never passed on.
 *   SA2  It changes nothing on replay: what it made stands in the journal.
 *
 * @since 0.1.0
 */
import { type Interceptor, Plugin } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SanitizedReply from "./SanitizedReply.ts"
import * as Scrub from "./Scrub.ts"
import type { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"
import * as Untrusted from "./Untrusted.ts"

const name = "sanitizer"

/** Fields whose whole value is a secret, whatever it looks like. */
export const defaultFields: ReadonlyArray<string> = (
  "password passwd passphrase secret apiKey accessKey secretKey privateKey accountKey clientSecret accessToken " +
  "refreshToken authToken idToken authorization cookie setCookie connectionString"
).split(" ")

/** All of them may be left out. */
export const Options = Schema.Struct({
  /** Looks for the known shapes of `Secrets`. Default true: they are precise, and nobody needs a key in a prompt. */
  shapes: Settings.withDefault(Schema.Boolean, true),
  /**
   * Names of fields of results whose values are hidden; case, `-` and `_` do not matter. Default `defaultFields`: names
   * that have one meaning. `token` is not among them: it is also a word of a text.
   */
  fields: Settings.withDefault(Schema.Array(Schema.String.check(Schema.isPattern(/[^\s_-]/))), [...defaultFields]),
  /** Regular expressions (RE2, so none can hang) of up to 1000 characters; what matches is hidden. Default none. */
  patterns: Settings.withDefault(Schema.Array(Schema.String), []),
  /**
   * Secrets that the program knows, of at least 8 characters: they are found in any text, however they look. Default
   * none. A shorter one would also hide what only looks like it.
   */
  values: Settings.withDefault(Schema.Array(Schema.Redacted(Schema.String.check(Schema.isMinLength(8)))), []),
  /**
   * Text and reasoning of the model, and results of tools that its provider ran, too. Default false: a model that gets no secret has none, and with it readers get
   * each text in one piece when it is whole, since a secret may be split over deltas. Reasoning that changes loses its
   * signature.
   */
  replies: Settings.withDefault(Schema.Boolean, false),
  /**
   * Arguments of calls, too. Default false: the tool then gets them without the secret, because what does not stand in
   * the journal cannot be run again.
   */
  arguments: Settings.withDefault(Schema.Boolean, false),
  /**
   * Whose results are delimited as data: `open-world` (default: tools annotated with `Tool.OpenWorld`, and those in
   * `untrusted`), `all`, `none`. Not all by default: it costs about 60 tokens a result, and marks on everything say nothing.
   */
  delimit: Settings.withDefault(Schema.Literals(["open-world", "all", "none"]), "open-world"),
  /** Names of further tools whose results come from outside. Default none. */
  untrusted: Settings.withDefault(Schema.Array(Schema.NonEmptyString), [])
})
export type Options = typeof Options.Encoded
type Decoded = typeof Options.Type

const interceptor = (settings: Decoded, scrub: Scrub.Walking): Interceptor.Interceptor => ({
  name,
  stage: "sanitize",
  tool: (info, next) =>
    Effect.flatMap(next, (output) => {
      const clean = Effect.sync(() => scrubbed(scrub, output))
      return (isUntrusted(settings, info) ? Effect.flatMap(clean, (it) => Untrusted.delimit(info, it)) : clean).pipe(
        Effect.catchDefect(() => Effect.succeed(withheld(output)))
      )
    }),
  progress: (_, value) => scrub.json(value),
  ...(settings.replies || settings.arguments
    ? {
        turn: (_, next) => Effect.map(next, (reply) => SanitizedReply.sanitize(scrub, settings, reply)),
        holdsDeltas: settings.replies
      }
    : undefined)
})

const isUntrusted = ({ delimit, untrusted }: Decoded, { name, openWorld }: Interceptor.ToolInfo): boolean =>
  delimit === "all" || (delimit === "open-world" && (openWorld || untrusted.includes(name)))

/** All that a tool gave back. Its name and its errors' names are the author's. */
const scrubbed = (scrub: Scrub.Walking, output: Interceptor.ToolOutput): Interceptor.ToolOutput => {
  const { fatal, modelOutput, result } = output
  return {
    ...output,
    result: json(scrub, result),
    ...(modelOutput === undefined ? undefined : { modelOutput: modelOutput.map((part) => json(scrub, part)) }),
    ...(fatal === undefined ? undefined : { fatal: json(scrub, fatal) })
  }
}

/** What JSON has beside text, arrays and objects. The walk gets to everything, so nothing else is left to be looked at. */
const json = ({ walk }: Scrub.Walking, value: Schema.Json): Schema.Json => walk(value, plainly)

const plainly = (value: unknown): number | boolean | null => {
  if (value === null || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)))
    return value
  throw new TypeError("no JSON")
}

const withheld = ({ isFailure, kind }: Interceptor.ToolOutput): Interceptor.ToolOutput => ({
  isFailure,
  result: "The result is withheld: it could not be looked at for secrets.",
  ...(kind === undefined || kind === "fatal" ? undefined : { kind })
})

/** The plugin, and what it does to texts and to JSON: for what a program shows beside its Runs, such as files. */
export interface Service extends Plugin.Plugin, Scrub.Scrub {}

/** Switches it on; an agent that `requires` it does not run without. */
export class Sanitizer extends Context.Service<Sanitizer, Service>()("@waystone/policy/Sanitizer") {
  /** Fails where an option is out of range. */
  static readonly layer = (options: Options = {}): Layer.Layer<Sanitizer, OptionsInvalid> =>
    Layer.effect(
      Sanitizer,
      Effect.gen(function* () {
        const settings = yield* Settings.decode("Sanitizer", Options, options)
        const scrub = yield* Scrub.make(settings)
        const { json, text } = scrub
        return { json, text, [Plugin.PluginId]: { name, interceptors: [interceptor(settings, scrub)] } }
      })
    )
}

/** Switches it on. */
export const { layer } = Sanitizer
