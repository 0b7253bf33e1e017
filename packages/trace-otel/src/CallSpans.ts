/**
 * Follows the tool calls of a Run from what is said about them to their end.
 *
 * @since 0.1.0
 */
import { type RunEvent, RunHead } from "@waystone/core"
import { own } from "./Conventions.ts"
import type { Place } from "./Attempts.ts"
import { attributes, type SpanEvent } from "./FinishedSpan.ts"
import * as SpanIds from "./SpanIds.ts"
import * as ToolSpan from "./ToolSpan.ts"
import type { Writing } from "./Writing.ts"

type Span = ReturnType<typeof ToolSpan.make>

/** What stands for a tool that the agent does not have: a model can invent any name. */
const noTool = "_OTHER"

export class CallSpans {
  private readonly runId: string
  private readonly writing: Writing
  private tools: Readonly<Record<string, RunEvent.ToolRecord>> = {}
  private readonly open = new Map<string, ToolSpan.Open>()
  /** Of calls that have not started, or not again: what was said, and when they were asked about. */
  private readonly said = new Map<string, Array<SpanEvent>>()
  private readonly asked = new Map<string, number>()
  private readonly starts = new Map<string, number>()
  private readonly written = new Map<string, unknown>()

  constructor(runId: string, writing: Writing) {
    this.runId = runId
    this.writing = writing
  }

  know(tools: Readonly<Record<string, RunEvent.ToolRecord>>): undefined {
    this.tools = tools
  }

  /** A new reply comes: nothing is said about calls of the last one any more. */
  turn(): void {
    this.said.clear()
    this.asked.clear()
    this.starts.clear()
    this.written.clear()
  }

  /** Remembers the arguments, if they may go out. */
  reply({ reply, turn }: RunEvent.Of<"TurnCompleted">): void {
    if (this.writing.capture === undefined) return
    for (const [index, { params }] of RunHead.callsOf(reply).entries())
      this.written.set(RunHead.callId(turn, index), params)
  }

  start(event: RunEvent.Of<"ToolCallStarted">, { at, seq }: Place): undefined {
    const { callId, name } = event
    const start = (this.starts.get(callId) ?? 0) + 1
    this.starts.set(callId, start)
    if (event.arguments !== undefined && this.writing.capture !== undefined) this.written.set(callId, event.arguments)
    this.open.set(callId, this.opened({ callId, name, seq, start: at }, start))
  }

  /** The span of a call that has its result; `earliest` is when its attempt began. */
  complete(event: RunEvent.Of<"ToolCallCompleted">, { at, seq }: Place, earliest: number): Span {
    const { callId, name, startedAt } = event
    const started = this.open.get(callId)
    const from = Math.max(startedAt ?? this.asked.get(callId) ?? at, earliest)
    const start = (this.starts.get(callId) ?? 0) + 1
    const open = started ?? this.opened({ callId, name, seq, start: Math.min(from, at) }, start)
    this.open.delete(callId)
    this.asked.delete(callId)
    return ToolSpan.make(this.writing, {}, open, event)
  }

  /** The Run of a sub-agent waits. */
  suspend(callId: string, at: number): Span | undefined {
    const open = this.open.get(callId)
    this.open.delete(callId)
    // What ends it without a further start does so within the time that nobody else has.
    this.asked.set(callId, at)
    return open === undefined ? undefined : ToolSpan.make(this.writing, {}, open, { _tag: "Suspended", at })
  }

  /** The spans of calls whose end nobody saw. */
  lose(at: number): ReadonlyArray<Span> {
    const lost = [...this.open.values()].map((open) => ToolSpan.make(this.writing, {}, open, { _tag: "Lost", at }))
    this.open.clear()
    return lost
  }

  /** The calls so far are another Run's. */
  forget(): void {
    this.open.clear()
    this.said.clear()
  }

  /** Keeps what is said about a call for its span. */
  note(callId: string, event: SpanEvent): undefined {
    const open = this.open.get(callId)
    if (open !== undefined) this.open.set(callId, { ...open, events: [...open.events, event] })
    else this.said.set(callId, [...(this.said.get(callId) ?? []), event])
  }

  /** Everything else that is said about a call. */
  told(event: RunEvent.RunEvent): undefined {
    const { at } = event
    const note = (callId: string, name: string, told: Readonly<Record<string, string | undefined>>) =>
      this.note(callId, { name: `waystone.${name}`, at, attributes: attributes(told) })
    switch (event._tag) {
      case "ApprovalRequested":
        this.asked.set(event.callId, at)
        return note(event.callId, "approval_requested", { [own.guard]: event.guard })
      case "ExternalRequested":
        this.asked.set(event.callId, at)
        return note(event.callId, "external_requested", {})
      case "CallInDoubt":
        return note(event.callId, "in_doubt", {})
      case "CallRequeued":
        return note(event.callId, "requeued", { "waystone.because": event.because })
      case "WaitExpired":
        return note(event.callId, "wait_expired", {})
      case "CallAnswered": {
        const { answer, by, callId } = event
        if (answer._tag === "Approve" && answer.edited !== undefined && this.writing.capture !== undefined)
          this.written.set(callId, answer.edited)
        return note(callId, "answered", { "waystone.answer": answer._tag, "waystone.by": by })
      }
      default:
        return undefined
    }
  }

  private opened(
    { callId, name, seq, start }: Pick<ToolSpan.Open, "callId" | "name" | "seq" | "start">,
    count: number
  ): ToolSpan.Open {
    const events = this.said.get(callId) ?? []
    this.said.delete(callId)
    return {
      callId,
      name: Object.hasOwn(this.tools, name) ? name : noTool,
      seq,
      spanId: SpanIds.call(this.runId, callId, count),
      start,
      arguments: this.written.get(callId),
      events
    }
  }
}
