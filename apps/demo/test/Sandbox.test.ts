import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest"
import { CommandRunner } from "@waystone/tools"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import * as Sandbox from "../src/Sandbox.ts"
import { own } from "./process.ts"
import { sandboxes } from "./sandboxes.ts"

const layer = CommandRunner.CommandRunner.layer().pipe(Layer.provide(NodeServices.layer))

/** A store with a file beside it and a journal of writes, and a project. */
const places = (named: boolean) => {
  const home = realpathSync(own.home)
  const store = join(home, "store")
  const project = join(home, "project")
  for (const folder of [store, project]) mkdirSync(folder)
  const file = join(store, "runs.db")
  for (const one of [file, `${file}-wal`, join(store, "beside.txt")]) writeFileSync(one, "kept")
  return { file, project, store, given: { _tag: "File", file, named } as const }
}

/** Runs a line of a shell in a sandbox, and says what it wrote, errors aside. */
const ran = (kind: Sandbox.Kind, { given, project }: ReturnType<typeof places>, line: string) =>
  Effect.gen(function* () {
    const { run } = yield* CommandRunner.CommandRunner
    const wrap = yield* Sandbox.make(kind, given, project)
    return yield* run({ argv: wrap(["sh", "-c", `exec 2> /dev/null; ${line}`]), cwd: "/", timeout: "30 seconds" })
  }).pipe(
    Effect.map(({ output }) => output),
    Effect.provide(layer)
  )

describe.skipIf(!sandboxes)("Sandbox", () => {
  // The folder for temporary files is another one than that of the store and the project.
  beforeEach(() => void vi.stubEnv("TMPDIR", own.temporary))
  afterEach(() => void vi.unstubAllEnvs())

  it.live.each(["hidden", "confined"] as const)("B1 a file that the user named is empty, and its journal: %s", (kind) =>
    Effect.gen(function* () {
      const all = places(true)
      expect(yield* ran(kind, all, `cat ${all.file} ${all.file}-wal; echo; cat ${all.store}/beside.txt`)).toBe("\nkept")
    })
  )

  it.live.each(["hidden", "confined"] as const)("B1 a folder of stores is empty: %s", (kind) =>
    Effect.gen(function* () {
      const all = places(false)
      expect(yield* ran(kind, all, `ls ${all.store}; echo end`)).toBe("end\n")
    })
  )

  it.live.each([true, false])("B3 nothing is made or changed beside the store (named: %s)", (named) =>
    Effect.gen(function* () {
      const all = places(named)
      yield* ran("hidden", all, `echo x > ${all.file}; rm -f ${all.file}; echo x > ${all.file}-wal`)
      expect(readdirSync(all.store).sort()).toEqual(["beside.txt", "runs.db", "runs.db-wal"])
      for (const file of readdirSync(all.store)) expect(readFileSync(join(all.store, file), "utf8")).toBe("kept")
    })
  )

  it.live.each(["hidden", "confined"] as const)(
    "B1 it sees its own processes only, and has no power over mounts: %s",
    (kind) =>
      Effect.gen(function* () {
        const [processes, powers] = (yield* ran(
          kind,
          places(false),
          "readlink /proc/self/ns/pid; grep CapEff /proc/self/status"
        )).split("\n")
        expect(processes).toMatch(/^pid:/)
        expect(processes).not.toBe(readlinkSync("/proc/self/ns/pid"))
        expect(powers).toMatch(/^CapEff:\s0+$/)
      })
  )

  it.live("B2 the tests write in the project and not outside, and have a network only if that is said", () =>
    Effect.gen(function* () {
      const all = places(true)
      const line = `echo x > made.txt; echo x > ${all.project}/made.txt; echo x > ${all.store}/beside.txt; readlink /proc/self/ns/net`
      const network = readlinkSync("/proc/self/ns/net")
      expect((yield* ran("confined", all, line)).trim()).toMatch(new RegExp(`^net:(?!.*${network.slice(5, -1)})`))
      expect(readFileSync(join(all.project, "made.txt"), "utf8")).toBe("x\n")
      expect(readFileSync(join(all.store, "beside.txt"), "utf8")).toBe("kept")
      expect(yield* Effect.provideService(ran("confined", all, line), Sandbox.Network, true)).toBe(`${network}\n`)
    })
  )
})
