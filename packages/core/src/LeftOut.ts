/**
 * Tells of damaged Runs that a list left out: one warning, however many there are.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** How many damaged Runs one warning names; the others are counted. */
const named = 10

/** What was told already, for whoever lists the same Runs again and again. Default: nothing is kept, each list tells. */
const Told: Context.Reference<Set<string> | undefined> = Context.Reference("@waystone/core/LeftOut/Told", {
  defaultValue: (): Set<string> | undefined => undefined
})

/** What a list says of the Runs that it leaves out since they are damaged: a warning with the messages of ten of them. */
export const leftOut = (damaged: ReadonlyArray<{ readonly message: string }>): Effect.Effect<void> =>
  Effect.flatMap(Told, (told) => {
    const news = [...new Set(damaged.map(({ message }) => message))].filter((message) => !told?.has(message))
    if (news.length === 0) return Effect.void
    for (const message of news) told?.add(message)
    const more = news.length > named ? ` And ${news.length - named} more.` : ""
    return Effect.logWarning(`Left out of a list: ${news.slice(0, named).join(" ")}${more}`)
  })

/** In it, each damaged Run is told of once. */
export const once = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => Effect.provideService(effect, Told, new Set<string>()))
