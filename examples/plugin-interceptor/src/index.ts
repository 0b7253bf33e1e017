import { type Interceptor, Plugin } from "@waystone/core"
import { Context, Effect, Layer } from "effect"

const Email = /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g

/** Changes every string in a JSON value, keys too. */
const mapStrings = <A>(value: A, f: (text: string) => string): A => {
  const go = (part: unknown): unknown => {
    if (typeof part === "string") return f(part)
    if (Array.isArray(part)) return part.map(go)
    if (typeof part !== "object" || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [f(key), go(item)]))
  }
  return go(value) as A
}

const redactEmails = (replace: (address: string) => string): Interceptor.Interceptor => ({
  name: "redact-emails",
  stage: "sanitize",
  tool: (_info, next) => Effect.map(next, (output) => mapStrings(output, (text) => text.replace(Email, replace)))
})

/** Takes e-mail addresses out of what tools give back, before the journal and the model see them. */
export class RedactEmails extends Context.Service<RedactEmails, Plugin.Plugin>()("example/RedactEmails") {
  static readonly layer = (replace: (address: string) => string = () => "[e-mail]") =>
    Layer.succeed(RedactEmails, { [Plugin.PluginId]: { name: "redact-emails", interceptors: [redactEmails(replace)] } })
}
