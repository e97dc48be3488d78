import { Buffer } from "node:buffer"
import { callContentBytesMax } from "../../domain/limits/Limits.ts"
import { keptText, mediaReference } from "./KeptText.ts"
import type { KeptText } from "./KeptText.ts"

/** The stored request or response of a call. */
export interface ContentSide extends KeptText {
  readonly contentType: string | null
  /** The full size of the body, including removed media and what was cut off. */
  readonly bytes: number
}

/** The texts of a call's request and response. */
export interface CallText {
  /** The path and query of the request, without credentials. */
  readonly path: string
  /** Null if the request was a form with a file, which is streamed. */
  readonly request: ContentSide | null
  /** Null if no response was relayed. */
  readonly response: ContentSide | null
}

export interface SentRequest {
  readonly path: string
  readonly body: Uint8Array
  /** Whether the body is a form with a file, which is streamed. */
  readonly isForm: boolean
}

/** A response as the client receives it. */
export interface ClientResponse {
  readonly contentType: string | undefined
  /** Undefined if the response is a stream. */
  readonly body: Uint8Array | undefined
}

const isText = (type: string): boolean =>
  /^(?:text\/|application\/(?:[\w.+-]+\+)?(?:x-nd)?json\b)/iu.test(type)

const sideOf = (
  body: Uint8Array,
  contentType: string | undefined,
  bytes = body.length
): ContentSide => {
  const type = contentType ?? null
  const { text, truncated } =
    type === null || isText(type)
      ? keptText(body, callContentBytesMax)
      : { text: mediaReference(type, bytes), truncated: false }
  return { contentType: type, text, truncated: truncated || bytes > body.length, bytes }
}

/** Collects the request and the response of one call, each up to a limit. */
export class CallContent {
  readonly #path: string
  readonly #request: ContentSide | null
  readonly #done: (text: CallText) => void
  readonly #pieces: Array<Uint8Array> = []
  #response: ContentSide | null = null
  #streamed: { readonly contentType: string | undefined } | undefined
  #kept = 0
  #bytes = 0
  #isOver = false

  constructor({ body, isForm, path }: SentRequest, done: (text: CallText) => void) {
    this.#path = path
    this.#request = isForm ? null : sideOf(body, "application/json")
    this.#done = done
  }

  responds({ body, contentType }: ClientResponse): void {
    if (body === undefined) this.#streamed = { contentType }
    else this.#response = sideOf(body, contentType)
  }

  /** Adds bytes of a stream as they are relayed. */
  push(piece: Uint8Array): void {
    const left = callContentBytesMax - this.#kept
    this.#bytes += piece.length
    if (left === 0 || piece.length === 0) return
    // Copied, because the piece is part of a larger buffer
    const kept = Buffer.from(piece.subarray(0, left))
    this.#kept += kept.length
    this.#pieces.push(kept)
  }

  /** Ends the collection. Only the first invocation has an effect. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const streamed =
      this.#streamed && sideOf(Buffer.concat(this.#pieces), this.#streamed.contentType, this.#bytes)
    this.#done({
      path: this.#path,
      request: this.#request,
      response: streamed ?? this.#response
    })
  }
}
