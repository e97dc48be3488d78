import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { Transform } from "node:stream"
import type { TransformCallback } from "node:stream"
import { takesResponse } from "../catalog/OpenRoutes.ts"
import { withMember } from "../domain/json/JsonBytes.ts"
import { withoutMark } from "../domain/json/JsonDocument.ts"
import { invalid } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { modelElsewhere } from "./CallElsewhere.ts"
import { backgroundRule } from "./CallPlan.ts"
import type { CallRequest, PassthroughCall, PreviousResponse, Relayed } from "./PassthroughCall.ts"
import { readBody } from "./streams/MeteredBody.ts"

/** A call without these bytes does not involve stored responses and is not parsed twice. */
const marks = ['"background"', '"previous_response_id"']

/** Whether a call may request a background response or continue one. */
export const usesKeptResponses = ({ body, to: { route } }: PassthroughCall): boolean => {
  if (route.provider !== "openai" || !takesResponse(route)) return false
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return marks.some((mark) => bytes.includes(mark))
}

interface KeptCall {
  readonly call: PassthroughCall
  readonly background: boolean
  /** The model named in the call. */
  readonly name: string
}

/** The call with the response that it continues, whose id is replaced with the vendor's. */
export const keptCallOf = Effect.fnUntraced(function* (
  { responses }: CallRequest,
  given: PassthroughCall
): Effect.fn.Return<KeptCall, Problem | StoreUnavailable> {
  const bytes = withoutMark(given.body)
  const { body } = yield* Effect.fromResult(readBody(bytes))
  const background = body.background === true
  const id = body.previous_response_id ?? undefined
  const { model: name = "" } = body
  const base = { ...given, body: bytes, mayWait: background }
  if (id === undefined) return { background, name, call: base }
  if (typeof id !== "string") {
    return yield* invalid([{ pointer: "#/previous_response_id", detail: "Expected a string" }])
  }
  const previous = yield* responses.previous(given.principal, id)
  // The task stores the request as its client sent it
  const sent = background ? bytes : withMember(bytes, "previous_response_id", previous.vendorId)
  return { background, name, call: { ...base, body: sent, previous } }
})

/** The refusal of a background response: of a name that other calls may use, it says why this one may not. */
export const backgroundRefusal = (
  call: PassthroughCall,
  name: string,
  unsold: Problem
): Problem => {
  const { catalog, route } = call.to
  const isCallable =
    modelElsewhere(call, name) !== undefined || catalog.aliasOf(route.vendor, name) !== undefined
  return isCallable ? invalid([{ pointer: "#/model", detail: backgroundRule }]) : unsold
}

/**
 * Replaces the vendor's id of the continued response, which the vendor repeats, with the gateway's id that the client
 * knows.
 */
export const withOwnId = (relayed: Relayed, { id, vendorId }: PreviousResponse): Relayed => {
  const { body } = relayed
  const renamed =
    body instanceof Uint8Array
      ? Buffer.from(Buffer.from(body).toString("latin1").replaceAll(vendorId, id), "latin1")
      : body.pipe(new Renamed(vendorId, id)).on("close", () => body.destroy())
  if (!(body instanceof Uint8Array) && !(renamed instanceof Uint8Array)) {
    body.on("error", (error) => renamed.destroy(error))
  }
  return { ...relayed, body: renamed }
}

/** Replaces one text of a stream with another, however its chunks split it. */
class Renamed extends Transform {
  readonly #from: string
  readonly #to: string
  #rest = ""

  constructor(from: string, to: string) {
    super()
    this.#from = from
    this.#to = to
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    const text = (this.#rest + chunk.toString("latin1")).replaceAll(this.#from, this.#to)
    const held = this.#beginning(text)
    this.#rest = text.slice(text.length - held)
    done(null, Buffer.from(text.slice(0, text.length - held), "latin1"))
  }

  override _flush(done: TransformCallback): void {
    done(null, Buffer.from(this.#rest, "latin1"))
  }

  /** The number of characters at the end that may be the beginning of the searched text. */
  #beginning(text: string): number {
    for (let length = Math.min(this.#from.length - 1, text.length); length > 0; length -= 1) {
      if (text.endsWith(this.#from.slice(0, length))) return length
    }
    return 0
  }
}
