/**
 * Gives tools names on the wire that every provider takes and that the provider packages do not trip over.
 *
 * Those packages keep names in plain objects, where `toString` or `constructor` finds what every object inherits: such
 * a name goes out under a prefix, and what comes back in its place is recognised.
 *
 * @since 0.1.0
 */
import * as ToolName from "@waystone/core/ToolName"

const prefix = "waystone_"

/** Names that every object inherits, by what a look-up finds under them. */
const inherited: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ...Object.getOwnPropertyNames(Object.prototype).map((name) => [Reflect.get(Object.prototype, name), name] as const),
  [Object.prototype, "__proto__"]
])

/** The name on the wire: the same for the same name, in every request. */
export const toWire = (name: string): string =>
  ToolName.toWire(name in Object.prototype || name.startsWith(prefix) ? `${prefix}${name}` : name)

/** Reads names that come back; `tools` are those of the request. */
export const reader = (tools: ReadonlyArray<{ readonly name: string }>): ((wire: unknown) => string) => {
  const names = new Map(tools.map(({ name }) => [toWire(name), name]))
  return (wire) => {
    const name = typeof wire === "string" ? wire : (inherited.get(wire) ?? String(wire))
    const bare = name.startsWith(prefix) ? name.slice(prefix.length) : name
    return names.get(name) ?? (bare in Object.prototype ? bare : name)
  }
}
