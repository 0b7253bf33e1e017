/**
 * Names new Runs.
 */
import * as Effect from "effect/Effect"
import * as WebCrypto from "effect/crypto/WebCrypto"

export const newRunId = WebCrypto.WebCrypto.use((crypto) => Effect.sync(() => `demo-${crypto.randomUUID()}`))
