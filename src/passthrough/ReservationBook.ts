import { DateTime } from "effect"
import * as Credits from "../domain/Credits.ts"
import type { UserId } from "../domain/Ids.ts"
import { reservationMillis } from "../domain/Limits.ts"
import type { CallEnd, CallStart } from "./CallStore.ts"
import type { ReservationGrant, ReservationSize, DrawnCall } from "./ReservationStore.ts"

/** What goes into one transaction, and what the book has to know when it is done. */
export interface Taken {
  readonly sizes: ReadonlyArray<ReservationSize>
  readonly ended: ReadonlyArray<DrawnCall>
  /** Before the keys were looked at. */
  readonly at: Moment
}

/**
 * Two clocks in milliseconds: the one is not set, the other goes on while the machine sleeps. A look
 * at a key is too old when either says so.
 */
export interface Moment {
  readonly monotonic: number
  /** Unix time. */
  readonly wall: number
}

/** A key that began so many calls within a second gets an allowance. */
const callsOften = 16
const oftenMillis = 1000

/** Calls of one transaction at most. */
const callsPerBatchMax = 1000

/** What is held ahead: so many times what the calls between two writings cost at most. */
const paceFactor = 4n
/** Of a wallet that has less than this many times as much, less is held ahead. */
const reserveFactor = 16n
/** After so many turns without a call nothing is held ahead any more. */
const quietTurnsMax = 5

/** What this process may spend for a key without asking the store. */
interface Reservation {
  readonly key: string
  readonly user: UserId
  /** Calls are drawn up to here: no more than the store is known to hold, whatever becomes of a writing. */
  limit: bigint
  /** The most that the running calls can cost, and what the ended ones cost that are not settled yet. */
  open: bigint
  running: bigint
  /** What the store may hold; 0 when it holds nothing for certain. */
  stored: bigint
  /** The most that the calls cost which began since the last turn: those too that had no room. */
  begun: bigint
  /** The most of `begun` lately. */
  pace: bigint
  quietTurns: number
  /** From then on the key has to be looked at again. */
  validUntil: Moment
  /** Unix time in milliseconds. */
  expiresAt: number
  available: bigint | undefined
  ended: Array<DrawnCall>
}

/** Takes the end of a call that was drawn, once. */
export type CloseDrawn = (end: CallEnd) => void

const max = (a: bigint, b: bigint) => (a > b ? a : b)
const min = (a: bigint, b: bigint) => (a < b ? a : b)

/**
 * The allowances of this process, and the calls that are drawn on them: only counts, and never waits.
 * What runs, and what has ended and is not settled, is at every moment covered by holds in the store,
 * whether a writing that is under way, or that was never answered, took place or not. ADR 0116.
 */
export class ReservationBook {
  readonly #allowances = new Map<string, Reservation>()
  /** Calls by key since `#countedSince`. */
  readonly #counts = new Map<string, number>()
  #countedSince = 0

  /** Nothing is held, running or left to settle. */
  get isEmpty(): boolean {
    return this.#allowances.size === 0
  }

  /**
   * Covers a call that begins, if there is room; otherwise it has to be held for by itself. Its end is
   * not looked up but remembered: a map that fills and empties with the calls keeps what it held from
   * the collection of short-lived objects.
   */
  draw(start: CallStart, now: Moment): CloseDrawn | undefined {
    const allowance = this.#allowances.get(start.key) ?? this.#count(start, now)
    if (allowance === undefined) return undefined
    allowance.begun += start.amount
    if (
      allowance.open + start.amount > allowance.limit ||
      now.monotonic >= allowance.validUntil.monotonic ||
      now.wall >= allowance.validUntil.wall ||
      now.wall >= allowance.expiresAt
    ) {
      return undefined
    }
    allowance.open += start.amount
    allowance.running += start.amount
    return (end) => {
      allowance.running -= start.amount
      allowance.open -= start.amount - end.captured
      allowance.ended.push({ start, begunAt: now.wall, end })
    }
  }

  /** A turn: what is to be written now. `undefined`: nothing. At the end nothing is held ahead. */
  take(at: Moment, newId: () => string, isEnd = false): Taken | undefined {
    const sizes: Array<ReservationSize> = []
    const ended: Array<DrawnCall> = []
    for (const allowance of this.#allowances.values()) {
      const { begun, key, running, user } = allowance
      allowance.begun = 0n
      allowance.pace = max(begun, allowance.pace - allowance.pace / 8n)
      allowance.quietTurns = begun > 0n ? 0 : allowance.quietTurns + 1
      const isQuiet = isEnd || allowance.quietTurns >= quietTurnsMax
      if (isQuiet && isDone(allowance)) {
        this.#allowances.delete(key)
        continue
      }
      const isDue =
        begun > 0n || allowance.ended.length > 0 || (isQuiet && allowance.stored > running)
      if (!isDue) continue
      const settling = allowance.ended.splice(0, Math.max(0, callsPerBatchMax - ended.length))
      ended.push(...settling)
      const extra = isQuiet ? 0n : this.#ahead(allowance)
      // Covered if this takes place, and if it does not
      allowance.limit = min(allowance.limit, running + extra + costOf(settling))
      allowance.stored = max(allowance.stored, running + extra)
      sizes.push({
        key,
        user,
        hold: newId(),
        needs: Credits.make(running),
        extra: Credits.make(extra)
      })
    }
    return sizes.length === 0 ? undefined : { sizes, ended, at }
  }

  /** It was written. */
  written({ at, ended, sizes }: Taken, grants: ReadonlyArray<ReservationGrant>): void {
    const byKey = new Map(grants.map((grant) => [grant.key, grant]))
    const settled = Map.groupBy(ended, ({ start }) => start.key)
    for (const { key } of sizes) {
      const allowance = this.#allowances.get(key)
      if (allowance === undefined) continue
      const grant = byKey.get(key)
      allowance.open -= costOf(settled.get(key) ?? [])
      allowance.limit = grant?.granted ?? 0n
      allowance.stored = allowance.limit
      allowance.available = grant?.available
      const isOpen = grant?.alive === true && grant.granted > 0n
      allowance.validUntil = isOpen ? later(at) : never
      allowance.expiresAt =
        grant === undefined || grant.expiresAt === null
          ? Infinity
          : DateTime.toEpochMillis(grant.expiresAt)
    }
  }

  /** It was not written, or nobody knows. */
  failed({ ended }: Taken): void {
    for (const [key, mine] of Map.groupBy(ended, ({ start }) => start.key)) {
      this.#allowances.get(key)?.ended.unshift(...mine)
    }
  }

  /** It can never be written: what ended with it is given away, so that it holds up nothing else. */
  dropped({ ended }: Taken): void {
    for (const { end, start } of ended) {
      const allowance = this.#allowances.get(start.key)
      if (allowance !== undefined) allowance.open -= end.captured
    }
  }

  /** What is held for calls to come. */
  #ahead({ available, limit, open, pace }: Reservation): bigint {
    const wanted = pace * paceFactor
    if (available === undefined) return wanted
    return min(wanted, max(0n, available + max(0n, limit - open)) / reserveFactor)
  }

  /** Counts calls of a key that has no allowance; gives it one once it calls often. */
  #count({ key, user }: CallStart, { monotonic }: Moment): Reservation | undefined {
    if (monotonic - this.#countedSince >= oftenMillis) {
      this.#counts.clear()
      this.#countedSince = monotonic
    }
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    if (count < callsOften) return undefined
    const allowance: Reservation = {
      key,
      user,
      limit: 0n,
      open: 0n,
      running: 0n,
      stored: 0n,
      begun: 0n,
      pace: 0n,
      quietTurns: 0,
      validUntil: never,
      expiresAt: Infinity,
      available: undefined,
      ended: []
    }
    this.#allowances.set(key, allowance)
    return allowance
  }
}

const never: Moment = { monotonic: 0, wall: 0 }

const later = ({ monotonic, wall }: Moment): Moment => ({
  monotonic: monotonic + reservationMillis,
  wall: wall + reservationMillis
})

const isDone = ({ ended, open, running, stored }: Reservation): boolean =>
  stored === 0n && open === 0n && running === 0n && ended.length === 0

/** What ended calls cost. */
export const costOf = (ended: ReadonlyArray<DrawnCall>): bigint => {
  let cost = 0n
  for (const { end } of ended) cost += end.captured
  return cost
}
