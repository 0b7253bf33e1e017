/**
 * Says which failures of a model are worth another try, and when. It is the only layer that retries a model (RI-016).
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as AiError from "effect/ai/AiError"
import type { Failure } from "./RunEvent.ts"
import * as Text from "./Text.ts"
import { defined } from "./Defined.ts"

/** `elsewhere`: not worth another try of this model, but worth one of another (`Fallback`); without one, as `fatal`. */
export type Class = "retry" | "elsewhere" | "fatal" | "refusal"

/** What is known of a failure, read from an AiError once. */
export interface Signal {
  readonly reason: string
  readonly status?: number
  /** The provider's own type, of an error inside a stream. */
  readonly type?: string
}

/** Replaceable data: by HTTP status first, then by the provider's error type, then by AiError's reason (RI-099, RI-065); a quota by its reason. */
export interface Table {
  readonly statuses: { readonly [status: number]: Class }
  readonly types: { readonly [type: string]: Class }
  readonly reasons: { readonly [reason: string]: Class }
}

export const table: Table = {
  statuses: {
    400: "fatal",
    401: "elsewhere",
    402: "elsewhere",
    403: "elsewhere",
    404: "elsewhere",
    408: "retry",
    409: "retry",
    413: "fatal",
    422: "fatal",
    425: "retry",
    429: "retry",
    500: "retry",
    502: "retry",
    503: "retry",
    504: "retry",
    529: "retry"
  },
  types: {
    overloaded_error: "retry",
    rate_limit_error: "retry",
    api_error: "retry",
    timeout_error: "retry",
    // An adapter's word: what answers there is no API, or points to another place.
    wrong_address: "elsewhere"
  },
  reasons: {
    StreamError: "fatal",
    RateLimitError: "retry",
    InternalProviderError: "retry",
    NetworkError: "retry",
    InvalidOutputError: "retry",
    StreamCut: "retry",
    Timeout: "retry",
    Repetition: "fatal",
    AuthenticationError: "elsewhere",
    QuotaExhaustedError: "elsewhere",
    ContentPolicyError: "refusal"
  }
}

export interface ModelRetry {
  readonly table: Table
  /** The waits between tries; a provider's Retry-After takes the place of one. Default 4 retries, 1 s × 2ⁿ, at most 30 s, ± 20 %. */
  readonly schedule: Schedule.Schedule<unknown>
  /** A longer Retry-After makes the Run rest instead of its process wait. Default 60 s. */
  readonly longestWait: Duration.Duration
}

const schedule = Schedule.exponential("1 second", 2).pipe(
  Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, Duration.seconds(30)))),
  Schedule.jittered,
  Schedule.upTo({ times: 4 })
)

export const ModelRetry: Context.Reference<ModelRetry> = Context.Reference("@waystone/core/ModelRetry", {
  defaultValue: (): ModelRetry => ({ table, schedule, longestWait: Duration.seconds(60) })
})

export const classify = ({ reasons, statuses, types }: Table, { reason, status, type }: Signal): Class => {
  // A quota that is used up has the status of a limit that is over in a minute.
  const byStatus =
    status === undefined || reason === "QuotaExhaustedError"
      ? undefined
      : (statuses[status] ?? (status >= 500 ? "retry" : undefined))
  return byStatus ?? (type === undefined ? undefined : types[type]) ?? reasons[reason] ?? "fatal"
}

/** A text that an adapter, or ModelCall, has put into the metadata of an error. */
const kept = ({ reason }: AiError.AiError, key: "signal" | "type" | "description"): string | undefined => {
  const own = "metadata" in reason ? reason.metadata["waystone"] : undefined
  const value: unknown = typeof own === "object" && own !== null && key in own ? Reflect.get(own, key) : undefined
  return typeof value === "string" ? value : undefined
}

/** What is known of an error; ModelCall's own ones carry their name in the metadata. */
const signalOf = (error: AiError.AiError): Signal => {
  const { reason } = error
  const status = responseOf(error)?.status
  const type = kept(error, "type")
  return {
    reason: kept(error, "signal") ?? (isOwnFault(reason) ? "RequestFault" : reason._tag),
    ...defined({ status, type })
  }
}

/** A request that could not even be written. */
const isOwnFault = (reason: AiError.AiErrorReason): boolean =>
  reason._tag === "NetworkError" && reason.reason !== "TransportError"

const responseOf = ({ reason }: AiError.AiError) =>
  "http" in reason && reason.http !== undefined ? reason.http.response : undefined

/** An AiError as an event can keep it. */
export const failureOf = (error: AiError.AiError, table: Table, now: number): Failure & { readonly class: Class } => {
  const signal = signalOf(error)
  const kind = classify(table, signal)
  const retryAfterMs = retryAfter(error, now)
  // Effect's errors about limits have no place for what the provider said.
  const said = kept(error, "description")
  const message = said === undefined ? error.message : `${error.message}: ${said}`
  return {
    class: kind,
    tag: named[signal.reason] ?? tags[kind],
    // A query may hold a key.
    message: Text.safeMessage(message.replace(/\?[^\s)]+/g, "?…"), 500),
    retryable: kind === "retry",
    ...defined({ status: signal.status, retryAfterMs })
  }
}

const tags = { retry: "ModelUnavailable", refusal: "ModelRefusal", elsewhere: "ModelRejected", fatal: "ModelRejected" }
const named: { readonly [reason: string]: string } = { Timeout: "ModelTimeout", Repetition: "RepetitiveOutput" }

/**
 * The longest wait that a provider can ask for, in ms: a day. The longest limits of providers are by the day, so that a
 * longer one is a mistake; and a Run that asks again after a day costs one request.
 */
export const maxRetryAfter = 86_400_000

const bounded = (wait: number | undefined): number | undefined =>
  wait === undefined ? undefined : Math.min(wait, maxRetryAfter)

/** How long the provider asks us to wait: AiError's field, else the headers (RI-006). */
const retryAfter = (error: AiError.AiError, now: number): number | undefined =>
  error.retryAfter !== undefined && Duration.isFinite(error.retryAfter)
    ? bounded(Duration.toMillis(error.retryAfter))
    : retryAfterOf(responseOf(error)?.headers ?? {}, now)

/**
 * Milliseconds to wait as the headers of a response ask for (ms, seconds, an HTTP date, or a time since 1970 in s or ms),
 * at most `maxRetryAfter`; undefined if they do not.
 */
export const retryAfterOf = (headers: { readonly [name: string]: unknown }, now: number): number | undefined => {
  const header = (name: string): string | undefined => {
    const key = Object.keys(headers).find((key) => key.toLowerCase() === name)
    const value = key === undefined ? undefined : headers[key]
    return typeof value === "string" ? value.trim() : undefined
  }
  return bounded(
    millis(header("retry-after-ms"), 1, now) ??
      millis(header("retry-after"), 1000, now) ??
      untilDate(header("retry-after"), now)
  )
}

/** From here on, 2001 in s and in ms, a number is no wait (of 30 years), but a time since 1970, as some servers write it. */
const isEpoch = { s: 1e9, ms: 1e12 }

/** Zero says nothing about when: then our own schedule holds. A time that is over says no more. */
const millis = (text: string | undefined, unit: number, now: number): number | undefined => {
  if (text === undefined || !/^\d{1,13}(\.\d+)?$/.test(text)) return undefined
  const value = Number(text)
  const epoch = value >= isEpoch.ms ? value : value >= isEpoch.s && unit === 1000 ? value * 1000 : undefined
  const wait = Math.ceil(epoch === undefined ? value * unit : epoch - now)
  return wait > 0 ? wait : undefined
}

/** Date.parse reads a year in almost anything; an HTTP date begins with its weekday, and is GMT where it does not say so (asctime). */
const untilDate = (text: string | undefined, now: number): number | undefined => {
  if (text === undefined || !/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return undefined
  const date = Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text)
  return Number.isNaN(date) || date <= now ? undefined : Math.ceil((date - now) / 1000) * 1000
}
