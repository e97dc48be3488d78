import { DateTime } from "effect"
import * as Credits from "../../domain/Credits.ts"
import type { CallEnd, CallStart } from "../CallStore.ts"
import { isDone, isDue, later, never, opened } from "./Reservation.ts"
import type { Moment, Reservation } from "./Reservation.ts"
import type { ReservationGrant, ReservationSize, DrawnCall } from "./ReservationStore.ts"

/** What goes into one transaction, and what the book needs when it is done. */
export interface Taken {
  readonly sizes: ReadonlyArray<ReservationSize>
  readonly ended: ReadonlyArray<DrawnCall>
  /** Before the keys were checked. */
  readonly at: Moment
}

/** A key that began so many calls within a second gets a reservation. */
const callsOften = 16
const oftenMillis = 1000

/** Calls of one transaction at most. */
const callsPerBatchMax = 1000

/** What is reserved for calls to come: so many times what the calls between two writes cost at most. */
const paceFactor = 4n
/** At most this part of what the wallet has available is reserved for calls to come. */
const reserveFactor = 16n
/** After so many rounds without a call nothing is reserved for calls to come. */
const quietRoundsMax = 5

/** Takes the end of a drawn call, once. */
export type CloseDrawn = (end: CallEnd) => void

/** A call that is covered. */
export interface Drawn {
  readonly close: CloseDrawn
  /** What the spend limit of the key leaves; `undefined`: it has none. */
  readonly left: Credits.Credits | undefined
}

const max = (a: bigint, b: bigint) => (a > b ? a : b)
const min = (a: bigint, b: bigint) => (a < b ? a : b)

/**
 * The reservations of this process and the calls that are drawn on them: it only counts and never waits.
 * Running calls, and ended calls that are not settled, are covered by holds in the store at every moment,
 * whether a write that is under way, or that got no response, was committed or not. ADR 0116.
 */
export class ReservationBook {
  readonly #reservations = new Map<string, Reservation>()
  /** Calls by key since `#countedSince`. */
  readonly #counts = new Map<string, number>()
  #countedSince = 0

  /** Nothing is held, running or left to settle. */
  get isEmpty(): boolean {
    return this.#reservations.size === 0
  }

  /** The most that running calls of a key can cost. */
  running(key: string): bigint {
    return this.#reservations.get(key)?.running ?? 0n
  }

  /**
   * Covers a call that begins; `undefined`: the call needs a hold of its own. What ends it is a closure
   * and no entry of a map: a map through which calls pass keeps them from the collection of short-lived
   * objects (ADR 0233).
   */
  draw(start: CallStart, now: Moment): Drawn | undefined {
    const reservation = this.#reservations.get(start.key) ?? this.#count(start, now)
    if (reservation === undefined) return undefined
    // The store has recognized the key by its newest secret
    if (start.rotation > reservation.rotation) reservation.rotation = start.rotation
    reservation.begun += start.amount
    reservation.calls += 1
    if (start.amount > 0n) reservation.isUsed = true
    if (start.catalogId !== reservation.catalogId) {
      reservation.wantedCatalogId = start.catalogId
      reservation.validUntil = never
      reservation.isUrgent = true
      return undefined
    }
    if (
      start.rotation !== reservation.rotation ||
      reservation.open + start.amount > reservation.limit ||
      now.monotonic >= reservation.validUntil.monotonic ||
      now.wall >= reservation.validUntil.wall ||
      now.wall >= reservation.expiresAt
    ) {
      reservation.isUrgent = true
      return undefined
    }
    reservation.open += start.amount
    reservation.running += start.amount
    const close = (end: CallEnd) => {
      reservation.running -= start.amount
      reservation.open -= start.amount - end.captured
      reservation.ended.push({ start, begunAt: now.wall, end })
    }
    const { left, limit, open } = reservation
    return { close, left: left === undefined ? undefined : Credits.make(left + limit - open) }
  }

  /** Ends a round: what is to be written now. `isEnd`: nothing is reserved for calls to come. */
  take(at: Moment, newId: () => string, isEnd = false): Taken | undefined {
    const sizes: Array<ReservationSize> = []
    const ended: Array<DrawnCall> = []
    for (const reservation of this.#reservations.values()) {
      const { begun, key, rotation, running, user } = reservation
      reservation.quietRounds = reservation.isUsed ? 0 : reservation.quietRounds + 1
      reservation.isUsed = false
      const isQuiet = isEnd || reservation.quietRounds >= quietRoundsMax
      if (isQuiet && isDone(reservation)) {
        this.#reservations.delete(key)
        continue
      }
      const hasChanged =
        begun > 0n || reservation.ended.length > 0 || (isQuiet && reservation.stored > running)
      if (!hasChanged || !(isQuiet || isDue(reservation, at))) continue
      reservation.begun = 0n
      reservation.calls = 0
      reservation.isUrgent = false
      reservation.writtenAt = at.monotonic
      reservation.pace = max(begun, reservation.pace - reservation.pace / 8n)
      const settling = reservation.ended.splice(0, Math.max(0, callsPerBatchMax - ended.length))
      ended.push(...settling)
      // No call of the former catalog is left: those that are settled now need no hold any more
      const isFree = running === 0n && reservation.ended.length === 0
      const catalogId = isFree ? reservation.wantedCatalogId : reservation.catalogId
      const isClosing = reservation.isClosing || catalogId !== reservation.wantedCatalogId
      const extra = isQuiet || isClosing ? 0n : this.#extraOf(reservation)
      // Covered whether this is committed or not
      reservation.limit = min(reservation.limit, running + extra + costOf(settling))
      reservation.stored = max(reservation.stored, running + extra)
      sizes.push({
        key,
        rotation,
        user,
        hold: newId(),
        catalogId,
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
    for (const { catalogId = null, key } of sizes) {
      const reservation = this.#reservations.get(key)
      if (reservation === undefined) continue
      reservation.catalogId = catalogId
      const grant = byKey.get(key)
      reservation.open -= costOf(settled.get(key) ?? [])
      reservation.limit = grant?.granted ?? 0n
      reservation.stored = reservation.limit
      reservation.available = grant?.available
      reservation.left = grant?.left ?? undefined
      const isOpen =
        grant?.alive === true && grant.granted > 0n && catalogId === reservation.wantedCatalogId
      reservation.isClosing = grant?.alive === false && grant.granted > 0n
      reservation.validUntil = isOpen ? later(at) : never
      reservation.expiresAt =
        grant === undefined || grant.expiresAt === null
          ? Infinity
          : DateTime.toEpochMillis(grant.expiresAt)
    }
  }

  /** It was not written, or that is not known. */
  failed({ ended, sizes }: Taken): void {
    for (const { key } of sizes) {
      const reservation = this.#reservations.get(key)
      if (reservation !== undefined) reservation.isUrgent = true
    }
    for (const [key, mine] of Map.groupBy(ended, ({ start }) => start.key)) {
      this.#reservations.get(key)?.ended.unshift(...mine)
    }
  }

  /** It can never be written: its calls are not charged, so that they delay nothing else. */
  dropped({ ended }: Taken): void {
    for (const { end, start } of ended) {
      const reservation = this.#reservations.get(start.key)
      if (reservation !== undefined) reservation.open -= end.captured
    }
  }

  /** What is reserved for calls to come. */
  #extraOf({ available, limit, open, pace }: Reservation): bigint {
    const wanted = pace * paceFactor
    if (available === undefined) return wanted
    return min(wanted, max(0n, available + max(0n, limit - open)) / reserveFactor)
  }

  /** Counts the calls of a key without a reservation; creates one when it calls often. */
  #count(start: CallStart, { monotonic }: Moment): Reservation | undefined {
    if (monotonic - this.#countedSince >= oftenMillis) {
      this.#counts.clear()
      this.#countedSince = monotonic
    }
    const { key } = start
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    if (count < callsOften) return undefined
    const reservation = opened(start)
    this.#reservations.set(key, reservation)
    return reservation
  }
}

/** What ended calls cost. */
export const costOf = (ended: ReadonlyArray<DrawnCall>): bigint => {
  let cost = 0n
  for (const { end } of ended) cost += end.captured
  return cost
}
