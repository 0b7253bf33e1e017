import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import { History } from "../src/History.ts"
import * as Messages from "../src/Messages.ts"
import * as Run from "../src/Run.ts"
import * as PairingChecker from "../src/testing/PairingChecker.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as Window from "../src/Window.ts"
import { agentOf, journal, scene } from "./support/turns.ts"

/** A turn: how many calls it makes, whether it thinks first, and whether the user speaks after it. */
const Turn = Schema.Struct({
  calls: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 })),
  thinks: Schema.Boolean,
  user: Schema.Boolean
})
const Turns = Schema.Array(Turn).check(Schema.isMaxLength(12))
const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 }))

const of = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.reduce((history, message) => history.append(message), History.empty())

const historyOf = (turns: ReadonlyArray<typeof Turn.Type>): History =>
  of([
    Messages.user("the task"),
    ...turns.flatMap(({ calls, thinks, user }, turn): ReadonlyArray<Prompt.Message> => {
      const ids = Array.from({ length: calls }, (_, i) => `${turn}.${i}`)
      const answer = Prompt.makeMessage("assistant", {
        content: [
          ...(thinks ? [Prompt.makePart("reasoning", { text: "hm" })] : []),
          Prompt.makePart("text", { text: `turn ${turn}` }),
          ...ids.map((id) => Prompt.makePart("tool-call", { id, name: "look", params: {}, providerExecuted: false }))
        ]
      })
      const results = ids.map((wireId) => ({ wireId, wireName: "look", isFailure: false, result: turn }))
      return [answer, ...(calls > 0 ? [Messages.tool(results)] : []), ...(user ? [Messages.user(`and ${turn}`)] : [])]
    })
  ])

describe("Window", () => {
  it.prop(
    "RI-008 lastMessages keeps calls and results together for every history and count",
    [Turns, Count],
    ([turns, count]) => {
      const history = historyOf(turns)
      const window = Window.lastMessages(count)
      const shown = window(history)
      const all = history.slice()
      expect(PairingChecker.violations(shown)).toEqual([])
      expect(shown[0]).toBe(all[0])
      // The task, the last turn whole, and no more than was asked for.
      const last = all.length - all.findLastIndex((message) => message.role === "assistant")
      expect(shown.length).toBeLessThanOrEqual(1 + Math.max(count, last))
      expect(shown.at(-1)).toBe(all.at(-1))
      expect(shown.slice(1)).toEqual(all.slice(all.length - shown.length + 1))
      expect(window(of(shown))).toEqual(shown)
      if (count >= history.length - 1) expect(shown).toEqual(all)
    }
  )

  it.prop("RI-008 lastMessages leaves out at most one message more than it must", [Turns, Count], ([turns, count]) => {
    const history = historyOf(turns)
    const shown = Window.lastMessages(count)(history)
    expect(shown.length).toBeGreaterThanOrEqual(Math.min(history.length, count))
  })

  it.prop("all shows everything", [Turns], ([turns]) => {
    const history = historyOf(turns)
    expect(Window.all(history)).toEqual(history.slice())
    expect(Window.all(history)).toHaveLength(history.length)
  })

  it.effect("RI-008 a Run that shows its last messages only has requests of bounded size that providers take", () =>
    scene(
      ({ number }) =>
        number === 30
          ? ScriptedModel.text("done")
          : ScriptedModel.calls(Array.from({ length: 1 + (number % 3) }, (_, at) => ["look", { at }] as const)),
      ({ model }) =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ window: Window.lastMessages(6), limits: { maxTurns: 30 } })
          expect(yield* Run.start(agent, { runId: "r", task: "the task" })).toMatchObject({
            _tag: "Completed",
            turns: 30
          })
          const requests = yield* model.requests
          expect(Math.max(...requests.map(({ messages }) => messages.length))).toBe(8)
          expect(requests.map(({ messages }) => messages[1])).toEqual(Array(30).fill(requests[0]?.messages[1]))
          yield* journal("r")
        })
    )
  )

  it.effect("a Run shows all of its history by default", () =>
    scene(
      ({ number }) => (number === 10 ? ScriptedModel.text("done") : ScriptedModel.call("look", { at: number })),
      ({ model }) =>
        Effect.gen(function* () {
          yield* Run.start(yield* agentOf(), { runId: "r", task: "the task" })
          expect((yield* model.requests).map(({ messages }) => messages.length)).toEqual([
            2, 4, 6, 8, 10, 12, 14, 16, 18, 20
          ])
        })
    )
  )
})
