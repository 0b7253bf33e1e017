/** Cases from bug reports of other frameworks that must hold on every durable store, across processes. */
import { afterAll, describe } from "@effect/vitest"
import * as SharedRedis from "../../../packages/checkpoint-redis/test/support/shared.ts"
import { approvals } from "./cases/Approvals.ts"
import { policy } from "./cases/Policy.ts"
import { calls, values } from "./cases/Calls.ts"
import { children } from "./cases/Children.ts"
import { forks } from "./cases/Forks.ts"
import { journals } from "./cases/Journals.ts"
import { owners } from "./cases/Owners.ts"
import { waits } from "./cases/Waits.ts"
import * as Backends from "./durable/backends.ts"
import * as Office from "./durable/Office.ts"

const redis = await SharedRedis.forFile("the cases on Redis")

afterAll(Office.close)

for (const backend of [Backends.sqlite, ...(redis.available ? [Backends.redis(redis)] : [])]) {
  describe(backend.name, () => {
    approvals(backend)
    policy(backend)
    forks(backend)
    waits(backend)
    owners(backend)
    journals(backend)
    values(backend)
    calls(backend)
    children(backend)
  })
}
