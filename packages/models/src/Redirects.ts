/**
 * Keeps a request to a provider, with its key and its prompt, from being carried to another place by a redirect.
 *
 * Invariants
 *   R1  A redirect is never followed: not to another host, and not to the same one.
 *
 * @since 0.1.0
 */
import { APICallError } from "@ai-sdk/provider"

type Fetch = typeof globalThis.fetch

/**
 * A `fetch` for a provider package that follows no redirect. It fails with an APICallError that has the status of the
 * redirect, is not to be retried, and names the origin that it pointed at: the base URL is wrong.
 *
 * `AiSdk` does the same by itself where the model keeps its `fetch` as the AI SDK's own packages do. A model that was
 * wrapped, or of a package that does it another way, needs this.
 *
 * @param fetch what asks; by default the global `fetch`, as it is when it is called
 *
 * @example
 * ```ts
 * import { Redirects } from "@waystone/models"
 *
 * const provider = createAnthropic({ fetch: Redirects.refusing() })
 * ```
 */
export const refusing =
  (fetch?: Fetch): Fetch =>
  async (input, init) => {
    const response = await (fetch ?? globalThis.fetch)(input, { ...init, redirect: "manual" })
    const to = target(response, addressOf(input))
    if (to === undefined) return response
    // A body that was not read would hold the connection.
    response.body?.cancel().catch(() => {})
    throw refused(response, { from: addressOf(input), to })
  }

/** Where a request goes. */
export const addressOf = (input: Parameters<Fetch>[0]): string =>
  typeof input === "string" ? input : input instanceof URL ? input.href : input.url

/** The origin that the answer points at, if it does; a `fetch` that follows all the same says where it has been. */
const target = (response: Response, from: string): string | undefined => {
  if (response.redirected) return originOf(response.url, from)
  // What a browser shows of a redirect.
  if (response.type === "opaqueredirect") return "another address"
  const location = response.headers.get("location")
  const points = response.status >= 300 && response.status < 400 && location !== null
  return points ? originOf(location, from) : undefined
}

/** Without path, query and user: they may hold anything. */
const originOf = (address: string, base: string): string =>
  URL.canParse(address, base) ? new URL(address, base).origin : "an address that is none"

const refused = (response: Response, { from, to }: { readonly from: string; readonly to: string }): APICallError => {
  const status = response.redirected || response.status === 0 ? 307 : response.status
  const what = response.redirected
    ? `the request was carried to ${to} by a redirect`
    : `the server redirects (${status}) to ${to}, and nothing was sent there`
  return new APICallError({
    message: `${what}: the base URL is wrong`,
    url: from,
    requestBodyValues: undefined,
    statusCode: status,
    isRetryable: false
  })
}
