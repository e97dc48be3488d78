/**
 * Paths that lead to the same path of a vendor, in addition to `/v1/models`. docs/reference/passthrough.md#aliases
 */
export const routeAliases: ReadonlyMap<string, string> = new Map([
  ["/v1/chat/completions", "openai"],
  ["/v1/responses", "openai"],
  ["/v1/responses/input_tokens", "openai"],
  ["/v1/embeddings", "openai"],
  ["/v1/audio/speech", "openai"],
  ["/v1/audio/transcriptions", "openai"],
  ["/v1/audio/translations", "openai"],
  ["/v1/moderations", "openai"],
  ["/v1/rerank", "jina"],
  ["/v1/messages", "anthropic"],
  ["/v1/messages/count_tokens", "anthropic"]
])
