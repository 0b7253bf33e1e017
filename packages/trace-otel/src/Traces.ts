/**
 * Decides about a trace when no Run of it is at work here any more: all of its Runs and all spans inside them, or nothing.
 *
 * @since 0.1.0
 */
import { type Faults, merged } from "./Faults.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"
import type { Foreign } from "./Foreign.ts"
import type { Held } from "./Held.ts"
import type { Sampler } from "./Sampling.ts"
import { byId } from "./Segments.ts"
import type { Parcel } from "./Sender.ts"

/** A segment of a Run that has ended. */
export interface Ended {
  readonly runId: string
  /** The root of its tree: itself, if it is no sub-agent's. */
  readonly rootId: string
  /** Its last event. */
  readonly upTo: number
  readonly faults: Faults
  /** Its spans, as far as there was room for them. */
  readonly spans: ReadonlyArray<FinishedSpan> | undefined
  /** The Run went on here after it had rested, or had been somebody else's: only the journals know what was sent of it. */
  readonly later: boolean
  /** It has called sub-agents. */
  readonly calls: boolean
  /** Another process has left unsent what came after this event. */
  readonly after?: number | undefined
}

interface Open {
  /** Runs that are at work: a root, and its sub-agents while they are. */
  runs: number
  /** A root was seen: before it has ended, nothing is decided about those below it. */
  rooted: boolean
  readonly ended: Array<Ended>
}

interface Parts {
  readonly foreign: Foreign
  readonly held: Held
  readonly sampler: Sampler
  readonly deliver: (parcel: Parcel) => void
  /** Nothing of a segment is to be sent. */
  readonly dropped?: (runId: string, upTo: number) => void
}

export class Traces {
  private readonly open = new Map<string, Open>()
  private readonly byRun = new Map<string, string>()
  private readonly parts: Parts

  constructor(parts: Parts) {
    this.parts = parts
  }

  /** The trace of a Run that is at work here. */
  of(runId: string): string | undefined {
    return this.byRun.get(runId)
  }

  enter(runId: string, traceId: string, isRoot: boolean): void {
    this.byRun.set(runId, traceId)
    const open = this.open.get(traceId)
    if (open !== undefined) {
      open.runs++
      open.rooted ||= isRoot
      return
    }
    this.open.set(traceId, { runs: 1, rooted: isRoot, ended: [] })
    this.parts.foreign.open(traceId)
  }

  /** A segment of a Run has ended, or its attempt has without one: then the next attempt has it. */
  leave(runId: string, ended?: Ended): void {
    const traceId = this.byRun.get(runId)
    const open = traceId === undefined ? undefined : this.open.get(traceId)
    this.byRun.delete(runId)
    if (traceId === undefined || open === undefined) return
    if (ended !== undefined) open.ended.push(ended)
    open.runs--
    // The observer of a root may be later than those of the Runs below it.
    if (open.runs > 0 || !open.rooted) return
    this.open.delete(traceId)
    this.decide(traceId, open.ended)
  }

  /** A Run was ended where nobody drove it: its journal tells what is to be sent. */
  send(runId: string, upTo: number, after: number | undefined): void {
    this.parts.deliver({ runId, upTo, ...(after === undefined ? undefined : { after }), spans: undefined })
  }

  private decide(traceId: string, all: ReadonlyArray<Ended>): void {
    const { deliver, dropped, foreign, held, sampler } = this.parts
    const [first, ...others] = all
    const faults = first && others.reduce((sum, one) => merged(sum, one.faults), first.faults)
    const kept = faults !== undefined && sampler(traceId, faults)
    foreign.close(traceId, kept)
    for (const root of all) {
      if (root.runId !== root.rootId) continue
      const below = all.filter(({ rootId, runId }) => rootId === root.runId && runId !== rootId)
      const runs = [...below.toSorted((a, b) => byId(a.runId, b.runId)), root]
      // What those below did before is not known here, neither whether it was sent.
      const { after } = root
      const asks = after !== undefined || (root.calls && root.later)
      const whole = !asks && runs.every(({ spans }) => spans !== undefined)
      if (!kept || !whole) held.give(count(runs))
      if (asks || kept)
        deliver({
          runId: root.runId,
          upTo: root.upTo,
          ...(after === undefined ? undefined : { after }),
          spans: kept && whole ? runs.flatMap(({ spans = [] }) => spans) : undefined
        })
      else dropped?.(root.runId, root.upTo)
    }
    // Their root has left without an end: the next attempt has theirs, too.
    const left = all.filter(({ rootId }) => !all.some(({ runId }) => runId === rootId))
    held.give(count(left))
  }
}

const count = (runs: ReadonlyArray<Ended>): number => runs.reduce((sum, { spans = [] }) => sum + spans.length, 0)
