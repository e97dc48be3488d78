import { Logger } from "effect"
import { inspect, styleText } from "node:util"

/** Characters that move the cursor, start a line or change its direction. */
const controls = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

const escapeOf = (character: string): string =>
  character === "\n" ? "\\n" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

const escaped = (text: string): string => text.replaceAll(controls, escapeOf)

/** A text on one line, or a value as Node prints it, possibly on several. */
const shown = (value: unknown): string =>
  typeof value === "string"
    ? escaped(value)
    : inspect(value, { depth: 6 }).split("\n").map(escaped).join("\n")

const indented = (text: string): string => text.replaceAll(/^/gmu, "  ")

const colors: { readonly [level in string]?: "red" | "yellow" | "green" } = {
  FATAL: "red",
  ERROR: "red",
  WARN: "yellow",
  INFO: "green"
}

const levelText = (level: string): string => styleText(["bold", colors[level] ?? "gray"], level)

/**
 * Formats an entry for people: one line, with causes and annotations indented below it. External text can neither start
 * a line nor control the terminal. docs/reference/configuration.md#logging
 */
export const formatPretty: Logger.Logger<unknown, string> = Logger.map(
  Logger.formatStructured,
  ({ annotations, cause, fiberId, level, message, spans, timestamp }) => {
    const [first, ...rest]: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
    const isText = typeof first === "string"
    const labels = Object.entries(spans).map(([label, millis]) => ` ${escaped(label)}=${millis}ms`)
    const head = `[${timestamp.slice(11, 23)}] ${levelText(level)} (${fiberId})${labels.join("")}:`
    return [
      isText ? `${head} ${styleText(["bold", "cyan"], escaped(first))}` : head,
      // The lines of a stack come from the process; text quoted in them cannot leave the indentation
      ...(cause === undefined ? [] : [indented(cause.split("\n").map(escaped).join("\n"))]),
      ...(isText ? rest : [first, ...rest]).map((value) => indented(shown(value))),
      ...Object.entries(annotations).map(([name, value]) =>
        indented(`${escaped(name)}: ${shown(value)}`)
      )
    ].join("\n")
  }
)

/** Formats an entry as one line of JSON, and also escapes characters that JSON does not. */
export const formatJson: Logger.Logger<unknown, string> = Logger.map(Logger.formatJson, escaped)
