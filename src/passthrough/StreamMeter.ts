import { Result } from "effect"
import type { UsageProtocol } from "../catalog/OpenRoutes.ts"
import type { TokenUsage } from "../catalog/Price.ts"
import { isErrorEvent, isUsageChunk, mergeUsage, usageOf } from "../catalog/Usage.ts"
import { EventText, usageMark } from "./EventText.ts"
import { LongEvent } from "./LongEvent.ts"

const empty = Buffer.alloc(0)

/** An event that is longer is relayed as it comes, for it is no usage chunk, and read on the way. */
const eventBytesMax = 64 * 1024

/**
 * Reads a stream of server-sent events as it passes: the upstream's usage figures, how many pieces
 * of an answer there were, and whether it failed on the way. Bytes pass untouched and at once; only
 * where the usage chunk has to be hidden does a piece wait for the end of its event. Contract 6.
 */
export class StreamMeter {
  readonly #protocol: UsageProtocol
  readonly #hides: boolean
  #rest: Buffer = empty
  /** The event that is too long to be held. */
  #long: LongEvent | undefined
  #usage: TokenUsage | undefined
  #pieces = 0
  #failed = false
  #isFinal = false

  constructor(protocol: UsageProtocol, hides: boolean) {
    this.#protocol = protocol
    this.#hides = hides
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
    if (this.#long === undefined) return this.#events(chunk)
    const end = this.#long.push(chunk)
    if (end === 0) return chunk
    this.#endLong(this.#long)
    if (end === chunk.length) return chunk
    const behind = this.#events(chunk.subarray(end))
    return this.#hides ? Buffer.concat([chunk.subarray(0, end), behind]) : chunk
  }

  #events(chunk: Buffer): Buffer {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const text = new EventText(data, pieceMarks[this.#protocol])
    const kept: Array<Buffer> = []
    let start = 0
    let relayed = 0
    for (let end = text.endOfEvent(start); end > 0; end = text.endOfEvent(start)) {
      if (this.#event(text, start, end)) {
        if (start > relayed) kept.push(data.subarray(relayed, start))
        relayed = end
      }
      start = end
    }
    this.#rest = start === data.length ? empty : data.subarray(start)
    if (this.#rest.length > eventBytesMax) {
      this.#long = new LongEvent()
      this.#long.push(this.#rest)
      start = data.length
      this.#rest = empty
    }
    if (!this.#hides) return chunk
    if (relayed === 0 && start === data.length) return data
    if (start > relayed) kept.push(data.subarray(relayed, start))
    return kept.length === 1 ? (kept[0] ?? empty) : Buffer.concat(kept)
  }

  /** What is left when the upstream has ended. */
  flush(): Buffer {
    if (this.#long !== undefined) this.#endLong(this.#long)
    const rest = this.#rest
    this.#rest = empty
    const text = new EventText(rest, pieceMarks[this.#protocol])
    if (rest.length > 0 && this.#event(text, 0, rest.length)) return empty
    return this.#hides ? rest : empty
  }

  /** Looks at one event. Answers whether it is to be hidden. */
  #event(text: EventText, start: number, end: number): boolean {
    if (text.hasPiece(start, end)) this.#pieces += 1
    if (!text.mayReport(start, end)) return false
    const value = this.#report(text.bytes.toString("utf8", start, end))
    return this.#hides && isUsageChunk(value)
  }

  #endLong(event: LongEvent): void {
    this.#long = undefined
    this.#pieces += 1
    this.#report(event.text)
  }

  /** Takes what an event says of usage and failure; answers its value. */
  #report(event: string): unknown {
    const value = dataOf(event)
    if (isErrorEvent(value)) this.#failed = true
    const reported = usageOf(this.#protocol, value)
    if (reported !== undefined) {
      this.#usage = mergeUsage(this.#usage, reported)
      this.#isFinal ||= event.includes(finalMarks[this.#protocol])
    }
    return value
  }
}

/** What an event with a piece of the answer holds. */
const pieceMarks: { readonly [protocol in UsageProtocol]: string } = {
  "openai-chat": '"delta"',
  "openai-responses": ".delta",
  "openai-embeddings": '"delta"',
  "anthropic-messages": "content_block_delta",
  "gemini-generate": '"candidates"'
}

/** What an event with the figures of the whole answer holds: OpenAI reports no others. */
const finalMarks: { readonly [protocol in UsageProtocol]: string } = {
  "openai-chat": usageMark,
  "openai-responses": usageMark,
  "openai-embeddings": usageMark,
  "anthropic-messages": "message_delta",
  "gemini-generate": '"finishReason"'
}

/** The JSON value of the `data:` lines. */
const dataOf = (event: string): unknown => {
  const lines: Array<string> = []
  for (const line of event.split(/\r?\n/u)) {
    if (line.startsWith("data:")) lines.push(line.slice("data:".length))
  }
  return Result.getOrUndefined(Result.try((): unknown => JSON.parse(lines.join("\n"))))
}
