import { toolPriceOf } from "../catalog/Price.ts"
import type { TokenPrice } from "../catalog/Price.ts"
import type { ToolUses } from "../catalog/ToolUses.ts"
import { at } from "../domain/json/Json.ts"
import type { FieldFault } from "../domain/Problem.ts"
import { isPositive } from "./streams/MeteredBody.ts"

/**
 * The members that make a call cost more than the price of its tokens. Such a call is refused, because the difference
 * would not be charged. docs/reference/wallet.md#calls-that-are-refused, ADR 0103.
 */
export const surchargesOf = (body: unknown, price: TokenPrice): ReadonlyArray<FieldFault> => {
  const settings = settingsOf(body)
  const tools = toolFaults(body, price)
  return tools.length === 0 ? settings : [...settings, ...tools]
}

/** The values that cost at most the list price. */
const ordinary: ReadonlyArray<readonly [name: string, values: ReadonlySet<unknown>]> = [
  ["service_tier", new Set([undefined, null, "auto", "default", "standard_only", "flex"])],
  ["serviceTier", new Set([undefined, null, "standard", "flex"])],
  ["speed", new Set([undefined, null, "standard"])],
  ["inference_geo", new Set([undefined, null, "global"])],
  ["web_search_options", new Set([undefined, null])],
  // OpenRouter: other models and hosts, which are billed at their own price, and tools
  ["models", new Set([undefined, null])],
  ["preset", new Set([undefined, null])],
  ["provider", new Set([undefined, null])],
  ["plugins", new Set([undefined, null])],
  // xAI: the response has no usage figures, because the call ends later
  ["deferred", new Set([undefined, null, false])]
]

const settingsOf = (body: unknown): ReadonlyArray<FieldFault> =>
  ordinary
    .filter(([name, values]) => !values.has(at(body, name)))
    .map(([name]) => ({
      pointer: `#/${name}`,
      detail:
        "This may cost more than the price of the tokens and is not offered here: leave it out"
    }))

/**
 * Google's system parameters that filter or encode the response, or make the vendor read the request differently than
 * the gateway. The usage figures could then be missing, and the call would cost less than the vendor charges.
 */
const concealing = new Set(["fields", "callback", "ct"])

/** docs/reference/wallet.md#calls-that-are-refused */
export const concealedUsageOf = (query: string): ReadonlyArray<FieldFault> =>
  [...new URLSearchParams(query)].flatMap(([name, value]) => {
    const parameter = name.toLowerCase().replace(/^\$/u, "")
    const isForm = parameter === "alt" && !/^(?:json|sse)(?:;enum-encoding=int)?$/u.test(value)
    return isForm || concealing.has(parameter)
      ? [{ pointer: `#/query/${name}`, detail: isForm ? "Expected json or sse" : concealed }]
      : []
  })

const concealed = "The response could lack the usage figures that it is charged by: leave it out"

/** Tools that the client runs, or that cost only tokens: by their type at OpenAI and Anthropic … */
const freeTypes =
  /^(?:function|custom|namespace|mcp|local_shell|apply_patch|tool_search|computer|bash|text_editor|memory|web_fetch)(?:_|$)/u
/** … and by their member at Google. */
const freeMembers = /^(?:function_?declarations|code_?execution|url_?context|computer_?use)$/iu

/** A tool whose use the vendor charges: by its type without a date, or Google's member in snake case. */
interface ChargedTool {
  readonly name: string
  readonly tool: unknown
  readonly pointer: string
}

const chargedToolsOf = (body: unknown): ReadonlyArray<ChargedTool> =>
  toolsOf(body).flatMap(({ pointer, tool }) =>
    chargedNames(tool).map((name) => ({ name, tool, pointer }))
  )

type ListedTool = Pick<ChargedTool, "tool" | "pointer">

/** The tools of a request, including those in the input items of OpenAI's Responses API, where Codex sends them. */
const toolsOf = (body: unknown): ReadonlyArray<ListedTool> => {
  const own = toolsIn(body, "#")
  const input = at(body, "input")
  if (!Array.isArray(input)) return own
  const added = input.flatMap((item: unknown, index) =>
    at(item, "type") === "additional_tools" ? toolsIn(item, `#/input/${index}`) : []
  )
  return added.length === 0 ? own : [...own, ...added]
}

/** The tools of a list. A namespace contains a list of tools too, and Google accepts a single tool for a list. */
const toolsIn = (holder: unknown, place: string): ReadonlyArray<ListedTool> => {
  const tools = at(holder, "tools")
  if (typeof tools !== "object" || tools === null) return []
  if (!Array.isArray(tools)) return [{ tool: tools, pointer: `${place}/tools` }]
  return tools.flatMap((tool: unknown, index) => {
    const pointer = `${place}/tools/${index}`
    return at(tool, "type") === "namespace" ? toolsIn(tool, pointer) : [{ tool, pointer }]
  })
}

const chargedNames = (tool: unknown): ReadonlyArray<string> => {
  const type = at(tool, "type")
  if (typeof type === "string") {
    return freeTypes.test(type) ? [] : [type.replace(/(?:_\d+)+$/u, "")]
  }
  if (at(tool, "name") !== undefined) return []
  return Object.keys(Object(tool))
    .filter((member) => !freeMembers.test(member))
    .map((member) => member.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`))
}

const toolFaults = (body: unknown, price: TokenPrice): ReadonlyArray<FieldFault> =>
  chargedToolsOf(body).flatMap(({ name, pointer, tool }): ReadonlyArray<FieldFault> => {
    if (toolPriceOf(price, name) === undefined) {
      const detail = `The vendor charges for each use of ${name.slice(0, 64)}, which has no price here: leave it out of tools`
      return [{ pointer, detail }]
    }
    return unpricedSettingsOf(name, tool).map(([member, detail]) => ({
      pointer: `${pointer}/${member}`,
      detail
    }))
  })

type UnpricedSetting = readonly [member: string, detail: string]

/** Settings of a tool that cost more than its price. */
const unpricedSettingsOf = (name: string, tool: unknown): ReadonlyArray<UnpricedSetting> => {
  const images = name === "image_generation" ? imageSettings : []
  const settings = images.flatMap(
    ([member, isPriced, expected]): ReadonlyArray<UnpricedSetting> => {
      const value = at(tool, member) ?? undefined
      return value === undefined || isPriced.test(String(value))
        ? []
        : [[member, `Expected ${expected}: any other has no price`]]
    }
  )
  return hasOrdinaryContainer(tool) ? settings : [...settings, ["container", ordinaryContainer]]
}

/** The models that share one price, and what makes a picture of at most the tokens for which a call is held. */
const imageSettings = [
  ["model", /^gpt-image-2(?:[.-]|$)/u, "gpt-image-2 or newer"],
  ["quality", /^(?:auto|low|medium|high)$/u, "auto, low, medium or high"],
  ["output_format", /^(?:png|jpeg|webp)$/u, "png, jpeg or webp"]
] as const

const ordinaryContainer = 'Expected {"type": "auto"} with a memory of 1g: any other has no price'

/** A container that the client names is state in the shared account, and a larger one costs more. */
const hasOrdinaryContainer = (tool: unknown): boolean => {
  const container = at(tool, "container") ?? null
  const memory = at(container, "memory_limit") ?? "1g"
  return container === null || (at(container, "type") === "auto" && memory === "1g")
}

/** The uses for which a call is held if the request sets no limit. */
const toolUsesDefault = 10

/**
 * The maximum uses of each charged tool: Anthropic's limit for the tool, OpenAI's limit for the request, or the
 * default. docs/reference/wallet.md#tools-that-the-vendor-runs
 */
export const toolUsesMaxOf = (body: unknown): ToolUses | undefined => {
  const tools = chargedToolsOf(body)
  if (tools.length === 0) return undefined
  const ofRequest = at(body, "max_tool_calls")
  const uses = new Map<string, number>()
  for (const { name, tool } of tools) {
    const own = at(tool, "max_uses")
    const limit = [own, ofRequest].find(isPositive) ?? toolUsesDefault
    uses.set(name, (uses.get(name) ?? 0) + limit)
  }
  return Object.fromEntries(uses)
}

/** Tools that the vendor runs without a separate charge: by their type … */
const vendorTypes = /^(?:mcp|web_fetch)(?:_|$)/u
/** … and by their member at Google. */
const vendorMembers = /^(?:code_?execution|url_?context)$/iu

const isRunByVendor = (tool: unknown): boolean => {
  const type = at(tool, "type")
  return typeof type === "string"
    ? vendorTypes.test(type)
    : Object.keys(Object(tool)).some((member) => vendorMembers.test(member))
}

/** Whether the vendor runs tools whose results the model reads as input, at any length. ADR 0103. */
export const readsToolResults = (body: unknown): boolean =>
  (at(body, "mcp_servers") ?? null) !== null ||
  toolsOf(body).some(({ tool }) => isRunByVendor(tool) || chargedNames(tool).length > 0)
