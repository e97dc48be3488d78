import { basePath } from "../../api/address.ts"
import { playgroundTexts } from "../../texts/en/playground.ts"

/** A client's request. */
export interface ShownRequest {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

export const languages = ["curl", "TypeScript", "Python"] as const
export type Language = (typeof languages)[number]

/** Longer files are replaced by their names. */
const shownUnitsMax = 200

const shortText = (text: string): string => {
  const [head = ""] = text.split(",", 1)
  return text.startsWith("data:") && text.length > shownUnitsMax
    ? `${head},${playgroundTexts.media.omitted(head.slice("data:".length).split(";")[0] ?? "")}`
    : text
}

/** The body without long files. */
export const shortened = (value: unknown): unknown => {
  if (typeof value === "string") return shortText(value)
  if (Array.isArray(value)) return value.map(shortened)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, shortened(it)]))
}

const addressOf = (path: string): string => `${globalThis.location.origin}${basePath}${path}`

const inShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const indented = (text: string): string => text.replaceAll("\n", "\n  ")

const curl = ({ body, headers, path }: ShownRequest): string =>
  [
    `curl ${inShell(addressOf(path))}`,
    `-H "Authorization: Bearer $GATEWAY_API_KEY"`,
    ...Object.entries({ ...headers, "content-type": "application/json" }).map(
      ([name, value]) => `-H ${inShell(`${name}: ${value}`)}`
    ),
    `-d ${inShell(JSON.stringify(body))}`
  ].join(" \\\n  ")

const typeScript = ({ body, headers, path }: ShownRequest): string =>
  [
    `const response = await fetch(${JSON.stringify(addressOf(path))}, {`,
    `  method: "POST",`,
    `  headers: {`,
    "    authorization: `Bearer ${process.env.GATEWAY_API_KEY}`,",
    ...Object.entries({ ...headers, "content-type": "application/json" }).map(
      ([name, value], index, all) =>
        `    ${JSON.stringify(name)}: ${JSON.stringify(value)}${index < all.length - 1 ? "," : ""}`
    ),
    `  },`,
    `  body: JSON.stringify(${indented(JSON.stringify(body, null, 2))})`,
    `})`,
    `console.log(response.status, await response.text())`
  ].join("\n")

/** A value in Python syntax. */
export const pythonOf = (value: unknown, indent = ""): string => {
  if (value === null) return "None"
  if (value === true) return "True"
  if (value === false) return "False"
  const inner = `${indent}    `
  const block = (open: string, lines: ReadonlyArray<string>, close: string) =>
    lines.length === 0
      ? `${open}${close}`
      : `${open}\n${lines.map((line) => `${inner}${line}`).join(",\n")}\n${indent}${close}`
  if (Array.isArray(value)) {
    return block(
      "[",
      value.map((it) => pythonOf(it, inner)),
      "]"
    )
  }
  if (typeof value !== "object") return JSON.stringify(value)
  return block(
    "{",
    Object.entries(value).map(([name, it]) => `${JSON.stringify(name)}: ${pythonOf(it, inner)}`),
    "}"
  )
}

const python = ({ body, headers, path }: ShownRequest): string => {
  const others = Object.entries(headers ?? {}).map(
    ([name, value]) => `        ${JSON.stringify(name)}: ${JSON.stringify(value)},`
  )
  return [
    `import os`,
    `import requests`,
    ``,
    `response = requests.post(`,
    `    ${JSON.stringify(addressOf(path))},`,
    `    headers={`,
    `        "authorization": f"Bearer {os.environ['GATEWAY_API_KEY']}",`,
    ...others,
    `    },`,
    `    json=${pythonOf(body, "    ")},`,
    `)`,
    `print(response.status_code, response.text)`
  ].join("\n")
}

const writers = { curl, TypeScript: typeScript, Python: python }

/** The request as a program in this language. */
export const snippetOf = (language: Language, request: ShownRequest): string =>
  writers[language](request)
