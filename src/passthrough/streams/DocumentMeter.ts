import { Result } from "effect"
import type { UsageProtocol } from "../../catalog/OpenRoutes.ts"
import type { TokenUsage } from "../../catalog/Price.ts"
import { bytesPerToken, mergeUsage, responderOf, usageOf } from "../../catalog/Usage.ts"
import type { UsageDifferences } from "../../domain/Provider.ts"
import { SkimmedJson } from "./SkimmedJson.ts"
import type { Meter } from "./StreamMeter.ts"

const empty = Buffer.alloc(0)

/** Meters a large JSON document as it passes. docs/reference/passthrough.md#large-responses */
export class DocumentMeter implements Meter {
  readonly failed = false
  /** The vendor has finished the output before it sends a document. */
  readonly hasFinished = true
  readonly isCounted = false
  /** A call with a document is held for as a whole. */
  readonly passed = 0
  readonly lacks = undefined
  readonly #protocol: UsageProtocol
  readonly #differences: UsageDifferences | undefined
  readonly #json = new SkimmedJson((kept) => this.#read(kept))
  #bytes = 0
  #usage: TokenUsage | undefined
  #responder: string | undefined

  constructor(protocol: UsageProtocol, differences?: UsageDifferences) {
    this.#protocol = protocol
    this.#differences = differences
  }

  get usage(): TokenUsage | undefined {
    return this.#usage
  }

  get responder(): string | undefined {
    return this.#responder
  }

  get tokens(): number {
    return Math.ceil(this.#bytes / bytesPerToken)
  }

  get isFinal(): boolean {
    return this.#json.isComplete && this.#usage !== undefined
  }

  push(chunk: Buffer): Buffer {
    this.#bytes += chunk.length
    this.#json.push(chunk.toString("latin1"))
    return chunk
  }

  flush(): Buffer {
    return empty
  }

  #read(kept: string): void {
    const value = Result.getOrUndefined(Result.try((): unknown => JSON.parse(kept)))
    const usage = usageOf(this.#protocol, value, this.#differences)
    if (usage !== undefined) this.#usage = mergeUsage(this.#usage, usage)
    this.#responder = responderOf(this.#protocol, value) ?? this.#responder
  }
}
