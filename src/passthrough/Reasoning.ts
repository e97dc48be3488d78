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
      return mayThink(body)
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

/**
 * Whether Gemini may think. It accepts two spellings of each name, which a request may mix, and does not limit thinking
 * without a budget.
 */
const mayThink = (body: unknown): boolean | undefined => {
  const settings = membersOf([body], "generationConfig", "generation_config")
  const thinking = membersOf(settings, "thinkingConfig", "thinking_config").filter(
    (it) => typeof it === "object"
  )
  const budgets = membersOf(thinking, "thinkingBudget", "thinking_budget")
  if (thinking.length === 0) return undefined
  return budgets.length === 0 || budgets.some((budget) => budget !== 0)
}

const membersOf = (objects: ReadonlyArray<unknown>, ...names: ReadonlyArray<string>) =>
  objects
    .flatMap((object) => names.map((name) => at(object, name)))
    .filter((it) => it !== undefined && it !== null)
