import { describe, expect, it } from "@effect/vitest"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { vi } from "vitest"
import * as Bugs from "../src/Bugs.ts"
import { bundled } from "../src/Project.ts"
import { finished, own, standardFile, start } from "./process.ts"

vi.setConfig({ testTimeout: 240_000 })

const done = (...args: ReadonlyArray<string>) => finished(start(...args))
const right = () => readFileSync(join(bundled, Bugs.file), "utf8").replace(Bugs.bundled.wrong, Bugs.bundled.right)
const idIn = (text: string) => /demo-[0-9a-f-]{36}/.exec(text)?.[0] ?? ""

/** A copy of the bundled project, in a folder of the user's. */
const ownFolder = (name = "own"): string => {
  const folder = join(own.temporary, name)
  cpSync(bundled, folder, { recursive: true })
  return folder
}

/** Starts a Run and does `act` once its output has `text`. */
const until = async (text: RegExp, act: (runId: string) => void, ...args: ReadonlyArray<string>) => {
  let acted = false
  const child = start(...args)
  const end = finished(child, (out) => {
    if (acted || !text.test(out)) return
    acted = true
    act(idIn(out))
  })
  return { child, end }
}

/** A Run on the bundled project that was ended by a signal while its tests ran. */
const left = async (signal: NodeJS.Signals, ...args: ReadonlyArray<string>) => {
  const { child, end } = await until(/… run_tests/, () => child.kill(signal), ...args)
  return end
}

describe.skipIf(process.platform === "win32")("a Run that was left goes on", () => {
  it("Ctrl-C pauses it and says how; runs and show say what it waits for; resume repairs and removes the copy", async () => {
    const first = await left("SIGINT")
    expect(first.code).toBe(130)
    const runId = idIn(first.out)
    expect(first.out).toContain(`It is paused. To go on: npm run demo -- resume ${runId}\n`)
    expect(statSync(dirname(standardFile())).mode & 0o777).toBe(0o700)
    expect(readdirSync(own.temporary)).toHaveLength(1)

    const [runs, shown] = await Promise.all([done("runs"), done("show", runId, "--json")])
    expect(runs.out).toMatch(new RegExp(`^run +status .*\n${runId}  running \\(paused\\)  repairer  1  `))
    expect(JSON.parse(shown.out)).toMatchObject({
      runId,
      task: "The tests of this project fail. Repair it.",
      waiting: [{ kind: "paused", since: expect.any(Number), wayOut: `to go on: npm run demo -- resume ${runId}` }],
      calls: [
        { callId: "t1.0", name: "list_files", ending: "executed" },
        { callId: "t1.1", name: "run_tests" }
      ]
    })

    const again = await done("resume", runId)
    expect({ code: again.code, err: again.err }).toEqual({ code: 0, err: "" })
    expect(again.out).toContain(`+  return ${Bugs.bundled.right}`)
    expect(again.out).not.toContain("list_files")
    expect(readdirSync(own.temporary)).toEqual([])

    const [events, twice] = await Promise.all([done("events", runId, "--after", "3", "--json"), done("resume", runId)])
    const seqs = events.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).seq)
    expect(seqs).toEqual(seqs.map((_, index) => index + 4))
    // It was repaired, and there is nothing to do: not an error.
    expect(twice).toMatchObject({ code: 0, err: "" })
    expect(twice.out).toMatch(
      /^Run demo-\S+ has ended \(completed\): its last tests passed, 9 of 9\. Its folder \S+ is gone\. .*npm run demo -- show demo-\S+\n$/
    )
  })

  it("one that ended without a repair, and whose copy is gone, is said to be so by resume, which exits with 1", async () => {
    const { code, out } = await done("--bug", "4")
    expect(code).toBe(1)
    const again = await done("resume", idIn(out), "--json")
    expect({ code: again.code, err: again.err }).toEqual({ code: 1, err: "" })
    expect(JSON.parse(again.out)).toEqual({ _tag: "Over", runId: idIn(out), status: "completed", repaired: false })
    const inWords = await done("resume", idIn(out))
    expect(inWords.out).toMatch(/^Run \S+ has ended \(completed\): the project was not repaired\. /)
  })

  it("a reader that goes away leaves it paused, with its folder", async () => {
    const child = start()
    child.stdout?.once("data", () => child.stdout?.destroy())
    const { code } = await finished(child)
    expect(code).toBe(141)
    expect(readdirSync(own.temporary)).toHaveLength(1)
    const { out } = await done("runs", "--status", "running")
    expect(out).toContain("running (paused)")
  })

  it("killed at a random moment, it is resumed, and the project is repaired", async () => {
    const folder = ownFolder()
    // From the first turn to the end takes about two seconds.
    const after = Math.random() * 2_000
    const { child, end } = await until(/Turn 1/, () => setTimeout(() => child.kill("SIGKILL"), after), "--dir", folder)
    const { out } = await end
    const again = await done("resume", idIn(out))
    expect({ after, code: again.code, err: again.err }).toEqual({ after, code: 0, err: "" })
    expect(readFileSync(join(folder, Bugs.file), "utf8")).toBe(right())
  })

  it("no second process drives it, and cancel from another process ends it", async () => {
    const busy: Array<ReturnType<typeof done>> = []
    const { end } = await until(
      /… run_tests/,
      (runId) => {
        const refused = done("resume", runId)
        const cancelled = refused.then(() => done("cancel", runId, "--reason", "enough"))
        busy.push(refused, done("events", runId, "--follow"), cancelled)
      },
      "--dir",
      waiting(join(own.home, "never"))
    )
    const { code, out } = await end
    // Its tests were ended, not waited for.
    expect(out).not.toContain("✓ run_tests")
    expect(code).toBe(1)
    expect(out).toContain("The run is cancelled")
    const [second, followed, cancelled] = await Promise.all(busy)
    expect(second?.code).toBe(1)
    expect(second?.err).toMatch(
      /^demo: run (demo-\S+) is being driven by another process\. To see it: npm run demo -- events \1 --follow ; to make it rest: npm run demo -- pause \1 /
    )
    expect(cancelled).toMatchObject({ code: 0 })
    expect(followed?.code).toBe(0)
    expect(followed?.out).toContain("CancelRequested")
    expect(followed?.out.trimEnd().split("\n").at(-1)).toContain("RunFinished")
  })

  it("pause from another process lets it finish the call, and says how to go on", async () => {
    const asked: Array<ReturnType<typeof done>> = []
    const go = join(own.home, "go")
    const { end } = await until(
      /… run_tests/,
      (runId) => asked.push(done("pause", runId).finally(() => writeFileSync(go, ""))),
      "--dir",
      waiting(go)
    )
    const { code, out } = await end
    expect((await asked[0])?.out).toContain("To go on: npm run demo -- resume ")
    expect(code).toBe(1)
    expect(out).toContain("✓ run_tests")
    expect(out).toContain("paused waits (paused)")
    expect(out).toContain(`It can go on: npm run demo -- resume ${idIn(out)}`)
    expect(out).not.toContain("Turn 2")
  })
})

/** A project whose tests end when there is a file `go`. */
const waiting = (go: string): string => {
  const folder = ownFolder("waiting")
  const test = `import { test } from "node:test"\nimport { existsSync } from "node:fs"\nimport { setTimeout } from "node:timers/promises"\ntest("waits", async () => { while (!existsSync(${JSON.stringify(go)})) await setTimeout(50) })\n`
  writeFileSync(join(folder, "test/waiting.test.js"), test)
  return folder
}

describe("fork, cancel and prune", () => {
  it("work on a Run that nobody drives", async () => {
    const { out } = await left("SIGINT", "--dir", ownFolder())
    const runId = idIn(out)
    const other = ownFolder("other")
    const [wrong, forked] = await Promise.all([
      done("fork", runId, "--at", "2"),
      done("fork", runId, "--at", "4", "--dir", other, "--json")
    ])
    expect(wrong.code).toBe(1)
    expect(wrong.err).toMatch(/^demo: run \S+ has no checkpoint at 2: .* 4, /)
    const made = JSON.parse(forked.out)
    expect(made).toMatchObject({ _tag: "Forked", from: { runId, seq: 4 }, folder: other })
    // Nobody has driven it yet, so it rests: following goes on until it has ended.
    const followed = done("events", made.runId, "--follow")
    const [resumed, cancelled] = await Promise.all([done("resume", made.runId), done("cancel", runId)])
    expect((await followed).out.trimEnd().split("\n").at(-1)).toContain("RunFinished")
    expect(resumed.code).toBe(0)
    expect(resumed.out).toContain("What was changed since the run was resumed")
    expect(readFileSync(join(other, Bugs.file), "utf8")).toBe(right())
    expect(cancelled).toMatchObject({ code: 0, out: `Run ${runId} is cancelled.\n` })
    const kept = await done("prune")
    expect(kept.out).toBe("0 runs that have ended were removed.\n")
    const pruned = await done("prune", "--older-than", "0 seconds")
    expect(pruned.out).toBe("2 runs that have ended were removed.\n")
    expect((await done("runs")).out).toBe("There are no runs.\n")
  })
})

describe.skipIf(process.platform === "win32")("a fork has a folder of its own", () => {
  it("a copy, in which what the original was doing is done again; the temporary one goes when the fork ends", async () => {
    const { out } = await left("SIGINT")
    const runId = idIn(out)
    const [base = ""] = readdirSync(own.temporary)
    const { folder, runId: fork } = JSON.parse((await done("fork", runId, "--json")).out)
    expect(readFileSync(join(dirname(folder), "run"), "utf8")).toBe(fork)
    const { code } = await done("resume", fork)
    expect(code).toBe(0)
    expect(readdirSync(own.temporary)).toEqual([base])
    const untouched = readFileSync(join(own.temporary, base, "cart", Bugs.file), "utf8")
    expect(untouched).toBe(readFileSync(join(bundled, Bugs.file), "utf8"))
    // Cancelled by a process that drives it to its end.
    expect((await done("cancel", runId)).out).toBe(`Run ${runId} is cancelled.\n`)
    expect(readdirSync(own.temporary)).toEqual([])
    const gone = await done("fork", runId)
    expect(gone).toMatchObject({ code: 1, out: "" })
    expect(gone.err).toMatch(/^demo: run \S+ cannot be forked on a copy: its folder \S+ is gone\. .*--dir\.\n$/)
  })
})

describe.skipIf(process.platform === "win32")("a Run whose process was killed and whose folder is gone", () => {
  it("cannot be resumed, can be cancelled, and is then ended", async () => {
    const folder = ownFolder()
    const { out } = await left("SIGKILL", "--dir", folder)
    const runId = idIn(out)
    rmSync(folder, { recursive: true })
    const resumed = await done("resume", runId)
    expect({ code: resumed.code, out: resumed.out }).toEqual({ code: 1, out: "" })
    expect(resumed.err).toMatch(/^demo: run \S+ cannot go on: the folder \S+ is gone: .*\n$/)
    expect(await done("cancel", runId)).toMatchObject({ code: 0, out: `Run ${runId} is cancelled.\n`, err: "" })
    const { out: events } = await done("events", runId, "--json")
    const completed = events.split("\n").flatMap((line) => (line.includes("t1.1") ? [line] : []))
    expect(completed.at(-1)).toContain('"ending":"unknown"')
  })
})

describe("what cannot be is said in one line, and nothing is run", () => {
  it("an unknown Run, by every verb", async () => {
    const verbs = ["show", "events", "resume", "fork", "cancel", "pause"]
    const ends = await Promise.all(verbs.map((verb) => done(verb, "nobody")))
    const said = { code: 1, signal: null, out: "", err: "demo: There is no Run nobody.\n" }
    expect(ends).toEqual(verbs.map(() => said))
    // Who only looks makes no store.
    const runs = await done("runs")
    expect(runs).toEqual({
      ...said,
      code: 0,
      out: `There are no runs yet: the first one makes ${standardFile()}.\n`,
      err: ""
    })
    expect(existsSync(standardFile())).toBe(false)
    expect(existsSync(dirname(standardFile()))).toBe(false)
  })

  it("a store that the user names and that is not there, by every verb, and where it would be", async () => {
    const file = join(own.home, "typo.db")
    const verbs = ["show", "events", "resume", "fork", "cancel", "pause"].map((verb) => [verb, "nobody"])
    const ends = await Promise.all([["runs"], ["prune"], ...verbs].map((words) => done(...words, "--store", file)))
    for (const { code, err, out } of ends) {
      expect({ code, out }).toEqual({ code: 1, out: "" })
      expect(err).toBe(
        `demo: --store names ${file}, and there is no such file: a run that is started with it makes it.\n`
      )
    }
    expect(existsSync(file)).toBe(false)
  })

  it("a store in the folder that the agent works on, whatever link leads there", async () => {
    const folder = ownFolder()
    const link = join(own.home, "link.db")
    symlinkSync(join(folder, "runs.db"), link)
    mkdirSync(join(folder, "deep"))
    const files = [join(folder, "runs.db"), join(folder, "deep/er/runs.db"), link]
    const ends = await Promise.all(files.map((file) => done("--dir", folder, "--store", file)))
    for (const { code, err, out } of ends) {
      expect({ code, out }).toEqual({ code: 1, out: "" })
      expect(err).toMatch(/^demo: the store \S+ lies in \S+, the folder that the agent works on: .*\n$/)
    }
    for (const file of files) expect(existsSync(file)).toBe(false)
    expect(existsSync(join(folder, "deep/er"))).toBe(false)
  })

  it("a store that is none, without its password", async () => {
    const wrong = [
      ["", "--store is empty"],
      ["http://user:sekret@host", "--store is no such URL"],
      ["user:sekret@localhost:6379", "begins with redis://"],
      [":sekret@localhost", "begins with redis://"],
      ["//user:sekret@localhost", "begins with redis://"],
      ["redis//:sekret@localhost", "begins with redis://"],
      ["redis;//localhost", "begins with redis://"],
      ["localhost:6379", "begins with redis://"],
      ["data/foo/", "--store ends like a folder"],
      ["redis://user:sekret@127.0.0.1:1/0", "ECONNREFUSED"],
      ["redis://user:sek%ret@127.0.0.1/0", '"url" must have the form'],
      ["memory", "holds no run of another process"]
    ] as const
    await Promise.all(
      wrong.map(async ([store, said]) => {
        const { code, err, out } = await done("runs", "--store", store)
        expect({ store, code, out }).toEqual({ store, code: 1, out: "" })
        expect(err).toMatch(/^demo: .*\n$/)
        expect(err).toContain(said)
        expect(err).not.toMatch(/sek|\n\s+at /)
      })
    )
  })
})
