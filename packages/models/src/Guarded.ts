/**
 * Looks at the answers of a provider before its package does: nothing is redirected, and a page is no stream.
 *
 * @since 0.1.0
 */
import { APICallError, type LanguageModelV4 } from "@ai-sdk/provider"
import { isObject } from "./Json.ts"
import * as Redirects from "./Redirects.ts"

type Fetch = typeof globalThis.fetch

const isFetch = (value: unknown): value is Fetch | undefined => value === undefined || typeof value === "function"

/** The model, asked through a fetch that refuses; the same one where its package keeps its fetch in another way. */
const through = (model: LanguageModelV4, guard: (fetch: Fetch | undefined) => Fetch): LanguageModelV4 => {
  const config: unknown = Reflect.get(model, "config") // where all of the AI SDK's packages keep it
  if (!isObject(config) || typeof config["provider"] !== "string") return model
  const { fetch } = config
  if (!isFetch(fetch)) return model
  const guarded: LanguageModelV4 = Object.create(model, { config: { value: { ...config, fetch: guard(fetch) } } })
  return guarded
}

/** For a whole reply. */
export const whole = (model: LanguageModelV4): LanguageModelV4 => through(model, Redirects.refusing)

/** For a stream; what is none fails with an APICallError that has its status, its type and its body. */
export const streamed = (model: LanguageModelV4): LanguageModelV4 =>
  through(model, (fetch) => streaming(Redirects.refusing(fetch)))

const streaming =
  (fetch: Fetch): Fetch =>
  async (input, init) => {
    const response = await fetch(input, init)
    const type = response.headers.get("content-type") ?? ""
    if (!response.ok || response.body === null || !/^\s*(?:text\/html|application\/json)\b/i.test(type)) return response
    const [first, second] = response.body.tee()
    // A stream may bear a wrong type.
    if (!(await isOther(second))) return new Response(first, response)
    throw new APICallError({
      message: "the answer is no stream",
      url: Redirects.addressOf(input),
      requestBodyValues: undefined,
      statusCode: response.status,
      responseHeaders: { "content-type": type },
      responseBody: await read(first),
      isRetryable: false
    })
  }

/** By its first character: a page or JSON, where an event stream begins with a field or a comment. */
const isOther = async (body: ReadableStream<Uint8Array>): Promise<boolean> => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      const begin = value?.trimStart() ?? ""
      if (done || begin !== "") return /^[<{[]/.test(begin)
    }
  } finally {
    // Only one side of it is given up, which ends when the other one does.
    reader.cancel().catch(() => {})
  }
}

/** UTF-16 units of an answer that are read, to say what it was. */
const maxRead = 100_000

const read = async (body: ReadableStream<Uint8Array>): Promise<string> => {
  let text = ""
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece
    if (text.length > maxRead) break
  }
  return text
}
