// Fixed limits of sessions and sign-in.

/** docs/reference/sessions.md#life-of-a-session */
export const sessionIdleHours = 12
export const sessionDays = 7
export const sessionTouchSeconds = 60
export const sessionsPerOwnerMax = 100

/** docs/reference/sessions.md#sign-in-links */
export const signInLinkMinutes = 10

/**
 * Event streams of a user: how often each reads the store, how many tasks and deliveries it reads, and how many streams
 * a user may have open in a process. docs/reference/http.md#events-of-a-user
 */
export const userStreamSeconds = 1
export const userStreamItemsMax = 100
export const userStreamsMax = 10

/**
 * The ledger entries that an event stream reads at a time. If there are more, it reads again after the pause.
 * docs/reference/http.md#events-of-a-user
 */
export const userStreamEntriesMax = 500
export const userStreamCatchUpMillis = 50

/** The time from the redirect to the OpenID provider to the return. docs/reference/sessions.md#openid-connect */
export const oidcTransactionMinutes = 10

/**
 * OAuth access tokens: their length, the length of an id in them, and the tolerated clock difference.
 * docs/reference/mcp.md#oauth
 */
export const accessTokenCharactersMax = 8192
export const accessTokenIdCharactersMax = 255
export const accessTokenSkewSeconds = 30

/** docs/reference/sessions.md#passkeys */
export const passkeysPerUserMax = 10
export const passkeyNameCharactersMax = 100
export const passkeyChallengeMinutes = 5

/** Attempts to sign in within 15 minutes. docs/reference/sessions.md#attempts */
export const signInMinutes = 15
export const signInsPerAddressMax = 60
export const signInsPerAccountMax = 10

/** Size of a sign-in body, which anyone may send. */
export const signInBytesMax = 16 * 1024

/** Password hashes that run, and that wait, in a process. Each takes 19 MiB (ADR 0174). */
export const passwordHashesAtOnceMax = 2
export const passwordHashesWaitingMax = 32
