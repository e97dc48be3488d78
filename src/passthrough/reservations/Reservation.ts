import type { UserId } from "../../domain/Ids.ts"
import { reservationMillis } from "../../domain/limits/Limits.ts"
import type { CallStart } from "../CallStore.ts"
import type { RaiseOutcome } from "../slices/SlicedHold.ts"
import type { DrawnCall } from "./ReservationStore.ts"

/**
 * Two clocks in milliseconds. The first is never set back, the second continues while the machine sleeps. A check of a
 * key has expired as soon as either clock says so.
 */
export interface Moment {
  readonly monotonic: number
  /** Unix time. */
  readonly wall: number
}

/**
 * A reservation is written once this many calls have begun or ended since the last write, or after this time. The fewer
 * calls of its key reach this process, the longer they wait to share a write. Well below `reservationMillis`, within
 * which a write must renew it. ADR 0116.
 */
const callsPerWrite = 32
const writeMillis = 30

/** A running call that waits for more cover. ADR 0306. */
export interface Raising {
  readonly more: bigint
  /** Called once. */
  readonly onRaised: (outcome: RaiseOutcome) => void
  /** A write has requested it. */
  isAsked: boolean
  /** The call has ended. */
  abandoned: boolean
}

/** The amount that this process may spend for a key without asking the store. Amounts in micro-credits. */
export interface Reservation {
  readonly key: string
  /** Only calls with this secret of the key are drawn. */
  rotation: number
  readonly user: UserId
  /** The catalog of all drawn calls. ADR 0116. */
  catalogId: number | null
  /** The catalog of the newest call: if it differs, nothing is drawn until the running calls have ended. */
  wantedCatalogId: number | null
  /** Calls may draw up to this amount. The store holds at least this much, whether a running write succeeds or not. */
  limit: bigint
  /** The maximum cost of running calls, plus the cost of ended calls that are not settled yet. */
  open: bigint
  running: bigint
  /** The most that the store may hold; 0 if it certainly holds nothing. */
  stored: bigint
  /**
   * The total maximum cost of the calls since the last write, including calls that were not covered; `calls` is their
   * number.
   */
  begun: bigint
  calls: number
  /** Whether such a call has begun in this round. */
  isUsed: boolean
  /** Whether to write in this round, because a call was not covered or the last write failed. */
  isUrgent: boolean
  /** Time of the last write, by the monotonic clock. */
  writtenAt: number
  /** The largest `begun` of the last writes, decaying. */
  pace: bigint
  quietRounds: number
  /** After this time the key must be checked again. */
  validUntil: Moment
  /** Unix time in milliseconds. */
  expiresAt: number
  available: bigint | undefined
  /** Credits left of the key's spend limit in addition to `limit`; `undefined` without one. */
  left: bigint | undefined
  /** Whether no more calls are drawn: the reservation ends with its running calls. */
  isClosing: boolean
  ended: Array<DrawnCall>
  /** The raises that wait for a write. */
  raisings: Array<Raising>
}

/** A new reservation for a key that has begun to call often. */
export const opened = ({ catalogId, key, rotation, user }: CallStart): Reservation => ({
  key,
  rotation,
  user,
  catalogId,
  wantedCatalogId: catalogId,
  limit: 0n,
  open: 0n,
  running: 0n,
  stored: 0n,
  begun: 0n,
  calls: 0,
  isUsed: false,
  isUrgent: false,
  writtenAt: 0,
  pace: 0n,
  quietRounds: 0,
  validUntil: never,
  expiresAt: Infinity,
  available: undefined,
  left: undefined,
  isClosing: false,
  ended: [],
  raisings: []
})

export const never: Moment = { monotonic: 0, wall: 0 }

export const later = ({ monotonic, wall }: Moment): Moment => ({
  monotonic: monotonic + reservationMillis,
  wall: wall + reservationMillis
})

export const isDue = ({ calls, ended, isUrgent, writtenAt }: Reservation, { monotonic }: Moment) =>
  isUrgent ||
  calls >= callsPerWrite ||
  ended.length >= callsPerWrite ||
  monotonic >= writtenAt + writeMillis

export const isDone = ({ ended, open, running, stored }: Reservation): boolean =>
  stored === 0n && open === 0n && running === 0n && ended.length === 0
