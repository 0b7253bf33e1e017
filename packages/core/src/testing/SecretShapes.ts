/**
 * Knows what secrets look like within a text. What it has redacted stays as it is when it is redacted again.
 *
 * Not caught: a secret without a known prefix that nothing names, such as an AWS secret key alone on a line.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Base64 from "effect/encoding/Base64"
import * as Text from "../Text.ts"
import * as SecretName from "./SecretName.ts"

export const mark = "[redacted]"

/** Of a key that was cut off the rest of the text goes. */
const pem = /-----BEGIN [A-Z\d ]*PRIVATE KEY[A-Z ]*-----[^]*?(?:-----END [A-Z\d ]*-----|$)/g

/** What stands before the secret stays. */
const after: ReadonlyArray<RegExp> = [
  /(\b[a-z][a-z\d+.-]{0,30}:\/\/)[^\s/@"'<>]{0,400}:[^\s/@"'<>]+(?=@)/gi,
  // A token in the place of a user; a name of a user is shorter, or has no digit.
  /(\bhttps?:\/\/)(?=[\w-]{0,200}\d)[\w-]{16,}(?=@[\w-]+\.)/gi,
  /(\b(?:machine\s{1,20}\S{1,200}|default)\s{1,20}login\s{1,20}\S{1,200}\s{1,20}password\s{1,20})\S+/g,
  /(\bcurl\b[^\r\n]{0,400}?\s(?:-u|--user)[ =]?["']?[^\s:"'$]{1,200}:)(?!\$)[^\s"']+/g,
  /(\bhooks\.slack\.com\/(?:services|workflows)\/)[\w/-]+/g,
  /(\bdiscord(?:app)?\.com\/api\/webhooks\/)[\w/-]+/g,
  /(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)\s+)[^\r\n"']+/gi,
  /(\bcookie\s*:\s*)(?=[^\r\n"']{0,200}=)[^\r\n"']+/gi,
  /(\b(?:bearer|token)\s+)(?:\w{20,}|(?=\S{0,200}\d)[\w.~+/=-]{16,})/gi,
  /(\b[Bb]asic\s+)(?=\S{1,200}[A-Z\d=])[A-Za-z\d+/]{12,}={0,2}/g
]

const parameter = /([?&;#])([\w.[\]-]{1,80})=([^\s&;#"'<>\\]+)/g
/** `"name": "value"`, `name = 'value'`; within JSON within JSON every quote has backslashes before it. */
const quoted = /([\w.$-]{2,80})(\\*["']?\s*(?::=?|=>?)\s*(\\*["'`]))((?:(?!\3)[^\r\n]){1,4000})(?=\3)/g
/** `NAME=value`, as in an environment. What calls a function is code. */
const assigned = /(?<![\w.$-])([\w.-]{2,80})=([^\s"'`,;&(){}<>]{4,})(?![^\s,;&"'`])/g
/** `name: value` alone on a line, as in YAML; a value of less than 8 characters may be a type. */
const listed = /^([ \t-]*)([\w.-]{2,80})(:[ \t]+)([^\s"'`,;(){}<>|]{8,})(?=[ \t]*$)/gm

/** `--name value`; without quotes a value has a digit, since words may follow the name of a flag. */
const flag =
  /(?<![\w.-])--([a-z][\w-]{1,60})([ \t]{1,20})("[^"\r\n]{1,400}"|'[^'\r\n]{1,400}'|(?=\S{0,200}\d)[^\s"'`<>$[\]{}()|,;\\-][^\s"'`]{3,})/gi
/** `<name>value</name>`; words are no secret. */
const element = /(<([\w:.-]{2,80})(?:\s[^<>]{0,400})?>)[^<>\s{[$%][^<>\s]{3,4000}(?=<\/\2>)/g
/** `name: |` and the lines below it that are indented more, as in YAML. */
const block = /^([ \t]*)(?:- )?([\w.-]{2,80}):[ \t]{1,20}[|>][+-]?\d?[ \t]{0,20}\r?\n((?:\1[ \t]+\S[^\n]*(?:\n|$))+)/gm
/** `name=value` within a value of an address. */
const encoded = /(%26|%3F|(?<![\w.%-]))([\w.-]{2,80})%3D(?:[^\s&;#"'<>\\%]|%(?!26)[\da-f]{2})+/gi
/** What Docker keeps of a login: the user and the password, as base64. */
const login = /(\\*"auth\\*"\s{0,20}:\s{0,20}\\*")([A-Za-z\d+/]{4,2000}={0,2})(?=\\*")/g

const isLogin = (base64: string): boolean => {
  const text = Base64.decodeString(base64)
  return Result.isSuccess(text) && /^[!-9;-~]+:[ -~]+$/.test(text.success)
}

/** Shapes that a command, a document or an address has. */
const written = (text: string): string =>
  text
    .replace(flag, (all, name: string, space: string) => (SecretName.is(name) ? `--${name}${space}${mark}` : all))
    .replace(element, (all, tag: string, name: string) => (SecretName.is(name) ? `${tag}${mark}` : all))
    .replace(block, (all, indent: string, name: string, lines: string) =>
      SecretName.is(name)
        ? `${all.slice(0, all.length - lines.length)}${indent}  ${mark}${lines.endsWith("\n") ? "\n" : ""}`
        : all
    )
    .replace(encoded, (all, before: string, name: string) => (SecretName.is(name) ? `${before}${name}%3D${mark}` : all))
    .replace(login, (all, before: string, base64: string) => (isLogin(base64) ? `${before}${mark}` : all))

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
  return Text.secretless(written(kept))
}
