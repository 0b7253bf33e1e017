/**
 * Names JSON by its content: canonical text and SHA-256, so that an approval is bound to exactly what was asked.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as CryptoDigest from "effect/crypto/Digest"

declare const TextEncoder: new () => { readonly encode: (text: string) => Uint8Array }

/** JSON with the keys of every object in code unit order, so that equal data is equal text. */
export const canonical = (json: unknown): string => JSON.stringify(json, (_, value) => sorted(value)) ?? "null"

const sorted = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value

/** The SHA-256 of the canonical text, in lowercase hex. */
export const sha256 = (json: unknown): Effect.Effect<string> =>
  CryptoDigest.Digest.use((digest) =>
    digest.digestHex(CryptoDigest.sha256, new TextEncoder().encode(canonical(json)))
  ).pipe(Effect.provide(CryptoDigest.layerWebCrypto))
