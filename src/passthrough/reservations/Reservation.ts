import type { UserId } from "../../domain/Ids.ts"
import { reservationMillis } from "../../domain/Limits.ts"
import type { CallStart } from "../CallStore.ts"
import type { DrawnCall } from "./ReservationStore.ts"

/**
 * Two clocks in milliseconds: the first is never set back, the second goes on while the machine sleeps.
 * A check of a key is too old when either of them says so.
 */
export interface Moment {
  readonly monotonic: number
  /** Unix time. */
  readonly wall: number
}

/**
 * A reservation is written when so many calls have begun or ended since it was, or after so long: the fewer of its
 * key's calls come to this process, the longer they wait to share a write. Well below `reservationMillis`, which a
 * write renews. ADR 0116.
 */
const callsPerWrite = 32
const writeMillis = 30

/** What this process may spend for a key without asking the store. Amounts in micro-credits. */
export interface Reservation {
  readonly key: string
  /** Calls are drawn by this secret of the key alone. */
  rotation: number
  readonly user: UserId
  /** Of all calls that are drawn. ADR 0116. */
  catalogId: number | null
  /** Of the newest call: when it is another one, nothing is drawn until the running calls have ended. */
  wantedCatalogId: number | null
  /** Calls are drawn up to here: what the store holds at least, whether a write under way succeeds or not. */
  limit: bigint
  /** The most that running calls can cost, and what ended calls cost that are not settled yet. */
  open: bigint
  running: bigint
  /** The most that the store may hold; 0: it certainly holds nothing. */
  stored: bigint
  /** The most that calls since the last write can cost, those included that were not covered; and their number. */
  begun: bigint
  calls: number
  /** Such a call has begun in this round. */
  isUsed: boolean
  /** To be written in this round: a call was not covered, or the last write failed. */
  isUrgent: boolean
  /** By the monotonic clock. */
  writtenAt: number
  /** The largest `begun` of the last writes, decaying. */
  pace: bigint
  quietRounds: number
  /** From then on the key has to be checked again. */
  validUntil: Moment
  /** Unix time in milliseconds. */
  expiresAt: number
  available: bigint | undefined
  /** What the key's spend limit leaves beside `limit`; `undefined`: it has none. */
  left: bigint | undefined
  /** Nothing is drawn any more: it ends with its running calls. */
  isClosing: boolean
  ended: Array<DrawnCall>
}

/** Of a key that calls often from now on. */
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
  ended: []
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
