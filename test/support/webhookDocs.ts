import { Schema } from "effect"
import { readFileSync } from "node:fs"

const text = readFileSync(new URL("../../docs/webhooks.md", import.meta.url), "utf8")

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

/** The rows of the table under a heading, without the header row. */
export const docsTable = (heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const section = text.split(`\n## ${heading}\n`)[1]?.split("\n\n|")[1]?.split("\n\n")[0] ?? ""
  return section
    .split("\n")
    .slice(2)
    .map((row) =>
      row
        .split("|")
        .map((cell) => cell.trim())
        .filter((cell) => cell !== "")
    )
}
