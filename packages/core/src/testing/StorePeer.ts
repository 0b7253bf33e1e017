/**
 * What another process does for the store suite: it opens the same data, and obeys orders that reach it as JSON.
 *
 * The suite starts no process itself, since it runs wherever effect runs: the caller does, and carries the orders.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Append, AppendResult, CheckpointStore, ClaimResult, Lease, StoreError } from "../CheckpointStore.ts"

/** What a peer is told to do: JSON, so that any channel between processes can carry it. */
export type Order =
  | { readonly _tag: "Append"; readonly append: Append }
  | { readonly _tag: "Claim"; readonly claim: Lease & { readonly runId: string } }
  /** Appends batches to a new Run, one after the other, and answers only after `fillBatches` of them. */
  | { readonly _tag: "Fill"; readonly runId: string; readonly batch: number; readonly agent: string }
  /** Begins a Run with one batch and removes it, again and again, and answers only after `fillBatches` rounds. */
  | { readonly _tag: "Redo"; readonly runId: string; readonly batch: number; readonly agent: string }

/** What it says then: JSON, too. */
export type Answer =
  | AppendResult
  | ClaimResult
  | { readonly _tag: "Filled" | "Redone" }
  | { readonly _tag: "Failed"; readonly message: string }

/** Another process, as the suite sees it. It is told one thing at a time. */
export interface Peer {
  /** Sends an order and waits for its answer. */
  readonly ask: (order: Order) => Effect.Effect<Answer, unknown>
  /** Ends the process without a warning, as SIGKILL does, and waits until it is gone. */
  readonly kill: Effect.Effect<void, unknown>
}

/** More than any test lets a peer write before it is killed. */
const fillBatches = 1000

/**
 * Does what an order says, in the process that got it.
 *
 * @example
 * process.on("message", (order: CheckpointStoreSuite.Order) => {
 *   void runtime
 *     .runPromise(CheckpointStore.CheckpointStore.use((store) => CheckpointStoreSuite.obey(store, order)))
 *     .then((answer) => process.send?.(answer))
 * })
 */
export const obey = (store: CheckpointStore["Service"], order: Order): Effect.Effect<Answer> =>
  Effect.match(done(store, order), {
    onSuccess: (answer) => answer,
    onFailure: (error): Answer => ({ _tag: "Failed", message: error.message })
  })

const done = (store: CheckpointStore["Service"], order: Order): Effect.Effect<Answer, StoreError> => {
  switch (order._tag) {
    case "Append":
      return store.append(order.append)
    case "Claim":
      return store.claim(order.claim)
    case "Fill":
      return filled(store, order)
    case "Redo":
      return redone(store, order)
  }
}

const filled = Effect.fnUntraced(function* (
  store: CheckpointStore["Service"],
  { agent, batch, runId }: Extract<Order, { readonly _tag: "Fill" }>
): Effect.fn.Return<Answer, StoreError> {
  for (let round = 0; round < fillBatches; round++) {
    const result = yield* store.append({ runId, expectedSeq: round * batch, ...written(agent, round, batch) })
    if (result._tag !== "Committed") return result
    yield* Effect.yieldNow
  }
  return { _tag: "Filled" }
})

const redone = Effect.fnUntraced(function* (
  store: CheckpointStore["Service"],
  { agent, batch, runId }: Extract<Order, { readonly _tag: "Redo" }>
): Effect.fn.Return<Answer, StoreError> {
  for (let round = 0; round < fillBatches; round++) {
    const result = yield* store.append({ runId, expectedSeq: 0, ...written(agent, round, batch) })
    if (result._tag !== "Committed") return result
    yield* Effect.yieldNow
    if (!(yield* store.remove(runId, batch))) return { _tag: "Failed", message: `round ${round} was not removed` }
    yield* Effect.yieldNow
  }
  return { _tag: "Redone" }
})

/** The events and the head of one round. */
const written = (
  agent: string,
  round: number,
  batch: number
): Pick<Append, "events" | "head"> & { readonly epoch: 0 } => ({
  epoch: 0,
  events: Array.from({ length: batch }, (_, i) => `${round}/${i}`),
  head: { status: "running", agent, waiting: [], updatedAt: round, body: `${round}` }
})
