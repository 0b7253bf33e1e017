/**
 * Rescues whole replies that a provider package refuses to read because of a key in them.
 *
 * The packages' JSON reader throws at `__proto__`, and at a `constructor` that holds a `prototype`, so one odd key in the
 * arguments of one call costs the paid reply. The body is in the error: it is read again with these keys renamed, without
 * another request, and the keys get their names back where the arguments are read.
 *
 * @since 0.1.0
 */
import { APICallError, type LanguageModelV4 } from "@ai-sdk/provider"
import { isObject } from "./Json.ts"

const forbidden = ["__proto__", "constructor"] as const
const mark = "waystone-key:"

/** The model as it would read that body with the keys renamed; undefined if they are not what is wrong with it. */
export const rereading = (model: LanguageModelV4, error: unknown): LanguageModelV4 | undefined => {
  if (!APICallError.isInstance(error) || error.responseBody === undefined || (error.statusCode ?? 0) >= 400) return
  const body = renamed(error.responseBody)
  const config: unknown = Reflect.get(model, "config") // where all of these packages keep their `fetch`
  if (body === undefined || !isObject(config)) return
  const response = { status: error.statusCode ?? 200, headers: { "content-type": "application/json" } }
  const fetch = () => Promise.resolve(new Response(body, response))
  const again: LanguageModelV4 = Object.create(model, { config: { value: { ...config, fetch } } })
  return again
}

/** The JSON text with its keys renamed, if there is any to rename. */
const renamed = (text: string): string | undefined => {
  let found = false
  const rename = (_: string, value: unknown): unknown => {
    if (!isObject(value) || !forbidden.some((key) => Object.hasOwn(value, key))) return value
    found = true
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [forbidden.some((name) => name === key) ? mark + key : key, one])
    )
  }
  try {
    const body = JSON.stringify(JSON.parse(text), rename)
    return found ? body : undefined
  } catch {
    return undefined
  }
}

/** The arguments as the model wrote them. */
export const restored = (text: string): string =>
  text.includes(mark) ? forbidden.reduce((all, key) => all.replaceAll(`"${mark}${key}"`, `"${key}"`), text) : text
