import { Result } from "effect"
import type { UsageProtocol } from "../../catalog/OpenRoutes.ts"
import type { TokenUsage } from "../../catalog/Price.ts"
import {
  bytesPerToken,
  isErrorEvent,
  isUsageChunk,
  mergeUsage,
  responderOf,
  usageOf
} from "../../catalog/Usage.ts"
import type { UsageDifferences } from "../../domain/Provider.ts"
import { errorEvent } from "../ErrorBody.ts"
import { itemMarks, outputBound, plainLength, plainMarkOf } from "../slices/OutputBound.ts"
import { LongEvent } from "./LongEvent.ts"

const empty = Buffer.alloc(0)

/** A longer event is not a usage chunk: it is relayed as it arrives and read by `LongEvent`. */
const eventBytesMax = 64 * 1024

/** Meters a response as it passes. */
export interface Meter {
  /** The usage that the upstream has reported so far, or that was counted. */
  readonly usage: TokenUsage | undefined
  /** Whether the usage was counted by the gateway, because no vendor reported it. */
  readonly isCounted: boolean
  /** The model named by the events with figures. */
  readonly responder: string | undefined
  /** The output seen so far, in tokens: four bytes of text each, and at least one for an event with output. */
  readonly tokens: number
  /** Whether the figures are those of the whole response. Anything after them costs nothing. */
  readonly isFinal: boolean
  /** Whether an output, or a part of it, is complete, so that the client may have all that it wants. */
  readonly hasFinished: boolean
  /** Whether the upstream reported a failure in its stream. */
  readonly failed: boolean
  /** The most output tokens that have passed. Counted only while the hold limits them. */
  readonly passed: number
  /** The number of tokens that must be covered before the next event passes; `undefined` if no event waits. */
  readonly lacks: number | undefined
  /**
   * Takes a chunk from upstream and returns what goes to the client. At most `covered` output tokens may pass in total.
   */
  readonly push: (chunk: Buffer, covered?: number) => Buffer
  /** Returns what is left for the client once the upstream has ended. */
  readonly flush: () => Buffer
}

/**
 * Reads a stream of server-sent events as it passes: the upstream's usage figures, the tokens of output, and
 * whether the upstream failed. Bytes pass unchanged and at once. A chunk waits for the end of its event only if the
 * usage chunk must be hidden, if a failure must be sanitized, or if its output is not covered yet.
 * docs/reference/passthrough.md#streams
 */
export class StreamMeter implements Meter {
  readonly isCounted = false
  readonly #protocol: UsageProtocol
  readonly #hides: boolean
  readonly #differences: UsageDifferences | undefined
  #rest: Buffer = empty
  /** The bytes at the end of `#rest` that the client does not have yet. */
  #held = 0
  /** The current event, if it is too long to be buffered. */
  #long: LongEvent | undefined
  #usage: TokenUsage | undefined
  #responder: string | undefined
  #tokens = 0
  #failed = false
  #hasFinished = false
  #isFinal = false
  /** The most output tokens that have passed. Counted only while the hold limits them. */
  #passed = 0
  #lacks: number | undefined

  constructor(protocol: UsageProtocol, hides: boolean, differences?: UsageDifferences) {
    this.#protocol = protocol
    this.#differences = differences
    this.#hides = hides
  }

  get usage(): TokenUsage | undefined {
    return this.#usage
  }

  get responder(): string | undefined {
    return this.#responder
  }

  get tokens(): number {
    return Math.floor(this.#tokens)
  }

  get passed(): number {
    return this.#passed
  }

  get lacks(): number | undefined {
    return this.#lacks
  }

  get isFinal(): boolean {
    return this.#isFinal
  }

  get hasFinished(): boolean {
    return this.#hasFinished
  }

  get failed(): boolean {
    return this.#failed
  }

  push(chunk: Buffer, covered = Infinity): Buffer {
    if (this.#long === undefined) return this.#events(chunk, covered)
    const end = this.#long.push(chunk)
    if (end === 0) return chunk
    this.#endLong(this.#long)
    if (end === chunk.length) return chunk
    return Buffer.concat([chunk.subarray(0, end), this.#events(chunk.subarray(end), covered)])
  }

  #events(chunk: Buffer, covered: number): Buffer {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const text = new EventText(data, this.#protocol)
    this.#hasFinished ||= text.matches(finishMarks[this.#protocol])
    const kept: Array<Buffer> = []
    const first = data.length - chunk.length - this.#held
    let start = 0
    let relayed = first
    this.#lacks = undefined
    for (let end = text.endOfEvent(start); end > 0; end = text.endOfEvent(start)) {
      const hasPiece = text.hasPiece(start, end)
      const plain = hasPiece ? text.plainLength(this.#protocol, start, end) : undefined
      if (covered !== Infinity && !this.#mayPass(text, start, end, covered, hasPiece, plain)) break
      if (hasPiece) this.#count(plain)
      const replaced = this.#event(text, start, end)
      if (replaced !== undefined) {
        const before = data.subarray(start, Math.max(start, relayed))
        // The part that the client already has is the same in both
        if (replaced.subarray(0, before.length).equals(before)) {
          kept.push(data.subarray(relayed, start), replaced.subarray(before.length))
          relayed = end
        }
      }
      start = end
    }
    this.#rest = start === data.length ? empty : data.subarray(start)
    if (this.#lacks === undefined && this.#rest.length > eventBytesMax) {
      // The event is too long to be measured, so everything that remains must be covered
      if (covered !== Infinity) this.#lacks = Infinity
      else {
        this.#long = new LongEvent()
        this.#long.push(this.#rest)
        start = data.length
        this.#rest = empty
      }
    }
    const waits =
      this.#hides ||
      text.mayFail(start) ||
      this.#lacks !== undefined ||
      this.#passed + data.length - start > covered
    const end = waits ? Math.max(start, relayed) : data.length
    this.#held = data.length - end
    if (relayed === 0 && end === data.length) return data
    const left = data.subarray(relayed, end)
    return kept.length === 0 ? left : Buffer.concat([...kept, left])
  }

  /** Counts the output of an event. Returns false if it is not covered. */
  #mayPass(
    text: EventText,
    start: number,
    end: number,
    covered: number,
    hasPiece: boolean,
    plain: number | undefined
  ): boolean {
    const passed = this.#passed + boundOf(this.#protocol, text, start, end, hasPiece, plain)
    if (passed > covered) this.#lacks = passed
    else this.#passed = passed
    return passed <= covered
  }

  flush(): Buffer {
    if (this.#long !== undefined) this.#endLong(this.#long)
    const rest = this.#rest
    const first = rest.length - this.#held
    this.#rest = empty
    this.#held = 0
    const text = new EventText(rest, this.#protocol)
    const end = rest.length
    if (end > 0 && text.hasPiece(0, end)) this.#count(text.plainLength(this.#protocol, 0, end))
    const replaced = end > 0 ? this.#event(text, 0, end) : undefined
    return replaced !== undefined && first === 0 ? replaced : rest.subarray(first)
  }

  /** Counts an event with output, and its text if it has nothing else. */
  #count(plain = 0): void {
    this.#tokens += Math.max(1, plain / bytesPerToken)
  }

  /** Reads one event; returns its replacement if the client must not get it unchanged. */
  #event(text: EventText, start: number, end: number): Buffer | undefined {
    if (!text.mayReport(start, end)) return undefined
    const event = text.bytes.toString("utf8", start, end)
    const value = this.#report(event)
    if (this.#hides && isUsageChunk(value)) return empty
    return isErrorEvent(value) ? shownError(event, value) : undefined
  }

  #endLong(event: LongEvent): void {
    this.#long = undefined
    this.#count()
    this.#hasFinished ||= finishMarks[this.#protocol].test(event.text)
    this.#report(event.text)
  }

  /** Takes the usage and the failure from an event; returns the event's value. */
  #report(event: string): unknown {
    const value = dataOf(event)
    if (isErrorEvent(value)) this.#failed = true
    const reported = usageOf(this.#protocol, value, this.#differences)
    if (reported !== undefined) {
      this.#usage = mergeUsage(this.#usage, reported)
      this.#responder = responderOf(this.#protocol, value) ?? this.#responder
      this.#isFinal ||= event.includes(finalMarks[this.#protocol])
    }
    return value
  }
}

/** The most output tokens of an event; at least 1 for an event with a piece of output. */
const boundOf = (
  protocol: UsageProtocol,
  text: EventText,
  start: number,
  end: number,
  hasPiece: boolean,
  plain: number | undefined
): number => {
  if (plain !== undefined) return Math.max(1, plain)
  const item = itemMarks[protocol]
  if (!hasPiece && (item === undefined || !text.includes(item, start, end))) return 0
  const value = dataOf(text.bytes.toString("utf8", start, end))
  return Math.max(1, outputBound(protocol, value, end - start))
}

/** A failure without information that only the operator may see; `undefined` if it contains none. */
const shownError = (event: string, value: unknown): Buffer | undefined => {
  const shown = errorEvent(value)
  if (shown === value) return undefined
  const others = event.split(/\r?\n/u).filter((line) => line !== "" && !line.startsWith("data:"))
  return Buffer.from([...others, `data: ${JSON.stringify(shown)}`, "", ""].join("\n"))
}

/** Occurs in every event with usage figures. */
const usageMark = '"usage'

/** `"usage":null` occurs in every chunk except the last. */
const nullMark = '":null'

/** Text that occurs in an event with a piece of output. */
const pieceMarks: { readonly [protocol in UsageProtocol]: string } = {
  "openai-chat": '"delta"',
  "openai-responses": ".delta",
  "openai-embeddings": '"delta"',
  "openai-speech": ".delta",
  "openai-transcription": ".delta",
  rerank: '"results"',
  "anthropic-messages": "content_block_delta",
  "gemini-generate": '"candidates"',
  "gemini-embeddings": '"embedding'
}

/** Text that occurs in an event with the figures of the whole response; OpenAI reports no other figures. */
const finalMarks: { readonly [protocol in UsageProtocol]: string } = {
  "openai-chat": usageMark,
  "openai-responses": usageMark,
  "openai-embeddings": usageMark,
  "openai-speech": usageMark,
  "openai-transcription": usageMark,
  rerank: usageMark,
  "anthropic-messages": "message_delta",
  "gemini-generate": '"finishReason"',
  "gemini-embeddings": usageMark
}

/** Text that occurs in the event that ends an output or a part of it. */
const finishMarks: { readonly [protocol in UsageProtocol]: RegExp } = {
  "openai-chat": /"finish_reason"\s*:\s*"/u,
  "openai-responses": /"response\.[a-z_.]+\.done"/u,
  "openai-embeddings": /"finish_reason"\s*:\s*"/u,
  "openai-speech": /"speech\.audio\.done"/u,
  "openai-transcription": /"transcript\.text\.done"/u,
  rerank: /"results"/u,
  "anthropic-messages": /"(?:content_block_stop|message_delta)"/u,
  // A name, or its number
  "gemini-generate": /"finishReason"\s*:\s*["1-9]/u,
  "gemini-embeddings": /"finishReason"\s*:\s*"/u
}

/** The JSON value of the `data:` lines. */
const dataOf = (event: string): unknown => {
  const lines: Array<string> = []
  for (const line of event.split(/\r?\n/u)) {
    if (line.startsWith("data:")) lines.push(line.slice("data:".length))
  }
  return Result.getOrUndefined(Result.try((): unknown => JSON.parse(lines.join("\n"))))
}

/**
 * Bytes of server-sent events, searched as text: each mark is searched once over all events, not once
 * in each. The text is Latin-1, so an index of the text is an index of the bytes.
 */
class EventText {
  readonly bytes: Buffer
  readonly #text: string
  readonly #blank: Occurrences
  readonly #blankAfterReturn: Occurrences
  readonly #piece: Occurrences
  readonly #usage: Occurrences
  readonly #error: Occurrences
  readonly #plain: Occurrences

  constructor(bytes: Buffer, protocol: UsageProtocol) {
    this.bytes = bytes
    this.#text = bytes.toString("latin1")
    this.#blank = new Occurrences(this.#text, "\n\n")
    this.#blankAfterReturn = new Occurrences(this.#text, "\n\r\n")
    this.#piece = new Occurrences(this.#text, pieceMarks[protocol])
    this.#usage = new Occurrences(this.#text, usageMark)
    this.#error = new Occurrences(this.#text, '"error"')
    const mark = plainMarkOf(protocol)
    this.#plain = mark === pieceMarks[protocol] ? this.#piece : new Occurrences(this.#text, mark)
  }

  /** The index after the blank line that ends the event at `start`; 0 if there is none yet. */
  endOfEvent(start: number): number {
    const blank = this.#blank.from(start)
    const other = this.#blankAfterReturn.from(start)
    if (blank === Infinity && other === Infinity) return 0
    return blank < other ? blank + 2 : other + 3
  }

  /** Whether the mark occurs anywhere in the text. */
  matches(mark: RegExp): boolean {
    return mark.test(this.#text)
  }

  /** Whether the event contains a piece of output. Called once per event, before `plainLength`. */
  hasPiece(start: number, end: number): boolean {
    return this.#piece.from(start) < end
  }

  /** Whether the event contains the mark. */
  includes(mark: string, start: number, end: number): boolean {
    return this.#text.slice(start, end).includes(mark)
  }

  /** The most bytes of the event's text, if the event has nothing else. */
  plainLength(protocol: UsageProtocol, start: number, end: number): number | undefined {
    const index = this.#plain.from(start)
    if (index >= end) return undefined
    const length = plainLength(protocol, this.#text, index)
    return length === undefined || this.#plain.from(index + 1) < end ? undefined : length
  }

  /** Whether the text from here may be the beginning of a failure. */
  mayFail(start: number): boolean {
    return this.#error.from(start) < Infinity || this.#text.startsWith("event: error", start)
  }

  /** Whether the event may contain usage figures or an error. Only such events are parsed. */
  mayReport(start: number, end: number): boolean {
    const usage = this.#usage.from(start)
    if (usage < end && !this.#text.startsWith(nullMark, usage + usageMark.length)) return true
    return this.#error.from(start) < end
  }
}

/** The indexes of a mark in a text, for searches that never go back. */
class Occurrences {
  readonly #text: string
  readonly #mark: string
  #next = -1

  constructor(text: string, mark: string) {
    this.#text = text
    this.#mark = mark
  }

  /** The first index from `start` on; infinite if there is none. */
  from(start: number): number {
    if (this.#next < start) {
      const found = this.#text.indexOf(this.#mark, start)
      this.#next = found < 0 ? Infinity : found
    }
    return this.#next
  }
}
