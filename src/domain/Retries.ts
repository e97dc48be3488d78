import { Schedule } from "effect"

/**
 * The retries inside this process, one entry per purpose. Retries that are promised to customers are elsewhere:
 * webhooks (`webhooks/RetryPolicy.ts`), polls of vendors (`vendors/Polling.ts`), the client (`client/Retry.ts`).
 */

const storeRetryMillisMax = 5000

/** Waits while the store is unavailable: 100 ms at first, doubled each time, at most 5 s. */
export const storeRetries = Schedule.min([
  Schedule.exponential("100 millis"),
  Schedule.spaced(storeRetryMillisMax)
])

/** The same waits for a loop that counts its failures, from 1. */
export const storeRetryMillis = (failures: number): number =>
  Math.min(storeRetryMillisMax, 50 * 2 ** failures)

/**
 * A statement that lost a deadlock or whose snapshot was too old is retried at once, because it has changed nothing.
 */
export const deadlockRetries = { times: 3 }

/** A transaction on a connection whose prepared statements were lost. Each try finds at least one such connection. */
export const lostStatementRetries = { times: 10 }

/**
 * A migration that found a table locked. The pauses grow, because each try blocks wallet writes while it waits for the
 * lock, and a dump may hold the lock for an hour.
 */
export const lockedTableRetries = Schedule.min([
  Schedule.exponential("2 seconds"),
  Schedule.spaced("30 seconds")
])

/** Pause before a command restarts a process that has died this many times soon after its start. */
export const restartMillis = (failures: number): number =>
  Math.min(30_000, 1000 * 2 ** Math.max(0, failures - 1))

/** A request to the artifact bucket. */
export const bucketRetries = { times: 2, schedule: Schedule.exponential("200 millis") }

/** Reads of an artifact while its store is unavailable. */
export const artifactRetries = Schedule.spaced("5 seconds")

/** A new result may not be available yet on every host of the vendor. */
export const resultRetrySeconds = [1, 2, 4] as const

/** After these retries: the pause before a host that fails temporarily gets the same number of retries again. */
export const failingHostRetrySeconds = 15

/** Retries of a batch's result file whose download broke off. Afterwards the batch waits for its next poll. */
export const batchFileRetries = { times: 3, schedule: Schedule.spaced("5 seconds") }

/** A scan for due work. */
export const dueWorkRetryMillis = 1000
