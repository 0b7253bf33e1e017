import { version } from "@waystone/core"

console.log(`bench of waystone ${version}`)
