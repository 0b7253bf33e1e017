/**
 * Folds the events of one Run into finished spans. Live telemetry and what is rebuilt from a journal are this one fold.
 *
 * The tree: `invoke_agent` of an attempt, and under it `chat` and `execute_tool` side by side. A Run that ends in its first
 * attempt is that one tree. Where there are more, an `invoke_agent` of the whole Run stands above them when it has ended, with
 * a `wait` for each time that it rested. The attempts of a sub-agent stand under the `execute_tool` of their parent.
 *
 * Invariants
 *   F1  The same events give the same spans, whoever folds them and however often.
 *   F2  A span is given once, when it has ended, and its parent ends no earlier. (Of a lost call of a sub-agent only the tree
 *       knows the end: `Enclosing`.)
 *   F3  Every model call and every start of a tool call has a span, lost ones too; one that was never started has a point.
 *   F4  What a fork inherited belongs to the trace of the original.
 *
 * @since 0.1.0
 */
import { type Observer, type RunEvent, RunHead } from "@waystone/core"
import { Attempts, type Place } from "./Attempts.ts"
import { CallSpans } from "./CallSpans.ts"
import * as ChatSpan from "./ChatSpan.ts"
import { own } from "./Conventions.ts"
import { attributes, type Attributes, type FinishedSpan, type SpanEvent } from "./FinishedSpan.ts"
import * as Messages from "./Messages.ts"
import * as SpanIds from "./SpanIds.ts"
import { faultless, type Faults, withEvent, withSpan } from "./Faults.ts"
import type { Writing } from "./Writing.ts"

/** What one event made. */
export interface Taken {
  /** Spans that ended, children before their parents. */
  readonly spans: ReadonlyArray<FinishedSpan>
  /** Spans that are too many for this Run: metrics count them, nothing exports them. */
  readonly cut: ReadonlyArray<FinishedSpan>
  /** The attempt has ended, and so has the Run if it is `final`. */
  readonly ended?: { readonly final: boolean }
  /** All spans so far belong to another Run, from which this one was forked. */
  readonly forked?: true
}

export class Folding {
  readonly runId: string
  private readonly writing: Writing
  private readonly calls: CallSpans
  private readonly attempts: Attempts
  private chat: ChatSpan.Open | undefined
  private compaction: ChatSpan.Open | undefined
  private steps: Array<SpanEvent> = []
  private input: Array<Messages.Message> = []
  private spans: Array<FinishedSpan> = []
  private over: Array<FinishedSpan> = []
  private made = 0
  private cutSoFar = 0
  /** How many events were folded. */
  seq = 0
  head: RunHead.Head = RunHead.empty
  /** What a sampler asks about the Run so far. */
  faults: Faults = faultless

  constructor(runId: string, writing: Writing) {
    this.runId = runId
    this.writing = writing
    this.calls = new CallSpans(runId, writing)
    this.attempts = new Attempts(runId, writing)
  }

  /** The trace that its spans are in; known from its first attempt on. */
  get traceId(): string {
    return this.attempts.traceId(this.head)
  }

  /** Folds the next event. Entries come in order and without gaps. */
  take({ epoch, event, seq }: Observer.Entry): Taken {
    this.spans = []
    this.over = []
    this.seq = seq
    const duplicate = RunHead.isDuplicate(this.head, event)
    if (!duplicate) this.faults = withEvent(this.faults, event)
    const place: Place = { seq, at: event.at, owned: epoch > 0 }
    // Before the head moves: what rested until now is told by it.
    const ended = duplicate ? undefined : this.fold(event, place)
    this.head = RunHead.evolveHead(this.head, event)
    if (event._tag === "RunSuspended") this.attempts.rest(this.head, place)
    if (place.owned) this.attempts.seen(event.at)
    return {
      spans: this.spans,
      cut: this.over,
      ...(ended === undefined ? undefined : { ended }),
      ...(event._tag === "RunForked" ? { forked: true as const } : undefined)
    }
  }

  private fold(event: RunEvent.RunEvent, place: Place): Taken["ended"] {
    switch (event._tag) {
      case "RunAccepted":
        this.attempts.accepted(event)
        return this.hear(Messages.user(event.task))
      case "RunStarted":
      case "ToolsChanged":
        return this.calls.know(event.tools)
      case "AttemptStarted":
        this.close({ _tag: "Lost", at: this.attempts.lastAt })
        return this.emitAll(this.attempts.begin(this.head, event, place))
      case "RunForked":
        return this.fork(event)
      case "MessageReceived":
        this.note("waystone.message", event.at, { "waystone.by": event.by })
        return this.hear(Messages.user(event.content))
      case "PauseRequested":
      case "PauseLifted":
      case "CancelRequested":
      case "RunReopened":
        return this.note(`waystone.${lower(event._tag)}`, event.at, { "waystone.by": event.by })
      case "VerdictGiven":
        return this.verdict(event)
      default:
        return this.work(event, place)
    }
  }

  /** Events that happen in an attempt, also in one that rested and found the answer there. */
  private work(event: RunEvent.RunEvent, place: Place): Taken["ended"] {
    const { calls } = this
    if (place.owned) this.emitAll(this.attempts.ensure(this.head, place))
    switch (event._tag) {
      case "TurnStarted":
      case "CompactionStarted":
        return this.ask(event, place)
      case "TurnCompleted":
        calls.reply(event)
        this.answered(event)
        return this.hear(...(event.rejected === undefined ? [] : [Messages.user(event.rejected.feedback)]))
      case "TurnFailed":
      case "CompactionCompleted":
      case "CompactionFailed":
        return this.answered(event)
      case "ToolCallStarted":
        return calls.start(event, place)
      case "ToolCallCompleted":
        this.attempts.count(event)
        this.emit(calls.complete(event, place, this.attempts.start))
        return this.hear(Messages.tool(event.callId, event.shown ?? event.result))
      case "ChildSuspended": {
        const span = calls.suspend(event.callId, event.at)
        return span === undefined ? undefined : this.emit(span)
      }
      case "RunSuspended":
      case "RunFinished":
        return this.end(event)
      default:
        return calls.told(event)
    }
  }

  private ask(event: RunEvent.Of<"TurnStarted"> | RunEvent.Of<"CompactionStarted">, { seq }: Place): undefined {
    const spanId = event._tag === "TurnStarted" ? SpanIds.turn(this.runId, event.turn) : SpanIds.event(this.runId, seq)
    const open = { seq, spanId, started: event, events: this.steps, input: this.input }
    if (event._tag === "CompactionStarted") {
      this.compaction = { ...open, events: [], input: [] }
      return
    }
    this.chat = open
    this.steps = []
    this.input = []
    this.calls.turn()
  }

  private answered(event: Exclude<ChatSpan.End, { readonly _tag: "Lost" }>): undefined {
    this.attempts.spend(event)
    const turn = event._tag === "TurnCompleted" || event._tag === "TurnFailed"
    const open = turn ? this.chat : this.compaction
    if (open !== undefined) this.emit(ChatSpan.make(this.writing, this.common(false), open, event))
    if (turn) this.chat = undefined
    else this.compaction = undefined
  }

  /** Ends what is still open. */
  private close(lost: { readonly _tag: "Lost"; readonly at: number }): void {
    for (const open of [this.chat, this.compaction])
      if (open !== undefined) this.emit(ChatSpan.make(this.writing, this.common(false), open, lost))
    this.chat = this.compaction = undefined
    for (const span of this.calls.lose(lost.at)) this.emit(span)
  }

  private end(event: RunEvent.Of<"RunSuspended"> | RunEvent.Of<"RunFinished">): Taken["ended"] {
    this.close({ _tag: "Lost", at: event.at })
    this.emitAll(this.attempts.end(this.head, event, { cut: this.cutSoFar, events: this.steps }))
    this.steps = []
    return { final: event._tag === "RunFinished" }
  }

  private fork(event: RunEvent.Of<"RunForked">): undefined {
    this.chat = this.compaction = undefined
    this.calls.forget()
    this.attempts.fork(this.head, event)
    this.made = this.cutSoFar = 0
    this.steps = []
    this.faults = faultless
  }

  private verdict({ at, guard, on, verdict }: RunEvent.Of<"VerdictGiven">): undefined {
    const said: SpanEvent = {
      name: "waystone.verdict",
      at,
      attributes: { [own.guard]: guard, "waystone.verdict": verdict }
    }
    if (on.startsWith("s")) this.steps.push(said)
    else this.calls.note(on, said)
  }

  private hear(...said: ReadonlyArray<Messages.Message>): undefined {
    if (this.writing.capture !== undefined) this.input.push(...said)
  }

  private note(name: string, at: number, told: Readonly<Record<string, string | undefined>>): undefined {
    this.attempts.note({ name, at, attributes: attributes(told) })
  }

  /** What every span of the Run has; the agent's name is no attribute of a model call. */
  private common(agent: boolean): Attributes {
    const { names } = this.writing
    return attributes({
      [own.runId]: this.runId,
      [names.agentName]: agent ? this.head.agent : undefined,
      [names.conversation]: this.head.session
    })
  }

  private emitAll(spans: ReadonlyArray<FinishedSpan>): undefined {
    for (const span of spans) this.give(span)
  }

  /** A call's span, in its place in the trace. */
  private emit(span: Omit<FinishedSpan, "traceId" | "parentId">): undefined {
    const parentId = this.attempts.spanId(this.head)
    const isTool = span.kind === "internal"
    const placed = {
      ...span,
      ...(isTool ? { attributes: { ...this.common(true), ...span.attributes } } : undefined),
      traceId: this.traceId,
      ...(parentId === undefined ? undefined : { parentId })
    }
    if (this.made < this.writing.maxSpans) {
      this.made++
      this.give(placed)
    } else {
      this.cutSoFar++
      this.faults = withSpan(this.faults, placed)
      this.over.push(placed)
    }
  }

  private give(span: FinishedSpan): void {
    this.faults = withSpan(this.faults, span)
    this.spans.push(span)
  }
}

/** `PauseRequested` is `pause_requested`. */
const lower = (tag: string): string => tag.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase()
