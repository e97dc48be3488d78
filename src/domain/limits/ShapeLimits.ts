import { textCodePointsMax } from "./Limits.ts"

/**
 * Limits of task metadata, of the OpenAI-compatible APIs, and of MCP. docs/reference/keys-and-limits.md#table-of-limits
 */

/** Even with the longest texts, escaped, an event fits into a delivery. docs/reference/tasks.md#metadata */
export const metadataKeysMax = 16
export const metadataKeyCharactersMax = 64
export const metadataValueCharactersMax = 512

/** The most tasks of a batch, which is created in one transaction. docs/reference/batches.md */
export const batchTasksMax = 1000

/**
 * The total size of the images in a response. Larger images are returned by URL only. docs/reference/shapes.md#images
 */
export const inlineImageBytesMax = 64 * 1024 * 1024

/** The most images of a request, each of which is a task. docs/reference/shapes.md#images */
export const shapedImagesMax = 10

/** The most requests in a batch, which exists only in MCP 2025-03-26. docs/reference/mcp.md#versions */
export const mcpBatchMax = 10

/** The page size of `list_models`. A model with its schema has 2 to 6 KB, which a language model has to read. */
export const mcpModelsDefault = 10
export const mcpModelsMax = 50

/** The official clients give up a request after 60 seconds. docs/reference/mcp.md#tools */
export const mcpWaitSecondsMax = 45

/**
 * The total size of the images in a result, in Base64 below the 5 MB that models accept. docs/reference/mcp.md#results
 */
export const mcpImageBytesMax = 3 * 1024 * 1024

/** The most deliveries that `explain_delivery` explains: the events of a task at five endpoints. */
export const mcpDeliveriesMax = 20

/** Most models of an alias, and the largest weight. docs/catalog.md#aliases */
export const aliasModelsMax = 8
export const aliasWeightMax = 1000

/**
 * Limits of a form: parts, bytes of headers per part, and bytes of texts that are decoded in one turn of the event
 * loop, which is enough for the longest prompt and small media. docs/reference/shapes.md#forms
 */
export const formPartsMax = 200
export const formHeaderBytesMax = 16 * 1024
export const formTextsBytesMax = 64 * textCodePointsMax
