import type { Effect } from "effect"
import type { Problem } from "../../domain/Problem.ts"
import type { SentUpload } from "../../vendors/upstream/UpstreamExchange.ts"

/**
 * A form with a file that is streamed to the vendor. It is read once and never in memory as a whole, so what comes
 * after the file is known only once the file has passed. ADR 0305
 */
export interface Upload extends SentUpload {
  /** Reads up to the model's name or the beginning of the file. Fails with 2002 or 2004. */
  readonly head: Effect.Effect<void, Problem>
  /** The model that the form names, if it has been read. */
  readonly model: string | undefined
  /**
   * Called with a model name that comes after the file, before the end of the form is sent. A problem aborts the
   * upload.
   */
  onModel: (name: string) => Problem | undefined
  /** The maximum size of the form in bytes. */
  readonly bytesMax: number
  /** The fewest bytes per second of the file, as far as its first bytes show. */
  readonly bytesPerSecondMin: number
  /** The duration of the part of the file that has passed. */
  readonly seconds: number
}
