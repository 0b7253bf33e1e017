/**
 * Writes the span of one model call: a Turn, or a compaction, with its tries as events.
 *
 * Its time is that of the whole call: it begins with the first request and ends when the last part has come, so a streamed
 * call has its usage, its length and the time to its first part, also where it was stopped (RI-033).
 *
 * @since 0.1.0
 */
import type { RunEvent, Usage } from "@waystone/core"
import { finishReason, own } from "./Conventions.ts"
import { type Attributes, attributes, type FinishedSpan, type SpanEvent, type Value } from "./FinishedSpan.ts"
import { assistant, type Message } from "./Messages.ts"
import * as Writing from "./Writing.ts"

/** What is known of a call when it begins. */
export interface Open {
  readonly seq: number
  readonly spanId: string
  readonly started: RunEvent.Of<"TurnStarted"> | RunEvent.Of<"CompactionStarted">
  /** What guards said about it. */
  readonly events: ReadonlyArray<SpanEvent>
  /** What is new for the model, where content is captured. */
  readonly input: ReadonlyArray<Message>
}

export type End =
  | RunEvent.Of<"TurnCompleted">
  | RunEvent.Of<"TurnFailed">
  | RunEvent.Of<"CompactionCompleted">
  | RunEvent.Of<"CompactionFailed">
  /** Its process died: nothing is known but that. */
  | { readonly _tag: "Lost"; readonly at: number }

type Span = Omit<FinishedSpan, "traceId" | "parentId">

/** The span of a call that has ended. `common` are the attributes that every span of the Run has. */
export const make = (writing: Writing.Writing, common: Attributes, open: Open, end: End): Span => {
  const { names } = writing
  const { seq, spanId, started } = open
  const { model, provider } = started
  const tries = "tries" in end ? (end.tries ?? []) : []
  const failed = failureOf(writing, end)
  const turn = started._tag === "TurnStarted" ? started : undefined
  return {
    spanId,
    name: `chat ${model ?? "unknown"}`,
    kind: "client",
    start: started.at,
    end: Math.max(started.at, end.at),
    attributes: attributes({
      ...common,
      [names.operation]: "chat",
      [names.provider]: writing.provider(provider),
      [names.requestModel]: model ?? "unknown",
      ...Writing.server(writing, turn?.server),
      ...(turn === undefined ? { "waystone.compaction": true } : asked(writing, turn)),
      [own.seq]: seq,
      ...answered(writing, started, end),
      [own.tries]: tries.length === 0 ? undefined : tries.length,
      [names.errorType]: failed?.code,
      ...said(writing, open, end)
    }),
    events: [...open.events, ...tries.map((one, index) => tryEvent(writing, one, index))],
    links: [],
    ...(failed === undefined ? undefined : { failed: failed.detail })
  }
}

type Some = Readonly<Record<string, Value | undefined>>

const asked = ({ names }: Writing.Writing, { settings = {}, stream, turn }: RunEvent.Of<"TurnStarted">): Some => {
  const number = (name: string) => (typeof settings[name] === "number" ? settings[name] : undefined)
  const whole = (name: string) => (Number.isInteger(settings[name]) ? number(name) : undefined)
  const { reasoning, stopSequences } = settings
  const stops = Array.isArray(stopSequences) ? stopSequences.filter((stop) => typeof stop === "string") : []
  return {
    [own.turn]: turn,
    [names.stream]: stream ? true : undefined,
    [names.maxTokens]: whole("maxOutputTokens"),
    [names.temperature]: number("temperature"),
    [names.topP]: number("topP"),
    [names.topK]: whole("topK"),
    [names.seed]: whole("seed"),
    [names.presencePenalty]: number("presencePenalty"),
    [names.frequencyPenalty]: number("frequencyPenalty"),
    [names.stopSequences]: stops.length === 0 ? undefined : stops,
    [names.reasoningLevel]: typeof reasoning === "string" ? reasoning : undefined
  }
}

const answered = (writing: Writing.Writing, started: Open["started"], end: End): Some => {
  if (end._tag === "Lost") return { "waystone.lost": true }
  const { names } = writing
  const used: Usage.Usage | undefined = end.usage
  const spent = {
    ...(used === undefined ? undefined : Writing.usage(writing, used)),
    [own.cost]: Writing.cost(end.costNanoUsd)
  }
  if (end._tag === "TurnFailed" || end._tag === "CompactionFailed") {
    const first = end.tries.findLast(({ firstPartAt }) => firstPartAt !== undefined)?.firstPartAt
    return { ...spent, [names.firstChunk]: firstChunk(started, first), [names.finishReasons]: ["error"] }
  }
  if (end._tag === "CompactionCompleted") return { ...spent, [names.responseModel]: end.responseModel }
  return {
    ...spent,
    [names.responseId]: end.responseId,
    [names.responseModel]: end.responseModel,
    [names.finishReasons]: [finishReason(end.finish)],
    [names.firstChunk]: firstChunk(started, end.firstPartAt),
    [own.rejected]: end.rejected?.kind
  }
}

/** Seconds from the first request; only of a call that streams. */
const firstChunk = (started: Open["started"], at: number | undefined): number | undefined =>
  started._tag === "TurnStarted" && started.stream && at !== undefined ? Math.max(0, at - started.at) / 1000 : undefined

const said = (
  { capture, names }: Writing.Writing,
  { input, started }: Open,
  end: End
): Readonly<Record<string, Value>> => {
  if (capture === undefined || started._tag !== "TurnStarted") return {}
  const asked = input.length === 0 ? undefined : { [names.inputMessages]: capture.messages(input) }
  if (end._tag !== "TurnCompleted") return { ...asked }
  const { finish, reply, turn } = end
  return {
    ...asked,
    [names.outputMessages]: capture.messages([assistant({ turn, reply, finish: finishReason(finish) })])
  }
}

const failureOf = ({ capture }: Writing.Writing, end: End) => {
  if (end._tag === "Lost") return { code: "lost", detail: {} }
  if (end._tag !== "TurnFailed" && end._tag !== "CompactionFailed") return undefined
  const { failure } = end
  return {
    code: Writing.failureCode(failure),
    detail: capture === undefined ? {} : { message: capture.text(failure.message) }
  }
}

const tryEvent = (writing: Writing.Writing, one: RunEvent.Try, index: number): SpanEvent => {
  const { names } = writing
  return {
    name: "waystone.try",
    at: one.at,
    attributes: attributes({
      "waystone.try": index + 1,
      "waystone.try.duration_ms": Math.max(0, one.endedAt - one.at),
      [names.provider]: one.provider === undefined ? undefined : writing.provider(one.provider),
      [names.requestModel]: one.model,
      [names.responseModel]: one.responseModel,
      ...Writing.server(writing, one.server),
      ...(one.usage === undefined ? undefined : Writing.usage(writing, one.usage)),
      [own.cost]: Writing.cost(one.costNanoUsd),
      [names.errorType]: one.failure === undefined ? undefined : Writing.failureCode(one.failure),
      "waystone.failure.message":
        one.failure === undefined || writing.capture === undefined
          ? undefined
          : writing.capture.text(one.failure.message)
    })
  }
}
