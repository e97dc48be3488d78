// Fixed limits of sessions and of signing in.

/** docs/reference/sessions.md#life-of-a-session */
export const sessionIdleHours = 12
export const sessionDays = 7
export const sessionTouchSeconds = 60
export const sessionsPerOwnerMax = 100

/** docs/reference/sessions.md#sign-in-links */
export const signInLinkMinutes = 10

/**
 * Streams of a user's tasks and deliveries: how often each looks, at how many of each, and how many a user
 * may have open in a process. docs/reference/http.md#events-of-a-user
 */
export const userStreamSeconds = 1
export const userStreamItemsMax = 100
export const userStreamsMax = 10

/**
 * A stream of events reads so many ledger entries a look; with more it looks again after the pause.
 * docs/reference/http.md#events-of-a-user
 */
export const userStreamEntriesMax = 500
export const userStreamCatchUpMillis = 50

/** From leaving for the OpenID provider to coming back. docs/reference/sessions.md#openid-connect */
export const oidcTransactionMinutes = 10

/** Attempts to sign in, in 15 minutes. docs/reference/sessions.md#attempts */
export const signInMinutes = 15
export const signInsPerAddressMax = 60
export const signInsPerAccountMax = 10

/** Of the body of a sign-in, which anybody may send. */
export const signInBytesMax = 16 * 1024

/** Hashes of passwords that run at a time in a process, and that wait; each takes 19 MiB (ADR 0174). */
export const passwordHashesAtOnceMax = 2
export const passwordHashesWaitingMax = 32
