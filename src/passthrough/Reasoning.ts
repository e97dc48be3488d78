import type { TokenModel, UsageProtocol } from "../catalog/OpenRoutes.ts"
import { at } from "../domain/json/Json.ts"

/**
 * Whether the model may spend tokens that its stream shows only in its usage figures. The request turns this on or off;
 * otherwise the model decides. docs/reference/passthrough.md#streams-left-by-their-client
 */
export const mayReason = (
  protocol: UsageProtocol,
  models: ReadonlyArray<TokenModel>,
  body: unknown
): boolean => requested(protocol, body) ?? models.some(({ reasons }) => reasons ?? true)

/** The request's setting; `undefined` if it has none. */
const requested = (protocol: UsageProtocol, body: unknown): boolean | undefined => {
  switch (protocol) {
    case "openai-chat":
      return isOn(at(body, "reasoning_effort"), "none")
    case "openai-responses":
      return isOn(at(body, "reasoning", "effort"), "none")
    case "anthropic-messages":
      return isOn(at(body, "thinking", "type"), "disabled")
    case "gemini-generate":
      return isOn(thinkingBudgetOf(body), 0)
    case "openai-embeddings":
    case "openai-speech":
    case "openai-transcription":
    case "rerank":
    case "gemini-embeddings":
      return false
  }
}

const isOn = (value: unknown, off: unknown): boolean | undefined =>
  value === undefined || value === null ? undefined : value !== off

/** The thinking budget. Gemini accepts two spellings of each name, and does not limit thinking without a budget. */
const thinkingBudgetOf = (body: unknown): unknown => {
  const config = at(body, "generationConfig") ?? at(body, "generation_config")
  const thinking = at(config, "thinkingConfig") ?? at(config, "thinking_config")
  if (typeof thinking !== "object" || thinking === null) return undefined
  return at(thinking, "thinkingBudget") ?? at(thinking, "thinking_budget") ?? "any"
}
