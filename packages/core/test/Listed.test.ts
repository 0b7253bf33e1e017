import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import { type CheckpointStore, type Entry, type Filter, leftOut } from "../src/CheckpointStore.ts"
import * as Run from "../src/Run.ts"
import { CheckpointCorrupt } from "../src/RunError.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { begin, clerk, pass, told, world } from "./support/scenario.ts"

const { hang, text } = ScriptedModel

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${100 + i}`)

/** A store in which the heads of these Runs are damaged. */
const damaging =
  (isBad: (runId: string) => boolean, body: (entry: Entry) => string = () => "{}") =>
  (store: CheckpointStore["Service"]): CheckpointStore["Service"] => {
    const damaged = (entry: Entry): Entry => (isBad(entry.runId) ? { ...entry, body: body(entry) } : entry)
    return {
      ...store,
      head: (runId) => Effect.map(store.head(runId), (entry) => entry && damaged(entry)),
      list: (filter, page) => Effect.map(store.list(filter, page), (entries) => entries.map(damaged))
    }
  }

/** Runs it and gives the warnings that were logged meanwhile. */
const warned = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") lines.push(String(message))
    })
    return Effect.map(Effect.provide(effect, Logger.layer([logger])), (value) => ({ value, lines }))
  })

const isBad = (runId: string) => runId.startsWith("bad")

/** Accepted and completed Runs, with damaged ones among them. */
const scene = (body?: (entry: Entry) => string) =>
  Effect.gen(function* () {
    const one = yield* world
    const model = yield* ScriptedModel.make(() => text("done"))
    const wrap = damaging(isBad, body)
    return {
      store: one.store,
      anywhere: one.process,
      process: one.process({ model, wrap }),
      sound: one.process({ model })
    }
  })

describe("a Run whose head is damaged", () => {
  const bodies: ReadonlyArray<readonly [string, (entry: Entry) => string]> = [
    ["is no JSON", () => "{"],
    ["is null", () => "null"],
    ["has no lists", () => '{"status":"accepted"}'],
    ["lacks its open calls", ({ body }) => JSON.stringify({ ...JSON.parse(body), open: undefined })],
    ["says another status than its row", ({ body }) => JSON.stringify({ ...JSON.parse(body), status: "completed" })]
  ]
  it.effect.each(bodies)("since it %s is left out of a list, named, and CheckpointCorrupt when asked for", ([, body]) =>
    Effect.gen(function* () {
      const { process, sound } = yield* scene(body)
      for (const runId of ["a", "bad", "c"]) yield* sound(Run.accept(clerk, { runId, task: "go" }))
      const { lines, value } = yield* warned(process(Run.list()))
      expect(value.map(({ runId }) => runId)).toEqual(["a", "c"])
      expect(lines).toEqual(["Left out of a list: Run bad: event 1 is damaged at head. It was left as it is."])
      expect(yield* process(told(Run.get("bad")))).toBe("Fatal CheckpointCorrupt")
    })
  )

  it.effect("shortens no page, so that paging reaches every other Run", () =>
    Effect.gen(function* () {
      const { process, sound } = yield* scene()
      const good = ids("r", 7)
      const all = [...good.slice(0, 2), ...ids("bad", 15), ...good.slice(2)]
      for (const runId of [...all, "bad-last"]) {
        yield* sound(Run.accept(clerk, { runId, task: "go" }))
        yield* pass(1)
      }
      const seen: Array<ReadonlyArray<string>> = []
      const { lines } = yield* warned(
        Effect.gen(function* () {
          let after: Run.RunInfo | undefined
          while (true) {
            const page = yield* process(Run.list({ limit: 3, ...(after && { after }) }))
            seen.push(page.map(({ runId }) => runId))
            after = page.at(-1)
            if (page.length < 3) return
          }
        })
      )
      expect(seen).toEqual([good.slice(0, 3), good.slice(3, 6), good.slice(6)])
      expect(lines).toHaveLength(2)
      expect(lines[0]).toMatch(/ Run bad109: .* And 5 more\.$/)
    })
  )

  it.effect("is told by a sweep and left alone by a worker, and keeps neither from the others", () =>
    Effect.gen(function* () {
      const { anywhere, process, sound } = yield* scene()
      const hanging = yield* ScriptedModel.make([hang, hang, hang])
      const startHere = (runId: string) => anywhere({ model: hanging })(Run.start(clerk, { runId, task: "go" }))
      for (const runId of ["a", "bad", "c"]) yield* Fiber.interrupt(yield* begin(startHere(runId)))
      const swept = yield* process(Run.recover([clerk]))
      expect(swept.map((one) => [one.runId, one._tag])).toEqual([
        ["a", "Driven"],
        ["bad", "Failed"],
        ["c", "Driven"]
      ])
      for (const runId of ["d", "bad2", "e"]) yield* sound(Run.accept(clerk, { runId, task: "go" }))
      const heard: Array<string> = []
      const onDriven = (one: Run.Recovered) => Effect.sync(() => void heard.push(`${one.runId} ${one._tag}`))
      const worker = yield* begin(process(Run.work([clerk], { onDriven })))
      yield* pass(10_000)
      yield* Fiber.interrupt(worker)
      expect(heard.toSorted()).toEqual(["bad Failed", "bad2 Failed", "d Driven", "e Driven"])
    })
  )

  it.effect("W5 is told of once by a worker, however often it looks, and each time by a list", () =>
    Effect.gen(function* () {
      const one = yield* world
      const bad = ids("bad", 15).map((runId) => new CheckpointCorrupt({ runId, seq: 0, path: "row" }))
      const looks = { count: 0, damaged: bad.slice(0, 12) }
      const wrap = (store: CheckpointStore["Service"]): CheckpointStore["Service"] => ({
        ...store,
        list: (filter, page) =>
          Effect.suspend(() => {
            looks.count++
            return Effect.tap(store.list(filter, page), () => leftOut(looks.damaged))
          })
      })
      const process = one.process({ model: yield* ScriptedModel.make([]), wrap })
      const worker = Effect.gen(function* () {
        const worker = yield* begin(process(Run.work([clerk])))
        yield* pass(10_000)
        looks.damaged = bad
        yield* pass(10_000)
        yield* Fiber.interrupt(worker)
      })
      const { lines } = yield* warned(worker)
      expect(looks.count).toBeGreaterThan(20)
      expect(lines).toHaveLength(2)
      expect(lines[0]).toMatch(/^Left out of a list: Run bad100 is damaged at row\. .* Run bad109 .* And 2 more\.$/)
      expect(lines[1]).toMatch(/^Left out of a list: Run bad112 .* Run bad114 [^.]+\. It was left as it is\.$/)
      const listed = Effect.andThen(process(Run.list()), process(Run.list()))
      expect((yield* warned(listed)).lines).toHaveLength(2)
    })
  )

  it.effect("is kept by prune, which takes the others", () =>
    Effect.gen(function* () {
      const { process, sound, store } = yield* scene()
      for (const runId of ["a", "bad", "c"]) yield* sound(Run.start(clerk, { runId, task: "go" }))
      const { lines, value } = yield* warned(process(Run.prune({ olderThan: 0 })))
      expect(value).toBe(2)
      expect(lines).toEqual([expect.stringContaining("Run bad: ")])
      expect((yield* store.list({}, { limit: 10 })).map(({ runId }) => runId)).toEqual(["bad"])
    })
  )
})

describe("list", () => {
  it.effect.each<readonly [string, Run.ListInput]>([
    ["limit", { limit: Infinity }],
    ["limit", { limit: 1.5 }],
    ["limit", { limit: 1e20 }],
    ["limit", { limit: NaN }],
    ["limit", { limit: 0 }],
    ["limit", { limit: -1 }],
    ["after.updatedAt", { after: { runId: "a", updatedAt: NaN } }],
    ["after.updatedAt", { after: { runId: "a", updatedAt: Infinity } }]
  ])("refuses a wrong %s by name, without asking the store (%o)", ([field, input]) =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([])
      const wrap = (store: CheckpointStore["Service"]) => ({ ...store, list: () => Effect.die("asked") })
      const error = yield* Effect.flip((yield* world).process({ model, wrap })(Run.list(input)))
      expect(error.reason).toMatchObject({ _tag: "InputInvalid", field: `Run.list: ${field}` })
      expect(error.message).toMatch(/^Run\.list: \S+ is \S+: it must be a /)
    })
  )
})

describe("prune", () => {
  it.effect("goes on where the store says that one Run is damaged", () =>
    Effect.gen(function* () {
      const { process, sound } = yield* world.pipe(
        Effect.flatMap((one) =>
          Effect.map(
            ScriptedModel.make(() => text("done")),
            (model) => ({
              sound: one.process({ model }),
              process: one.process({
                wrap: (store) => ({
                  ...store,
                  remove: (runId, seq) =>
                    isBad(runId)
                      ? Effect.fail(new CheckpointCorrupt({ runId, seq: 0, path: "row" }))
                      : store.remove(runId, seq)
                })
              })
            })
          )
        )
      )
      for (const runId of ["a", "bad", "c"]) yield* sound(Run.start(clerk, { runId, task: "go" }))
      const { lines, value } = yield* warned(process(Run.prune({ olderThan: 0 })))
      expect(value).toBe(2)
      expect(lines).toEqual(["Run bad is damaged at row. It was left as it is."])
    })
  )

  it.effect("RI-158 asks for one status at a time and never again for what it has seen", () =>
    Effect.gen(function* () {
      const one = yield* world
      const model = yield* ScriptedModel.make(() => text("done"))
      const asked: Array<readonly [Filter["status"], string | undefined]> = []
      const process = one.process({
        model,
        wrap: (store) => ({
          ...store,
          list: (filter, page) => {
            asked.push([filter.status, page.after?.runId])
            return store.list(filter, page)
          },
          remove: (runId, seq) => (runId.startsWith("kept") ? Effect.succeed(false) : store.remove(runId, seq))
        })
      })
      for (const runId of [...ids("kept", 100), ...ids("taken", 100), "last"])
        yield* process(Run.start(clerk, { runId, task: "go" }))
      expect(yield* process(Run.prune({ olderThan: 0, status: ["cancelled", "completed", "completed"] }))).toBe(101)
      expect(asked.map(([status]) => status)).toEqual([["completed"], ["completed"], ["completed"], ["cancelled"]])
      expect(new Set(asked.map(([, after]) => after)).size).toBe(3)
    })
  )
})
