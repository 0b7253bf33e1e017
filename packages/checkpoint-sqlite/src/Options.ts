/**
 * The options of a store and of a client, and their check.
 *
 * @since 0.1.0
 */
import { resolve } from "node:path"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { OptionInvalid } from "./SqliteError.ts"

export interface Options {
  /** The path of the file. It is created with mode 0600 if there is none, its folder with 0700. */
  readonly file: string
  /**
   * What an append that was answered survives. `power-loss`: everything (`synchronous` FULL, one fsync per append).
   * `process`: the death of any process, kill -9 included, but a power loss or a crash of the machine may take the last
   * appends (`synchronous` NORMAL). The file stays sound either way. Default `power-loss`.
   */
  readonly durability?: "power-loss" | "process"
  /**
   * How long an operation waits for other processes' locks before it is StoreUnavailable: 0 to 5 seconds, since core gives
   * up after 5 seconds on any store's answer. Default 4 seconds, so that the error says what is wrong before that.
   */
  readonly busyTimeout?: Duration.Input
  /** Whether opening reads the whole file to look for damage (`PRAGMA quick_check`: the time to read it). Default false. */
  readonly check?: boolean
}

/** Options that are checked. */
export interface Settings {
  /** Absolute. */
  readonly file: string
  readonly synchronous: "FULL" | "NORMAL"
  readonly busyMillis: number
  readonly check: boolean
}

const synchronous: ReadonlyMap<string, Settings["synchronous"]> = new Map([
  ["power-loss", "FULL"],
  ["process", "NORMAL"]
])
/** Core's limit for any store's answer. */
const longest = Duration.toMillis(Duration.seconds(5))
/** The default: enough below the limit that the error of this package comes first. */
export const standardBusyMillis = 4_000

export const settings = ({
  busyTimeout = Duration.millis(standardBusyMillis),
  check = false,
  durability = "power-loss",
  file
}: Options): Effect.Effect<Settings, OptionInvalid> => {
  const wrong = wrongFile(file)
  if (wrong !== undefined) return invalid("file", wrong)
  const level = synchronous.get(durability)
  if (level === undefined) return invalid("durability", `is "power-loss" or "process", not ${shown(durability)}`)
  const busyMillis = millisOf(busyTimeout)
  if (!(busyMillis >= 0 && busyMillis <= longest)) {
    return invalid("busyTimeout", `is a duration from 0 to 5 seconds (core gives up then), not ${shown(busyTimeout)}`)
  }
  if (typeof check !== "boolean") return invalid("check", `is true or false, not ${shown(check)}`)
  return Effect.succeed({ file: resolve(file), synchronous: level, busyMillis, check })
}

/** `unknown`: callers without types exist. */
const wrongFile = (file: unknown): string | undefined => {
  if (typeof file !== "string" || file === "") return "is the path of a file"
  if (/:memory:/.test(file)) return "is a file: use MemoryStore of @waystone/core for Runs that need not survive"
  if (/^file:/i.test(file)) return "is a path, not a URI"
  if (/[/\\]$/.test(file)) return "is a file: it ends like a folder"
  if (file.includes("\0")) return "must not contain a NUL character"
  return undefined
}

/** NaN if it is none; effect takes NaN for 0. */
const millisOf = (input: Duration.Input): number =>
  typeof input === "number"
    ? input
    : Option.match(Duration.fromInput(input), { onNone: () => Number.NaN, onSome: Duration.toMillis })

const shown = (value: unknown): string =>
  String(typeof value === "string" ? JSON.stringify(value) : value).slice(0, 100)

const invalid = (field: keyof Options, detail: string) => Effect.fail(new OptionInvalid({ field, detail }))
