import { SoundLength } from "../../catalog/media/SoundLength.ts"
import type { TokenUsage } from "../../catalog/Price.ts"
import type { Meter } from "../streams/StreamMeter.ts"

/** From OpenAI's list prices of speech: 12 dollars per million tokens, 0.015 dollars per minute. */
const tokensPerMinute = 1250

export const tokensOfSound = (seconds: number): number =>
  Math.ceil((seconds * tokensPerMinute) / 60)

const empty = Buffer.alloc(0)

/**
 * Meters audio as it passes. No vendor reports its usage inside audio, so its length is counted if its format shows it.
 */
export class SoundMeter implements Meter {
  readonly failed = false
  readonly hasFinished = false
  readonly isFinal = false
  readonly isCounted = true
  readonly responder = undefined
  /** A call with audio is held for as a whole. */
  readonly passed = 0
  readonly lacks = undefined
  readonly #counts: () => TokenUsage
  readonly #length = new SoundLength()
  #pieces = 0

  /** `counts`: the usage that is known from the request. */
  constructor(counts: () => TokenUsage) {
    this.#counts = counts
  }

  /** Not zero once there is output, whose tokens `usage` has. */
  get tokens(): number {
    return this.#pieces
  }

  get usage(): TokenUsage | undefined {
    if (this.#pieces === 0) return undefined
    const counts = this.#counts()
    const { seconds } = this.#length
    return seconds === undefined || counts.outputTokens === 0
      ? counts
      : { ...counts, outputTokens: tokensOfSound(seconds) }
  }

  push(chunk: Buffer): Buffer {
    this.#pieces += 1
    this.#length.push(chunk)
    return chunk
  }

  flush(): Buffer {
    return empty
  }
}
