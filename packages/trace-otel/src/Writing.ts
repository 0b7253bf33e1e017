/**
 * Says how spans are worded: which conventions, with or without content, how many of a Run.
 *
 * @since 0.1.0
 */
import type { RunEvent, Usage } from "@waystone/core"
import * as Capture from "./Capture.ts"
import * as Conventions from "./Conventions.ts"
import { attributes, type Attributes } from "./FinishedSpan.ts"

export interface Options {
  /** Which release of the conventions back ends understand. Default "latest". */
  readonly semconv?: Conventions.Semconv
  /** Lets prompts, answers, arguments, results and messages of errors out. Default false. */
  readonly content?: boolean | Capture.Options
  /** What telemetry calls a provider, where the conventions' name does not fit; `unknown` for one that nobody named. */
  readonly providers?: Readonly<Record<string, string>>
  /** Model and tool calls of one Run that become spans, from 1; the rest is counted on the agent's span. Default 10,000. */
  readonly maxSpans?: number
}

/** Options as the folds read them. */
export interface Writing {
  readonly names: Conventions.Conventions["attributes"]
  readonly capture: Capture.Capture | undefined
  readonly provider: (name: string | undefined) => string
  readonly maxSpans: number
}

/** More than a back end draws, and some 20 MB while it is sent. */
const defaultSpans = 10_000

export const make = ({
  content = false,
  maxSpans = defaultSpans,
  providers,
  semconv = "latest"
}: Options): Writing => ({
  names: Conventions.of(semconv).attributes,
  capture: content === false ? undefined : Capture.make(content === true ? {} : content),
  provider: (name) => Conventions.providerName(name, providers),
  maxSpans: Math.max(1, maxSpans)
})

/** A code of few values; whatever else stands in its place is no code. */
export const code = (tag: string | undefined): string =>
  tag !== undefined && /^[\w.:/-]{1,80}$/.test(tag) ? tag : "_OTHER"

/** Tokens as the conventions count them: totals that include their parts. */
export const usage = ({ names }: Writing, used: Usage.Usage): Attributes => ({
  [names.inputTokens]: used.input + used.cacheRead + used.cacheWrite,
  [names.outputTokens]: used.output + used.reasoning,
  ...attributes({
    [names.cacheRead]: used.cacheRead || undefined,
    [names.cacheWrite]: used.cacheWrite || undefined,
    [names.reasoningTokens]: used.reasoning || undefined,
    [Conventions.own.estimated]: used.estimated
  })
})

/** Money, as far as it is known. */
export const cost = (costNanoUsd: number | undefined): number | undefined =>
  costNanoUsd === undefined ? undefined : costNanoUsd / 1e9

/** Where a model is asked. */
export const server = ({ names }: Writing, address: string | undefined): Attributes => {
  const found = address === undefined ? undefined : Conventions.serverOf(address)
  return found === undefined ? {} : { [names.serverAddress]: found.address, [names.serverPort]: found.port }
}

/** What failed, in a code: of an answer of a server its status too. */
export const failureCode = ({ status, tag }: RunEvent.Failure): string =>
  code(status === undefined ? tag : `${tag}.${status}`)
