import type { Media } from "./media.ts"
import type { Proxy } from "./network.ts"
import type { PgBouncer } from "./pgBouncer.ts"
import type { Postgres } from "./postgres.ts"
import type { ServiceProcess } from "./processes.ts"
import type { Random } from "./random.ts"
import type { Receivers } from "./receivers.ts"
import type { Vendors } from "./vendors.ts"

/** Everything that a fault can hit. */
export interface World {
  readonly random: Random
  /** Multiplies the duration of faults. */
  readonly scale: number
  readonly postgres: Postgres
  readonly processes: ReadonlyArray<ServiceProcess>
  /** Between each process and its database, by the process's name. */
  readonly databaseProxies: ReadonlyMap<string, Proxy>
  readonly vendors: Vendors
  readonly receivers: Receivers
  /** Paths of the webhook endpoints. */
  readonly hooks: ReadonlyArray<string>
  readonly media: Media
  /** Between the proxies and Postgres. */
  readonly pooler: PgBouncer | undefined
  /** What a running fault uses; no other fault touches it. */
  readonly inHand: Set<unknown>
  readonly takeovers: Array<Takeover>
  readonly isOver: () => boolean
}

export interface Takeover {
  /** The number of tasks and deliveries that the dead process owned. */
  readonly owned: number
  readonly seconds: number
  /** The number of other faults that were active meanwhile. */
  readonly beside: number
}

/** A fault. It heals before it returns, and reports what it did. `undefined`: what it needs is in use. */
export interface Fault {
  readonly name: string
  readonly weight: number
  readonly run: (world: World) => Promise<string | undefined>
}

/** Runs the work while holding these things, unless another fault holds them. */
export const holding = async (
  { inHand }: World,
  things: ReadonlyArray<unknown>,
  work: () => Promise<string>
): Promise<string | undefined> => {
  if (things.some((it) => it === undefined || inHand.has(it))) return undefined
  things.forEach((it) => inHand.add(it))
  try {
    return await work()
  } finally {
    things.forEach((it) => inHand.delete(it))
  }
}

/** The duration of a fault in milliseconds. */
export const lasting = ({ random, scale }: World, least: number, most: number): number =>
  random.between(least, most) * scale

/** A process that no fault uses. */
export const freeProcess = ({ inHand, processes, random }: World): ServiceProcess | undefined => {
  const free = processes.filter((it) => !inHand.has(it) && it.isRunning)
  return free.length === 0 ? undefined : random.pick(free)
}
