/** A process of its own with a store: `node child.ts <url> <prefix>`; does what its parent says, over ipc. */
import { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as RedisStore from "../../src/RedisStore.ts"

/** Races for one place in a Run, or appends batches until it is killed. */
export type Order =
  | { readonly _tag: "Append"; readonly append: CheckpointStore.Append }
  | { readonly _tag: "Claim"; readonly runId: string; readonly owner: string }
  | { readonly _tag: "AppendForEver"; readonly runId: string; readonly batch: number; readonly session: string }

const [, , url = "", prefix = ""] = process.argv
const runtime = ManagedRuntime.make(RedisStore.layerUrl({ url, prefix, onWeakServer: "ignore" }))
const say = (message: unknown) => process.send?.(message)

type Answer = CheckpointStore.AppendResult | CheckpointStore.ClaimResult

const follow = (order: Order) =>
  CheckpointStore.CheckpointStore.use((store): Effect.Effect<Answer, CheckpointStore.StoreError> => {
    switch (order._tag) {
      case "Append":
        return store.append(order.append)
      case "Claim":
        return store.claim({ runId: order.runId, owner: order.owner, ttlMillis: 60_000 })
      case "AppendForEver":
        return appendForEver(store, order)
    }
  })

const appendForEver = Effect.fnUntraced(function* (
  store: CheckpointStore.CheckpointStore["Service"],
  { batch, runId, session }: Extract<Order, { readonly _tag: "AppendForEver" }>
) {
  for (let round = 0; ; round++) {
    const events = Array.from({ length: batch }, (_, i) => `${round}/${i}`)
    const head = { status: "running", agent: "a", session, waiting: [], updatedAt: round, body: `${round}` }
    const result = yield* store.append({ runId, epoch: 0, expectedSeq: round * batch, events, head })
    if (result._tag !== "Committed") return result
    say({ round })
  }
})

process.on("message", (order: Order) => {
  runtime.runPromise(follow(order)).then(say, (error: unknown) => say({ _tag: String(error) }))
})
process.on("disconnect", () => process.exit(0))
await runtime.runPromise(CheckpointStore.CheckpointStore.use(() => Effect.void))
say("ready")
