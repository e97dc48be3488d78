/**
 * Every number of the specification and of the contract, once, unit last.
 * The section it comes from stands beside it.
 */

/** Spec, Limits: `seed` is 0 to this. */
export const seedMax = 2_147_483_647

/** Spec, Request bodies: prompts, counted in Unicode code points (contract 1). */
export const promptLongCodePointsMax = 2000
export const promptShortCodePointsMax = 800
export const negativePromptCodePointsMax = 500

/** The spec gives no length: a row of the store has to be read back in one message (ADR 0125). */
export const textCodePointsMax = 100_000

/** What is kept of the words in which a vendor refused a submit, in UTF-16 units. */
export const failureCharactersMax = 4000

/** Spec, `image-edit`. */
export const imageEditImagesMax = 3
export const imageEditCountMax = 4
export const imageEditPixelsMin = 768 * 768
export const imageEditPixelsMax = 1440 * 1440
export const imageEditAspectRatioMax = 4

/** Spec, `image-edit-pro`: the array-length rule (contract 1). */
export const imageEditProImagesMax = 10

/** Spec, image constraints: width and height of an input image. */
export const keyframeSidePixelsMin = 360
export const keyframeSidePixelsMax = 2000
export const imageEditSidePixelsMin = 384
export const imageEditSidePixelsMax = 5000

/** Spec, `text-to-video-spark` and `keyframe-to-video-plus`: length of a video (contract 1: absent means 5). */
export const videoSecondsShort = 5
export const videoSecondsLong = 10

/** Upstream's page of `image-edit-max`: pictures in and out, and their sides (vendors.md A1). */
export const imageEditMaxImagesMax = 3
export const imageEditMaxCountMax = 6
export const imageEditMaxSidePixelsMin = 384
export const imageEditMaxSidePixelsMax = 3072
export const imageEditMaxSizePixelsMin = 512
export const imageEditMaxSizePixelsMax = 2048

/** Upstream's page of `video-edit-plus` (vendors.md A1). */
export const videoEditImagesMax = 3
export const videoBytesMax = 50 * 1024 * 1024

/** Contract 5 is silent: a media URL longer than this is refused. */
export const mediaUrlCharactersMax = 4096

/** Contract 5: a URL is given this long, redirects included; how many is ours (ADR 0040). */
export const mediaFetchSeconds = 30
export const mediaRedirectsMax = 3

/** Downloads of media at a time in one process: what bounds the memory that they take (ADR 0040). */
export const mediaDownloadsMax = 16

/** Downloads of one task's media at a time, so that one task of ten pictures leaves room for others. */
export const taskDownloadsMax = 4

/** Contract 2 lists all faults of a body; beyond this many the rest is counted only. */
export const faultsMax = 100

/** A body with more fields, or a list with more items, is refused before it is looked through. */
export const bodyFieldsMax = 100
export const bodyItemsMax = 100

/** Spec, image constraints: at most 10 MB an image. */
export const imageBytesMax = 10 * 1024 * 1024

/** Spec, custom audio: 3 to 30 seconds, at most 15 MB. */
export const audioSecondsMin = 3
export const audioSecondsMax = 30
export const audioBytesMax = 15 * 1024 * 1024

/** Spec, Limits: webhook endpoints. */
export const webhookEndpointsPerUserMax = 5
export const webhookUrlCharactersMax = 2048
export const webhookDescriptionCharactersMax = 200
export const webhookPayloadBytesMax = 64 * 1024
export const deliveriesPerEndpointPerMinuteMax = 600
export const webhookTimeoutSeconds = 30
export const signatureSkewSecondsMax = 300

/** Contract 3 and 8: what is kept of a receiver's answer. */
export const webhookAnswerBytesMax = 16 * 1024

/** Contract 3: the old secret signs beside the new one for this long after a rotation. */
export const secretOverlapHours = 24

/** Contract 2: an idempotency key is remembered this long. */
export const idempotencyHours = 24
export const idempotencyKeyCharactersMax = 255

/** ADR 0110: all large request bodies in memory are together at most so many of the largest. */
export const largestBodiesAtOnce = 4
/** Of these, those of one caller: a user, the operator, or all vendors that call back. */
export const largestBodiesOfOneCaller = 2
/** ADR 0122: the media of all submits under way in a process, in bytes. One task with more goes by itself. */
export const submitMediaBytesMax = 256 * 1024 * 1024
/** Up to this a body waits for no room. */
export const smallBodyBytesMax = 1024 * 1024

/** Contract 3: lists. */
export const pageSizeDefault = 20
export const pageSizeMax = 100

/** Contract 3 and spec: result URLs and artifact links are valid this long. */
export const artifactHours = 24

/** Contract 4: an upstream's message in `task_info.error.detail`. */
export const errorDetailCharactersMax = 500

/** Architecture, rule 3: a process whose heartbeat is older is dead. */
export const ownerDeadSeconds = 10
export const heartbeatSeconds = 2

/** A result that a vendor hosts is copied up to this size. Contract is silent; vendors.md 0.4. */
export const resultBytesMax = 256 * 1024 * 1024

/** Contract 2: `Prefer: wait=N`. */
export const preferWaitSecondsMax = 60

/** A waiting request looks at its task again after this, for moves of other processes (ADR 0031). */
export const taskRelookSeconds = 1

/** A comment on an idle event stream, so that proxies keep it open. */
export const eventStreamHeartbeatSeconds = 15

/** Spec, Limits: the delivery log is kept this long; receipts of calls too (ADR 0102). */
export const deliveryLogDays = 30

/** Day partitions that are made before their day begins. */
export const partitionDaysAhead = 7

/** Contract 3 is silent: deliveries that one `recover` queues again. */
export const recoverDeliveriesMax = 1000
/** How often a process holds what it runs against what the store says it owns (ADR 0020). */
export const auditSeconds = 5

/** An attempt that began longer ago than this is lost even if its process lives (ADR 0020). */
export const attemptLostSeconds = 120
/** Contract 6: pause between two rounds of the wallet audit, and what one statement of it reads. */
export const walletAuditSeconds = 15
export const walletAuditWalletsMax = 500
export const walletAuditEntriesMax = 1000

/** Credits that a wallet can hold, as `wallet_top_up` checks: in micro-credits they fit a `bigint`. */
export const balanceCreditsMax = 9_000_000_000_000n

/** Rows that the CSV export of a ledger reads at once. */
export const ledgerExportRowsMax = 1000

/**
 * Who waits for a slot looks again after this, for slots that other processes gave back (ADR 0108), and
 * so many tasks join a line with one statement.
 */
export const slotRelookSeconds = 1
export const slotJoinsMax = 500

/**
 * Callbacks of vendors (ADR 0107): bytes of a body and seconds for it to arrive; how long the vendor's
 * keys are kept, and how often at most they are asked for when none of them fits.
 */
export const callbackBytesMax = 8 * 1024 * 1024
export const callbackSeconds = 10
export const callbackKeysHours = 24
export const callbackKeysRetrySeconds = 60
export const callbackKeysBytesMax = 64 * 1024

/** A callback that came to another process is heard after this at the latest. */
export const callbackRelookSeconds = 1

/**
 * So long after a key was looked at may calls be drawn on its allowance (ADR 0116). A revocation is
 * answered when this has passed, so that none is drawn behind it.
 */
export const reservationMillis = 100
