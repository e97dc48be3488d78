import { Option, Schema } from "effect"
import type { UsageProtocol } from "../models/OpenRoutes.ts"
import type { TokenUsage } from "../models/Price.ts"
import { isErrorEvent, isUsageChunk, mergeUsage, usageOf } from "../models/Usage.ts"

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const empty = Buffer.alloc(0)
const lineFeed = 0x0a
const carriageReturn = 0x0d

/** An event that never ends is relayed as it is: it is no usage chunk. */
const eventBytesMax = 1024 * 1024

/**
 * Reads a stream of server-sent events as it passes: the upstream's usage figures, how many pieces
 * of an answer there were, and whether it failed on the way. Bytes pass untouched and at once; only
 * where the usage chunk has to be hidden does a piece wait for the end of its event. Contract 6.
 */
export class StreamMeter {
  readonly #protocol: UsageProtocol
  readonly #hides: boolean
  readonly #pieceMark: Buffer
  #rest: Buffer = empty
  #usage: TokenUsage | undefined
  #pieces = 0
  #failed = false
  #isFinal = false

  constructor(protocol: UsageProtocol, hides: boolean) {
    this.#protocol = protocol
    this.#hides = hides
    this.#pieceMark = pieceMarks[protocol]
  }

  /** What the upstream reported so far. */
  get usage(): TokenUsage | undefined {
    return this.#usage
  }

  /** Events with a piece of the answer: about a token each. */
  get pieces(): number {
    return this.#pieces
  }

  /** The figures are those of the whole answer: nothing that a client misses behind them costs more. */
  get isFinal(): boolean {
    return this.#isFinal
  }

  /** The upstream said in its stream that it failed. */
  get failed(): boolean {
    return this.#failed
  }

  /** Takes what came from upstream, answers what goes to the client. */
  push(chunk: Buffer): Buffer {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const kept: Array<Buffer> = []
    let start = 0
    let relayed = 0
    for (let end = endOfEvent(data, start); end > 0; end = endOfEvent(data, start)) {
      if (this.#event(data, start, end)) {
        if (start > relayed) kept.push(data.subarray(relayed, start))
        relayed = end
      }
      start = end
    }
    this.#rest = data.subarray(start)
    if (this.#rest.length > eventBytesMax) {
      start = data.length
      this.#rest = empty
    }
    if (!this.#hides) return chunk
    if (start > relayed) kept.push(data.subarray(relayed, start))
    return kept.length === 1 ? (kept[0] ?? empty) : Buffer.concat(kept)
  }

  /** What is left when the upstream has ended. */
  flush(): Buffer {
    const rest = this.#rest
    this.#rest = empty
    if (rest.length > 0 && this.#event(rest, 0, rest.length)) return empty
    return this.#hides ? rest : empty
  }

  /** Looks at one event. Answers whether it is to be hidden. */
  #event(data: Buffer, start: number, end: number): boolean {
    const event = data.subarray(start, end)
    if (event.includes(this.#pieceMark)) this.#pieces += 1
    const usage = event.indexOf(usageMark)
    if ((usage < 0 || isNull(event, usage)) && !event.includes(errorMark)) return false
    const value = dataOf(event)
    if (isErrorEvent(value)) this.#failed = true
    const reported = usageOf(this.#protocol, value)
    if (reported !== undefined) {
      this.#usage = mergeUsage(this.#usage, reported)
      this.#isFinal ||= event.includes(finalMarks[this.#protocol])
    }
    return this.#hides && isUsageChunk(value)
  }
}

const usageMark = Buffer.from('"usage')
const errorMark = Buffer.from('"error"')
const nullMark = Buffer.from('":null')

/** `"usage":null` stands in every chunk but the last. */
const isNull = (event: Buffer, usage: number): boolean =>
  event
    .subarray(usage + usageMark.length, usage + usageMark.length + nullMark.length)
    .equals(nullMark)

/** What an event with a piece of the answer holds. */
const pieceMarks: { readonly [protocol in UsageProtocol]: Buffer } = {
  "openai-chat": Buffer.from('"delta"'),
  "openai-responses": Buffer.from(".delta"),
  "openai-embeddings": Buffer.from('"delta"'),
  "anthropic-messages": Buffer.from("content_block_delta"),
  "gemini-generate": Buffer.from('"candidates"')
}

/** What an event with the figures of the whole answer holds: OpenAI reports no others. */
const finalMarks: { readonly [protocol in UsageProtocol]: Buffer } = {
  "openai-chat": usageMark,
  "openai-responses": usageMark,
  "openai-embeddings": usageMark,
  "anthropic-messages": Buffer.from("message_delta"),
  "gemini-generate": Buffer.from('"finishReason"')
}

/** Behind the blank line that ends the event; 0 when it is not there yet. */
const endOfEvent = (data: Buffer, start: number): number => {
  for (let at = data.indexOf(lineFeed, start); at >= 0; at = data.indexOf(lineFeed, at + 1)) {
    if (data[at + 1] === lineFeed) return at + 2
    if (data[at + 1] === carriageReturn && data[at + 2] === lineFeed) return at + 3
  }
  return 0
}

/** The JSON value of the `data:` lines. */
const dataOf = (event: Buffer): unknown => {
  const lines: Array<string> = []
  for (const line of event.toString("utf8").split(/\r?\n/u)) {
    if (line.startsWith("data:")) lines.push(line.slice("data:".length))
  }
  return Option.getOrUndefined(decodeJson(lines.join("\n")))
}
