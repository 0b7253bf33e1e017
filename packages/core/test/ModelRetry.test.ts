import { describe, expect, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Clock from "effect/Clock"
import * as AiError from "effect/ai/AiError"
import { TestClock } from "effect/testing"
import * as ModelRetry from "../src/ModelRetry.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { agentOf, during, failure, journal, ofKind, scene, settled, status, steady } from "./support/turns.ts"

const { call, fail, hang, text } = ScriptedModel
const input = { runId: "r", task: "go" }

const network = (reason: "TransportError" | "EncodeError" | "InvalidUrlError", description: string) =>
  fail(new AiError.NetworkError({ reason, method: "POST", url: "https://model.test/v1?key=secret", description }))

/** The ms between the starts of the tries of the first turn. */
const waits = Effect.map(journal("r"), (events) => {
  const [completed] = ofKind(events, "TurnCompleted")
  const [failed] = ofKind(events, "TurnFailed")
  const at = (completed?.tries ?? failed?.tries ?? []).map((one) => one.at)
  return at.slice(1).map((time, i) => time - (at[i] ?? 0))
})

describe("classification", () => {
  const retried = [408, 409, 425, 429, 500, 502, 503, 504, 529, 599]
  const rejected = [400, 401, 403, 404, 413, 418, 422]

  it.effect.each(retried)("RI-099 status %i is tried again", (code) =>
    scene([status(code), text("ok")], () =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf(), input), "1 second")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ok" })
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn?.tries?.[0]?.failure).toMatchObject({ status: code, retryable: true, tag: "ModelUnavailable" })
        expect(turn?.tries).toHaveLength(2)
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect.each(rejected)("RI-099 status %i is Fatal at once, and the error carries the status", (code) =>
    scene([status(code)], () =>
      Effect.gen(function* () {
        const error = yield* failure(Run.start(yield* agentOf(), input))
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected", status: code } })
        expect(error.reason).not.toHaveProperty("away")
        const [turn] = ofKind(yield* journal("r"), "TurnFailed")
        expect(turn?.failure).toMatchObject({ status: code, retryable: false, tag: "ModelRejected" })
      })
    )
  )

  it.effect.each(["ECONNRESET", "ETIMEDOUT"])("RI-099 a connection that fails with %s is tried again", (code) =>
    scene([network("TransportError", code), text("ok")], () =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf(), input), "1 second")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ok" })
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn?.tries?.[0]?.failure?.message).toContain(code)
        expect(JSON.stringify(turn)).not.toContain("secret")
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect.each(["EncodeError", "InvalidUrlError"] as const)(
    "RI-099 a request that fails with %s is our fault",
    (reason) =>
      scene([network(reason, "bad")], () =>
        Effect.gen(function* () {
          const error = yield* failure(Run.start(yield* agentOf(), input))
          expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected" } })
        })
      )
  )

  it.effect.each([
    ["RateLimitError", new AiError.RateLimitError({}), "Completed"],
    ["InternalProviderError", new AiError.InternalProviderError({ description: "down" }), "Completed"],
    ["AuthenticationError", new AiError.AuthenticationError({ kind: "InvalidKey" }), "Fatal"],
    ["QuotaExhaustedError", new AiError.QuotaExhaustedError({}), "Fatal"],
    ["UnknownError", new AiError.UnknownError({ description: "?" }), "Fatal"]
  ] as const)("RI-099 without a status AiError's reason decides: %s", ([, reason, expected]) =>
    scene(expected === "Fatal" ? [fail(reason)] : [fail(reason), text("ok")], () =>
      Effect.gen(function* () {
        const run = during(Run.start(yield* agentOf(), input), "1 second")
        const result = yield* Effect.match(run, { onSuccess: ({ _tag }) => _tag, onFailure: ({ _tag }) => _tag })
        expect(result).toBe(expected)
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect(
    "RI-099 a quota decides before its status, which it shares with a limit, and keeps the provider's words",
    () => {
      const http = { response: { status: 429, headers: {} } }
      const metadata = { waystone: { description: "pay first" } }
      return scene([fail(new AiError.QuotaExhaustedError({ http, metadata }))], () =>
        Effect.gen(function* () {
          const error = yield* failure(Run.start(yield* agentOf(), input))
          expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected", status: 429 } })
          expect(error.reason.message).toContain("pay first")
        })
      )
    }
  )

  it.effect("RI-099 a status decides before the reason, also one that the table does not name", () => {
    const http = { response: { status: 599, headers: {} } }
    return scene([fail(new AiError.UnknownError({ description: "?", http })), text("ok")], () =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf(), input), "1 second")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ok" })
      }).pipe(Effect.provide(steady))
    )
  })

  it.effect("RI-099 a user's interrupt is never tried again", () =>
    scene([hang], ({ model }) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Run.start(yield* agentOf(), input))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        yield* TestClock.adjust("1 hour")
        expect(yield* model.requests).toHaveLength(1)
        expect(ofKind(yield* journal("r"), "TurnFailed")[0]).toMatchObject({ failure: { tag: "Interrupted" } })
      })
    )
  )

  it.effect("RI-099 the table can be replaced", () =>
    scene([status(400), text("ok"), status(503)], () =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        expect(yield* during(Run.start(agent, input), "1 second")).toMatchObject({ _tag: "Completed" })
        const error = yield* failure(Run.start(agent, { runId: "s", task: "go" }))
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected", status: 503 } })
      }).pipe(Effect.provide(own({ statuses: { 400: "retry", 503: "fatal" } })))
    )
  )

  const own = (table: Partial<ModelRetry.Table>) =>
    Layer.effect(
      ModelRetry.ModelRetry,
      Effect.map(ModelRetry.ModelRetry, (known) => ({ ...known, table: { ...known.table, ...table } }))
    ).pipe(Layer.provide(steady))
})

describe("waits between tries", () => {
  it.effect("four retries after about 1, 2, 4 and 8 s, and no other layer retries", () =>
    scene(Array(5).fill(status(503)), ({ model }) =>
      Effect.gen(function* () {
        const error = yield* failure(during(Run.start(yield* agentOf(), input), "18 seconds"))
        expect(error).toMatchObject({ _tag: "Retryable", reason: { _tag: "ModelUnavailable" } })
        expect(yield* model.requests).toHaveLength(5)
        const all = yield* waits
        expect(all).toHaveLength(4)
        all.forEach((wait, i) => {
          expect(wait).toBeGreaterThanOrEqual(800 * 2 ** i)
          expect(wait).toBeLessThanOrEqual(1200 * 2 ** i)
        })
      })
    )
  )

  it.each(["Thu Jan  1 00:00:13 1970", "Thursday, 01-Jan-70 00:00:13 GMT", "Thu, 01 Jan 1970 00:00:13 GMT"])(
    "RI-006 an HTTP date is read in GMT wherever the process runs: %s",
    (date) => {
      const zone = process.env["TZ"]
      try {
        for (const there of ["America/New_York", "UTC", "Asia/Tokyo"]) {
          process.env["TZ"] = there
          expect(ModelRetry.retryAfterOf({ "retry-after": date }, 10_000)).toBe(3000)
        }
      } finally {
        if (zone === undefined) delete process.env["TZ"]
        else process.env["TZ"] = zone
      }
    }
  )

  const field = fail(new AiError.RateLimitError({ retryAfter: Duration.millis(1500) }))
  const huge = "9".repeat(400)

  it.effect.each([
    ["the field retryAfter", field, 1500],
    ["retry-after-ms: 1500", status(429, { "retry-after-ms": "1500" }), 1500],
    ["retry-after: 2", status(429, { "retry-after": "2" }), 2000],
    ["retry-after: 1.25", status(429, { "retry-after": "1.25" }), 1250],
    ["Retry-After: 3, in capitals, of a 503", status(503, { "Retry-After": "3" }), 3000],
    ["both: the finer one", status(429, { "retry-after": "9", "retry-after-ms": "2500" }), 2500],
    ["retry-after: 60, the longest", status(429, { "retry-after": "60" }), 60_000],
    ["a date 3 s ahead", status(429, { "retry-after": "Thu, 01 Jan 1970 00:00:13 GMT" }), 3000],
    ["a date that is over: backoff", status(429, { "retry-after": "Thu, 01 Jan 1970 00:00:05 GMT" }), 1000],
    ["retry-after: -1: backoff", status(429, { "retry-after": "-1" }), 1000],
    ["retry-after: abc: backoff", status(429, { "retry-after": "abc" }), 1000],
    ["retry-after: soon 2040: backoff", status(429, { "retry-after": "soon 2040" }), 1000],
    ["retry-after-ms: abc, retry-after: 2", status(429, { "retry-after-ms": "abc", "retry-after": "2" }), 2000],
    ["retry-after: a number beyond all numbers: backoff", status(429, { "retry-after": huge }), 1000]
  ] as const)("RI-006 the second try is exactly when the provider asks for: %s", ([, entry, expected]) =>
    scene([entry, text("ok")], () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("10 seconds")
        const outcome = yield* during(Run.start(yield* agentOf(), input), expected)
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ok" })
        expect(yield* waits).toEqual([expected])
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("RI-006 a date is rounded up to whole seconds", () =>
    scene([status(429, { "retry-after": "Thu, 01 Jan 1970 00:00:14 GMT" }), text("ok")], () =>
      Effect.gen(function* () {
        yield* TestClock.adjust(10_500)
        yield* during(Run.start(yield* agentOf(), input), "4 seconds")
        expect(yield* waits).toEqual([4000])
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("RI-006 each wait is the provider's where it says one, else the schedule's", () =>
    scene([status(503), status(429, { "retry-after": "5" }), status(503), text("ok")], () =>
      Effect.gen(function* () {
        yield* during(Run.start(yield* agentOf(), input), "10 seconds")
        expect(yield* waits).toEqual([1000, 5000, 4000])
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect.each([
    ["86400", 86_400_000],
    ["61", 61_000]
  ] as const)(
    "RI-006 retry-after: %s is longer than this process waits: the Run rests until then",
    ([header, wakeAt]) =>
      scene([status(429, { "retry-after": header }), text("ok")], ({ model }) =>
        Effect.gen(function* () {
          const agent = yield* agentOf()
          const error = yield* failure(Run.start(agent, input))
          expect(error).toMatchObject({ _tag: "Retryable", reason: { _tag: "ModelUnavailable" }, wakeAt })
          expect(yield* Run.get("r")).toMatchObject({ status: "waiting" })
          const early = yield* Run.resume(agent, { runId: "r" })
          expect(early).toMatchObject({ _tag: "Suspended", waiting: [{ kind: "retry", wakeAt, count: 1 }] })
          yield* TestClock.adjust(wakeAt - 1)
          expect(yield* Run.recover([agent])).toEqual([])
          expect(yield* model.requests).toHaveLength(1)
          yield* TestClock.adjust(1)
          expect(yield* Run.recover([agent])).toMatchObject([
            { _tag: "Driven", outcome: { _tag: "Completed", output: "ok" } }
          ])
        })
      )
  )

  it.each([
    ["seconds without an end", { "retry-after": "99999999" }, 86_400_000],
    ["milliseconds without an end", { "retry-after-ms": "99999999999" }, 86_400_000],
    ["a date of next year", { "retry-after": "Wed, 01 Dec 2027 00:00:00 GMT" }, 86_400_000],
    ["the seconds since 1970, soon", { "retry-after": "1796083230" }, 30_000],
    ["the milliseconds since 1970, soon", { "retry-after": "1796083230000" }, 30_000],
    ["the milliseconds since 1970, soon", { "retry-after-ms": "1796083230000" }, 30_000],
    ["the seconds since 1970 of next year", { "retry-after": "1827619200" }, 86_400_000],
    ["the seconds since 1970 of a time that is over", { "retry-after": "1796083199" }, undefined],
    ["a day", { "retry-after": "86400" }, 86_400_000],
    ["less than a day", { "retry-after": "86399" }, 86_399_000]
  ])("RI-006 nobody waits longer than a day, whatever a provider asks for: %s", (_, headers, expected) => {
    const now = 1_796_083_200_000
    expect(ModelRetry.retryAfterOf(headers, now)).toBe(expected)
    const http = { response: { status: 503, headers } }
    const error = AiError.make({ module: "m", method: "m", reason: new AiError.UnknownError({ http }) })
    expect(ModelRetry.failureOf(error, ModelRetry.table, now).retryAfterMs).toBe(expected)
  })

  it.each([
    [Duration.days(20_788), 86_400_000],
    [Duration.hours(1), 3_600_000],
    [Duration.infinity, undefined]
  ])("RI-006 a wait of an error's own (%s) is bounded too", (retryAfter, expected) => {
    const error = AiError.make({ module: "m", method: "m", reason: new AiError.RateLimitError({ retryAfter }) })
    expect(ModelRetry.failureOf(error, ModelRetry.table, 0).retryAfterMs).toBe(expected)
  })

  it.effect("RI-006 the longest wait is the user's to choose", () =>
    scene([status(429, { "retry-after": "2" })], () =>
      Effect.gen(function* () {
        const error = yield* failure(Run.start(yield* agentOf(), input))
        expect(error).toMatchObject({ _tag: "Retryable", wakeAt: 60_000 })
      }).pipe(
        Effect.provideServiceEffect(
          ModelRetry.ModelRetry,
          Effect.map(ModelRetry.ModelRetry, (known) => ({ ...known, longestWait: Duration.seconds(1) }))
        )
      )
    )
  )
})

describe("rests", () => {
  const down = status(503)
  const minute = 60_000

  it.effect("a Run rests 1, 5, 30 minutes and then hourly; after 8 rests in a row it has failed", () =>
    scene(Array(9 * 5).fill(down), ({ model }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        const rested: Array<number | undefined> = []
        let error: Run.StartError | Run.ResumeError = yield* failure(during(Run.start(agent, input), "15 seconds"))
        while (error._tag === "Retryable") {
          const now = yield* Clock.currentTimeMillis
          const wakeAt = error.wakeAt ?? now
          rested.push((wakeAt - now) / minute)
          expect((yield* Run.get("r")).waiting).toMatchObject([{ kind: "retry", count: rested.length, wakeAt }])
          yield* TestClock.setTime(wakeAt)
          if (rested.length % 2 === 0) {
            error = yield* failure(during(Run.resume(agent, { runId: "r" }), "15 seconds"))
            continue
          }
          const [one] = yield* during(Run.recover([agent]), "15 seconds")
          if (one?._tag !== "Failed") throw new Error("a sweep takes a Run that is due")
          error = one.error
        }
        expect(rested).toEqual([1, 5, 30, 60, 60, 60, 60, 60])
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected", status: 503, away: true } })
        expect((yield* Run.get("r")).status).toBe("failed")
        expect(yield* model.requests).toHaveLength(45)
        expect(ofKind(yield* journal("r"), "RunSuspended").map(({ retry }) => retry?.count)).toEqual([
          1, 2, 3, 4, 5, 6, 7, 8
        ])
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("a turn that succeeds starts the count of rests again", () =>
    scene([...Array(10).fill(down), call("look", { at: 1 }), ...Array(5).fill(down)], () =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        yield* failure(during(Run.start(agent, input), "15 seconds"))
        yield* TestClock.adjust("1 minute")
        const second = yield* failure(during(Run.resume(agent, { runId: "r" }), "15 seconds"))
        expect(second).toMatchObject({ wakeAt: (yield* Clock.currentTimeMillis) + 5 * minute })
        yield* TestClock.adjust("5 minutes")
        const third = yield* failure(during(Run.resume(agent, { runId: "r" }), "15 seconds"))
        expect(third).toMatchObject({ wakeAt: (yield* Clock.currentTimeMillis) + minute })
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("a Run that rests is left alone until it is due, and a pause stays", () =>
    scene(Array(5).fill(down), ({ model }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        yield* failure(during(Run.start(agent, input), "15 seconds"))
        yield* Run.pause({ runId: "r", by: "me" })
        yield* TestClock.adjust("1 hour")
        yield* settled
        expect(yield* Run.start(agent, input)).toMatchObject({
          _tag: "Suspended",
          waiting: [{ kind: "paused" }, { kind: "retry" }]
        })
        expect(yield* model.requests).toHaveLength(5)
      }).pipe(Effect.provide(steady))
    )
  )
})
