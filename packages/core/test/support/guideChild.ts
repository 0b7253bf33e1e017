/** A process that serves a store of its own, as docs/write-a-store.md says. */
import { MemoryStore } from "@waystone/core"
import { Effect } from "effect"
import { serve } from "./guide.ts"

serve(Effect.runSync(MemoryStore.make))
