export { version } from "@waystone/core"
