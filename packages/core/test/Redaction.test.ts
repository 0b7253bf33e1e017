import { describe, expect, it } from "vitest"
import * as Redaction from "../src/testing/Redaction.ts"

const clean = Redaction.make()
const gone = "[redacted]"

describe("V1 a text loses", () => {
  it.each([
    ["a private key", "a -----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY----- b", `a ${gone} b`],
    ["a private key that is cut off", "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQ", gone],
    ["a token of an address", "https://e.com/x?a=1&token=Zx81&b=2", `https://e.com/x?a=1&token=${gone}&b=2`],
    ["a key of an address", "https://e.com/x?key=Zx81kQ", `https://e.com/x?key=${gone}`],
    ["a signature of an address", "https://e.com/x?X-Amz-Signature=abcdef", `https://e.com/x?X-Amz-Signature=${gone}`],
    ["a password of an address without a user", "redis://:hunter@host:6379", `redis://${gone}@host:6379`],
    ["a password of an address with a user", "postgres://ann:hunter@db/x", `postgres://${gone}@db/x`],
    ["a webhook's address", "https://hooks.slack.com/services/T0/B0/XX", `https://hooks.slack.com/services/${gone}`],
    ["a variable", "A=1 DB_PASSWORD=hunter2hunter2\nB=2", `A=1 DB_PASSWORD=${gone}\nB=2`],
    ["an AWS key that is named", "AWS_SECRET_ACCESS_KEY=wJalr/K7/bPx", `AWS_SECRET_ACCESS_KEY=${gone}`],
    ["a parameter", "token=ZxlkQpLm", `token=${gone}`],
    ["a line of YAML", "db:\n  password: correcthorse\n", `db:\n  password: ${gone}\n`],
    ["a field of JSON in prose", 'sent {"password":"correct horse"}.', `sent {"password":"${gone}"}.`],
    ["a field of JSON in JSON", '"{\\"db_password\\": \\"hunter\\"}"', `"{\\"db_password\\": \\"${gone}\\"}"`],
    ["a list in JSON", '{"api_keys":["one","two"]}', `{"api_keys":["${gone}","${gone}"]}`],
    ["a setting in code", "apiKey = 'badger'", `apiKey = '${gone}'`],
    ["a header", "Authorization: Basic dTpw\nAccept: x", `Authorization: Basic ${gone}\nAccept: x`],
    ["a cookie", "Set-Cookie: sid=1; Path=/", `Set-Cookie: ${gone}`],
    ["a bearer token without a digit", "Bearer abcdefghijklmnopqrstuvwxyz", `Bearer ${gone}`],
    ["basic credentials", "Basic YWxhZGRpbjpvcGVu", `Basic ${gone}`],
    ["a key of OpenAI without a digit", "sk-abcdefghijklmnopqrstuv", gone],
    ["a key of Anthropic", "sk-ant-api03-abcDEF0123456789_xyz", gone],
    ["a key of Stripe", "sk_live_51Habcdef0123456789", gone],
    ["tokens of GitHub", "ghp_abcdefghijklmnop ghs_abcdefghijklmnop", `${gone} ${gone}`],
    ["a token of GitLab", "glpat-abcdefghijklmnop", gone],
    ["a token of Hugging Face", "hf_abcdefghijklmnopq", gone],
    ["a token of npm", "npm_abcdefghijklmnopq", gone],
    ["a key of Groq", "gsk_abcdefghijklmnopq", gone],
    ["a token of Slack", "xoxb-abcdefgh-abcdefgh", gone],
    ["a key of Google", "AIzaSyA1234567890abcdefghijklmnopqrstuv", gone],
    ["an id of an AWS key", "AKIAIOSFODNN7EXAMPLE", gone],
    ["a key of age", "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54", gone],
    ["a flag", "psql --password hunter2 --host db", `psql --password ${gone} --host db`],
    ["a flag with a quoted value", "x --api-key 'correct horse' y", `x --api-key ${gone} y`],
    ["a line of a netrc", "machine h login ann password hunter", `machine h login ann password ${gone}`],
    ["a netrc of several lines", "default\n login ann\n password hunter", `default\n login ann\n password ${gone}`],
    ["an element", '<db:password a="b">hunter2</db:password>', `<db:password a="b">${gone}</db:password>`],
    ["a block of YAML", "a:\n  secret: |\n    one\n    two\n  b: 1\n", `a:\n  secret: |\n    ${gone}\n  b: 1\n`],
    ["a folded block in a list", "- token: >-\n    one\nb: 1", `- token: >-\n  ${gone}\nb: 1`],
    ["a setting of Go", 'apiKey := "badger"', `apiKey := "${gone}"`],
    ["an address in an address", "u=a%3D1%26password%3Dh%2B2%26b%3D2", `u=a%3D1%26password%3D${gone}%26b%3D2`],
    ["an encoded parameter", "password%3Dhunter", `password%3D${gone}`],
    ["a login of Docker", '{"auth": "YW5uOmh1bnRlcg=="}', `{"auth": "${gone}"}`],
    ["a token in place of a user", "https://abcd1234abcd1234@github.com/x", `https://${gone}@github.com/x`],
    ["a user of curl", "curl -s -u ann:hunter https://x", `curl -s -u ann:${gone} https://x`]
  ])("%s", (_, text, kept) => {
    expect(clean(text)).toBe(kept)
    expect(clean(kept)).toBe(kept)
  })
})

describe("V1 a text keeps", () => {
  it.each([
    ["types", "interface Login {\n  password: string\n  token: Token | undefined\n}"],
    ["calls", "const token=next()\nconst secret = read(password)"],
    ["counts", "total_tokens=123456, maxOutputTokens: 64000000"],
    ["names in kebab case", "class sk-estimator-doc-link-wrapper"],
    ["words", "Basic understanding of bearer bonds, see https://e.com/a?page=2"],
    ["what is said of a flag", "--password required here, --token to be set; --max-tokens 4096"],
    ["what is said of a login", "the login page password field; a default login password is asked for"],
    ["elements of words or code", "<Password>Forgot your password?</Password><Token>{token}</Token><p>hunter22</p>"],
    ["blocks of other names", "run: |\n  echo a\nsecret:\n  name: b"],
    ["a type of Go", "token := next()"],
    ["other encoded parameters", "a%3D1%26page%3D22"],
    ["kinds of auth", '{"auth": "required", "auth": "basicAuth123"}'],
    ["users of addresses", "https://ann.lee@example.com https://medium.com/@abcd1234abcd1234x.y"],
    ["users of other commands", "docker run -u 1000:1000 x; curl -u $USER:$PASS x"],
    ["JSON as it was laid out", '{\n  "city": "Oslo"\n}']
  ])("%s", (_, text) => {
    expect(clean(text)).toBe(text)
  })
})

// Each would take minutes if it were not read once; the limit says only that it does not hang.
it.each([
  "--password ",
  "--token\t\t",
  "machine a login ",
  "machine  ",
  "<token ",
  "<token>a",
  "secret: |\n",
  "secret: |\n  a\n",
  "  \n",
  "password%3D",
  "%26",
  '"auth":"',
  "https://a1",
  "curl -u ",
  "curl a",
  "curl -u a:",
  "AGE-SECRET-KEY-1",
  "a := ",
  "----",
  "%3Da"
])(
  "V1 300,000 characters of %j are read once",
  (piece) => {
    const text = piece.repeat(Math.ceil(300_000 / piece.length))
    expect(String(clean(`${text}\nend`)).endsWith("end")).toBe(true)
    const spaces = " ".repeat(300_000)
    expect(String(clean(`${piece}${spaces}x\nend`)).endsWith("end")).toBe(true)
  },
  20_000
)

describe("V1 a field", () => {
  it.each([
    ["x-goog-api-key", "v"],
    ["secretAccessKey", "v"],
    ["db_password", "v"],
    ["OPENAI_API_KEY", "v"],
    ["passphrase", "v"],
    ["apikey", "v"],
    ["x-auth-token", "v"],
    ["private-token", "v"],
    ["connectionString", "v"],
    ["PWD", "v"],
    ["APIKey", "v"],
    ["api_keys", ["v", "v"]],
    ["credentials", { user: "v", more: { value: "v" } }],
    ["signature", "v"]
  ])("named %s is emptied of every text", (name, value) => {
    const kept = JSON.stringify(clean({ deep: [{ [name]: value }] }))
    expect(kept).not.toContain('"v"')
    expect(kept).toContain(gone)
  })

  it.each([
    { maxOutputTokens: 5, inputTokens: { total: 1, uncached: 2 }, usage: { token: 3, tokens: "4" } },
    { token_count: "12", tokenType: "Bearer", key: "a", monkey: "b", promptCacheKey: "c" },
    { parameters: { properties: { password: { type: "string", description: "of the user" } } } },
    { type: "reasoning", options: { acme: { signature: "ab==", encryptedContent: `a/sk-${"1".repeat(30)}` } } }
  ])("that counts, describes or is the provider's own stays: %o", (json) => {
    expect(clean(json)).toEqual(json)
  })

  it.each([
    { params: { properties: { password: "hunter2" } } },
    { params: { properties: { password: { value: "hunter2" } } } },
    { result: { options: { db: { encrypted_password: "hunter2" } } } },
    { content: [{ type: "tool-result", result: [{ metadata: { app: { signature: "hunter2" } } }] }] },
    { text: JSON.stringify({ options: { app: { encrypted_token: "hunter2" } } }) },
    { text: JSON.stringify({ properties: { password: { value: "hunter2" } } }) },
    { properties: { password: "hunter2" } }
  ])("that a tool gave or got is emptied, wherever it stands: %o", (json) => {
    expect(JSON.stringify(clean(json))).not.toContain("hunter2")
  })

  it("of what is the provider's own loses a key all the same", () => {
    expect(clean({ providerOptions: { acme: { apiKey: "v" } }, options: { acme: { apiKey: "v" } } })).toEqual({
      providerOptions: { acme: { apiKey: gone } },
      options: { acme: { apiKey: gone } }
    })
  })
})

it("leaves the bytes of a file alone, which look like a key by chance, and no other data", () => {
  const looksLikeOne = `AAA/AKIA${"A1".repeat(8)}/AAA`
  const file = { type: "file", mediaType: "image/png", data: looksLikeOne }
  expect(clean(file)).toEqual(file)
  expect(clean(looksLikeOne)).not.toBe(looksLikeOne)
  expect(clean({ data: looksLikeOne })).not.toEqual({ data: looksLikeOne })
  expect(clean({ mediaType: "a/b", data: "https://e.com/?token=v" })).toMatchObject({
    data: `https://e.com/?token=${gone}`
  })
})
