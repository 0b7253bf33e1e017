import { describe, expect } from "@effect/vitest"
import { Agent, CheckpointStore, Run, RunEvent, RunState } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { readdirSync, readFileSync } from "node:fs"
import { project } from "../../../../packages/core/test/project.ts"
import type { Backend } from "../durable/backends.ts"
import { clerk, Look, task } from "../durable/Desk.ts"
import { isFull } from "../support.ts"
import { bodiesOf, eventsOf, expectValid, on, told } from "../durable/looks.ts"

const runId = "r"
const start = (...replies: Parameters<typeof task>) => ({ _tag: "Start", runId, task: task(...replies) }) as const

const folder = new URL("../../../../packages/core/test/fixtures/", import.meta.url)
interface Golden {
  readonly events: ReadonlyArray<unknown>
  readonly state: {
    readonly agent: string
    readonly outcome: { readonly _tag: string; readonly output?: unknown } | null
  }
}
const golden = (file: string): Golden => JSON.parse(readFileSync(new URL(file, folder), "utf8"))
/** Each is a story of Runs that an earlier release has written; its bytes stay for ever. */
const files = readdirSync(folder).toSorted()

/** What a resume gives of those that have no end yet. */
const resumed: Record<string, string> = {
  "07-message-while-waiting.json": "Completed", // a turn was under way: it is asked again
  "10-rate-limited-rest.json": "Completed", // its time has come long ago
  "11-fork.json": "Suspended" // a person must say what became of the call
}

/** Stores these bodies as a Run, in appends of three, with the head that they give. */
const put = (runId: string, bodies: ReadonlyArray<string>) =>
  CheckpointStore.CheckpointStore.use((store) =>
    Effect.gen(function* () {
      for (let seq = 0; seq < bodies.length; seq += 3) {
        const events = bodies.slice(seq, seq + 3)
        const head = headOf(bodies.slice(0, seq + 3))
        expect(yield* store.append({ runId, epoch: 0, expectedSeq: seq, events, head })).toEqual({ _tag: "Committed" })
      }
    })
  )

const headOf = (bodies: ReadonlyArray<string>): CheckpointStore.HeadRow => {
  const { head } = RunState.fromEvents(bodies.map((body) => Result.getOrThrow(RunEvent.decode(body))))
  const { agent, parent, session, status, updatedAt, waits, wakeAt } = head
  return {
    status,
    agent,
    updatedAt,
    waiting: status === "waiting" ? waits.map(({ kind }) => kind) : [],
    body: JSON.stringify(head),
    ...(session === undefined ? {} : { session }),
    ...(parent === undefined ? {} : { parent: parent.runId }),
    ...(wakeAt === undefined ? {} : { wakeAt })
  }
}

export const journals = (backend: Backend) =>
  describe("journals", () => {
    const it = on(backend)

    it("every golden journal is read byte for byte, folded into its state, and resumed", ({ here, life }) =>
      Effect.forEach(files, (file) =>
        Effect.gen(function* () {
          const { events, state } = golden(file)
          const bodies = events.map((event) => JSON.stringify(event))
          const runId = file.replace(".json", "")
          yield* here(put(runId, bodies))
          const read = yield* here(
            Effect.gen(function* () {
              expect(yield* bodiesOf(runId)).toEqual(bodies)
              expect(yield* Run.get(runId)).toMatchObject({ agent: state.agent, seq: bodies.length })
              return yield* eventsOf(runId)
            })
          )
          expect(project(RunState.fromEvents(read))).toEqual(state)
          const model = yield* ScriptedModel.make(() => ScriptedModel.text("done"))
          const isTyped = typeof (state.outcome?.output ?? "") !== "string"
          const heir = Agent.make(state.agent, { instructions: "Go on.", ...(isTyped ? { output: Schema.Json } : {}) })
          const without = [...RunState.fromEvents(read).plugins]
          const outcome = yield* life({ model })(told(Run.resume(heir, { runId, without })))
          expect([file, outcome]).toEqual([file, state.outcome?._tag ?? resumed[file]])
          yield* here(
            Effect.gen(function* () {
              const after = yield* bodiesOf(runId)
              expect(after.slice(0, bodies.length)).toEqual(bodies)
              if (state.outcome !== null) expect(after).toEqual(bodies)
              expect(yield* Run.fork({ runId, id: `${runId}-fork` })).toBe(`${runId}-fork`)
              yield* expectValid(runId, `${runId}-fork`)
            })
          )
        })
      ))

    for (const [what, damage, path] of [
      ["an unknown tag", (body: string) => body.replace('"TurnCompleted"', '"TurnDreamt"'), "_tag"],
      ["a missing field", (body: string) => body.replace('"result":', '"risult":'), "result"],
      ["a field of another type", (body: string) => body.replace(/"turn":\d+/, '"turn":"one"'), "turn"],
      ["no JSON", (body: string) => body.slice(0, -1), "$"]
    ] as const) {
      it(`RI-106 a journal with ${what} stops the resume with its path; nothing is asked or changed`, (office) =>
        Effect.gen(function* () {
          const { here, there } = office
          yield* there("A", start([["mail", { to: "bob" }]], [["pay", { amount: 1 }]], "done"))
          const bodies = yield* here(bodiesOf())
          const at = bodies.findIndex((body) => damage(body) !== body && !body.includes('"TurnStarted"'))
          const damaged = bodies.map((body, i) => (i === at ? damage(body) : body))
          const append = CheckpointStore.CheckpointStore.use((store) =>
            store.append({ runId: "damaged", epoch: 0, expectedSeq: 0, events: damaged, head: headOf(bodies) })
          )
          yield* here(append)
          // Its head says that there is something to do.
          yield* here(Run.send({ runId: "damaged", message: "go on" }))
          const stored = yield* here(bodiesOf("damaged"))
          const { requests, said } = yield* there("B", { _tag: "Resume", runId: "damaged" })
          expect(said).toMatchObject({ _tag: "Fatal", reason: { _tag: "CheckpointCorrupt", seq: at + 1 } })
          expect(JSON.stringify(said)).toContain(path)
          expect(requests).toEqual([])
          expect(yield* here(bodiesOf("damaged"))).toEqual(stored)
        }))
    }

    it("RI-080 a store grows with what is new: as many turns again take as much again", (office) =>
      Effect.gen(function* () {
        const { here, life, size } = office
        const turns = isFull ? 200 : 80
        const sizes: Array<number> = []
        const look = ({ at }: { readonly at: number }) =>
          Effect.gen(function* () {
            if (at === 1 || at === turns / 2 + 1) sizes.push(yield* size)
            return { seen: "x".repeat(1000) }
          })
        const model = yield* ScriptedModel.make(({ number }) =>
          number > turns ? ScriptedModel.text("done") : ScriptedModel.call("look", { at: number })
        )
        const long = Agent.make("long", { instructions: "Look.", tools: [Look], limits: { maxTurns: 1000 } })
        yield* life({ model, handlers: { look } })(Run.start(long, { runId, task: "go" }))
        const [empty = 0, half = 0] = sizes
        const whole = yield* size
        expect(whole - empty).toBeLessThan(5 * turns * 1100)
        expect(half - empty).toBeGreaterThan((turns / 2) * 1000)
        expect((whole - empty) / (half - empty)).toBeLessThan(2.5)
        const events = yield* here(eventsOf())
        expect(events.filter(({ _tag }) => _tag === "ToolCallCompleted")).toHaveLength(turns)
      }))

    it("RI-158 RI-155 prune takes Runs by age and status, with all that is kept of them, and nothing of the others", (office) =>
      Effect.gen(function* () {
        const { here, kept, life } = office
        const begin = (runId: string, ...replies: Parameters<typeof task>) =>
          Run.start(clerk, { runId, task: task(...replies) })
        const count = isFull ? 100 : 12
        const ids = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}`)
        yield* here(Effect.forEach(ids("finished", count), (id) => begin(id, "done")))
        yield* here(Effect.forEach(ids("waiting", 5), (id) => begin(id, [["pay", { amount: 1 }]])))
        yield* here(begin("cancelled", [["pay", { amount: 1 }]]))
        yield* here(Run.cancel({ runId: "cancelled" }))
        const running = yield* Effect.forkChild(
          life({})(Effect.forEach(ids("running", 5), (id) => begin(id, null), { concurrency: 5 }))
        )
        while ((yield* here(Run.list({ status: "running" }))).length < 5) yield* Effect.sleep("20 millis")
        const others = [...ids("running", 5), ...ids("waiting", 5)]
        const before = yield* here(Effect.forEach(others.slice(5), bodiesOf))
        expect(yield* here(Run.prune({ olderThan: "1 hour" }))).toBe(0)
        expect(yield* here(Run.prune({ olderThan: 0, status: ["cancelled", "running", "waiting"] }))).toBe(1)
        expect(yield* here(Run.prune({ olderThan: 0 }))).toBe(count)
        expect(yield* here(Run.prune({ olderThan: 0 }))).toBe(0)
        expect((yield* here(Run.list())).map(({ runId }) => runId).toSorted()).toEqual(others)
        const left = yield* kept
        expect(left.length).toBeGreaterThan(10)
        expect(left.filter((name) => /finished|cancelled|of no Run/.test(name))).toEqual([])
        expect(yield* here(Effect.forEach(others.slice(5), bodiesOf))).toEqual(before)
        yield* Fiber.interrupt(running)
        yield* here(Effect.forEach(others, (runId) => Stream.runDrain(Run.events(runId, { follow: false }))))
      }))
  })
