import { textCodePointsMax } from "./Limits.ts"

/** Limits of a create's metadata, of the shapes of OpenAI's API, and of MCP. docs/reference/keys-and-limits.md#table-of-limits */

/** With the longest texts, escaped, an event still fits into a delivery. docs/reference/tasks.md#metadata */
export const metadataKeysMax = 16
export const metadataKeyCharactersMax = 64
export const metadataValueCharactersMax = 512

/** Tasks of a batch, which is one transaction. docs/reference/batches.md */
export const batchTasksMax = 1000

/** Total size of the images in a response; larger ones are returned by URL only. docs/reference/shapes.md#images */
export const inlineImageBytesMax = 64 * 1024 * 1024

/** Images of a request, each a task. docs/reference/shapes.md#images */
export const shapedImagesMax = 10

/** Requests in a batch, which exists only in MCP 2025-03-26. docs/reference/mcp.md#versions */
export const mcpBatchMax = 10

/** A page of `list_models`: a model with its schema has 2 to 6 KB, which a language model reads. */
export const mcpModelsDefault = 10
export const mcpModelsMax = 50

/** The official clients give up a request after 60 seconds. docs/reference/mcp.md#tools */
export const mcpWaitSecondsMax = 45

/** Total size of the images in a result: in Base64 below the 5 MB that models accept. docs/reference/mcp.md#results */
export const mcpImageBytesMax = 3 * 1024 * 1024

/** Deliveries explained by `explain_delivery`: the events of a task go to five endpoints. */
export const mcpDeliveriesMax = 20

/** Most models of an alias, and the largest weight. docs/catalog.md#aliases */
export const aliasModelsMax = 8
export const aliasWeightMax = 1000

/**
 * Most parts of a form, bytes of headers per part, and bytes of texts that are decoded in one turn of the event loop:
 * the longest prompt, and shorter media. docs/reference/shapes.md#forms
 */
export const formPartsMax = 200
export const formHeaderBytesMax = 16 * 1024
export const formTextsBytesMax = 64 * textCodePointsMax
