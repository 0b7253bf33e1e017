import { RunEvent } from "@waystone/core"

console.log(`bench of waystone ${RunEvent.version}`)
