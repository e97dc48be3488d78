import { Result } from "effect"
import type { Clock } from "effect"
import { chargeUsage, unitOf } from "../catalog/ModelPrice.ts"
import type { TokenUsage } from "../catalog/Price.ts"
import { settledPrice } from "../catalog/SettledPrice.ts"
import { bytesPerToken, credibleUsage, mergeUsage, responderOf, usageOf } from "../catalog/Usage.ts"
import { Credits, zero } from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import type { CallContent } from "../users/contents/CallContent.ts"
import type { StreamWatch, UpstreamHeaders } from "../vendors/upstream/UpstreamExchange.ts"
import { released } from "./CallBatches.ts"
import type { CallHold } from "./CallHolds.ts"
import type { CallPlan, MeteredTokens } from "./CallPlan.ts"
import { SoundMeter } from "./counted/SoundMeter.ts"
import { endingEvent } from "./ErrorBody.ts"
import type { CallEnd } from "./Metering.ts"
import { SlicedHold } from "./slices/SlicedHold.ts"
import type { RaiseHold, RaiseOutcome } from "./slices/SlicedHold.ts"
import type { AbandonedStream, AbandonedStreams } from "./streams/AbandonedStreams.ts"
import { DocumentMeter } from "./streams/DocumentMeter.ts"
import { StreamMeter } from "./streams/StreamMeter.ts"
import type { Meter } from "./streams/StreamMeter.ts"
import type { Reached } from "./UpstreamCalls.ts"

const parseJson = (bytes: Uint8Array): unknown => {
  const text = textOf(bytes)
  return Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))
}

/** The text without a byte order mark. */
const textOf = (bytes: Uint8Array): string => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8")
  return text.startsWith("\uFEFF") ? text.slice(1) : text
}

/** The state of a stream before its first chunk. */
const nothingRead = {
  failed: false,
  hasFinished: false,
  isCounted: false,
  isFinal: false,
  lacks: undefined,
  tokens: 0,
  responder: undefined,
  usage: undefined
}

const meterOf = (
  { counted, protocol, usage }: MeteredTokens,
  { hidesUsage, isDocument }: { readonly hidesUsage: boolean; readonly isDocument: boolean }
): Meter => {
  if (counted?.isSound === true) return new SoundMeter(counted.counts)
  return isDocument
    ? new DocumentMeter(protocol, usage)
    : new StreamMeter(protocol, hidesUsage, usage)
}

/** Ids that are longer or contain other characters are not stored. */
const requestIdPattern = /^[\x21-\x7E]{1,128}$/u

/** OpenAI's name of the header, and Anthropic's. docs/reference/vendors.md#bills */
const requestIdOf = (headers: UpstreamHeaders): string | undefined => {
  const id = headers["x-request-id"] ?? headers["request-id"]
  return typeof id === "string" && requestIdPattern.test(id) ? id : undefined
}

interface BilledCall {
  readonly id: string
  readonly user: UserId
  /** The amount held before any output is relayed. */
  readonly held: Credits
  /** When the call began. */
  readonly begunMillis: number
  /** Set if the call named an alias. */
  readonly alias: CallEnd["alias"]
  readonly vendor: string
  readonly route: string
}

/** The parts of a plan that a bill needs. Excludes the body, which may be large: a stream outlives its request. */
type BilledPlan = Pick<CallPlan, "hidesUsage" | "hold" | "metered" | "model">

interface BillServices {
  readonly clock: Clock.Clock
  readonly hold: CallHold
  readonly raise: RaiseHold
  readonly abandoned: AbandonedStreams
  /** Records what is relayed, for a user who keeps calls. */
  readonly content: CallContent | undefined
  /** Only the first call has an effect. */
  readonly close: (end: CallEnd) => void
}

/**
 * The money of one call, settled or released exactly once, however the call ends.
 * docs/reference/wallet.md#price-of-a-call, ADR 0072.
 */
export class CallBill implements StreamWatch {
  readonly #call: BilledCall
  readonly #plan: BilledPlan
  readonly #requestBytes: number
  readonly #clock: Clock.Clock
  readonly #abandoned: AbandonedStreams
  readonly #close: (end: CallEnd) => void
  readonly #hold: CallHold
  /** Present for a stream whose hold grows with its output. */
  readonly #sliced: SlicedHold | undefined
  /** Why the stream cannot continue. */
  #loss: Exclude<RaiseOutcome, "held"> = "lost"
  readonly #content: CallContent | undefined
  /** Present for a stream that is metered. */
  #meter: Meter | undefined
  /** The stream is one JSON document, not events. */
  #isDocument = false
  /** Set if the client has left and the stream is still being read. */
  #left: AbandonedStream | undefined
  /** Another model is tried, with a separate bill. */
  #isPassedOver = false
  /** The upstream may be executing the call. */
  #isSent = false
  #status: number | null = null
  #account: string | null = null
  #requestId: string | undefined
  /** For a stream: milliseconds from the beginning of the call to the first piece. */
  #firstTokenMillis: number | undefined

  constructor(
    call: BilledCall,
    { hidesUsage, hold, metered, model, slices }: CallPlan,
    requestBytes: number,
    { abandoned, clock, close, content, hold: callHold, raise }: BillServices
  ) {
    this.#call = call
    this.#plan = { hidesUsage, hold, metered, model }
    this.#requestBytes = requestBytes
    this.#clock = clock
    this.#abandoned = abandoned
    this.#close = close
    this.#hold = callHold
    this.#sliced = slices && new SlicedHold(slices, call.held, raise)
    this.#content = content
  }

  sent(): void {
    this.#isSent = true
  }

  refused(): void {
    this.#isSent = false
  }

  document(): void {
    this.#isDocument = true
  }

  isHeld(): boolean {
    const lacks = this.#meter?.lacks
    const isCovered = lacks === undefined || lacks <= (this.#sliced?.covered ?? Infinity)
    return isCovered && this.#hold.isHeld()
  }

  retake(done: (isHeld: boolean) => void): void {
    if (this.#hold.isHeld()) return this.#cover(done)
    this.#hold.retake((isHeld) => (isHeld ? this.#cover(done) : done(false)))
  }

  /** Waits for the slice that the next event needs. */
  #cover(done: (isHeld: boolean) => void): void {
    const lacks = this.#meter?.lacks
    if (lacks === undefined || this.#sliced === undefined) return done(true)
    this.#sliced.cover(lacks, (outcome) => {
      if (outcome !== "held") this.#loss = outcome
      // A reservation may cover it synchronously, but `done` must not run while the waiting chunk is being processed
      queueMicrotask(() => done(outcome === "held"))
    })
  }

  /**
   * Charges for what the client has received, as a late charge if the hold is gone. Charges nothing if the client
   * received nothing. Audio and documents are cut off without an event.
   */
  lose(): Buffer {
    if (this.#meter === undefined && this.#firstTokenMillis === undefined)
      this.release(this.#status)
    else this.ended("abandoned")
    if (this.#isDocument) return Buffer.alloc(0)
    const { metered } = this.#plan
    if (metered._tag !== "Tokens") return endingEvent(undefined, this.#loss)
    const isSound = metered.counted?.isSound === true
    return isSound ? Buffer.alloc(0) : endingEvent(metered.protocol, this.#loss)
  }

  /** Meters a chunk of a stream as it passes; returns the bytes for the client. */
  push(chunk: Buffer): Buffer {
    const { hidesUsage, metered } = this.#plan
    if (metered._tag === "Tokens") {
      this.#meter ??= meterOf(metered, { hidesUsage, isDocument: this.#isDocument })
    }
    const relayed = this.#meter === undefined ? chunk : this.#pass(this.#meter, chunk)
    if (this.#firstTokenMillis === undefined && (this.#meter?.tokens ?? 1) > 0) {
      this.#firstTokenMillis = this.#clock.currentTimeMillisUnsafe() - this.#call.begunMillis
    }
    if (this.#left === undefined) this.#content?.push(relayed)
    this.#left?.received(chunk.length, this.#meter?.isFinal === true)
    return relayed
  }

  /** Meters a chunk; returns what the hold covers. */
  #pass(meter: Meter, chunk: Buffer): Buffer {
    // A client that left has received only what was relayed before, so the rest needs no hold
    if (this.#left !== undefined || this.#sliced === undefined) return meter.push(chunk)
    const relayed = meter.push(chunk, this.#sliced.covered)
    this.#sliced.passed(meter.passed)
    // A reservation may grant the next slice at once. Nothing else would then pass on what the meter has kept
    return meter.lacks !== undefined && meter.lacks <= this.#sliced.covered
      ? Buffer.concat([relayed, this.#pass(meter, Buffer.alloc(0))])
      : relayed
  }

  /** Continues reading if the usage figures may report more than the stream has shown. */
  readsOn(stop: () => void): boolean {
    if (!this.#mayHideUsage()) return false
    this.#left = this.#abandoned.begin(this.#call.user, stop)
    return this.#left !== undefined
  }

  #mayHideUsage(): boolean {
    const { metered } = this.#plan
    if (metered._tag !== "Tokens") return false
    const { failed, hasFinished, isFinal, usage } = this.#meter ?? nothingRead
    if (isFinal || failed) return false
    return metered.mayReason || hasFinished || (usage?.reasoningTokens ?? 0) > 0
  }

  flush(): Buffer {
    const rest = this.#meter?.flush() ?? Buffer.alloc(0)
    if (this.#left === undefined) this.#content?.push(rest)
    return rest
  }

  /** Ends a call whose upstream failed, or that bought nothing. */
  release(status: number | null): void {
    this.#end({ ...released(this.#call, status), account: this.#account })
  }

  /** Nothing was bought, and another model is tried: this bill settles nothing. */
  passOver(): void {
    this.#isPassedOver = true
  }

  /** The client left before a response. A call that the upstream may be executing costs at least its prompt. */
  leave(): void {
    const { metered } = this.#plan
    const isBought = metered._tag !== "Tokens" || metered.counted?.isBought() !== false
    if (this.#isSent && isBought) this.#settle(this.#estimate(0), true, undefined)
    else this.release(null)
  }

  /** Settles a whole response and returns its cost; a stream is settled at its end. */
  onResponse({ accountId, response }: Reached): Credits | undefined {
    this.#status = response.status
    this.#account = accountId
    this.#requestId = requestIdOf(response.headers)
    if (!(response.body instanceof Uint8Array)) return undefined
    if (response.status >= 300) {
      this.release(response.status)
      return zero
    }
    const { metered } = this.#plan
    if (metered._tag !== "Tokens") return this.#settleCall()
    if (metered.counted?.isSound === true) {
      const meter = new SoundMeter(metered.counted.counts)
      meter.push(Buffer.from(response.body))
      return this.#settle(meter.usage ?? this.#estimate(0), true, undefined)
    }
    const value = parseJson(response.body)
    const { protocol, usage } = metered
    const reported = this.#credible(usageOf(protocol, value, usage))
    const responder = responderOf(protocol, value)
    return reported === undefined
      ? this.#settle(this.#estimate(response.body.length / bytesPerToken), true, responder)
      : this.#settle(reported, false, responder)
  }

  /** Ends the bill of a stream. */
  ended(how: "complete" | "broken" | "abandoned"): void {
    this.#left?.end()
    const meter = this.#meter ?? nothingRead
    const { failed, isCounted, isFinal, responder, tokens, usage: reported } = meter
    // A client that left received the earlier part and pays for it, even if the stream breaks later
    const isBroken = how === "broken" && this.#left === undefined
    if (isBroken || failed) return this.release(this.#status)
    if (this.#plan.metered._tag === "Call") {
      this.#settleCall()
      return
    }
    // A stream that ends without an event costs nothing
    if (how === "complete" && reported === undefined && tokens === 0) {
      return this.release(this.#status)
    }
    const usage = this.#credible(reported)
    // A complete stream has all of the upstream's figures. An incomplete one has some, or all of them if the client
    // left after the last event, as OpenAI's client does at `[DONE]`
    if ((how === "complete" || isFinal) && usage !== undefined) {
      this.#settle(usage, isCounted, responder)
    } else {
      const counted = this.#estimate(tokens)
      this.#settle(
        usage === undefined || usage.inputTokens === 0
          ? mergeUsage(usage, counted)
          : mergeUsage(usage, { inputTokens: 0, outputTokens: tokens }),
        true,
        responder
      )
    }
  }

  /** The figures, unless they are implausible. Implausible figures are the vendor's fault and are not used. */
  #credible(usage: TokenUsage | undefined): TokenUsage | undefined {
    const { metered } = this.#plan
    return metered._tag === "Tokens"
      ? credibleUsage(usage, metered.model, this.#account ?? "sandbox")
      : usage
  }

  #estimate(outputTokens: number): TokenUsage {
    const { metered } = this.#plan
    if (metered._tag === "Tokens" && metered.counted !== undefined) return metered.counted.counts()
    return {
      inputTokens: Math.ceil(this.#requestBytes / bytesPerToken),
      outputTokens: Math.ceil(outputTokens)
    }
  }

  #settleCall(): Credits {
    this.#end({ ...this.#settled(this.#plan.hold), usage: null })
    return this.#plan.hold
  }

  #settle(usage: TokenUsage, counted: boolean, responder: string | undefined): Credits {
    const { hold: most, metered, model } = this.#plan
    if (metered._tag !== "Tokens") return this.#settleCall()
    const { price, pricedAs } = settledPrice(metered, model, responder)
    const unit = unitOf(price)
    const reported = unit === undefined ? usage.inputTokens + usage.outputTokens : usage[unit]
    // The price counts what the vendor did not report, such as tokens where it reported seconds, so the gateway's own
    // count is used
    const isOther = metered.counted !== undefined && (reported ?? 0) === 0
    const used = isOther ? { ...usage, ...metered.counted.counts() } : usage
    const cost = chargeUsage(price, used)
    // A cost above the call's maximum is not charged
    const charged = cost > most ? most : cost
    const held = this.#sliced?.amount ?? most
    const end = {
      ...this.#settled(charged > held ? held : charged),
      usage: {
        ...used,
        counted: counted || isOther,
        ...(pricedAs === undefined ? {} : { pricedAs })
      }
    }
    this.#end(charged > held ? { ...end, beyond: Credits.make(charged - held) } : end)
    return charged
  }

  /** The model that a form named after its file. The hold was written without it. */
  #lateModel(): CallEnd["alias"] {
    const { metered, model } = this.#plan
    if (metered._tag !== "Tokens" || model !== null || metered.named === undefined) return undefined
    const { route, vendor } = this.#call
    return { vendor, model: metered.named, route }
  }

  #settled(captured: Credits): CallEnd {
    return {
      id: this.#call.id,
      user: this.#call.user,
      captured,
      outcome: "settled",
      status: this.#status,
      account: this.#account,
      usage: null
    }
  }

  #end(end: CallEnd): void {
    if (this.#isPassedOver) return
    const alias = this.#call.alias ?? this.#lateModel()
    const isPlain =
      this.#requestId === undefined && this.#firstTokenMillis === undefined && alias === undefined
    this.#close(
      isPlain
        ? end
        : { ...end, requestId: this.#requestId, firstTokenMillis: this.#firstTokenMillis, alias }
    )
  }
}
