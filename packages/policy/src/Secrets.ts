/**
 * Takes what has the shape of a known secret out of a text.
 *
 * The shapes are those that the vendors document for their keys; each is a literal beginning and classes with an upper
 * bound, so a text of any kind takes time that is linear in its length. Linters with larger sets exist (secretlint,
 * gitleaks): the one is asynchronous, takes 4 ms for an empty text and uses patterns without a bound, the other is no
 * library. They find what should not be committed; this hides what should not be sent.
 *
 * Invariants
 *   S1  It finds a secret inside of JSON that is text, and in base64 (one layer deep) of printable text.
 *   S2  A second pass changes nothing.
 *
 * Not found: a secret in hexadecimal, percent-encoded, compressed, encrypted, reversed or split over two values, base64 that
 * begins in the middle of a word, and passwords without a name or an address beside them. `values` finds known ones.
 *
 * @since 0.1.0
 */

interface Shape {
  readonly pattern: RegExp
  /** A pattern of words of which one, in whatever case, stands in everything that the shape matches. */
  readonly hint: string
  readonly replacement: string
}

const shape = (name: string, hint: string, source: string, flags = "g"): Shape => ({
  pattern: new RegExp(source, flags),
  hint,
  replacement: `$1${mark(name)}`
})

/** How a secret is shown. */
export const mark = (name: string): string => `[redacted:${name}]`

/** A beginning that is not the middle of a longer word. */
const word = "(?<![A-Za-z0-9])"
/** What looks like a key, and not like words joined by hyphens, has a digit. */
const withDigit = "(?=[A-Za-z0-9_-]{0,200}[0-9])"
/** A run of twelve letters and digits, of both: names in words have none. */
const random = "(?=[\\w-]{0,200}?(?=[A-Za-z0-9]{12})[A-Za-z]{0,11}[0-9])"
/** Words joined by hyphens, and what is called: code, not a value. */
const named = "(?![a-z]{1,40}(?:-[a-z0-9]{1,40}){1,40}(?![\\w$]))(?![\\w.$]{1,200}\\()"

/** `$1` of a pattern stays. The names have no digits: a mark must not look like a value. */
const shapes: ReadonlyArray<Shape> = [
  // RFC 7468; the end may be cut off. A body has no five hyphens and no quote, but may have `\n` as text.
  shape(
    "private-key",
    "-----BEGIN",
    '()-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-"\\\\]|-(?!----)|\\\\(?!")){0,20000}(?:-----END[ A-Z0-9]{0,60}-----)?'
  ),
  // docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
  shape("aws-access-key-id", "AKIA|ASIA|ABIA|ACCA", `(${word})(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])`),
  // github.blog/2021-04-05-behind-githubs-new-authentication-token-formats
  shape(
    "github-token",
    "gh[pousr]_|github_pat_",
    `(${word})(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})`
  ),
  // docs.gitlab.com/security/tokens
  shape(
    "gitlab-token",
    "gl[a-z]{2,5}-",
    `(${word})gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-${withDigit}[\\w.-]{20,300}`
  ),
  // docs.slack.dev/authentication/tokens
  shape(
    "slack-token",
    "xox[abeoprs]-|xapp-",
    `(${word})(?:xox[abeoprs]-[A-Za-z0-9-]{10,300}|xapp-[0-9]-[A-Za-z0-9-]{20,300})`
  ),
  shape(
    "slack-webhook",
    "hooks\\.slack",
    "(hooks\\.slack\\.com/(?:services|workflows|triggers)/)[A-Za-z0-9+/]{20,200}"
  ),
  // docs.stripe.com/keys
  shape(
    "stripe-key",
    "[srp]k_|whsec_",
    `(${word})(?:[srp]k_(?:live|test)_[A-Za-z0-9]{10,250}|whsec_[A-Za-z0-9+/]{20,200})`
  ),
  // platform.openai.com, docs.anthropic.com, openrouter.ai, api-docs.deepseek.com
  shape(
    "model-key",
    "sk-|gsk_|xai-",
    `(${word})(?:sk-${random}[\\w-]{20,300}|gsk_[A-Za-z0-9]{40,100}|xai-[A-Za-z0-9]{40,200})`
  ),
  // cloud.google.com/docs/authentication
  shape("google-key", "AIza|ya29|GOCSPX", `(${word})(?:AIza[\\w-]{35}|ya29\\.[\\w-]{20,500}|GOCSPX-[\\w-]{28})`),
  // docs.npmjs.com, pypi.org/help, huggingface.co/docs/hub/security-tokens, developer.hashicorp.com/vault
  shape(
    "registry-token",
    "npm_|pypi-|hf_|hv[sb]\\.",
    `(${word})(?:npm_[A-Za-z0-9]{36}|pypi-AgE[\\w-]{50,500}|hf_[A-Za-z]{34,50}|hv[sb]\\.[\\w-]{24,300})`
  ),
  // docs.sendgrid.com, docs.digitalocean.com, docs.databricks.com, shopify.dev, age-encryption.org
  shape(
    "service-key",
    "SG\\.|do[opr]_v1_|dapi|shp|AGE-SECRET",
    `(${word})(?:SG\\.[\\w-]{22}\\.[\\w-]{43}|do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}` +
      "|AGE-SECRET-KEY-1[A-Z0-9]{58})"
  ),
  // RFC 7519
  shape("jwt", "eyJ", "((?<![\\w-]))eyJ[\\w-]{10,4000}\\.eyJ[\\w-]{10,8000}\\.[\\w-]{0,2000}"),
  // RFC 3986, user information
  // A password may hold an @: the last one ends it.
  shape("password-in-address", "://", "(://[^\\s:/@\"'<>\\[\\]]{0,100}:)(?!\\[redacted)[^\\s/\"'<>?#]{1,200}(?=@)"),
  // RFC 7235
  shape(
    "authorization",
    "bearer|basic",
    "(\\b(?:bearer|basic)\\s{1,3})(?=[\\w.~+/=-]{0,200}[0-9])(?:(?<=bearer\\s{1,3})[\\w.~+/=-]{16,4000}|[A-Za-z0-9+/=]{16,4000})",
    "gi"
  ),
  // A name that says it, and a value that is more than a word.
  shape(
    "assigned-secret",
    "key|secret|token|passw",
    "((?:api[-_]?key|access[-_]?key|secret[-_]?key|account[-_]?key|client[-_]?secret|auth[-_]?token|access[-_]?token" +
      "|refresh[-_]?token|passw(?:or)?d|secret)\\\\{0,3}[\"']?\\s{0,5}[:=]\\s{0,5}\\\\{0,3}[\"']?)" +
      `${named}(?=[^\\s"'\\\\,;(){}<>$\\[\\]&]{0,200}[0-9])[^\\s"'\\\\,;(){}<>$\\[\\]&]{8,500}[^\\s"'\\\\,;)}\\]&]{0,500}`,
    "gi"
  ),
  // A variable of the environment says by its name what it is, whatever its value looks like. `$X` and `<key>` are none.
  ...[`["']`, ""].map((quote) =>
    shape(
      "assigned-secret",
      "PASSW|SECRET|TOKEN|CREDENTIAL|_?KEY",
      `((?<![A-Za-z0-9])(?:[A-Z][A-Z0-9]{0,40}_){0,8}(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|(?:API|ACCESS|SECRET|PRIVATE|ENCRYPTION|SIGNING)_?KEY)` +
        `[ \\t]?=[ \\t]?${quote})(?![$<[{(%]|["'])` +
        (quote === "" ? `[^\\s"'\\\\]{1,500}` : `[^\\n\\r"']{1,500}(?=["'])`)
    )
  )
]

/** UTF-16 units up to which one look for all hints is cheaper than a look for each shape. */
const short = 1000
const hints = new RegExp(shapes.map(({ hint }) => hint).join("|"), "i")

/** A text without the known shapes. */
export const redactShapes = (text: string): string => {
  if (text.length <= short && !hints.test(text)) return text
  let next = text
  for (const { pattern, replacement } of shapes) next = next.replace(pattern, replacement)
  return next
}

/** What can be base64, or base64url, of something that is worth hiding; lines may be folded. A look-behind saves the looks from its middle. */
const base64 = /(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*={0,2}/g
// oxlint-disable-next-line no-control-regex -- what has control characters is no text
const binary = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/

declare const atob: (text: string) => string

/** A text without the base64 of anything that `redact` would change. */
export const redactEncoded = (text: string, redact: (text: string) => string): string =>
  text.replace(base64, (run) => {
    const plain = decoded(run)
    return plain === undefined || redact(plain) === plain ? run : mark("encoded")
  })

const decoded = (run: string): string | undefined => {
  const digits = run
    .replaceAll(/[\r\n=]/g, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/")
  const bytes = digits.length % 4 === 1 ? "" : atob(digits)
  return bytes === "" || binary.test(bytes) ? undefined : utf8(bytes)
}

/** The text of bytes that came as characters; undefined if they are none. */
const utf8 = (bytes: string): string | undefined => {
  try {
    return decodeURIComponent(bytes.replaceAll(/[%\u0080-\u00ff]/g, (c) => `%${c.charCodeAt(0).toString(16)}`))
  } catch {
    return undefined // no UTF-8
  }
}
