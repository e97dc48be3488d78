/**
 * The limits of the service, unit last. Others: sessions in `SignInLimits.ts`, metadata and other shapes in
 * `ShapeLimits.ts`, shares of callers in `ShareLimits.ts`, JSON in `JsonLimits.ts`. A number without a link is a choice of this project, with the reason in its comment.
 * docs/reference/keys-and-limits.md#table-of-limits
 */

/** docs/reference/requirements.md#r-limit-11 */
export const seedMax = 2_147_483_647

/** Lengths of texts, in Unicode code points. docs/reference/requirements.md#r-limit-13 */
export const promptLongCodePointsMax = 2000
export const promptShortCodePointsMax = 800
export const negativePromptCodePointsMax = 500

/** For texts without a field-specific limit. A row must fit into one message of the database protocol (ADR 0110). */
export const textCodePointsMax = 100_000

/** Stored length of a vendor's error message, in UTF-16 units. */
export const failureCharactersMax = 4000

/** docs/reference/models.md#image-edit */
export const imageEditImagesMax = 3
export const imageEditCountMax = 4
export const imageEditPixelsMin = 768 * 768
export const imageEditPixelsMax = 1440 * 1440
export const imageEditAspectRatioMax = 4

/** docs/reference/requirements.md#r-model-55 */
export const imageEditProImagesMax = 10

/** Width and height of an input image. docs/reference/models.md#image-rules */
export const keyframeSidePixelsMin = 360
export const keyframeSidePixelsMax = 2000
export const imageEditSidePixelsMin = 384
export const imageEditSidePixelsMax = 5000

/** Lengths of a video. The short one is the default. docs/reference/requirements.md#r-model-13 */
export const videoShortSeconds = 5
export const videoLongSeconds = 10

/** Images in and out, and their sides. docs/reference/models.md#image-edit-max */
export const imageEditMaxImagesMax = 3
export const imageEditMaxCountMax = 6
export const imageEditMaxSidePixelsMin = 384
export const imageEditMaxSidePixelsMax = 3072
export const imageEditMaxSizePixelsMin = 512
export const imageEditMaxSizePixelsMax = 2048

/** docs/reference/models.md#video-edit-plus */
export const videoEditImagesMax = 3
export const videoBytesMax = 50 * 1024 * 1024

/** docs/reference/models.md#media-in-bodies */
export const mediaUrlCharactersMax = 4096

/** For one download, redirects included. docs/reference/models.md#media-by-url */
export const mediaFetchSeconds = 30
export const mediaRedirectsMax = 3

/** Downloads of one task's media at a time: a task with ten images leaves capacity for others. */
export const taskDownloadsMax = 4

/** The most faults listed for a body. The rest are only counted. */
export const faultsMax = 100

/** A body with more fields, or a list with more items, is refused before it is decoded. */
export const bodyFieldsMax = 100
export const bodyItemsMax = 100

/** docs/reference/models.md#image-rules */
export const imageBytesMax = 10 * 1024 * 1024

/** docs/reference/requirements.md#r-limit-15 */
export const audioSecondsMin = 3
export const audioSecondsMax = 30
export const audioBytesMax = 15 * 1024 * 1024

/** docs/reference/webhooks.md#endpoints */
export const webhookEndpointsPerUserMax = 5
export const webhookUrlCharactersMax = 2048
export const webhookDescriptionCharactersMax = 200
export const filterModelsMax = 100
export const filterModelCharactersMax = 200
/**
 * An endpoint that has had no success for this long is reported to its user.
 * docs/reference/webhooks.md#failing-endpoints
 */
export const webhookFailingHours = 24
/** How often a process scans for failing endpoints, and the most that one scan reports. */
export const webhookFailingSeconds = 300
export const webhookFailingMax = 100

/** A key is reported this long before it expires; how often a process scans, and the most that one scan reports. */
export const keyExpiringDays = 7
export const keyExpiringSeconds = 300
export const keyExpiringMax = 100

export const webhookHealth = { attemptsMax: 20, days: 7 }

/** A read of an endpoint's activity reads about half as many deliveries as a list page may read (`listScanRowsMax`). */
export const webhookActivity = { hours: 24, deliveriesPerHourMax: 200 }

/** docs/reference/requirements.md#r-limit-6 */
export const webhookPayloadBytesMax = 64 * 1024

/** docs/reference/webhooks.md#rate-limit */
export const deliveriesPerEndpointPerMinuteMax = 600

/** Concurrent attempts to one endpoint: a slow receiver delays only its own deliveries (ADR 0104). */
export const deliveriesPerEndpointAtOnceMax = 16

/** docs/reference/webhooks.md#test-event */
export const testEventsPerEndpointPerDayMax = 100
export const testEventsPerUserPerDayMax =
  webhookEndpointsPerUserMax * testEventsPerEndpointPerDayMax

/** The timeout of a whole attempt. docs/reference/requirements.md#r-retry-3 */
export const webhookTimeoutSeconds = 30

/** docs/reference/requirements.md#r-sign-7 */
export const signatureSkewSecondsMax = 300

/** Stored part of a receiver's response. docs/reference/webhooks.md#delivery-log */
export const webhookResponseBytesMax = 16 * 1024

/** How long the old secret also signs after a rotation. docs/reference/requirements.md#r-webhook-14 */
export const secretOverlapHours = 24

/** docs/reference/tasks.md#idempotency */
export const idempotencyHours = 24
export const idempotencyKeyCharactersMax = 255

/**
 * Memory for large request bodies, as a multiple of `MAX_BODY_BYTES`, for a process. One caller gets at most a quarter
 * of it (ADR 0140).
 */
export const largestBodiesMax = 4
export const largestBodiesPerCallerMax = 1

/** A large body that arrives more slowly than this many bytes per second, over these seconds, gets 408. */
export const slowSenderBytesMin = 64 * 1024
export const slowSenderSeconds = 10

/** A body up to this size does not wait for memory; one without a length initially takes this much. */
export const smallBodyBytesMax = 1024 * 1024

/** docs/reference/http.md#lists */
export const pageSizeDefault = 20
export const pageSizeMax = 100

/** Most rows read for one page of a filtered list (ADR 0165). */
export const listScanRowsMax = 10_000

/** How many days back a text search covers prompts and metadata of tasks. */
export const searchedDays = 30
export const searchedWordsMax = 10
export const searchedCodePointsMax = 200

/** How much of a task's prompt a list shows. */
export const listPromptCodePoints = 200

/** Lifetime of artifacts and of result URLs. docs/reference/tasks.md#artifacts */
export const artifactHours = 24

/** docs/reference/errors.md#vendor-messages */
export const errorDetailCharactersMax = 500

/** A process whose heartbeat is older counts as dead. ARCHITECTURE.md#rules-of-safety */
export const ownerDeadSeconds = 10
export const heartbeatSeconds = 2

/**
 * Calls and reservations of a process whose heartbeat is older are released. Longer than `ownerDeadSeconds`, so that a
 * paused process can still settle calls that it has answered (ADR 0270).
 */
export const callLeaseSeconds = 30
export const callRescueSeconds = 5

/** A larger difference between the clocks of a process and of the database is logged. */
export const clockSkewSecondsMax = 2
/**
 * A search for ledger entries at a given time covers this much before and after it, because the clocks of processes
 * may differ.
 */
export const ledgerSkewMinutes = 1

/**
 * Largest vendor-hosted result that is copied.
 * docs/reference/vendors.md#results-of-vendors
 */
export const resultBytesMax = 256 * 1024 * 1024

/** Largest response of a language model that is stored. docs/reference/background.md#result */
export const responseBytesMax = 4 * 1024 * 1024

/** Largest request for a background response, without its `input`: the vendor repeats the request in the response. */
export const responseSettingsBytesMax = 1024 * 1024

/** Until the vendor responds, longer members of a request are left out of the displayed response. */
export const responseShownBytesMax = 16 * 1024

/** docs/reference/tasks.md#waiting */
export const preferWaitSecondsMax = 60

/** A waiting request rereads its task this often, because a hint from another process may be lost (ADR 0178). */
export const taskRecheckSeconds = 1

/** An idle event stream sends a comment this often, so that proxies keep it open. */
export const eventStreamHeartbeatSeconds = 15

/**
 * Default of `LOG_RETENTION`: retention of the delivery log and of call receipts (ADR 0053).
 * docs/reference/requirements.md#r-limit-8
 */
export const deliveryLogDays = 30

/** Default of `AUDIT_RETENTION`: retention of the audit log. docs/reference/audit.md#how-long-it-is-kept */
export const auditDays = 365

/** Bounds of all retention times: whole days are dropped, and a hundred years end before year 9999. */
export const retentionDaysMin = 1
export const retentionDaysMax = 36_500

/**
 * How often a process scans for deleted users (5 seconds including the wait for a heartbeat); rows erased by one
 * statement; and how long after the deletion a request of the user may still run, which is longer than the
 * listener allows a request.
 * docs/reference/privacy.md#deletion-of-a-user
 */
export const erasureSeconds = 3
export const erasureRowsMax = 500
export const erasureGraceMinutes = 10

/** Rows per read in the export of a user's data. */
export const userExportRowsMax = 200

/**
 * Request contents: the bytes kept of each side of a call, the calls kept per user, the calls recorded per minute by
 * one user in one process, and the calls kept by one process at a time, 128 KiB each.
 * docs/reference/passthrough.md#requests-and-responses
 */
export const callContentBytesMax = 64 * 1024
export const callContentsMax = 500
export const callContentsPerMinuteMax = 120
export const callContentsOpenMax = 256

/** Tasks deleted or scrubbed by one statement, and statements per round. This allows a million tasks an hour. */
export const retentionTasksMax = 1000
export const retentionBatchesMax = 1000

/** Day partitions are created this long before their day begins. */
export const partitionDaysAhead = 7

/** Deliveries requeued by one `recover`. docs/reference/webhooks.md#redelivery */
export const recoverDeliveriesMax = 1000

/** How often a process compares the tasks that it runs with those that it owns in the store (ADR 0020). */
export const ownershipReconcileSeconds = 5

/** An attempt older than this is lost, even if its process is alive (ADR 0020). */
export const attemptLostSeconds = 120

/**
 * Pause between rounds of the wallet audit; rows read by one statement.
 * docs/reference/wallet.md#wallet-audit
 */
export const walletAuditSeconds = 15
export const walletAuditWalletsMax = 500
export const walletAuditEntriesMax = 1000

/** How often spend limits are compared with holds and usage. */
export const budgetAuditSeconds = 300

/**
 * How often a process scans for withheld balance alerts, and how many one transaction reports.
 * docs/reference/wallet.md#balance-alert
 */
export const withheldAlertSeconds = 5
export const withheldAlertsMax = 100

/** Most credits in a wallet, checked by `wallet_top_up`: in micro-credits they fit a `bigint`. */
export const balanceCreditsMax = 9_000_000_000_000n

/** Rows per read in the CSV export of a ledger. */
export const ledgerExportRowsMax = 1000

/** Most days of one vendor's bill, and items of each kind in a report of it. */
export const billDaysMax = 62
export const billItemsMax = 1000

/** Rows per read in an export of usage. */
export const usageExportRowsMax = 1000

/** Users per read when usage is rebuilt, and days per request: a day takes milliseconds. */
export const usageRebuildUsersMax = 1000
export const usageRebuildDaysMax = 31
/** Days that usage by hour is kept, and days of a request for it. */
export const usageHoursDays = 35
export const usageHoursDaysMax = 8
/** Rows of one statement that removes hours. */
export const usageHourRowsMax = 10_000

/** While tasks wait for slots, the store is read this often for slots that other processes freed (ADR 0108). */
export const slotRecheckSeconds = 1
/** A process without waiting tasks scans this often for the waiting tasks of a dead process. */
export const slotServeSecondsMax = 5

/**
 * The most tasks of one queue (the submits of a model, the polls of an account) that a process has in hand. Other due
 * tasks of the queue wait in the store, for this process or another. ADR 0149.
 */
export const stepsPerQueueMax = 500

/**
 * Callbacks of vendors (ADR 0107): the size of a body and the time to receive it; how long the vendor's keys are
 * cached, and the pause between two fetches if no cached key matches.
 */
export const callbackBytesMax = 8 * 1024 * 1024
export const callbackSeconds = 10
/** Callbacks without a verified signature cause at most one poll of a task in this time. */
export const unsignedCallbackSeconds = 2
export const callbackKeysHours = 24
export const callbackKeysRetrySeconds = 60
export const callbackKeysBytesMax = 64 * 1024

/**
 * Calls may draw on a key's reservation for this long after the key was read (ADR 0116). A revocation responds only
 * after this time, so that no call draws on the key afterwards.
 */
export const reservationMillis = 100

/** The longest time for which the old secret of a rotated key stays valid: as long as a session. */
export const keyGraceDays = 7

/** Length of the text that names the source of a price. */
export const sourceCharactersMax = 500

/** How often a process records its vendor accounts (ADR 0186). */
export const accountKeepSeconds = 10

/** After this time no process uses a removed account: several recording intervals. */
export const accountLeftSeconds = 30

/** How long the key of a removed account is kept, because a paused process may still use it. */
export const accountForgottenSeconds = 600

/** The most catalogs that a process keeps for tasks accepted under them. */
export const catalogsKeptMax = 20

/**
 * The most bytes that are read of a stream after its client has left, and the number of such streams of a user in a
 * process at which the user's new calls are refused there. docs/reference/passthrough.md#streams-left-by-their-client
 */
export const abandonedStreamBytesMax = 8 * 1024 * 1024
export const abandonedStreamsPerUserMax = 256
