/** Limits of resources that a process divides among its callers. docs/reference/keys-and-limits.md#shares */

/**
 * Concurrent media downloads in one process; the limit bounds their memory (ADR 0040). One user gets at most this
 * share, so that its downloads never block those of other users, and at most this many waiting downloads; its further
 * tasks are retried after this time.
 */
export const mediaDownloadsMax = 16
export const mediaDownloadsShareMax = 0.75
export const mediaDownloadsWaitingMax = 100
export const mediaDownloadsRetrySeconds = 10

/** A download slower than this many bytes per second, over these seconds, is aborted. */
export const slowMediaBytesMin = 32 * 1024
export const slowMediaSeconds = 5

/**
 * Bytes of media of all running submits in a process, and the part of one user. A single task with more than
 * that runs by itself (ADR 0140).
 */
export const submitMediaBytesMax = 256 * 1024 * 1024
export const submitMediaShareMax = 0.5
export const submitMediaWaitingMax = 100

/**
 * Event streams of tasks, and requests that wait for a task, in a process; each reads its task every second.
 * A single user gets this part. docs/reference/keys-and-limits.md#shares
 */
export const openResponsesMax = 2000
export const openResponsesShareMax = 0.25

/**
 * Concurrent reads of the management API in a process: a page of 100 rows costs the store and the event loop several
 * milliseconds. A single user gets one; its others wait, at most as many as its rate allows. `hostile`
 */
export const manageReads = { capacity: 8, aloneMax: 0.125, queueMax: Infinity }

/** The share of a limit that one process gets when a command runs several on the same machine. At least 1. */
export const ofProcess = (limit: number, processes: number): number =>
  Math.max(1, Math.floor(limit / processes))

/** Parsing and pricing a body of this size takes a noticeable part of an event-loop turn. */
export const heavyBodyBytesMin = 64 * 1024
