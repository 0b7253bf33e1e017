/**
 * Words Runs, calls and events for people.
 */
import { type ModelInfo, type Run, type RunEvent, Usage } from "@waystone/core"
import type * as Calls from "../Calls.ts"
import * as ModelName from "../model/ModelName.ts"
import type { Style } from "../Style.ts"

/** How long ago, in the largest unit that fits. */
export const age = (millis: number): string => {
  const seconds = Math.max(0, Math.floor(millis / 1000))
  for (const [unit, size] of units) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`
  return `${seconds} s`
}
const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60]
] as const

/** Columns as wide as their widest cell; the last one as it is. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
  )
}

/** A Run, with its status in words. */
export interface Listed {
  readonly info: Run.RunInfo
  readonly status: string
}

export const heads = ["run", "status", "agent", "turns", "age", "folder"]

export const row = ({ info, status }: Listed, now: number): ReadonlyArray<string> => [
  info.runId,
  status,
  info.agent,
  String(info.turn),
  age(now - info.updatedAt),
  info.session ?? ""
]

export interface Detailed extends Listed {
  readonly task: string
  /** The model that was asked last. */
  readonly model?: ModelInfo.ModelInfo
  /** A provider took no request: the command that goes on with another key or model. */
  readonly goOn?: string
  readonly calls: ReadonlyArray<Calls.Call>
  /** The Runs of its workers. */
  readonly below: ReadonlyArray<Listed>
  readonly waits: ReadonlyArray<Run.RunInfo["waiting"][number] & { readonly wayOut: string }>
}

const width = 100
const head = (text: string): string => (text.length <= width ? text : `${text.slice(0, width)} …`)

export const detailed =
  ({ below, calls, goOn, info, model, status, task, waits }: Detailed, now: number) =>
  ({ bold, dim, green, red }: Style) => [
    bold(`Run ${info.runId}`),
    ...table([
      ["  status", `${status}, for ${age(now - info.since)}`],
      ["  agent", `${info.agent} ${info.version}`],
      ...(info.parent === undefined
        ? []
        : [["  part of", `${info.parent.rootId}, as call ${info.parent.callId} of ${info.parent.runId}`]]),
      ["  task", task],
      ["  folder", info.session ?? "unknown"],
      ...(model === undefined ? [] : [["  model", ModelName.of(model)]]),
      ["  begun", new Date(info.createdAt).toISOString()],
      ["  turns", `${info.turn}, in ${info.attempts} ${info.attempts === 1 ? "attempt" : "attempts"}`],
      ["  tokens", tokens(info)],
      ["  journal", `${info.seq} events`]
    ]),
    ...waits.flatMap(({ id, kind, name, path, reason, since, wayOut }) => [
      `  waits (${kind}) since ${new Date(since).toISOString()}, ${age(now - since)}: ${path === undefined ? "" : `${path.join("/")} › `}${name ?? id}${reason === undefined ? "" : `, ${reason}`}`,
      `    ${wayOut}`
    ]),
    ...(goOn === undefined ? [] : [`  to go on with another key or model: ${goOn}`]),
    bold(calls.length === 0 ? "No calls" : "Calls"),
    ...calls.flatMap(({ arguments: given, callId, ending, isFailure, name, starts }) => {
      const mark = ending === undefined ? "…" : isFailure ? red("✗") : green("✓")
      const state = ending ?? (starts === 0 ? "not started" : "started, no result")
      const often = starts > 1 ? `, started ${starts} times` : ""
      return [
        `  ${mark} ${callId} ${name}  ${state}${often}  ${dim(head(JSON.stringify(given)))}`,
        ...below
          .filter(({ info }) => info.parent?.callId === callId)
          .map(
            ({ info, status }) =>
              `      ${info.agent} ${info.runId}: ${status}, ${info.turn} turns in ${age(info.updatedAt - info.createdAt)}, ${tokens(info)}`
          )
      ]
    })
  ]

const tokens = ({ usage }: Run.RunInfo): string => `${Usage.total(usage) - usage.output} in, ${usage.output} out`

/** One stored event. */
export const event =
  (seq: number, event: RunEvent.RunEvent) =>
  ({ cyan, dim }: Style): ReadonlyArray<string> => {
    const { _tag, at, ...fields } = event
    return [
      `${String(seq).padStart(5)}  ${dim(new Date(at).toISOString())}  ${cyan(_tag)}  ${head(JSON.stringify(fields))}`
    ]
  }
