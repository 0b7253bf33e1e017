import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { CheckpointStore } from "../src/CheckpointStore.ts"
import { CheckpointCorrupt } from "../src/RunError.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { answerAt, boss, cast, pending, runId, worker, yes } from "./support/family.ts"
import { eventsOf, told, world } from "./support/scenario.ts"
import { only } from "./support/tools.ts"

const { call, calls, text } = ScriptedModel
const child = "r.t1.0"

const lead = boss("lead", [worker("ann"), worker("bob")], { concurrency: 2 })
/** Both sub-agents ask whether they may pay. */
const model = cast({
  lead: [
    calls([
      ["ask_ann", { task: "pay" }],
      ["ask_bob", { task: "pay" }]
    ]),
    text("done")
  ],
  ann: [call("pay", { amount: 1 }), text("ann paid")],
  bob: [call("pay", { amount: 2 }), text("bob paid")]
})

type Store = CheckpointStore["Service"]
const unreadable = new CheckpointCorrupt({ runId: child, seq: 0, path: "row" })
const damages: ReadonlyArray<readonly [what: string, wrong: (store: Store) => Partial<Store>]> = [
  [
    "head the store cannot read",
    (store) => ({
      head: (id) => (id === child ? Effect.fail(unreadable) : store.head(id)),
      append: (batch) => (batch.runId === child ? Effect.fail(unreadable) : store.append(batch)),
      remove: (id, seq) =>
        id !== child ? store.remove(id, seq) : seq === "damaged" ? gone(store, id) : Effect.fail(unreadable)
    })
  ],
  [
    "head core cannot read",
    (store) => ({
      head: (id) => Effect.map(store.head(id), (entry) => entry && (id === child ? { ...entry, body: "{" } : entry))
    })
  ],
  [
    "event cannot be read",
    (store) => ({
      read: (id, range) =>
        Effect.map(store.read(id, range), (all) => (id === child ? all.map((one) => ({ ...one, body: "{" })) : all))
    })
  ],
  ["events are gone", (store) => ({ read: (id, range) => (id === child ? Effect.succeed([]) : store.read(id, range)) })]
]

const gone = (store: Store, id: string) => Effect.flatMap(store.head(id), (entry) => store.remove(id, entry?.seq ?? 0))

const asking = Effect.gen(function* () {
  const { here, process, ran, store } = yield* world
  const says = yield* model
  yield* process({ model: says })(Run.start(lead, { runId, task: "go" }))
  expect((yield* here(pending(runId))).toSorted()).toEqual(["approval t1.0/t1.0", "approval t1.1/t1.0"])
  const damaged = (wrong: (store: Store) => Partial<Store>) =>
    process({ model: says, wrap: (store) => ({ ...store, ...wrong(store) }) })
  return { damaged, here, ran, store }
})

describe("a sub-agent whose Run is damaged", () => {
  it.effect.each(damages)("with a %s: its root is shown with all that it waits for", ([, wrong]) =>
    Effect.gen(function* () {
      const { damaged } = yield* asking
      const { waiting } = yield* damaged(wrong)(Run.get(runId))
      const shown = waiting.map(({ arguments: given, path }) => [path?.join(), given])
      expect(shown.toSorted()).toEqual([
        ["t1.0", undefined],
        ["t1.1", { amount: 2 }]
      ])
    })
  )

  // A head that core cannot read is no loss: the events say all that it says.
  it.effect.each(damages.filter(([what]) => what !== "head core cannot read"))(
    "with a %s: its call is an error result that names it, the Run of its caller goes on, and no sweep goes round it",
    ([, wrong]) =>
      Effect.gen(function* () {
        const { damaged, here, ran, store } = yield* asking
        // Damaged after it was answered, so that its caller looks at it again.
        yield* here(answerAt(lead, "t1.0/t1.0", yes))
        yield* here(answerAt(lead, "t1.1/t1.0", yes))
        const before = yield* store.head(child)
        yield* damaged(wrong)(Run.recover([lead]))
        const [ann, bob] = only(yield* here(eventsOf(runId)), "ToolCallCompleted").toSorted((a, b) =>
          a.callId.localeCompare(b.callId)
        )
        expect(ann).toMatchObject({ callId: "t1.0", ending: "unknown", isFailure: true })
        expect(JSON.stringify(ann?.result)).toContain(child)
        expect(bob).toMatchObject({ callId: "t1.1", ending: "executed", result: "bob paid" })
        expect(ran).toEqual(["pay 2"])
        const { seq, status } = yield* damaged(wrong)(Run.get(runId))
        expect(status).toBe("completed")
        // It is reported and kept, never deleted or driven.
        expect(yield* store.head(child)).toMatchObject({ seq: before?.seq })
        yield* damaged(wrong)(Run.recover([lead]))
        expect((yield* here(Run.get(runId))).seq).toBe(seq)
      })
  )

  it.effect.each(damages)("with a %s: cancel ends its root and the others", ([, wrong]) =>
    Effect.gen(function* () {
      const { damaged, here, ran } = yield* asking
      yield* damaged(wrong)(Run.cancel({ runId }))
      expect((yield* here(Run.get(runId))).status).toBe("cancelled")
      expect((yield* here(Run.get("r.t1.1"))).status).toBe("cancelled")
      const [ann] = only(yield* here(eventsOf(runId)), "ToolCallCompleted").filter(({ callId }) => callId === "t1.0")
      expect(ann).toMatchObject({ ending: "unknown", isFailure: true })
      expect(ran).toEqual([])
    })
  )

  it.effect.each(damages)(
    "with a %s: neither remove nor prune deletes it, or its root, unless force is used",
    ([, wrong]) =>
      Effect.gen(function* () {
        const { damaged, here, store } = yield* asking
        yield* damaged(wrong)(Run.cancel({ runId }))
        expect((yield* here(Run.get(runId))).status).toBe("cancelled")
        // That of a head that core cannot read has ended by now, so its head is damaged once more.
        const again = damaged(wrong)
        expect(yield* again(told(Run.remove(runId)))).toMatch(/^Fatal (RunNotTerminal|CheckpointCorrupt)$/)
        expect(yield* again(Run.prune({ olderThan: 0 }))).toBe(0)
        for (const id of [runId, child]) expect(yield* store.head(id), id).toBeDefined()
        yield* again(Run.remove(runId, { force: true }))
        for (const id of [runId, child, "r.t1.1"]) expect(yield* store.head(id), id).toBeUndefined()
      })
  )

  it.effect.each(damages)("with a %s: remove by force takes the whole tree away", ([, wrong]) =>
    Effect.gen(function* () {
      const { damaged, store } = yield* asking
      yield* damaged(wrong)(Run.remove(runId, { force: true }))
      for (const id of [runId, child, "r.t1.1"]) expect(yield* store.head(id), id).toBeUndefined()
    })
  )
})
