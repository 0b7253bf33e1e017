export { RunEvent } from "@waystone/core"
