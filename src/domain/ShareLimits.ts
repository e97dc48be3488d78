/** Limits of what a process divides among its callers. docs/reference/keys-and-limits.md#shares */

/**
 * Downloads of media at a time in one process: bounds their memory (ADR 0040). Of one user at most this
 * part, so that another one's never wait for it, and so many that wait: its other tasks are tried again
 * after this time.
 */
export const mediaDownloadsMax = 16
export const mediaDownloadsShareMax = 0.75
export const mediaDownloadsWaitingMax = 100
export const mediaDownloadsRetrySeconds = 10

/** A download that brings less, in bytes a second over these seconds, is given up. */
export const slowMediaBytesMin = 32 * 1024
export const slowMediaSeconds = 5

/**
 * Media of all submits under way in a process, and the part of one user. A single task with more runs
 * alone (ADR 0140).
 */
export const submitMediaBytesMax = 256 * 1024 * 1024
export const submitMediaShareMax = 0.5
export const submitMediaWaitingMax = 100

/**
 * Event streams of tasks and requests that wait for one, in a process; each reads its task every second.
 * One user alone has this part. docs/reference/keys-and-limits.md#shares
 */
export const openResponsesMax = 2000
export const openResponsesShareMax = 0.25

/** To parse and price a body of this size takes a noticeable part of a turn of the event loop. */
export const heavyBodyBytesMin = 64 * 1024
