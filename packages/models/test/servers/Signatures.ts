/**
 * Signatures that can be checked without remembering: the same text gives the same signature in every server.
 *
 * A signature that a script chose is remembered with its text.
 */
import { createHash } from "node:crypto"

export interface Signatures {
  readonly issue: (text: string, chosen: string | undefined) => string
  readonly valid: (text: string, signature: unknown) => boolean
  /** True when this server issued it, for whatever text. */
  readonly issued: (signature: unknown) => boolean
}

export const make = (prefix: string): Signatures => {
  const sign = (text: string) => `${prefix}${createHash("sha256").update(text).digest("base64url")}`
  const texts = new Map<unknown, ReadonlySet<string>>()
  return {
    issue: (text, chosen) => {
      const signature = chosen ?? sign(text)
      texts.set(signature, new Set([...(texts.get(signature) ?? []), text]))
      return signature
    },
    valid: (text, signature) => signature === sign(text) || texts.get(signature)?.has(text) === true,
    issued: (signature) => texts.has(signature)
  }
}
