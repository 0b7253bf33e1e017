import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as PlatformError from "effect/PlatformError"
import { Permissions } from "@waystone/policy"
import type { Policy } from "./support/office.ts"

/** A project with links of all kinds beside a folder with a secret. */
const project = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const base = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)
  const root = `${base}/project`
  yield* fs.makeDirectory(`${root}/src/deep`, { recursive: true })
  yield* fs.makeDirectory(`${base}/project-evil`)
  yield* fs.makeDirectory(`${base}/outside/sub`, { recursive: true })
  for (const file of ["project/src/a.ts", "project/.env", "outside/key", "project-evil/x"]) {
    yield* fs.writeFileString(`${base}/${file}`, "x")
  }
  yield* fs.symlink(`${base}/outside`, `${root}/link`)
  yield* fs.symlink(`${base}/outside/sub`, `${root}/sub`)
  yield* fs.symlink(`${root}/src`, `${root}/inner`)
  yield* fs.symlink(`${base}/nowhere`, `${root}/dangling`)
  yield* fs.symlink(`${root}/.env`, `${root}/innocent.txt`)
  return { base, root }
})

const decided = (policy: Policy, path: (place: { readonly base: string; readonly root: string }) => unknown) =>
  Effect.gen(function* () {
    const place = yield* project
    return yield* Permissions.Permissions.use(({ explain }) =>
      explain({ tool: "write", effect: "unsafe", arguments: { path: path(place) } })
    ).pipe(Effect.provide(Permissions.layer(policy, { root: place.root })))
  }).pipe(Effect.provide(NodeServices.layer))

const inside: Policy = { rules: [{ action: "allow", when: { path: { inside: ["."] } } }] }

describe("paths", () => {
  it.live.each([
    ["a file", "src/a.ts", "allow"],
    ["a new file in new folders", "new/er/b.ts", "allow"],
    ["the folder itself", ".", "allow"],
    ["dots that stay", "src/../src/a.ts", "allow"],
    ["a link that stays", "inner/a.ts", "allow"],
    ["dots that lead out", "../outside/key", "deny"],
    ["a link that leads out", "link/key", "deny"],
    ["a new file through a link that leads out", "link/new", "deny"],
    ["a link that leads nowhere", "dangling", "deny"],
    ["below a link that leads nowhere", "dangling/x", "deny"],
    ["a neighbour with the same beginning", "../project-evil/x", "deny"],
    // The kernel follows the link first and lands in outside; a program that strips the dots lands in the project.
    ["dots after a link", "sub/../key", "deny"],
    ["dots after what is missing", "missing/../../outside/key", "deny"],
    ["another absolute path", "/etc/passwd", "deny"],
    ["an empty path", "", "deny"],
    ["a NUL", "src/a.ts\0", "deny"]
  ] as const)("%s (%s): %s", ([, path, action]) =>
    Effect.map(
      decided(inside, () => path),
      (decision) => expect(decision.action).toBe(action)
    )
  )

  it.live.each([
    ["caf\u00e9/**", "cafe\u0301/x"],
    ["cafe\u0301/**", "caf\u00e9/x"]
  ] as const)(
    "a rule that denies %j holds for %j: file systems and keyboards compose accents differently",
    ([glob, path]) =>
      Effect.map(
        decided({ rules: [{ action: "deny", when: { path: { path: [glob] } } }, { action: "allow" }] }, () => path),
        ({ action }) => expect(action).toBe("deny")
      )
  )

  it.live("an absolute path inside is inside", () =>
    Effect.map(
      decided(inside, ({ root }) => `${root}/src/a.ts`),
      ({ action }) => expect(action).toBe("allow")
    )
  )

  it.live.each([
    ["the file", ".env", "deny"],
    ["a link to it", "innocent.txt", "deny"],
    ["dots", "src/../.env", "deny"],
    ["capitals", ".ENV", "deny"],
    ["another file", "src/a.ts", "allow"],
    ["a file outside", "../outside/key", "deny"]
  ] as const)("a rule that denies sees where a path leads: %s", ([, path, action]) =>
    Effect.map(
      decided(
        {
          rules: [
            { name: "secrets", action: "deny", when: { path: { path: [".env*", "**/.env*"] } } },
            { name: "out", action: "deny", when: { path: { outside: ["."] } } },
            { action: "allow" }
          ]
        },
        () => path
      ),
      (decision) => expect(decision.action).toBe(action)
    )
  )

  it.live.each([
    ["src/*.ts", "src/a.ts", "allow"],
    ["src/*.ts", "src/deep/a.ts", "deny"],
    ["src/**", "src/deep/a.ts", "allow"],
    ["src/**", "inner/deep/a.ts", "allow"],
    ["inner/**", "inner/a.ts", "deny"],
    ["SRC/**", "src/a.ts", "deny"],
    ["**", "../outside/key", "deny"],
    ["**", ".env", "allow"]
  ] as const)("globs are about the real path: %s and %s: %s", ([glob, path, action]) =>
    Effect.map(
      decided({ rules: [{ action: "allow", when: { path: { path: [glob] } } }] }, () => path),
      (decision) => expect(decision.action).toBe(action)
    )
  )

  it.live("the root is by default the folder that the process runs in", () =>
    Effect.gen(function* () {
      const { explain } = yield* Permissions.Permissions
      const at = (path: string) =>
        Effect.map(explain({ tool: "write", effect: "unsafe", arguments: { path } }), ({ action }) => action)
      expect(yield* at(`${process.cwd()}/new`)).toBe("allow")
      expect(yield* at(`${process.cwd()}/../new`)).toBe("deny")
    }).pipe(Effect.provide(Permissions.layer(inside).pipe(Layer.provideMerge(NodeServices.layer))))
  )

  it.live("P2 a look-up that fails denies, whatever later rules say", () =>
    Effect.gen(function* () {
      const denied = PlatformError.systemError({ _tag: "PermissionDenied", module: "FileSystem", method: "realPath" })
      const broken = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (fs) => ({
          ...fs,
          realPath: (path: string) => (path.endsWith("a.ts") ? Effect.fail(denied) : fs.realPath(path))
        }))
      ).pipe(Layer.provide(NodeServices.layer))
      const rules: Policy = {
        rules: [{ name: "x", action: "deny", when: { path: { path: ["b"] } } }, { action: "allow" }]
      }
      const decision = yield* Permissions.Permissions.use(({ explain }) =>
        explain({ tool: "write", effect: "unsafe", arguments: { path: "a.ts" } })
      ).pipe(
        Effect.provide(
          Permissions.layer(rules).pipe(Layer.provideMerge(broken), Layer.provideMerge(NodeServices.layer))
        )
      )
      expect(decision).toEqual({
        action: "deny",
        rule: "x",
        reason: "it cannot be evaluated: the path cannot be looked up"
      })
    })
  )
})
