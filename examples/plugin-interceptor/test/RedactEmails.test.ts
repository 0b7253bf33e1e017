import { expect, it } from "@effect/vitest"
import { Agent, MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { RedactEmails } from "@waystone/example-plugin-interceptor"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"

const Lookup = Tool.make("lookup", {
  parameters: Schema.Struct({ name: Schema.String }),
  success: Schema.Struct({
    note: Schema.String,
    contacts: Schema.Array(Schema.String),
    byMail: Schema.Record(Schema.String, Schema.Int)
  }),
  failure: Schema.String
}).annotate(Tool.Readonly, true)
const Tools = Toolkit.make(Lookup)
const agent = Agent.make("clerk", { instructions: "Look people up.", tools: [Tools], requires: [RedactEmails] })

const { call, hang, text } = ScriptedModel
const lookup = (name: string) => call("lookup", { name })
const handlers = Tools.toLayer({
  lookup: ({ name }) =>
    name === "nobody"
      ? Effect.fail("no such person, ask admin@example.com")
      : Effect.succeed({
          note: `${name}:\n${name}@example.com or ${name}+work@mail.example.com.`,
          contacts: [`${name}@example.com`],
          byMail: { [`${name}@example.com`]: 3 }
        })
})
const journal = (runId: string) =>
  Run.events(runId).pipe(
    Stream.map(({ event }) => event),
    Stream.runCollect
  )

it.layer(MemoryStore.layer)((it) => {
  it.effect("the model and the journal get the changed result", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([lookup("ann"), lookup("nobody"), text("done")])
      const outcome = yield* Run.start(agent, { runId: "redacts", task: "Who is Ann?" }).pipe(
        Effect.provide(Layer.mergeAll(model.layer, handlers, RedactEmails.layer()))
      )
      expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })

      const events = yield* journal("redacts")
      expect(events.filter(({ _tag }) => _tag === "ToolCallCompleted")).toMatchObject([
        {
          isFailure: false,
          result: { note: "ann:\n[e-mail] or [e-mail].", contacts: ["[e-mail]"], byMail: { "[e-mail]": 3 } }
        },
        { isFailure: true, result: "no such person, ask [e-mail]" }
      ])
      const [, second, third] = yield* model.requests
      expect(JSON.stringify(second)).toContain("[e-mail] or [e-mail].")
      expect(JSON.stringify(third)).toContain("ask [e-mail]")
      expect(JSON.stringify([events, yield* model.requests])).not.toContain("example.com")
      yield* model.assertConsumed
    })
  )

  it.effect("runs on every execution, not on replay, and never decides", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const redact = RedactEmails.layer((address) => `[e-mail ${seen.push(address)}]`)
      const first = yield* ScriptedModel.make([lookup("ann"), hang])
      const fiber = yield* Run.start(agent, { runId: "replays", task: "Who are they?" }).pipe(
        Effect.provide(Layer.mergeAll(first.layer, handlers, redact)),
        Effect.forkChild
      )
      yield* TestClock.adjust("1 second")
      expect(yield* first.requests).toHaveLength(2)
      expect(seen).toHaveLength(4)
      yield* Fiber.interrupt(fiber)

      const model = yield* ScriptedModel.make([lookup("bob"), text("done")])
      const live = Layer.mergeAll(model.layer, handlers, redact)
      yield* Run.resume(agent, { runId: "replays" }).pipe(Effect.provide(live))
      expect(seen).toHaveLength(8)
      const [request] = yield* model.requests
      expect(JSON.stringify(request)).toContain("[e-mail 1]")

      yield* Run.start(agent, { runId: "replays", task: "Who are they?" }).pipe(Effect.provide(live))
      expect(seen).toHaveLength(8)
      const tags = (yield* journal("replays")).map(({ _tag }) => _tag)
      expect(tags.filter((tag) => tag === "ToolCallCompleted")).toHaveLength(2)
      expect(tags).not.toContain("VerdictGiven")
      expect(tags).not.toContain("ApprovalRequested")
    })
  )
})
