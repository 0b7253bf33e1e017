/**
 * `approvals` lists what waits for a person; `approve`, `deny` and `answer` say what the person says. Whoever waits for it
 * at another terminal goes on within a second.
 */
import { type Outcome, Run, type RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Asked from "../approval/Asked.ts"
import { person } from "../approval/Policy.ts"
import * as Rules from "../approval/Rules.ts"
import { spoken, Unusable } from "../Complaint.ts"
import * as Drive from "../Drive.ts"
import * as Layers from "../Layers.ts"
import { Keeping } from "../Stores.ts"
import * as CallPath from "./CallPath.ts"
import { printer, said } from "./Print.ts"
import * as Options from "./Options.ts"

const maxRuns = 1_000

export const approvals = Command.make("approvals", {}, () =>
  Effect.gen(function* () {
    const { json, store } = yield* Options.kept
    const print = yield* printer(json)
    const { command, found } = yield* Effect.provide(
      Effect.gen(function* () {
        const runs = yield* Run.list({ status: ["waiting", "running"], waiting: "approval", limit: maxRuns })
        const all = yield* Effect.forEach(
          runs.filter(({ parent }) => parent === undefined),
          ({ runId }) => Run.get(runId)
        )
        const { command } = yield* Keeping
        return { command, found: all.flatMap(({ runId, waiting }) => open(waiting).map((wait) => ({ runId, wait }))) }
      }),
      Layers.looking(store)
    )
    if (json)
      return yield* Effect.forEach(found, (one) => print({ json: { _tag: "Approval", ...one }, lines: () => [] }), {
        discard: true
      })
    if (found.length === 0) return yield* print(said("Nothing waits for an answer.", undefined))
    yield* print({
      json: undefined,
      lines: (style) =>
        found.flatMap(({ runId, wait }) => [
          ...Asked.lines({ ...wait, id: CallPath.of(wait) }, style),
          `  ${command(`approve ${runId} ${CallPath.of(wait)}`)}`,
          `  ${command(`deny ${runId} ${CallPath.of(wait)} --reason …`)}`
        ])
    })
  }).pipe(spoken)
).pipe(Command.withDescription("List the calls of all Runs that wait for a person's yes or no, and how to give it"))

/** A worker's question is its root's as well: it is listed there, with the way to it. */
const open = (waiting: ReadonlyArray<Outcome.Waiting>) =>
  waiting.flatMap((wait) => (wait.kind === "approval" ? [wait] : []))

const call = Argument.String("call").pipe(
  Argument.withDescription(
    "The id of the call, as `approvals` or `show` names it; t2.0/t1.3 is call t1.3 of the worker that t2.0 began"
  )
)

const Json = Schema.fromJsonString(Schema.Json)
const parsed = (what: string, text: string) =>
  Effect.mapError(Schema.decodeEffect(Json)(text), () => new Unusable({ message: `${what} is no JSON: ${text}` }))

export const approve = Command.make(
  "approve",
  {
    run: Options.run,
    call,
    always: Flag.Boolean("always").pipe(
      Flag.withDescription("Also for every later call of this tool with these arguments in this Run"),
      Flag.withDefault(false)
    ),
    edited: Flag.String("edited").pipe(
      Flag.withMetavar("json"),
      Flag.withDescription("Let it run with these arguments instead"),
      Flag.optional
    )
  },
  ({ always, call, edited, run }) =>
    Effect.gen(function* () {
      const instead = yield* Effect.transposeOption(Option.map(edited, (text) => parsed("--edited", text)))
      yield* answering(run, call, (digest) => ({
        _tag: "Approve",
        digest,
        ...(always ? { scope: "run" as const } : {}),
        ...Option.match(instead, { onNone: () => ({}), onSome: (edited) => ({ edited }) })
      }))
    }).pipe(spoken)
).pipe(Command.withDescription("Let a call that waits run"))

export const deny = Command.make(
  "deny",
  {
    run: Options.run,
    call,
    reason: Flag.String("reason").pipe(Flag.withDescription("Why; the agent is told"), Flag.withDefault("no"))
  },
  ({ call, reason, run }) => spoken(answering(run, call, (digest) => ({ _tag: "Deny", digest, reason })))
).pipe(Command.withDescription("Refuse a call that waits; it does not run"))

export const answer = Command.make(
  "answer",
  {
    run: Options.run,
    call,
    value: Argument.String("json").pipe(Argument.withDescription('The result, as JSON: 42, true, "text"'))
  },
  ({ call, run, value }) =>
    Effect.gen(function* () {
      const given = yield* parsed("the answer", value)
      yield* answering(run, call, (digest, kind) =>
        kind === "in-doubt" ? { _tag: "TakeResult", value: given, digest } : { _tag: "Value", value: given }
      )
    }).pipe(spoken)
).pipe(Command.withDescription("Give the result of a call that waits for one from outside, or that is in doubt"))

const answering = Effect.fnUntraced(function* (
  runId: string,
  call: string,
  answer: (digest: string, kind: Outcome.Waiting["kind"] | undefined) => RunEvent.Answer
) {
  const { json, store } = yield* Options.kept
  const print = yield* printer(json)
  const by = person()
  const goOn = yield* Effect.provide(
    Effect.gen(function* () {
      const { agent, info } = yield* Drive.agentOf(runId)
      const { callId, path } = CallPath.parse(call)
      const wait = info.waiting.find((one) => CallPath.of(one) === call)
      const digest = wait?.digest ?? info.deferred.find(({ id }) => id === call)?.digest ?? ""
      yield* Run.answer(agent, { runId, callId, ...path, by, answer: answer(digest, wait?.kind) })
      const rules = Rules.reminder(yield* Rules.ofRun(runId))
      return (yield* Keeping).command(`resume ${runId}`) + rules
    }),
    Layers.looking(store)
  )
  const line = `Answered by ${by}. Whoever waits for it at a terminal goes on now; if nobody does: ${goOn}`
  yield* print(said(line, { _tag: "Answered", runId, callId: call, by, goOn }))
})
