import type { Media } from "./media.ts"
import type { Proxy } from "./network.ts"
import type { PgBouncer } from "./pgBouncer.ts"
import type { Postgres } from "./postgres.ts"
import type { ServiceProcess } from "./processes.ts"
import type { Random } from "./random.ts"
import type { Receivers } from "./receivers.ts"
import type { Vendors } from "./vendors.ts"

/** All that a fault can hit. */
export interface World {
  readonly random: Random
  /** Stretches or shortens how long faults last. */
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
  /** What a fault has in hand now: no other one touches it. */
  readonly inHand: Set<unknown>
  readonly takeovers: Array<Takeover>
  readonly isOver: () => boolean
}

export interface Takeover {
  /** Tasks and deliveries that the dead process had in hand. */
  readonly owned: number
  readonly seconds: number
  /** Faults that were under way at some time meanwhile, beside the kill itself. */
  readonly beside: number
}

/** A fault: it heals before it returns, and says what it did. `undefined`: what it needs is in hand. */
export interface Fault {
  readonly name: string
  readonly weight: number
  readonly run: (world: World) => Promise<string | undefined>
}

/** Runs the work with the things in hand, if no other fault has them. */
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

/** Milliseconds that a fault lasts. */
export const lasting = ({ random, scale }: World, least: number, most: number): number =>
  random.between(least, most) * scale

/** A process that no fault has in hand. */
export const freeProcess = ({ inHand, processes, random }: World): ServiceProcess | undefined => {
  const free = processes.filter((it) => !inHand.has(it) && it.isRunning)
  return free.length === 0 ? undefined : random.pick(free)
}
