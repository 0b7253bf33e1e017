/**
 * A process of its own that does what its parent says over ipc.
 */
import * as Effect from "effect/Effect"
import { live } from "./live.ts"
import type { Order } from "./Order.ts"

process.on("message", (order: Order) => {
  Effect.runPromise(live(order)).then(
    (told) => process.send?.({ id: order.id, told }),
    (error: unknown) => process.send?.({ id: order.id, told: { said: `died: ${String(error)}`, requests: [] } })
  )
})
process.on("disconnect", () => process.exit(0))
