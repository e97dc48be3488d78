/** Limits of what a create attaches, and of the shapes of OpenAI's API. docs/reference/keys-and-limits.md#table-of-limits */

/** With the longest texts, escaped, an event still fits a delivery. docs/reference/tasks.md#metadata */
export const metadataKeysMax = 16
export const metadataKeyCharactersMax = 64
export const metadataValueCharactersMax = 512

/** Of all images of a response together: above it they are returned by URL only. docs/reference/shapes.md#images */
export const inlineImageBytesMax = 64 * 1024 * 1024

/** Models of an alias, and the largest weight of one. docs/catalog.md#aliases */
export const aliasModelsMax = 8
export const aliasWeightMax = 1000
