/**
 * Turns whatever a provider package throws, or reports within a stream, into an AiError that says whether and when to
 * come back.
 *
 * @since 0.1.0
 */
import { AISDKError, APICallError } from "@ai-sdk/provider"
import { ModelRetry } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as AiError from "effect/ai/AiError"
import type * as Response from "effect/ai/Response"
import { isObject, metadata, own } from "./Json.ts"

export type Method = "generateText" | "streamText"

/** Of the headers of an answer only these are kept: the others say nothing about a failure, and may hold cookies. */
const telling = /^(?:retry-after(?:-ms)?|(?:x-|anthropic-)?ratelimit-.*|(?:.*-)?request-id)$/

/** The longest body of an answer that goes into an error, in UTF-16 units. */
const maxBody = 2000

export const make = (method: Method, reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "AiSdk", method, reason })

/** A stream that ended too early; another try may get it whole. */
export const cut = (): AiError.AiErrorReason => network("the stream ended before the reply did")

/** The model declined to answer; core counts the usage that stands in the metadata. */
export const refusal = (text: string, usage?: Response.FinishPartEncoded["usage"]): AiError.AiErrorReason =>
  new AiError.ContentPolicyError({
    description: text === "" ? "the model refused to answer" : text.slice(0, maxBody),
    ...metadata(usage === undefined ? undefined : { [own]: { usage } })
  })

/** The reason behind anything that was thrown; `now` in ms since 1970, for a Retry-After that is a date. */
export const reasonOf = (error: unknown, now: number): AiError.AiErrorReason => {
  if (AiError.isAiError(error)) return error.reason
  if (APICallError.isInstance(error)) return ofCall(error, now)
  const reported = streamError(error)
  if (AISDKError.isInstance(error)) return named(error)
  if (reported !== undefined) return ofReport(reported)
  const description = messageOf(error)
  if (unreadEvent.test(description)) return new AiError.InvalidOutputError({ description })
  return isNetwork(error) ? network(description) : new AiError.UnknownError({ description })
}

/** What the package for Anthropic throws, as a plain Error, at a stream whose first event is no JSON. */
const unreadEvent = /^Expected a normalized \w+ stream error$/

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : typeof error === "string" ? error : "the provider gave no reason"

const network = (description: string, url = ""): AiError.AiErrorReason =>
  new AiError.NetworkError({ reason: "TransportError", method: "POST", url: withoutQuery(url), description })

/** A query may hold a key. */
const withoutQuery = (url: string): string => url.replace(/\?.*/s, "")

/** A whole reply that broke off in its body: core counts what it may have cost, as of a stream that is cut (RI-101). */
const broken = (description: string): AiError.AiErrorReason =>
  new AiError.UnknownError({ description, metadata: { [own]: { signal: "StreamCut" } } })

/** Without a status, or with a good one, the answer did not come through or cannot be read. */
const ofCall = (error: APICallError, now: number): AiError.AiErrorReason => {
  const { cause, message, responseBody, responseHeaders = {}, statusCode, url } = error
  if (statusCode === undefined) return isRedirect(cause) ? wrongAddress(message, 307) : network(message, url)
  if (statusCode >= 300 && statusCode < 400) return wrongAddress(message, statusCode)
  if (statusCode < 300) return ofGood(error)
  const kept = Object.entries(responseHeaders).filter(([name]) => telling.test(name.toLowerCase()))
  const body = bodyOf(responseBody)
  // A package that does not know the form of the body says no more than the status line.
  const told = typeof body["message"] === "string" ? body["message"] : message
  return ofStatus({ message: told, words: wordsOf(body) }, now, {
    response: { status: statusCode, headers: Object.fromEntries(kept) },
    body: responseBody?.slice(0, maxBody)
  })
}

/** An answer with a good status that is no reply: an error all the same, a page, or what its package cannot read. */
const ofGood = ({ cause, message, responseBody, responseHeaders = {}, statusCode = 200, url }: APICallError) => {
  const reported = ofBody(jsonOf(responseBody))
  if (reported !== undefined) return reported
  const type = Object.entries(responseHeaders).find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? ""
  const isPage = /^\s*text\/html\b/i.test(type)
  if (isPage || cause === undefined) {
    const what = isPage ? "a page, and no reply of a model" : "no stream, which was asked for"
    return wrongAddress(`${withoutQuery(url)} answered with ${type}: ${what}`, statusCode)
  }
  return isUnreadable(cause) ? new AiError.InvalidOutputError({ description: message }) : broken(message)
}

/** The error that an answer with a good status is, if it is one. */
export const ofBody = (body: unknown): AiError.AiErrorReason | undefined => {
  const said = isObject(body) && isObject(body["error"]) ? streamError(body) : undefined
  return said === undefined ? undefined : ofReport(said)
}

/** Nothing that a later try could change, but another model, at its own address, may do (core's table, by this type). */
const wrongAddress = (description: string, status: number): AiError.AiErrorReason =>
  new AiError.InvalidRequestError({
    description,
    http: { response: { status, headers: {} } },
    metadata: { [own]: { type: "wrong_address" } }
  })

/** What `fetch` itself says of redirects without an end, and of one that it was told not to follow. */
const isRedirect = (cause: unknown): boolean =>
  cause instanceof Error && /^(?:redirect count exceeded|unexpected redirect)$/i.test(cause.message)

type Http = typeof AiError.HttpContext.Type & { readonly response: typeof AiError.HttpResponseDetails.Type }

/** What a provider says of a failure: a sentence, and its own words for the kind. */
interface Said {
  readonly message: string
  readonly words: ReadonlyArray<string>
}

const ofStatus = (said: Said, now: number, http: Http): AiError.AiErrorReason => {
  const { message: description, words } = said
  const { headers, status } = http.response
  // Effect's two errors about limits have no description of their own.
  const kept = { metadata: { [own]: { description } } }
  if (words.some((word) => quota.test(word)) || (status === 400 && noCredit.test(description))) {
    return new AiError.QuotaExhaustedError({ http, ...kept })
  }
  if (status !== 429) return AiError.reasonFromHttpStatus({ status, http, description })
  const wait = ModelRetry.retryAfterOf(headers, now)
  return new AiError.RateLimitError({
    http,
    ...kept,
    ...(wait === undefined ? undefined : { retryAfter: Duration.millis(wait) })
  })
}

/** Nothing to spend any more: words of OpenAI (a 429), Anthropic, Moonshot and gateways. Not Google's, which means a rate. */
const quota =
  /^(?:insufficient_(?:user_)?(?:quota|balance|credits?|funds)|exceeded_current_quota(?:_error)?|billing_\w+)$/i

/** Anthropic says so with a 400 and the word for any wrong request. */
const noCredit = /credit balance is too low/i

/** The error in a body, if the body is JSON. */
const bodyOf = (body: string | undefined): { readonly [field: string]: unknown } => streamError(jsonOf(body)) ?? {}

const jsonOf = (body: string | undefined): unknown => {
  try {
    return JSON.parse(body ?? "")
  } catch {
    return undefined
  }
}

/** The provider's words for the kind of an error, the more general first. */
const wordsOf = ({ code, type }: { readonly [field: string]: unknown }): ReadonlyArray<string> =>
  [type, code].filter((value) => typeof value === "string")

/** The packages' own errors: what they were given is wrong, or what they got. */
const named = (error: AISDKError): AiError.AiErrorReason => {
  const description = error.message
  switch (error.name) {
    case "AI_LoadAPIKeyError":
      return new AiError.AuthenticationError({ kind: "MissingKey", description })
    case "AI_EmptyResponseBodyError":
      return network(description)
    case "AI_InvalidResponseDataError":
      // Without data: the package for compatible servers says so of a stream that broke off.
      return Reflect.get(error, "data") === undefined ? cut() : new AiError.InvalidOutputError({ description })
    case "AI_JSONParseError":
    case "AI_NoContentGeneratedError":
    case "AI_TypeValidationError":
      return new AiError.InvalidOutputError({ description: description.slice(0, maxBody) })
    default:
      return new AiError.InvalidRequestError({ description })
  }
}

const isUnreadable = (cause: unknown): boolean =>
  AISDKError.isInstance(cause) && (cause.name === "AI_JSONParseError" || cause.name === "AI_TypeValidationError")

/** What an error event of a stream that had begun well says, wherever its package has put that. */
const streamError = (error: unknown): { readonly [field: string]: unknown } | undefined => {
  if (typeof error === "string") return { message: error }
  if (!isObject(error) || error instanceof Error) return undefined
  const inner = [error["error"], isObject(error["response"]) ? error["response"]["error"] : undefined].find(isObject)
  return inner === undefined ? error : streamError(inner)
}

/** By quota, by status, then by any of the provider's words, then by what its package thinks (RI-065, RI-099). */
const ofReport = (report: { readonly [field: string]: unknown }): AiError.AiErrorReason => {
  const { code, isRetryable, message, statusCode } = report
  const description = typeof message === "string" ? message : "the provider reported an error within the stream"
  const words = wordsOf(report)
  const status = [statusCode, code].map(statusOf).find((value) => value !== undefined)
  if (status !== undefined) return ofStatus({ message: description, words }, 0, { response: { status, headers: {} } })
  const [known] = [quota, limit, transient].flatMap((kind) => words.filter((word) => kind.test(word)))
  const word = known ?? words[0]
  const type = word === undefined ? {} : { type: word }
  const metadata = { [own]: { ...type, description } }
  if (word !== undefined && quota.test(word)) return new AiError.QuotaExhaustedError({ metadata })
  if (word !== undefined && limit.test(word)) return new AiError.RateLimitError({ metadata })
  if (isRetryable === true || known !== undefined) {
    return new AiError.InternalProviderError({ description, metadata: { [own]: type } })
  }
  return new AiError.UnknownError({ description, metadata: { [own]: { signal: "StreamError", ...type } } })
}

/** A status of a failure, also one that is written as text. */
const statusOf = (value: unknown): number | undefined => {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value
  return typeof status === "number" && status >= 400 && status < 600 ? status : undefined
}

const limit = /rate_?limit|too_?many_?requests|throttl/i

const transient = /overloaded|busy|api_error|server_error|timeout|unavailable|internal/i

/** The connection broke while nothing looked (undici: `terminated`, with a code in the cause). */
const isNetwork = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  if (error.name === "AbortError" || error.name === "TimeoutError") return true
  const cause: unknown = error.cause
  const code = [error, cause].find((one) => isObject(one) && typeof one["code"] === "string")
  return code !== undefined || /^(?:terminated|fetch failed|network error)$/i.test(error.message)
}
