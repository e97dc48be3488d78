/** Limits of files and of batches of calls. docs/reference/keys-and-limits.md#table-of-limits */

/** As OpenAI's and Anthropic's batches. docs/reference/vendor-batches.md */
export const batchLinesMax = 100_000
export const fileBytesMax = 256 * 1024 * 1024

/** Models that the requests of one batch of messages name. */
export const batchModelsMax = 20

/** What a form has beside the file: fields, headers, boundaries. */
export const uploadFieldsBytesMax = 64 * 1024

/** A file is kept for so long. docs/reference/files.md */
export const fileDays = 30
export const fileSecondsMax = fileDays * 86_400
export const fileSecondsMin = 3600

/** A batch reads its file for a day and some hours more, and then nothing of it may remain. */
export const fileRemainsDays = fileDays + 3

/** Files of a user. */
export const filesMax = 1000

export const fileNameCharactersMax = 255

/** Concurrent uploads to a process, and of one user. */
export const uploadsAtOnce = { capacity: 8, aloneMax: 0.5, perCallerMax: 2, queueMax: 8 } as const

/** Files that are read and priced at once: parsing 256 MB takes seconds of a core. */
export const plansAtOnce = { capacity: 2, aloneMax: 0.5, perCallerMax: 1, queueMax: 4 } as const

/** Results that are stored at once in a process. */
export const resultsAtOnce = 2

/** One request of a batch, and one result that is parsed as a whole. */
export const batchLineBytesMax = 16 * 1024 * 1024
export const resultLineBytesMax = 64 * 1024 * 1024

/** Of OpenAI's requests, and of Anthropic's. */
export const customIdCharactersMax = 256
export const messageIdCharactersMax = 64

/** What the adapter writes before each `custom_id` of Anthropic's, where there is room for it. */
export const batchMarkCharacters = 10

/** Receipts that are written together. */
export const receiptsAtOnce = 500

/** The vendors finish a batch within a day, and take a while to write its results. */
export const batchHours = 24
export const batchDeadlineHours = 30
