/** What a protocol brings to the server: its path, what it rejects, how it answers and how it fails. */
import type * as Script from "./Script.ts"
import * as Wire from "./Wire.ts"

export interface Protocol {
  readonly serves: (path: string) => boolean
  /** True if the request asks for a stream. */
  readonly streams: (request: Wire.ModelRequest) => boolean
  /** What is wrong with the request, worst first; the server answers with the first. */
  readonly problems: (request: Wire.ModelRequest) => Iterable<Wire.Rejection>
  /** Writes the reply, and remembers what must come back unchanged in later requests. */
  readonly answer: (reply: Script.Reply, body: Wire.JsonObject, number: number) => Wire.Answer
  readonly errorBody: (rejection: Wire.Rejection) => unknown
  /** The error that a plain status stands for. */
  readonly errorFor: (status: number) => Wire.Rejection
  readonly overload: Wire.Rejection
  readonly overloadFrame: Wire.Frame
  /** What keeps a stream open without saying anything. */
  readonly keepAlive: string
  /** `index` counts the frames of one stream from 0. */
  readonly encode: (frame: Wire.Frame, index: number) => string
}

/** One path, and a body that says whether it is to be streamed. */
export const at = (path: string): Pick<Protocol, "serves" | "streams"> => ({
  serves: (asked) => asked === path,
  streams: ({ body }) => Wire.object(body)["stream"] === true
})
