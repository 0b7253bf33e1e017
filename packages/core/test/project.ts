import * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import type * as RunState from "../src/RunState.ts"

/** The state in the fixture form of docs/events.md, section 3. */
export const project = (state: RunState.RunState) => {
  const { head } = state
  const whenSet = <A>(key: string, value: A | undefined) => (value === undefined ? {} : { [key]: value })
  return JSON.parse(
    JSON.stringify({
      seq: state.seq,
      status: head.status,
      agent: head.agent,
      version: head.version,
      turn: head.turn,
      turnOpen: head.turnOpen,
      history: state.history.slice().map(message),
      calls: state.calls.map((call) => ({
        callId: call.callId,
        name: call.name,
        arguments: call.arguments,
        status: call.status,
        ...whenSet("effect", call.effect),
        ...whenSet("key", call.key),
        ...whenSet("settled", call.settled),
        ...whenSet("result", call.result),
        ...whenSet("isFailure", call.isFailure),
        ...whenSet("waits", call.waits),
        ...whenSet("child", call.child)
      })),
      inbox: state.inbox,
      usage: nonZero(head.usage),
      costNanoUsd: head.costNanoUsd ?? null,
      toolCalls: head.toolCalls,
      consecutiveFailures: state.consecutiveFailures,
      rejections: nonZero(state.rejections),
      rests: state.rests,
      recoveries: state.recoveries,
      attempts: head.attempts,
      activeMs: state.activeMs,
      waits: head.waits.map(({ id, kind, since }) => ({ id, kind, since })),
      outcome: state.outcome ?? null,
      ...whenSet("session", head.session),
      ...whenSet("parent", head.parent),
      ...whenSet("forkedFrom", state.forkedFrom),
      ...whenSet("final", state.final),
      ...whenSet("feedback", state.feedback),
      ...whenSet("answer", state.answer?.text),
      ...whenSet("paused", head.paused),
      ...whenSet("cancelled", head.cancelled),
      ...whenSet(
        "retry",
        head.retry && { wakeAt: head.retry.wakeAt, count: head.retry.count, failure: head.retry.failure }
      ),
      ...whenSet("failure", state.failure),
      ...whenSet("fatal", state.fatal),
      ...whenSet("stopReason", state.stopReason),
      ...whenSet("stepAsk", state.stepAsk),
      ...whenSet("compaction", head.compacted && { ...head.compacted, ...whenSet("summary", state.summary) }),
      ...whenSet("limits", state.limits),
      ...whenSet("wakeAt", head.wakeAt),
      ...(Object.keys(head.decisions).length === 0 ? {} : { decisions: head.decisions }),
      ...(head.deferred.length === 0 ? {} : { deferred: head.deferred }),
      ...whenSet("costUnknown", head.costUnknown)
    })
  )
}

const nonZero = (counts: object) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))

const encode = Schema.encodeSync(Schema.toCodecJson(Prompt.Message))

const message = (message: Prompt.Message) => {
  const encoded: { readonly role: string; readonly content: unknown } = JSON.parse(JSON.stringify(encode(message)))
  const { content } = encoded
  if (!Array.isArray(content)) {
    return { role: encoded.role, content: encoded.role === "assistant" ? [{ type: "text", text: content }] : content }
  }
  if (encoded.role !== "tool") return { role: encoded.role, content: content.map(withoutEmptyOptions) }
  return { role: "tool", content: content.map(({ id, isFailure, name, result }) => ({ id, name, isFailure, result })) }
}

const withoutEmptyOptions = ({ options, ...part }: { readonly options?: object }) =>
  options === undefined || Object.keys(options).length === 0 ? part : { ...part, options }
