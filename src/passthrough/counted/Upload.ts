import type { Effect } from "effect"
import type { Problem } from "../../domain/Problem.ts"
import type { SentUpload } from "../../vendors/upstream/UpstreamExchange.ts"

/**
 * A form with a file that goes to the vendor as it arrives: it is never in memory as a whole, and read once. What
 * stands in it behind the file is known only when it has passed. ADR 0305
 */
export interface Upload extends SentUpload {
  /** Reads up to the model's name or the beginning of the file. Fails with 2002 or 2004. */
  readonly head: Effect.Effect<void, Problem>
  /** The model that the form names, as far as it has been read. */
  readonly model: string | undefined
  /** Called with a name that comes behind the file, before the end of the form has been sent; a problem ends it. */
  onModel: (name: string) => Problem | undefined
  /** How many bytes the form has at most. */
  readonly bytesMax: number
  /** The fewest bytes that a second of the file has, as far as its first bytes show. */
  readonly bytesPerSecondMin: number
  /** How long the file that has passed is. */
  readonly seconds: number
}
