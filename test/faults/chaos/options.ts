import type { Rates } from "./load.ts"

export interface Options extends Rates {
  readonly seed: number
  /** The duration of the faults. The quiet end takes up to `quietSeconds` more. */
  readonly seconds: number
  /** The faults continue until there were this many, even if that takes longer. */
  readonly faultsMin: number
  readonly quietSeconds: number
  readonly taskDeadline: string
  /** The maximum number of concurrent faults, and the pause between two faults in seconds. */
  readonly atOnce: number
  readonly restSeconds: readonly [number, number]
  /** Multiplies the duration of each fault. */
  readonly scale: number
  /** The names of faults to leave out. */
  readonly without: ReadonlyArray<string>
  /** A checkout of an older release, which the processes run before they are upgraded. */
  readonly oldRelease?: string
  readonly hasStandby: boolean
  readonly hasPooler: boolean
  readonly media: "disk" | "bucket"
  /** Where logs are kept. Otherwise they are deleted with the temporary folder. */
  readonly logs?: string
}
