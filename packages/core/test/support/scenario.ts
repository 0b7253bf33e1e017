import { expect } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as Agent from "../../src/Agent.ts"
import { CheckpointStore } from "../../src/CheckpointStore.ts"
import * as Guard from "../../src/Guard.ts"
import * as MemoryStore from "../../src/MemoryStore.ts"
import { Owner } from "../../src/Owner.ts"
import { type Plugin, PluginId } from "../../src/Plugin.ts"
import * as Run from "../../src/Run.ts"
import type { Answer, RunEvent } from "../../src/RunEvent.ts"
import * as DyingStore from "../../src/testing/DyingStore.ts"
import * as Mortal from "../../src/testing/Mortal.ts"
import * as PairingChecker from "../../src/testing/PairingChecker.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import * as ToolOptions from "../../src/ToolOptions.ts"

const Amount = Schema.Struct({ amount: Schema.Number })

/** Unsafe, and a person must approve it. */
export const Pay = Tool.make("pay", {
  parameters: Amount,
  success: Schema.Struct({ paid: Schema.Number }),
  needsApproval: true
})
/** Unsafe, and runs at once. */
export const Mail = Tool.make("mail", {
  parameters: Schema.Struct({ to: Schema.String }),
  success: Schema.Struct({ sent: Schema.String })
})
export const Book = Tool.make("book", {
  parameters: Schema.Struct({ seat: Schema.Number }),
  success: Schema.Struct({ booked: Schema.Number })
}).annotate(Tool.Idempotent, true)
export const Look = Tool.make("look", {
  parameters: Schema.Struct({ at: Schema.Number }),
  success: Schema.Struct({ seen: Schema.Number })
}).annotate(Tool.Readonly, true)
/** Its result comes from outside. */
export const Ask = ToolOptions.external(
  Tool.make("ask", {
    parameters: Schema.Struct({ question: Schema.String }),
    success: Schema.Union([Schema.Boolean, Schema.Number, Schema.String])
  })
)

const kit = Toolkit.make(Pay, Mail, Book, Look)
export type Handlers = Toolkit.HandlersFrom<Toolkit.Tools<typeof kit>>

export const tools = [kit, Ask] as const
/** The agent of these tests. */
export const clerk = Agent.make("clerk", { instructions: "Work.", tools })

export type Services = Agent.Services<typeof clerk> | CheckpointStore

/** One process over the store of its world. */
export interface ProcessOptions {
  /** Stands in its owners' names. */
  readonly name?: string
  readonly handlers?: Partial<Handlers>
  /** Default: one that must not be asked. */
  readonly model?: ScriptedModel.Scripted
  readonly wrap?: (store: CheckpointStore["Service"]) => CheckpointStore["Service"]
  /** Plugins. */
  readonly extra?: Layer.Layer<never>
}

export type Process = <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>

class Asker extends Context.Service<Asker, Plugin>()("test/Asker") {}

/** A guard that asks about every `mail`; the answer must come before `expiresAt`. */
export const asksUntil = (expiresAt: number): Layer.Layer<never> =>
  Layer.succeed(Asker, {
    [PluginId]: {
      name: "asker",
      guards: [
        Guard.make({
          name: "asker",
          stage: "permissions",
          initial: 0,
          fold: (memory) => memory,
          check: ({ proposal }) =>
            proposal._tag === "Call" && proposal.call.name === "mail"
              ? { _tag: "Ask", reason: "mails cost money", expiresAt }
              : Guard.allow
        })
      ]
    }
  })

/** A store, what the tools did, and who is known to be dead. */
export const world = Effect.gen(function* () {
  const store = yield* MemoryStore.make
  const ran: Array<string> = []
  const dead = new Set<string>()
  let owners = 0
  const does =
    <A>(what: string, result: A) =>
    (): Effect.Effect<A> =>
      Effect.sync(() => {
        ran.push(what)
        return result
      })
  const handlers: Handlers = {
    pay: ({ amount }) => does(`pay ${amount}`, { paid: amount })(),
    mail: ({ to }) => does(`mail ${to}`, { sent: to })(),
    book: ({ seat }) => does(`book ${seat}`, { booked: seat })(),
    look: ({ at }) => does(`look ${at}`, { seen: at })()
  }
  const silent = yield* ScriptedModel.make([])
  const process = (options: ProcessOptions = {}): Process => {
    const { extra = Layer.empty, model = silent, name = "A", wrap = (same) => same } = options
    const owner = Layer.succeed(Owner, {
      name: Effect.sync(() => `${name} ${++owners}`),
      isDead: (owner) => Effect.sync(() => dead.has(owner.split(" ")[0] ?? ""))
    })
    const layers = Layer.mergeAll(
      Layer.succeed(CheckpointStore, wrap(store)),
      kit.toLayer({ ...handlers, ...options.handlers }),
      model.layer,
      owner,
      extra
    )
    return (effect) => Effect.provide(effect, layers)
  }
  /** A process that dies: at an append as `decide` says, or in the handler of its `deadly` tool. */
  const mortal = (
    options: ProcessOptions & { readonly name: string; readonly deadly?: keyof Handlers },
    decide?: DyingStore.Decide
  ) =>
    Effect.map(Mortal.make, (mortal) => {
      const { deadly } = options
      const fatal = Effect.suspend(() => {
        ran.push(`${deadly} died`)
        return mortal.die
      })
      const handlers = { ...options.handlers, ...(deadly === undefined ? undefined : { [deadly]: () => fatal }) }
      const alive = process({ ...options, handlers, wrap: (store) => DyingStore.make(store, mortal, decide) })
      /** Starts it and comes back when it is dead. */
      const untilDead = <A, E>(effect: Effect.Effect<A, E, Services>): Effect.Effect<void> =>
        Effect.gen(function* () {
          yield* Effect.forkDetach(alive(effect))
          yield* mortal.died
          dead.add(options.name)
        })
      return { alive, die: mortal.die, untilDead }
    })
  return { store, ran, dead, process, mortal, here: process() }
})
export type World = Effect.Success<typeof world>

/** All that is committed. */
export const eventsOf = (runId: string): Effect.Effect<ReadonlyArray<RunEvent>, unknown, CheckpointStore> =>
  Effect.map(Stream.runCollect(Run.events(runId, { follow: false })), (entries) => entries.map(({ event }) => event))

export const tagsOf = (runId: string): Effect.Effect<ReadonlyArray<string>, unknown, CheckpointStore> =>
  Effect.map(eventsOf(runId), (events) => events.map(({ _tag }) => _tag))

/** The results in the last request that a model got: name, failure and value. */
export const resultsOf = (request: ScriptedModel.Request | undefined) =>
  request?.results.map(({ isFailure, name, result }) => ({ name, isFailure, result }))

/** Every stored history is one that providers take. */
export const expectValid = (...runIds: ReadonlyArray<string>) =>
  Effect.forEach(runIds, (runId) =>
    Effect.map(PairingChecker.ofRun(runId), (violations) => expect(violations).toEqual([]))
  )

/** What waits under that id. */
export const waitOf = (runId: string, callId: string) =>
  Effect.map(Run.get(runId), ({ waiting }) => {
    const wait = waiting.find(({ id }) => id === callId)
    if (wait === undefined) throw new Error(`${callId} does not wait`)
    return wait
  })

export const digestOf = (runId: string, callId: string) =>
  Effect.map(waitOf(runId, callId), ({ digest = "" }) => digest)

export const answer = (runId: string, callId: string, answer: Answer) =>
  Run.answer(clerk, { runId, callId, answer, by: "ann" })

export const approve = (runId: string, callId: string) =>
  Effect.flatMap(digestOf(runId, callId), (digest) => answer(runId, callId, { _tag: "Approve", digest }))

export const deny = (runId: string, callId: string, reason: string) =>
  Effect.flatMap(digestOf(runId, callId), (digest) => answer(runId, callId, { _tag: "Deny", digest, reason }))

export interface Classed {
  readonly _tag: string
  readonly reason: { readonly _tag: string }
}

/** `Fatal RunExists`, or the outcome's tag, or a text as it is, or `void`. */
export const told = <A, E extends Classed, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, never, R> =>
  Effect.map(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return tagOf(exit.value)
    const failed = exit.cause.reasons.find(Cause.isFailReason)
    return failed === undefined ? Cause.pretty(exit.cause) : `${failed.error._tag} ${failed.error.reason._tag}`
  })

const tagOf = (value: unknown): string =>
  value === undefined
    ? "void"
    : typeof value === "string"
      ? value
      : typeof value === "object" && value !== null && "_tag" in value
        ? String(value._tag)
        : typeof value

/**
 * Lets everything that is ready run; no time passes. Digests are made by the thread pool, so a turn of the event loop is
 * not enough: each round waits for a digest of its own, which comes after those that were asked for before.
 */
export const settle: Effect.Effect<void> = Effect.repeat(
  Effect.promise(async () => {
    await crypto.subtle.digest("SHA-256", new Uint8Array(1))
    await new Promise<void>((resolve) => void setImmediate(resolve))
  }),
  { times: 15 }
)

/** Lets time pass in steps of 250 ms, as a watch needs it. */
export const pass = (millis: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* settle
    for (let left = millis; left > 0; left -= 250) {
      yield* TestClock.adjust(Math.min(left, 250))
      yield* settle
    }
  })

/** Starts it beside the test and lets it get to where it waits. */
export const begin = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Fiber.Fiber<A, E>, never, R> =>
  Effect.tap(Effect.forkChild(effect), settle)
