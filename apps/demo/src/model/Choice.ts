/**
 * Says which model `--model` names, and where it is asked.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Unusable } from "../Complaint.ts"
import { quoted } from "../Stores.ts"

export const providers = ["anthropic", "openai", "google", "ollama", "openai-compatible"] as const
export type Provider = (typeof providers)[number]

/** A model of a provider. */
export interface Named {
  readonly _tag: "Named"
  readonly provider: Provider
  /** The provider's own name for it. */
  readonly name: string
  /** Where it is asked, if not where the environment or the provider says. Without a password. */
  readonly baseUrl?: string
  /** It has no tools of its own: they are told and called in text. */
  readonly textProtocol: boolean
}

/** `Offline` needs neither key nor network. */
export type Choice = { readonly _tag: "Offline" } | Named

export const offline: Choice = { _tag: "Offline" }

export interface Flags {
  readonly model: Option.Option<string>
  readonly baseUrl: Option.Option<string>
  readonly textProtocol: boolean
}

const forms = `it is ${providers.map((provider) => `${provider}:<name>`).join(" | ")}`

/** What the options ask for, or why that is none. */
export const parse = Effect.fnUntraced(function* (flags: Flags): Effect.fn.Return<Choice, Unusable> {
  const { textProtocol } = flags
  if (Option.isNone(flags.model)) {
    const lone = Option.isSome(flags.baseUrl) ? "--base-url" : textProtocol ? "--text-protocol" : undefined
    if (lone === undefined) return offline
    return yield* new Unusable({ message: `${lone} goes with --model: ${forms}.` })
  }
  const [, before = "", name = ""] = /^([^:]*):(.*)$/.exec(flags.model.value.trim()) ?? []
  const provider = providers.find((one) => one === before)
  if (provider === undefined || name.trim() === "") {
    return yield* new Unusable({ message: `--model ${JSON.stringify(flags.model.value)} names no model: ${forms}.` })
  }
  if (Option.isSome(flags.baseUrl)) {
    const baseUrl = yield* address(flags.baseUrl.value, "--base-url")
    return { _tag: "Named", provider, name, baseUrl, textProtocol }
  }
  return { _tag: "Named", provider, name, textProtocol }
})

/** The address of an API, from `source`. One with a password is refused, since addresses are shown and stored. */
export const address = (text: string, source: string): Effect.Effect<string, Unusable> => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    return Effect.fail(new Unusable({ message: `${source} is no address like https://host/v1.` }))
  }
  if (url.username !== "" || url.password !== "") {
    return Effect.fail(new Unusable({ message: `${source} holds a name or password: give it as a key instead.` }))
  }
  return Effect.succeed(text.replace(/\/+$/, ""))
}

/** The options that name it again, with a blank before each; none for the offline model. */
export const again = (choice: Choice): string => {
  if (choice._tag === "Offline") return ""
  const { baseUrl, name, provider, textProtocol } = choice
  const where = baseUrl === undefined ? "" : ` --base-url ${quoted(baseUrl)}`
  return ` --model ${quoted(`${provider}:${name}`)}${where}${textProtocol ? " --text-protocol" : ""}`
}
