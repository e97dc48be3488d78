import { DateTime } from "effect"
import * as Credits from "../../domain/Credits.ts"
import type { CallEnd, CallStart } from "../CallStore.ts"
import type { RaiseHold } from "../slices/SlicedHold.ts"
import { isDone, isDue, later, never, opened } from "./Reservation.ts"
import type { Moment, Raising, Reservation } from "./Reservation.ts"
import type { ReservationGrant, ReservationSize, DrawnCall } from "./ReservationStore.ts"

/** The contents of one transaction, and the data that the book needs afterwards. */
export interface Taken {
  readonly sizes: ReadonlyArray<ReservationSize>
  readonly ended: ReadonlyArray<DrawnCall>
  /** A time before the keys were checked. */
  readonly at: Moment
}

/** A key that begins this many calls within a second gets a reservation. */
const callsOften = 16
const oftenMillis = 1000

/** The most calls in one transaction. */
const callsPerBatchMax = 1000

/** The amount reserved for future calls, as a multiple of the maximum cost of the calls between two writes. */
const paceFactor = 4n
/** At most one part in this many of the wallet's available balance is reserved for future calls. */
const reserveFactor = 16n
/** After this many rounds without a call, nothing is reserved for future calls. */
const quietRoundsMax = 5

/** Receives the end of a drawn call, once. */
export type CloseDrawn = (end: CallEnd) => void

/** A call that is covered. */
export interface Drawn {
  readonly close: CloseDrawn
  /**
   * Covers the call for this amount instead, at once or with one of the next writes. `onRaised` is called once,
   * possibly before this function returns, but never after the call was closed.
   */
  readonly raise: RaiseHold
  /** Credits left of the key's spend limit; `undefined` without one. */
  readonly left: Credits.Credits | undefined
}

const max = (a: bigint, b: bigint) => (a > b ? a : b)
const min = (a: bigint, b: bigint) => (a < b ? a : b)

/**
 * The reservations of this process and the calls drawn on them. Only counts, never waits. At every moment the holds in
 * the store cover running calls and ended calls that are not settled, whether or not a write that is running or got no
 * response was committed. ADR 0116.
 */
export class ReservationBook {
  readonly #reservations = new Map<string, Reservation>()
  /** Calls by key since `#countedSince`. */
  readonly #counts = new Map<string, number>()
  #countedSince = 0

  /** Whether nothing is held, running or left to settle. */
  get isEmpty(): boolean {
    return this.#reservations.size === 0
  }

  /** The maximum cost of a key's running calls. */
  running(key: string): bigint {
    return this.#reservations.get(key)?.running ?? 0n
  }

  /**
   * Covers a starting call; `undefined` if the call needs a separate hold. The call is ended by a closure instead of a
   * map entry, because a map would keep calls alive beyond the collection of short-lived objects (ADR 0233).
   */
  draw(start: CallStart, now: Moment): Drawn | undefined {
    const reservation = this.#reservations.get(start.key) ?? this.#count(start, now)
    if (reservation === undefined) return undefined
    // The store has authenticated the key by its newest secret
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
    let amount = start.amount
    let raising: Raising | undefined
    const close = (end: CallEnd) => {
      if (raising !== undefined) raising.abandoned = true
      reservation.running -= amount
      reservation.open -= amount - end.captured
      reservation.ended.push({ start: { ...start, amount }, begunAt: now.wall, end })
    }
    const raise: RaiseHold = (wanted, onRaised) => {
      const more = wanted - amount
      raising = {
        more,
        isAsked: false,
        abandoned: false,
        onRaised: (outcome) => {
          if (outcome === "held") amount = wanted
          onRaised(outcome)
        }
      }
      reservation.begun += more
      reservation.isUsed = true
      if (covers(reservation, raising)) return
      reservation.raisings.push(raising)
      reservation.isUrgent = true
    }
    const { left, limit, open } = reservation
    return {
      close,
      raise,
      left: left === undefined ? undefined : Credits.make(left + limit - open)
    }
  }

  /** Ends a round and returns the data to write now. With `isEnd` nothing is reserved for future calls. */
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
      reservation.raisings = reservation.raisings.filter(({ abandoned }) => !abandoned)
      const hasChanged =
        begun > 0n ||
        reservation.ended.length > 0 ||
        reservation.raisings.length > 0 ||
        (isQuiet && reservation.stored > running)
      if (!hasChanged || !(isQuiet || isDue(reservation, at))) continue
      reservation.begun = 0n
      reservation.calls = 0
      reservation.isUrgent = false
      reservation.writtenAt = at.monotonic
      reservation.pace = max(begun, reservation.pace - reservation.pace / 8n)
      const settling = reservation.ended.splice(0, Math.max(0, callsPerBatchMax - ended.length))
      ended.push(...settling)
      // No call of the former catalog is left: those being settled now no longer need a hold
      const isFree = running === 0n && reservation.ended.length === 0
      const catalogId = isFree ? reservation.wantedCatalogId : reservation.catalogId
      const isClosing = reservation.isClosing || catalogId !== reservation.wantedCatalogId
      const extra = isQuiet || isClosing ? 0n : this.#extraOf(reservation)
      // Covered whether or not this is committed. Amounts requested for raises are not available to other calls
      reservation.limit = min(reservation.limit, running + extra + costOf(settling))
      const needs = running + askFor(reservation.raisings)
      reservation.stored = max(reservation.stored, needs + extra)
      sizes.push({
        key,
        rotation,
        user,
        hold: newId(),
        catalogId,
        needs: Credits.make(needs),
        extra: Credits.make(extra)
      })
    }
    return sizes.length === 0 ? undefined : { sizes, ended, at }
  }

  /** The batch was written. */
  written({ at, ended, sizes }: Taken, grants: ReadonlyArray<ReservationGrant>): void {
    const byKey = new Map(grants.map((grant) => [grant.key, grant]))
    const settled = Map.groupBy(ended, ({ start }) => start.key)
    for (const { catalogId = null, key, needs } of sizes) {
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
      coverRaises(reservation, reservation.limit >= needs)
    }
  }

  /** The batch was not written, or its outcome is unknown. */
  failed({ ended, sizes }: Taken): void {
    for (const { key } of sizes) {
      const reservation = this.#reservations.get(key)
      if (reservation !== undefined) reservation.isUrgent = true
    }
    for (const [key, mine] of Map.groupBy(ended, ({ start }) => start.key)) {
      this.#reservations.get(key)?.ended.unshift(...mine)
    }
  }

  /** The batch can never be written: its calls are not charged, so that they do not delay others. */
  dropped({ ended }: Taken): void {
    for (const { end, start } of ended) {
      const reservation = this.#reservations.get(start.key)
      if (reservation !== undefined) reservation.open -= end.captured
    }
  }

  /** The amount reserved for future calls. */
  #extraOf({ available, limit, open, pace }: Reservation): bigint {
    const wanted = pace * paceFactor
    if (available === undefined) return wanted
    return min(wanted, max(0n, available + max(0n, limit - open)) / reserveFactor)
  }

  /** Counts the calls of a key without a reservation; creates one if it calls often. */
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

/** The additional amount that a write requests for raises. */
const askFor = (raisings: ReadonlyArray<Raising>): bigint => {
  let needs = 0n
  for (const raising of raisings) {
    raising.isAsked = true
    needs += raising.more
  }
  return needs
}

/** Covers a raise if the reservation has room for it now. */
const covers = (reservation: Reservation, { more, onRaised }: Raising): boolean => {
  if (reservation.open + more > reservation.limit) return false
  reservation.open += more
  reservation.running += more
  onRaised("held")
  return true
}

/**
 * Covers waiting raises after a write. A raise that does not fit is refused if this write requested it and was not
 * granted in full. Otherwise it waits for the next write, because it came later or calls drawn in the meantime took the
 * room.
 */
const coverRaises = (reservation: Reservation, wasCovered: boolean): void => {
  const waiting = reservation.raisings
  reservation.raisings = []
  for (const raising of waiting) {
    if (raising.abandoned || covers(reservation, raising)) continue
    if (raising.isAsked && !wasCovered)
      raising.onRaised(reservation.left === 0n ? "budget" : "balance")
    else {
      reservation.raisings.push(raising)
      reservation.isUrgent = true
    }
  }
}

/** The cost of ended calls. */
export const costOf = (ended: ReadonlyArray<DrawnCall>): bigint => {
  let cost = 0n
  for (const { end } of ended) cost += end.captured
  return cost
}
