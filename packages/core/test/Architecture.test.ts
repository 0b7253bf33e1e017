import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"

const root = new URL("../../../", import.meta.url)
const src = new URL("../src/", import.meta.url)
const read = (url: URL) => readFileSync(url, "utf8")

/** The rows of the table in ARCHITECTURE.md 2, lowest layer first. */
const layers = read(new URL("ARCHITECTURE.md", root))
  .split("\n")
  .filter((line) => /^\| (data|fold|contracts|effects|loop|verbs) \|/.test(line))
  .map((line) => [...line.matchAll(/`(\w+)`/g)].map((match) => match[1] ?? ""))
const layerOf = (module: string) => layers.findIndex((modules) => modules.includes(module))
const files = readdirSync(src).filter((file) => file.endsWith(".ts"))

const importsOf = (file: string) =>
  [...read(new URL(file, src)).matchAll(/^(?:import|export)[^"']*? from "(.+)"$|^\} from "(.+)"$/gm)].map(
    (match) => match[1] ?? match[2] ?? ""
  )

describe("the architecture", () => {
  it("names every module of core in ARCHITECTURE.md, and no other", () => {
    expect(layers.flat().toSorted()).toEqual(files.map((file) => file.replace(".ts", "")).toSorted())
  })

  it.each(files)("%s imports only from its own layer and the ones below", (file) => {
    const own = layerOf(file.replace(".ts", ""))
    const upwards = importsOf(file).filter((from) => from.startsWith("./") && layerOf(from.slice(2, -3)) > own)
    expect(upwards).toEqual([])
  })

  it.each(files)("%s imports nothing but effect and its own folder", (file) => {
    expect(importsOf(file).filter((from) => !from.startsWith("./") && !from.startsWith("effect/"))).toEqual([])
  })

  it.each(files)("%s begins with a header that says what it is for and since when", (file) => {
    if (file === "index.ts") return
    expect(read(new URL(file, src))).toMatch(/^\/\*\*\n \* [A-Z].*\n[\s\S]*? \* @since \d+\.\d+\.\d+\n \*\//)
  })

  it("has at most 8,270 lines of code in core, comments, blank lines and testing/ aside", () => {
    const code = files
      .flatMap((file) => read(new URL(file, src)).split("\n"))
      .filter((line) => !/^\s*($|\/\/|\/\*|\*)/.test(line))
    expect(code.length).toBeLessThanOrEqual(8270)
  })

  it("has an index that is a list of namespaces without logic", () => {
    const lines = read(new URL("index.ts", src)).trim().split("\n")
    expect(lines.filter((line) => !/^export \* as \w+ from "\.\/\w+\.ts"$/.test(line))).toEqual([])
  })
})
