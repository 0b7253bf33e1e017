/**
 * The options of a store, and their check: each that is out of range is an `OptionInvalid` that names it.
 *
 * The check takes nothing for granted, since callers without types exist. What may hold a password is not shown.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Keys from "./Keys.ts"

/** What to do about a server that can lose Runs, or that does not say: log a warning, fail, or not ask at all. */
export type OnWeakServer = "warn" | "fail" | "ignore"

export interface Options {
  /** What all keys begin with: 1 to 64 of `A-Z a-z 0-9 . _ : -`. Stores with different prefixes do not see each other. Default `"waystone"`. */
  readonly prefix?: string
  /**
   * What to do at the start about a server that can lose Runs (`appendonly no`, an `allkeys-…` policy) or does not say:
   * log a warning, fail with `ServerWeak`, or not ask at all. Default `"warn"`.
   */
  readonly onWeakServer?: OnWeakServer
  /**
   * How long a command may take until it fails with `StoreUnavailable`: 1 ms to 5 seconds, since core waits no longer for any
   * store's answer (SPEC 6). It may have taken effect. Default 5 seconds.
   */
  readonly commandTimeout?: Duration.Input
}

/** `redis://` or `rediss://` (TLS), with user, password and database: `redis://user:password@host:6379/0`. */
export type Url = string | Redacted.Redacted

/** An option is not what it may be. */
export class OptionInvalid extends Schema.TaggedError<OptionInvalid>()("OptionInvalid", {
  /** Which one. */
  field: Schema.String,
  /** What it may be. */
  detail: Schema.String
}) {
  override readonly message = `RedisStore option "${this.field}" ${this.detail}`
}

/** Options that are checked. */
export interface Settings {
  readonly prefix: string
  readonly onWeakServer: OnWeakServer
  readonly commandTimeout: Duration.Duration
}

const longest = Duration.seconds(5)
const onWeakServers: ReadonlyArray<unknown> = ["warn", "fail", "ignore"]

export const settings = ({
  commandTimeout = longest,
  onWeakServer = "warn",
  prefix = "waystone"
}: Options): Effect.Effect<Settings, OptionInvalid> => {
  if (!Keys.isPrefix(prefix)) {
    return invalid("prefix", `is 1 to 64 of A-Z a-z 0-9 . _ : -, not ${shown(prefix)}`)
  }
  if (!onWeakServers.includes(onWeakServer)) {
    return invalid("onWeakServer", `is "warn", "fail" or "ignore", not ${shown(onWeakServer)}`)
  }
  const millis = millisOf(commandTimeout)
  if (!(millis >= 1 && millis <= Duration.toMillis(longest))) {
    return invalid("commandTimeout", `is a duration from 1 ms to 5 seconds, not ${shown(commandTimeout)}`)
  }
  return Effect.succeed({ prefix, onWeakServer, commandTimeout: Duration.millis(millis) })
}

/** The URL, if node-redis can take it: what that throws has the URL in it, so everything that makes it throw is found here. */
export const urlOf = (url: Url): Effect.Effect<string, OptionInvalid> =>
  Effect.suspend(() => {
    try {
      const text: unknown = Redacted.isRedacted(url) ? Redacted.value(url) : url
      if (typeof text === "string") {
        const { password, pathname, protocol, username } = new URL(text)
        decodeURIComponent(username + password)
        if (/^rediss?:$/.test(protocol) && /^\/?\d*$/.test(pathname)) return Effect.succeed(text)
      }
    } catch {
      // said below
    }
    return invalid("url", "must have the form redis://user:password@host:6379/0 (or rediss://)")
  })

/** NaN if it is none; effect takes NaN for 0. */
const millisOf = (input: Duration.Input): number =>
  typeof input === "number"
    ? input
    : Option.match(Duration.fromInput(input), { onNone: () => Number.NaN, onSome: Duration.toMillis })

const shown = (value: unknown): string =>
  String(typeof value === "string" ? JSON.stringify(value) : value).slice(0, 100)

const invalid = (field: keyof Options | "url", detail: string) => Effect.fail(new OptionInvalid({ field, detail }))
