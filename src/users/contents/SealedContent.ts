import { Effect, Schema } from "effect"
import type { Secrets } from "../../process/secrets/Secrets.ts"
import type { CallText, ContentSide } from "./CallContent.ts"

const Side = Schema.NullOr(
  Schema.Struct({
    contentType: Schema.NullOr(Schema.String),
    truncated: Schema.Boolean,
    bytes: Schema.Int,
    /** The length of this side's text, in UTF-16 code units. */
    units: Schema.Int
  })
)

/**
 * The first line of the encrypted text; the texts of both sides follow it unescaped, because JSON would make them
 * longer.
 */
const Head = Schema.fromJsonString(
  Schema.Struct({ path: Schema.String, request: Side, response: Side })
)
const encodeHead = Schema.encodeSync(Head)
const decodeHead = Schema.decodeSync(Head)

const headOf = (side: ContentSide | null) => {
  if (side === null) return null
  const { bytes, contentType, text, truncated } = side
  return { contentType, truncated, bytes, units: text.length }
}

export const sealContent = (
  { encrypt }: Secrets["Service"],
  { path, request, response }: CallText
): Uint8Array => {
  const head = encodeHead({ path, request: headOf(request), response: headOf(response) })
  return encrypt(`${head}\n${request?.text ?? ""}${response?.text ?? ""}`)
}

/** Fails if no master key can decrypt it. */
export const openContent = ({ decrypt }: Secrets["Service"], sealed: Uint8Array) =>
  Effect.map(decrypt(sealed), (whole): CallText => {
    const end = whole.indexOf("\n")
    const { path, request, response } = decodeHead(whole.slice(0, end))
    const texts = whole.slice(end + 1)
    const cut = request?.units ?? 0
    return {
      path,
      request: request && sideOf(request, texts.slice(0, cut)),
      response: response && sideOf(response, texts.slice(cut))
    }
  })

const sideOf = (
  { bytes, contentType, truncated }: NonNullable<typeof Side.Type>,
  text: string
): ContentSide => ({ contentType, text, truncated, bytes })
