/**
 * Where the Runs are kept: a SQLite file in the user's data folder, another file, Redis, or the memory of this process.
 *
 * The file never lies in the folder that the agent works on, which could then read and change its own journal. The URL
 * of a Redis server may hold a password: it is shown nowhere.
 */
import type { RedisStore } from "@waystone/checkpoint-redis"
import type { SqliteError } from "@waystone/checkpoint-sqlite"
import { type CheckpointStore, MemoryStore } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import envPaths from "env-paths"
import { Unusable } from "./Complaint.ts"

export type Store =
  | { readonly _tag: "Memory" }
  /** `file` is absolute. `named` if the user named it, so that it must be named again. */
  | { readonly _tag: "File"; readonly file: string; readonly named: boolean }
  | { readonly _tag: "Redis"; readonly url: Redacted.Redacted }

/** Why a store cannot be used. */
export type StoreUnusable = Unusable | SqliteError.OpenError | RedisStore.OpenError

/** How to find the Runs again. Memory by default. */
export interface Keeping {
  /** The Runs survive this process. */
  readonly durable: boolean
  /** The command that does something with a Run of this store; where the store has a password, its URL must be put in. */
  readonly command: (verb: string) => string
  /** The file that the first Run will make; there is none yet. */
  readonly notYet?: string
}

export const Keeping: Context.Reference<Keeping> = Context.Reference("demo/Keeping", {
  defaultValue: (): Keeping => ({ durable: false, command: (verb) => `npm run demo -- ${verb}` })
})

/** In the user's data folder, wherever the system wants it to be. */
const standard = Effect.gen(function* () {
  const paths = yield* Path.Path
  // A relative one is invalid (XDG specification), and would lie in whatever folder this runs in.
  const { data } = envPaths("waystone", { suffix: "" })
  if (!paths.isAbsolute(data)) {
    return yield* new Unusable({ message: "XDG_DATA_HOME is not an absolute path: set it to one, or give --store." })
  }
  return paths.join(data, "runs.db")
})

const redis = /^rediss?:/i
const scheme = /^[a-z][a-z0-9+.-]*:\/\//i
/** A server that somebody meant: `user:password@host`, `redis//host`, `host:6379`. As a file's name it would be written to disk. */
const server = [/:.*@/s, /^rediss?\W*\/\//i, /^[\w.-]+:\d+(\/\d*)?$/]
/** A path says so by how it begins: `/`, `./`, `../`, `C:\`. */
const path = /^(\.{0,2}[/\\](?![/\\])|[a-z]:[/\\])/i

/** What `--store` asks for. */
export const parse = Effect.fnUntraced(function* (
  asked: Option.Option<Redacted.Redacted>
): Effect.fn.Return<Store, Unusable, Path.Path> {
  const paths = yield* Path.Path
  const text = Option.getOrUndefined(Option.map(asked, Redacted.value))
  if (text === undefined) return { _tag: "File", file: yield* standard, named: false }
  if (text.trim() === "") return yield* new Unusable({ message: `--store is empty: ${forms}.` })
  if (text === "memory") return { _tag: "Memory" }
  if (redis.test(text)) return { _tag: "Redis", url: Redacted.make(text, { label: "redis URL" }) }
  if (scheme.test(text)) return yield* new Unusable({ message: `--store is no such URL: ${forms}.` })
  if (!path.test(text) && server.some((one) => one.test(text))) {
    return yield* new Unusable({
      message: `--store looks like a server, and its URL begins with redis:// or rediss://; a file of such a name is ./name: ${forms}.`
    })
  }
  if (/[/\\]$/.test(text)) return yield* new Unusable({ message: `--store ends like a folder: ${forms}.` })
  if (text.includes("\0") || text.startsWith(":memory:")) {
    return yield* new Unusable({ message: `--store is no path: ${forms}.` })
  }
  // npm runs scripts in the package's folder and says where the user was.
  return { _tag: "File", file: paths.resolve(process.env["INIT_CWD"] ?? ".", text), named: true }
})

const forms = "it is memory, the path of a SQLite file, or redis://user:password@host:6379/0 (rediss:// for TLS)"

/** Opens it. No other store is loaded: the client of Redis takes long. */
export const layer = (
  store: Store
): Layer.Layer<CheckpointStore.CheckpointStore, StoreUnusable, FileSystem.FileSystem | Path.Path> => {
  const keeping = Layer.succeed(Keeping, keepingOf(store))
  switch (store._tag) {
    case "Memory":
      return Layer.merge(MemoryStore.layer, keeping)
    case "File":
      return Layer.merge(file(store.file), keeping)
    case "Redis":
      return Layer.merge(redisServer(store.url), keeping)
  }
}

/**
 * Opens one that is there: who only looks makes no file. One that the user did not name is empty until the first Run makes it.
 */
export const existing = (
  store: Store
): Layer.Layer<CheckpointStore.CheckpointStore, StoreUnusable, FileSystem.FileSystem | Path.Path> =>
  store._tag !== "File"
    ? layer(store)
    : Layer.unwrap(
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          // What cannot be looked at is opened, which says why.
          if (yield* Effect.orElseSucceed(fs.exists(store.file), () => true)) return layer(store)
          if (!store.named) {
            const keeping = Layer.succeed(Keeping, { ...keepingOf(store), notYet: store.file })
            return Layer.merge(MemoryStore.layer, keeping)
          }
          return yield* new Unusable({
            message: `--store names ${store.file}, and there is no such file: a run that is started with it makes it.`
          })
        })
      )

/** Its file, and the folder of it, are made for the user alone if there is none. */
const file = (path: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("@waystone/checkpoint-sqlite/SqliteStore")),
      (SqliteStore) => SqliteStore.layer({ file: path })
    )
  )

const redisServer = (url: Redacted.Redacted) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("@waystone/checkpoint-redis/RedisStore")),
      (RedisStore) => RedisStore.layerUrl({ url })
    )
  )

const keepingOf = (store: Store): Keeping => ({
  durable: store._tag !== "Memory",
  command: (verb) => `npm run demo -- ${verb}${flag(store)}`
})

const flag = (store: Store): string => {
  switch (store._tag) {
    case "Memory":
      return ""
    case "File":
      return store.named ? ` --store ${quoted(store.file)}` : ""
    case "Redis":
      return ` --store ${quoted(withoutSecrets(Redacted.value(store.url)))}`
  }
}

/** A word as a shell takes it. */
export const quoted = (word: string): string =>
  /^[\w./:@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/** The URL if it has no secrets; else what to put there, with the place alone, or with nothing of a URL that cannot be read. */
const withoutSecrets = (url: string): string => {
  if (!URL.canParse(url)) return "<your redis:// URL again>"
  const { hash, host, password, pathname, protocol, search, username } = new URL(url)
  const open = [username, password, search, hash].every((part) => part === "")
  return open ? `${protocol}//${host}${pathname}` : `<your ${protocol}// URL of ${host}${pathname} again>`
}

/** Fails if the store is a file in `folder`, whatever links lead there. */
export const outside = Effect.fnUntraced(function* (
  store: Store,
  folder: string
): Effect.fn.Return<void, Unusable, FileSystem.FileSystem | Path.Path> {
  if (store._tag !== "File") return
  const paths = yield* Path.Path
  const from = paths.relative(yield* realPath(folder), yield* realPath(store.file))
  if (from === ".." || from.startsWith(`..${paths.sep}`) || paths.isAbsolute(from)) return
  return yield* new Unusable({
    message: `the store ${store.file} lies in ${folder}, the folder that the agent works on: choose another file by --store.`
  })
})

/** As many links as Linux follows. */
const maxLinks = 40

/** Where a path leads to, also if nothing is there yet. */
const realPath = (path: string, links = maxLinks): Effect.Effect<string, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const paths = yield* Path.Path
    const real = yield* Effect.option(fs.realPath(path))
    if (real._tag === "Some") return real.value
    const above = paths.dirname(path)
    if (above === path) return path
    const target = yield* Effect.option(fs.readLink(path))
    if (target._tag === "Some" && links > 0) return yield* realPath(paths.resolve(above, target.value), links - 1)
    return paths.join(yield* realPath(above, links), paths.basename(path))
  })
