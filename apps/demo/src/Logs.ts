/**
 * Says warnings of the store in a line on standard error, so that they stand neither among events nor among results.
 */
import * as Logger from "effect/Logger"

/** What comes with an error is left out: the error that it leads to is said, in one line and without a stack. */
const logger = Logger.make(({ logLevel, message }) => {
  const parts = Array.isArray(message) ? message : [message]
  if (parts.some((part) => part instanceof Error)) return
  process.stderr.write(
    `demo: ${logLevel.toLowerCase()}: ${parts
      .map(String)
      .join(" ")
      .replaceAll(/\s*\n\s*/g, " ")}\n`
  )
})

export const layer = Logger.layer([logger])
