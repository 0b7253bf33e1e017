/**
 * Knows what secrets look like within a text. What it has redacted stays as it is when it is redacted again.
 *
 * Not caught: a secret without a known prefix that nothing names, such as an AWS secret key alone on a line.
 *
 * @since 0.1.0
 */
import * as Text from "../Text.ts"
import * as SecretName from "./SecretName.ts"

export const mark = "[redacted]"

/** Of a key that was cut off the rest of the text goes. */
const pem = /-----BEGIN [A-Z\d ]*PRIVATE KEY[A-Z ]*-----[^]*?(?:-----END [A-Z\d ]*-----|$)/g

/** What stands before the secret stays. */
const after: ReadonlyArray<RegExp> = [
  /(\b[a-z][a-z\d+.-]*:\/\/)[^\s/@"'<>]*:[^\s/@"'<>]+(?=@)/gi,
  /(\bhooks\.slack\.com\/(?:services|workflows)\/)[\w/-]+/g,
  /(\bdiscord(?:app)?\.com\/api\/webhooks\/)[\w/-]+/g,
  /(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)\s+)[^\r\n"']+/gi,
  /(\bcookie\s*:\s*)(?=[^\r\n"']{0,200}=)[^\r\n"']+/gi,
  /(\b(?:bearer|token)\s+)(?:\w{20,}|(?=\S{0,200}\d)[\w.~+/=-]{16,})/gi,
  /(\b[Bb]asic\s+)(?=\S{1,200}[A-Z\d=])[A-Za-z\d+/]{12,}={0,2}/g
]

const parameter = /([?&;#])([\w.[\]-]{1,80})=([^\s&;#"'<>\\]+)/g
/** `"name": "value"`, `name = 'value'`; within JSON within JSON every quote has backslashes before it. */
const quoted = /([\w.$-]{2,80})(\\*["']?\s*(?::|=>?)\s*(\\*["'`]))((?:(?!\3)[^\r\n]){1,4000})(?=\3)/g
/** `NAME=value`, as in an environment. What calls a function is code. */
const assigned = /(?<![\w.$-])([\w.-]{2,80})=([^\s"'`,;&(){}<>]{4,})(?![^\s,;&"'`])/g
/** `name: value` alone on a line, as in YAML; a value of less than 8 characters may be a type. */
const listed = /^([ \t-]*)([\w.-]{2,80})(:[ \t]+)([^\s"'`,;(){}<>|]{8,})(?=[ \t]*$)/gm

/** The text without what looks like a secret. */
export const without = (text: string): string => {
  let kept = text.replace(pem, mark)
  for (const shape of after) kept = kept.replace(shape, `$1${mark}`)
  kept = kept
    .replace(parameter, (all, before: string, name: string) =>
      SecretName.isParameter(name) ? `${before}${name}=${mark}` : all
    )
    .replace(quoted, (all, name: string, between: string) => (SecretName.is(name) ? `${name}${between}${mark}` : all))
    .replace(assigned, (all, name: string) => (SecretName.is(name) ? `${name}=${mark}` : all))
    .replace(listed, (all, indent: string, name: string, colon: string) =>
      SecretName.is(name) ? `${indent}${name}${colon}${mark}` : all
    )
  return Text.secretless(kept)
}
