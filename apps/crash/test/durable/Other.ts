/**
 * Another process, that lives until it is killed or stopped and is started again when it is needed.
 */
import * as Effect from "effect/Effect"
import { type ChildProcess, fork } from "node:child_process"
import { join } from "node:path"
import type { Order, Told } from "./Order.ts"

export interface Other {
  readonly ask: (order: Omit<Order, "id">) => Effect.Effect<Told>
  readonly stop: () => void
}

/** `worker.ts`, as scripts/bundle.setup.ts bundles it, and what Node has compiled of it. */
const folder = join(import.meta.dirname, "../../node_modules/.cache/other")

export const make = (): Other => {
  let child: ChildProcess | undefined
  let asked = 0
  const waiting = new Map<number, (told: Told) => void>()
  const settle = (id: number, told: Told) => {
    waiting.get(id)?.(told)
    waiting.delete(id)
  }
  const start = () => {
    const started = fork(join(folder, "worker.mjs"), [], {
      execArgv: [],
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: join(folder, "compiled") }
    })
    started.on("message", ({ id, told }: { readonly id: number; readonly told: Told }) => settle(id, told))
    started.once("exit", (_, signal) => {
      child = undefined
      // Whoever is told may ask again at once: that is for the next process.
      const asking = [...waiting.keys()]
      for (const id of asking) settle(id, { said: signal === "SIGKILL" ? "killed" : "ended", requests: [] })
    })
    return started
  }
  return {
    ask: (order) =>
      Effect.callback<Told>((resume) => {
        const id = asked++
        waiting.set(id, (told) => resume(Effect.succeed(told)))
        child ??= start()
        child.send({ ...order, id })
      }),
    stop: () => void child?.kill("SIGKILL")
  }
}
