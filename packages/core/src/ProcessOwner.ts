/**
 * Names owners after processes of this machine, so that a restart takes over a dead one's Runs at once.
 *
 * A name is boot id, pid namespace, user, pid, start time and a nonce. An owner is dead if it was of this boot, this pid
 * namespace and this user and no such process lives; of any other (another machine; another container, whose pids only
 * look dead; another user, whose processes /proc may hide) nothing is known, and its lease must end. Where there is no
 * /proc (macOS, Windows) nothing is ever known.
 *
 * Invariants
 *   W1  `isDead` is true only if boot, namespace, user, pid and start time say so together.
 *
 * @example
 * const Live = Layer.provide(ProcessOwner.layer, NodeFileSystem.layer) // of @effect/platform-node
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as WebCrypto from "effect/crypto/WebCrypto"
import { Owner } from "./Owner.ts"

/** What tells a process from every other one. */
interface Identity {
  readonly boot: string
  readonly namespace: string
  readonly user: string
  readonly pid: string
  readonly start: string
}

const make = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const crypto = yield* WebCrypto.WebCrypto
  const stat = (pid: string) => Effect.map(fs.readFileString(`/proc/${pid}/stat`), parse)
  const own = yield* Effect.option(
    Effect.gen(function* () {
      const boot = (yield* fs.readFileString("/proc/sys/kernel/random/boot_id")).trim()
      const namespace = yield* fs.readLink("/proc/self/ns/pid")
      const user = Option.match((yield* fs.stat("/proc/self")).uid, { onNone: () => "unknown", onSome: String })
      const { pid, start } = yield* stat("self")
      const identity: Identity = { boot, namespace, user, pid, start }
      return identity
    })
  )
  if (own._tag === "None") return Owner.defaultValue()
  const { boot, namespace, pid, start, user } = own.value
  const here = [boot, namespace, user].join(" ")
  return {
    name: Effect.sync(() => [here, pid, start, crypto.randomUUID()].join(" ")),
    isDead: (owner: string) => {
      const [itsPid = "", itsStart] = owner.startsWith(`${here} `) ? owner.slice(here.length + 1).split(" ") : []
      if (!/^\d+$/.test(itsPid)) return Effect.succeed(false)
      return Effect.match(stat(itsPid), {
        onSuccess: ({ start, zombie }) => zombie || start !== itsStart,
        onFailure: ({ reason }) => reason._tag === "NotFound"
      })
    }
  }
})

/** /proc/<pid>/stat: pid, the name in parentheses (which may hold anything), state, … and the start time as 22nd field. */
const parse = (stat: string) => {
  const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return { pid: stat.slice(0, stat.indexOf(" ")), start: rest[18] ?? "", zombie: state === "Z" || state === "X" }
}

/** Knows the processes of this machine. Needs `FileSystem`, which `NodeFileSystem.layer` of `@effect/platform-node` is. */
export const layer: Layer.Layer<never, never, FileSystem.FileSystem> = Layer.effect(Owner, make)
