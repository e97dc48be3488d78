import { at } from "../domain/Json.ts"
import type { FieldFault } from "../domain/Problem.ts"

/**
 * The members that make a call cost more than the price of its tokens. Such a call is refused, for the
 * difference would not be charged. docs/reference/wallet.md#calls-that-are-refused, ADR 0103.
 */
export const surchargesOf = (body: unknown): ReadonlyArray<FieldFault> => {
  const settings = settingsOf(body)
  const tools = toolsOf(body)
  return tools.length === 0 ? settings : [...settings, ...tools]
}

/** The values that cost the list price at most. */
const ordinary: ReadonlyArray<readonly [name: string, values: ReadonlySet<unknown>]> = [
  ["service_tier", new Set([undefined, null, "auto", "default", "standard_only", "flex"])],
  ["serviceTier", new Set([undefined, null, "standard", "flex"])],
  ["speed", new Set([undefined, null, "standard"])],
  ["inference_geo", new Set([undefined, null, "global"])],
  ["web_search_options", new Set([undefined, null])]
]

const settingsOf = (body: unknown): ReadonlyArray<FieldFault> =>
  ordinary
    .filter(([name, values]) => !values.has(at(body, name)))
    .map(([name]) => ({
      pointer: `#/${name}`,
      detail: "This costs more than the price of the tokens, and is not offered here"
    }))

/** Tools that the client runs, or that cost nothing but tokens: by their type at OpenAI and Anthropic … */
const freeTypes =
  /^(?:function|custom|namespace|mcp|local_shell|apply_patch|tool_search|computer|bash|text_editor|memory|web_fetch)(?:_|$)/u
/** … and by their member at Google. */
const freeMembers = /^(?:function_?declarations|code_?execution|url_?context|computer_?use)$/iu

const toolsOf = (body: unknown): ReadonlyArray<FieldFault> => {
  const tools = at(body, "tools")
  return Array.isArray(tools)
    ? tools.flatMap((tool: unknown, index) =>
        isFree(tool)
          ? []
          : [
              {
                pointer: `#/tools/${index}`,
                detail: "The vendor charges for the use of this tool, which is not offered here"
              }
            ]
      )
    : []
}

const isFree = (tool: unknown): boolean => {
  const type = at(tool, "type")
  if (typeof type === "string") return freeTypes.test(type)
  if (at(tool, "name") !== undefined) return true
  return Object.keys(Object(tool)).every((member) => freeMembers.test(member))
}

/** Tools that cost tokens only, and are run by the vendor: by their type … */
const vendorTypes = /^(?:mcp|web_fetch)(?:_|$)/u
/** … and by their member at Google. */
const vendorMembers = /^(?:code_?execution|url_?context)$/iu

const isRunByVendor = (tool: unknown): boolean => {
  const type = at(tool, "type")
  return typeof type === "string"
    ? vendorTypes.test(type)
    : Object.keys(Object(tool)).some((member) => vendorMembers.test(member))
}

/** The vendor runs tools, whose results the model reads as input: of any length. ADR 0103. */
export const readsToolResults = (body: unknown): boolean => {
  const tools = at(body, "tools")
  return (
    (at(body, "mcp_servers") ?? null) !== null ||
    (Array.isArray(tools) && tools.some(isRunByVendor))
  )
}
