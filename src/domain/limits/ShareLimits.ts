/** Limits of resources that a process divides among its callers. docs/reference/keys-and-limits.md#shares */

/**
 * Concurrent media downloads in one process, a limit that bounds their memory (ADR 0040); the share of one user, so
 * that its downloads never block those of other users; the most downloads of a user that may wait; and the time after
 * which its further tasks are retried.
 */
export const mediaDownloadsMax = 16
export const mediaDownloadsShareMax = 0.75
export const mediaDownloadsWaitingMax = 100
export const mediaDownloadsRetrySeconds = 10

/** A download slower than this many bytes per second, over these seconds, is aborted. */
export const slowMediaBytesMin = 32 * 1024
export const slowMediaSeconds = 5

/**
 * Bytes of media of all running submits in a process, and the share of one user. A single task with more than that runs
 * alone (ADR 0140).
 */
export const submitMediaBytesMax = 256 * 1024 * 1024
export const submitMediaShareMax = 0.5
export const submitMediaWaitingMax = 100

/**
 * Open task event streams and waiting requests in a process, each of which reads its task every second, and the share
 * of one user. docs/reference/keys-and-limits.md#shares
 */
export const openResponsesMax = 2000
export const openResponsesShareMax = 0.25

/**
 * Concurrent reads of the management API in a process. A page of 100 rows costs the store and the event loop several
 * milliseconds. A user gets one at a time; its other reads wait, at most as many as its rate allows. Benchmark:
 * `hostile`
 */
export const manageReads = { capacity: 8, aloneMax: 0.125, queueMax: Infinity }

/**
 * Concurrent webhook attempts of one user in a process. Each may hold a connection for 30 seconds, and the webhooks of
 * tasks may go to any number of origins.
 */
export const webhookAttemptsPerUserMax = 512

/** The share of a limit that one process gets when a command runs several on the same machine. At least 1. */
export const ofProcess = (limit: number, processes: number): number =>
  Math.max(1, Math.floor(limit / processes))

/** Parsing and pricing a body of this size takes a noticeable part of an event-loop turn. */
export const heavyBodyBytesMin = 64 * 1024
