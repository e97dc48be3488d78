import { Schema } from "effect"
import { readFileSync } from "node:fs"

const read = (page: string) => readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8")
const text = read("webhooks.md")

/** The fenced block of docs/webhooks.md with this info string, such as `python receiver`. */
export const docsBlock = (info: string): string => {
  const found = text.split(`\n\`\`\`${info}\n`)[1]?.split("\n```\n")[0]
  if (found === undefined) throw new Error(`docs/webhooks.md has no block "${info}"`)
  return `${found}\n`
}

/** The test vectors for signatures, which receivers read. */
export const testVectors = Schema.decodeSync(
  Schema.fromJsonString(
    Schema.NonEmptyArray(
      Schema.Struct({
        name: Schema.String,
        secret: Schema.String,
        delivery_id: Schema.String,
        timestamp: Schema.Int,
        body: Schema.String,
        signature: Schema.String,
        previous_secret: Schema.optionalKey(Schema.String),
        signature_previous: Schema.optionalKey(Schema.String)
      })
    )
  )
)(docsBlock("json test-vectors"))

/** The rows of the table under a heading of docs/reference/webhooks.md, without the header row. */
export const referenceTable = (heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const [, section = ""] = read("reference/webhooks.md").split(`\n## ${heading}\n`)
  return section
    .split("\n## ", 1)
    .flatMap((part) => part.split("\n").filter((line) => line.startsWith("|")))
    .slice(2)
    .map((row) =>
      row
        .split("|")
        .map((cell) => cell.trim())
        .filter((cell) => cell !== "")
    )
}
