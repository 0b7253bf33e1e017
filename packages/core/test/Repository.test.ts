import { expect, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly license?: string
  readonly type?: string
  readonly sideEffects?: boolean
  readonly files?: ReadonlyArray<string>
  readonly exports?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly publishConfig?: { readonly access?: string }
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const root = join(import.meta.dirname, "../../..")
const read = (folder: string): Manifest => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))

const folders = [
  ...["packages", "apps", "examples"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}`)
  ),
  "bench"
].filter((folder) => existsSync(join(root, folder, "package.json")))

const published = folders.filter((folder) => folder.startsWith("packages/") && read(folder).private !== true)

it("packages/core is published", () => {
  expect(published).toContain("packages/core")
})

it("everything outside packages is private", () => {
  const open = [".", ...folders.filter((folder) => !folder.startsWith("packages/"))].filter(
    (folder) => read(folder).private !== true
  )
  expect(open).toEqual([])
})

it.each(published)("%s is an MIT-licensed ES module without side effects, named after its folder", (folder) => {
  expect(read(folder)).toMatchObject({
    name: `@waystone/${folder.replace("packages/", "")}`,
    license: "MIT",
    type: "module",
    sideEffects: false,
    publishConfig: { access: "public" },
    files: expect.arrayContaining(["dist", "src"])
  })
  expect(readFileSync(join(root, folder, "LICENSE"), "utf8")).toBe(readFileSync(join(root, "LICENSE"), "utf8"))
})

it.each(published)("%s exports its source first, then its types, then its code", (folder) => {
  const entries = Object.values(read(folder).exports ?? {})
  expect(entries.length).toBeGreaterThan(0)
  for (const entry of entries) {
    expect(Object.keys(entry)).toEqual(["@waystone/source", "types", "default"])
    const source = entry["@waystone/source"] ?? ""
    expect(existsSync(join(root, folder, source)), source).toBe(true)
    expect(entry["types"]).toBe(source.replace("./src/", "./dist/").replace(/\.ts$/, ".d.ts"))
    expect(entry["default"]).toBe(source.replace("./src/", "./dist/").replace(/\.ts$/, ".js"))
  }
})

it.each(published)("%s has effect as a peer, not as a dependency", (folder) => {
  expect(read(folder).peerDependencies).toHaveProperty("effect", "^4.1.0")
  expect(read(folder).dependencies ?? {}).not.toHaveProperty("effect")
})

it.each([".", ...folders])(
  "%s takes every dependency in an exact version, from the catalog or from the workspace",
  (folder) => {
    const { dependencies, devDependencies, optionalDependencies } = read(folder)
    const loose = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }).filter(
      ([name, range]) =>
        range !== (name.startsWith("@waystone/") ? "workspace:^" : "catalog:") && !/^\d+\.\d+\.\d+$/.test(range)
    )
    expect(loose).toEqual([])
  }
)

it("every folder with a tsconfig.json is checked by the root's tsc -b", () => {
  const { references }: { references: ReadonlyArray<{ path: string }> } = JSON.parse(
    readFileSync(join(root, "tsconfig.json"), "utf8")
  )
  const checked = references.map(({ path }) => path.replace("./", ""))
  const all = folders
    .flatMap((folder) => [folder, `${folder}/test`])
    .filter((folder) => existsSync(join(root, folder, "tsconfig.json")))
  expect(checked).toEqual(expect.arrayContaining(all))
})

it("every test folder of a built package has a tsconfig.json of its own", () => {
  const missing = folders
    .filter((folder) => !folder.startsWith("apps/") && existsSync(join(root, folder, "test")))
    .filter((folder) => !existsSync(join(root, folder, "test/tsconfig.json")))
  expect(missing).toEqual([])
})
