import type { Rates } from "./load.ts"

export interface Options extends Rates {
  readonly seed: number
  /** How long faults come. The quiet end takes up to `quietSeconds` more. */
  readonly seconds: number
  readonly quietSeconds: number
  readonly taskDeadline: string
  /** Faults that come at the same time at most, and the rest between two of them in seconds. */
  readonly atOnce: number
  readonly restSeconds: readonly [number, number]
  /** Stretches or shortens how long each of them lasts. */
  readonly scale: number
  /** Names of faults that do not come. */
  readonly without: ReadonlyArray<string>
  /** A checkout of an older release, which the processes run before they are upgraded. */
  readonly oldRelease?: string
  readonly hasStandby: boolean
  readonly hasPooler: boolean
  readonly media: "disk" | "bucket"
  /** Where logs are kept; otherwise they go with the temporary folder. */
  readonly logs?: string
}
