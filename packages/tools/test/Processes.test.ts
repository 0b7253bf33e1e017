import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import * as Processes from "../src/Processes.ts"
import * as ProcessTable from "../src/ProcessTable.ts"

const linux = process.platform === "linux"

describe("Processes", () => {
  it.effect("P1 P2 P3 what does not die is left running and named, after grace and one second", () =>
    Effect.gen(function* () {
      const signals: Array<unknown> = []
      const immortal = { pid: 5, command: "init" }
      const mortal = { pid: 6, command: "sleep 60" }
      let dead = false
      const processes = Processes.ended((signalOf) => {
        const now = { immortal: signalOf("immortal"), mortal: dead ? 0 : signalOf("mortal") }
        for (const [name, signal] of Object.entries(now)) if (signal !== 0) signals.push(`${name} ${signal}`)
        dead ||= now.mortal === "SIGKILL"
        return { alive: new Map(Object.entries(dead ? { immortal } : { immortal, mortal })), sure: true }
      }, "nobody")
      const from = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkChild(processes.end(Duration.millis(500)))
      yield* TestClock.adjust("1600 millis")
      expect(yield* Fiber.join(fiber)).toEqual({ killed: [mortal], leftRunning: [immortal] })
      expect(signals.slice(0, 4)).toEqual(["immortal SIGTERM", "mortal SIGTERM", "immortal SIGKILL", "mortal SIGKILL"])
      expect(signals.filter((signal) => signal === "immortal SIGTERM")).toHaveLength(1)
      expect((yield* Clock.currentTimeMillis) - from).toBe(1600)
    })
  )

  it.effect("P1 a look that may have missed something is not believed", () =>
    Effect.gen(function* () {
      let looks = 0
      const late = { pid: 7, command: "late" }
      const processes = Processes.ended(() => {
        looks++
        return { alive: new Map(looks === 9 ? [["late", late]] : []), sure: looks > 9 }
      }, "nobody")
      expect(yield* processes.alive).toEqual([late])
    })
  )

  it.live.skipIf(!linux)("P2 without a table the process group is ended", () =>
    Effect.gen(function* () {
      const child = spawn("/bin/sh", ["-c", "trap : TERM; sleep 60 & echo deaf; while :; do sleep 0.1; done"], {
        detached: true,
        stdio: ["ignore", "pipe", "ignore"]
      })
      yield* Effect.promise(() => once(child.stdout, "data"))
      const pid = child.pid ?? 0
      const processes = Processes.ended(Processes.group(pid, "/bin/sh"), "")
      expect(yield* processes.alive).toEqual([{ pid, command: "the process group of sh" }])
      const { leftRunning } = yield* processes.end(Duration.millis(200))
      // Zombies that nobody has buried yet are members of a group too.
      const living = readdirSync("/proc").flatMap((name) => {
        const one = /^\d+$/.test(name) ? ProcessTable.entry(Number(name)) : undefined
        return one?.group === pid && !one.zombie ? [one] : []
      })
      expect(living).toEqual([])
      expect(leftRunning.length).toBeLessThanOrEqual(1)
      expect(child.signalCode).toBe("SIGKILL")
    })
  )
})

describe.skipIf(!linux)("ProcessTable", () => {
  it("F2 neither we nor what is older than the leader belongs", () => {
    const own = ProcessTable.entry(process.pid)
    const found: Array<number> = []
    const query = (start: number, group: number): ProcessTable.Query => ({
      leader: { pid: group, start },
      marks: ProcessTable.marks("no-such-id", 1),
      isKnown: () => true,
      isNewlyDead: () => false,
      found: ({ pid }) => found.push(pid)
    })
    ProcessTable.scan(query((own?.start ?? 0) + 1_000_000, own?.group ?? 0))
    expect(found).toEqual([])
    ProcessTable.scan(query(0, own?.group ?? 0))
    expect(found).not.toContain(process.pid)
    expect(found).toContain(process.ppid)
  })

  it.live("F2 a zombie does not belong, and one that is new makes the look unsure", () =>
    Effect.gen(function* () {
      const child = spawn("/bin/sh", ["-c", "true & exec sleep 60"], { detached: true, stdio: "ignore" })
      yield* Effect.promise(() => once(child, "spawn"))
      const zombies = Effect.sync(() =>
        readdirSync("/proc").filter((name) => {
          const one = /^\d+$/.test(name) ? ProcessTable.entry(Number(name)) : undefined
          return one?.parent === child.pid && one?.zombie === true
        })
      )
      yield* Effect.repeat(Effect.andThen(Effect.sleep("10 millis"), zombies), { until: ({ length }) => length > 0 })
      const leader = ProcessTable.entry(child.pid ?? 0)
      const dead: Array<number> = []
      const found: Array<number> = []
      const look = (isNew: boolean) =>
        ProcessTable.scan({
          leader: leader ?? { pid: 0, start: 0 },
          marks: ProcessTable.marks("no-such-id", 1),
          isKnown: () => false,
          isNewlyDead: ({ parent, pid }) => {
            if (parent === child.pid) dead.push(pid)
            return isNew
          },
          found: ({ pid }) => found.push(pid)
        })
      // Others come and go on a busy machine: ten looks.
      const sure = Array.from({ length: 10 }, () => look(false))
      const unsure = Array.from({ length: 10 }, () => look(true))
      child.kill("SIGKILL")
      expect(new Set(dead).size).toBe(1)
      expect(new Set(found)).toEqual(new Set([child.pid]))
      expect(sure).toContain(true)
      expect(unsure).not.toContain(true)
    })
  )

  it("F1 a leader's pid that was given away again makes no group", () => {
    const own = ProcessTable.entry(process.ppid)
    expect(own).toBeDefined()
    if (own === undefined) return
    const found: Array<number> = []
    const query = (start: number): ProcessTable.Query => ({
      leader: { pid: own.group, start },
      marks: ProcessTable.marks("no-such-id", 1),
      isKnown: () => false,
      isNewlyDead: () => false,
      found: ({ pid }) => found.push(pid)
    })
    const leader = ProcessTable.entry(own.group)
    // Only where the group's leader lives can its pid be somebody else's.
    if (leader === undefined) return
    ProcessTable.scan(query(leader.start))
    expect(found.length).toBeGreaterThan(0)
    found.length = 0
    ProcessTable.scan(query(leader.start - 1))
    expect(found).toEqual([])
  })

  it("the numbers that mark commands are exact, differ, and are far above any file", () => {
    for (const random of [0, 0.5, 1 - 2 ** -42]) {
      const [posix = "", other = ""] = ProcessTable.marks("x", ProcessTable.blocks(random)).limits
      for (const limit of [posix, other]) {
        expect(Number(limit)).toBeGreaterThanOrEqual(2 ** 51)
        expect(Number(limit)).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER)
        expect(limit).toMatch(/^\d{16}$/)
      }
      expect(BigInt(other)).toBe(BigInt(posix) * 2n)
    }
  })
})
