/** The Redis that the tests of one file share, with prefixes that are cleaned up after them. */
import * as Effect from "effect/Effect"
import { afterAll } from "vitest"
import * as TestServer from "./server.ts"

export interface SharedRedis extends TestServer.Shared {
  /** False: there is no Redis, and the tests are to be skipped. */
  readonly available: boolean
  readonly freshPrefix: () => string
  /** Prefixes that were not made here. */
  readonly cleanUp: (...prefixes: ReadonlyArray<string>) => void
  readonly ask: (...command: ReadonlyArray<string>) => Effect.Effect<unknown>
}

/** Registers the clean-up with the file that calls it. */
export const forFile = async (tests: string): Promise<SharedRedis> => {
  const shared = await TestServer.shared(tests)
  const redis: TestServer.Shared = shared ?? { url: "", send: async () => undefined, stop: async () => {} }
  const prefixes: Array<string> = []
  afterAll(async () => {
    if (shared === undefined) return
    for (const prefix of prefixes) await TestServer.clean(redis, prefix)
    await redis.stop()
  })
  return {
    ...redis,
    available: shared !== undefined,
    cleanUp: (...more) => void prefixes.push(...more),
    freshPrefix: () => {
      const prefix = TestServer.freshPrefix()
      prefixes.push(prefix)
      return prefix
    },
    ask: (...command) => Effect.promise(() => redis.send(...command))
  }
}
