/** Limits of files and of batches of calls. docs/reference/keys-and-limits.md#table-of-limits */

/** The same limit as for batches at OpenAI and Anthropic. docs/reference/vendor-batches.md */
export const batchLinesMax = 100_000
export const fileBytesMax = 256 * 1024 * 1024

/** The most models that the requests of one message batch may name. */
export const batchModelsMax = 20

/** The maximum size of the webhook in the body of a message batch. */
export const batchWebhookBytesMax = 16 * 1024

/** The size of everything in a form except the file: fields, headers, boundaries. */
export const uploadFieldsBytesMax = 64 * 1024

/** How long a file is kept. docs/reference/files.md */
export const fileDays = 30
export const fileSecondsMax = fileDays * 86_400
export const fileSecondsMin = 3600

/**
 * How long the requests of a message batch are kept until it is accepted. A create takes minutes; one that was killed
 * leaves them.
 */
export const unacceptedSecondsMax = 3600

/** A batch may read its file for a day and some hours after it expires. Nothing of it may remain after this. */
export const fileRemainsDays = fileDays + 3

/** The most files of a user. */
export const filesMax = 1000

export const fileNameCharactersMax = 255

/** Concurrent uploads in a process, and for one user. */
export const uploadsAtOnce = { capacity: 8, aloneMax: 0.5, perCallerMax: 2, queueMax: 8 } as const

/** Files that are read and priced concurrently. Parsing 256 MB takes seconds of a core. */
export const plansAtOnce = { capacity: 2, aloneMax: 0.5, perCallerMax: 1, queueMax: 4 } as const

/** Results that a process stores concurrently. */
export const resultsAtOnce = 2

/** The maximum size of one request of a batch, and of one result that is parsed as a whole. */
export const batchLineBytesMax = 16 * 1024 * 1024
export const resultLineBytesMax = 64 * 1024 * 1024

/** The maximum length at OpenAI, and at Anthropic. */
export const customIdCharactersMax = 256
export const messageIdCharactersMax = 64

/** The length of the mark that the adapter puts before each `custom_id` at Anthropic, if there is room for it. */
export const batchMarkCharacters = 10

/** The most receipts that are written together. */
export const receiptsAtOnce = 500

/** Vendors finish a batch within a day, and then need some time to write its results. */
export const batchHours = 24
export const batchDeadlineHours = 30
