/**
 * Makes the model that was chosen. Its key goes to its server and nowhere else: what the server answers is read without it.
 */
import { AiSdk, Redirects, TextProtocol } from "@waystone/models"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as LanguageModel from "effect/ai/LanguageModel"
import { Unusable } from "../Complaint.ts"
import * as Choice from "./Choice.ts"
import { discreet } from "./Discreet.ts"
import * as OfflineModel from "./OfflineModel.ts"
import { providers } from "./Providers.ts"

/** No variable holds a key. */
export class KeyMissing extends Schema.TaggedError<KeyMissing>()("KeyMissing", { message: Schema.String }) {}

export type ModelUnusable = Unusable | KeyMissing

/** How to name the model of this process again. */
export const Chosen: Context.Reference<Choice.Choice> = Context.Reference("demo/Chosen", {
  defaultValue: (): Choice.Choice => Choice.offline
})

/** The model, what is known of it, and how to name it again. `disturb` is for the offline model. */
export const layer = (
  choice: Choice.Choice,
  disturb?: OfflineModel.Disturb
): Layer.Layer<LanguageModel.LanguageModel, ModelUnusable> =>
  Layer.merge(
    choice._tag === "Offline" ? OfflineModel.layer(disturb) : Layer.unwrap(asked(choice)),
    Layer.succeed(Chosen, choice)
  )

const asked = Effect.fnUntraced(function* (choice: Choice.Named) {
  const { keys, load, needsKey, settings } = providers[choice.provider]
  const found = yield* Effect.forEach(keys, set)
  const key = Option.firstSomeOf(found)
  if (needsKey && Option.isNone(key)) {
    return yield* new KeyMissing({
      message: `set ${keys.join(" or ")} to your key: ${choice.provider}:${choice.name} answers nobody without one. Nothing was sent.`
    })
  }
  const baseURL = choice.baseUrl ?? (yield* addressOf(choice.provider))
  const apiKey = Option.getOrUndefined(Option.map(key, (value) => Redacted.value(value).trim()))
  if (apiKey !== undefined && !/^[!-~]+$/.test(apiKey)) {
    // An error about a header that cannot be sent would show it.
    return yield* new KeyMissing({ message: `set ${keys.join(" or ")} to your key: what it holds is none.` })
  }
  const wanted = { name: choice.name, baseURL, apiKey, fetch: Redirects.refusing(discreet(apiKey)) }
  const model = yield* Effect.promise(() => load(wanted))
  const options = { info: { server: new URL(baseURL).host }, ...(settings === undefined ? {} : { settings }) }
  const made = AiSdk.layer(model, options)
  return choice.textProtocol ? TextProtocol.layer(made) : made
})

/** A variable that holds more than blanks. */
const set = (name: string): Effect.Effect<Option.Option<Redacted.Redacted>> =>
  Effect.map(
    Effect.option(Config.Redacted(name)),
    Option.filter((value) => Redacted.value(value).trim() !== "")
  )

/** A shorter one would also hide what only looks like it. */
const minKey = 8

/** Every key that the environment holds, for any provider. */
export const keys: Effect.Effect<ReadonlyArray<Redacted.Redacted>> = Effect.map(
  Effect.forEach([...new Set(Object.values(providers).flatMap(({ keys }) => keys))], set),
  (found) =>
    found.flatMap((key) => {
      const text = Option.match(key, { onNone: () => "", onSome: (value) => Redacted.value(value).trim() })
      return text.length < minKey ? [] : [Redacted.make(text)]
    })
)

/** Where the environment or the provider says. */
const addressOf = Effect.fnUntraced(function* (provider: Choice.Provider) {
  const { address, addressIn } = providers[provider]
  const given = addressIn === undefined ? Option.none() : yield* set(addressIn)
  if (addressIn !== undefined && Option.isSome(given)) {
    return yield* Choice.address(Redacted.value(given.value), addressIn)
  }
  if (address !== undefined) return address
  return yield* new Unusable({ message: `--model ${provider}:<name> needs --base-url http://host:port/v1.` })
})
