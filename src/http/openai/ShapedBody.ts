import { Effect, Result } from "effect"
import { HttpServerRequest } from "effect/http"
import { createHash } from "node:crypto"
import { boundaryOf, notAForm } from "../../domain/forms/FormHead.ts"
import type { LongText } from "../../domain/json/LongText.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import { inSlices } from "../../domain/shares/Slices.ts"
import { readBytes } from "../server/bodies/BodyReader.ts"
import { readJsonBody } from "../server/bodies/JsonBody.ts"
import type { JsonBody } from "../server/bodies/JsonBody.ts"
import { addBytes } from "../server/IdempotencyKey.ts"
import { FormScanner } from "./FormParts.ts"
import type { FormPart } from "./FormParts.ts"

/** The fields of a request in OpenAI's format, whether it was sent as JSON or as a form. */
export interface ShapedBody {
  readonly fields: Readonly<Record<string, unknown>>
  /** What identifies a repeated request: for a form, its fields without the boundary and its files as hashes. */
  readonly given: JsonBody
}

/** Reads JSON, or a form, which OpenAI's clients use to send files. docs/reference/shapes.md#forms */
export const readShapedBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const contentType = request.headers["content-type"] ?? ""
  if (/^multipart\/form-data\s*;/iu.test(contentType)) return yield* readForm(contentType)
  const given = yield* readJsonBody
  const { value } = given
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return yield* invalid([{ pointer: "#", detail: "Expected an object" }])
  }
  // Clients send `null` for fields that they leave out
  const fields = Object.fromEntries(Object.entries(value).filter(([, it]) => it !== null))
  return { fields, given } satisfies ShapedBody
})

const readForm = Effect.fnUntraced(function* (contentType: string) {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return yield* problem(2002, notAForm)
  const scanner = new FormScanner(boundary)
  const bytes = yield* readBytes(scanner)
  const parts = scanner.parts(bytes)
  if (Result.isFailure(parts)) return yield* problem(2002, parts.failure)
  const hashed = yield* Effect.forEach(parts.success, ({ name, value }) =>
    Effect.map(hashOf(value), (hash) => [name, hash] as const)
  )
  return {
    fields: fieldsOf(parts.success.map(({ name, value }) => [name, value])),
    given: { value: fieldsOf(hashed) }
  } satisfies ShapedBody
})

/** The text that identifies a part: for a file, its hash. */
const hashOf = (value: FormPart["value"]): Effect.Effect<string | LongText> => {
  if (!(value instanceof Uint8Array)) return Effect.succeed(value)
  const hash = createHash("sha256")
  return Effect.map(
    inSlices(() => addBytes(hash, value)),
    () => `sha256 ${hash.digest("hex")}`
  )
}

/** Fields that are not texts. In a form, every field is a text. */
const scalars = new Set(["n", "seed", "prompt_extend", "safety_filter", "audio", "stream"])

/** An integer as JSON writes it. */
const integer = /^(?:0|-?[1-9]\d{0,14})$/u

/** Converts a text of a form to its type. Other texts stay texts, which the field's rules then reject. */
const scalarOf = (name: string, value: FormPart["value"]): unknown => {
  if (typeof value !== "string" || !scalars.has(name)) return value
  if (value === "true" || value === "false") return value === "true"
  return integer.test(value) ? Number(value) : value
}

/** `image[]` is an item of a list, `metadata[order]` is a member of an object. */
const bracketed = /^([^[\]]+)\[([^\]]*)\]$/u

const fieldsOf = (
  entries: ReadonlyArray<readonly [string, FormPart["value"]]>
): Record<string, unknown> => {
  const items = Map.groupBy(entries, ([name]) => bracketed.exec(name)?.[1] ?? name)
  return Object.fromEntries(
    [...items].map(([name, all]) => {
      const members = all.flatMap(([whole, value]) => {
        const key = bracketed.exec(whole)?.[2] ?? ""
        return key === "" || /^\d+$/u.test(key) ? [] : [[key, value] as const]
      })
      if (members.length === all.length) return [name, Object.fromEntries(members)]
      const [first] = all
      return all.length === 1 && first !== undefined && first[0] === name
        ? [name, scalarOf(name, first[1])]
        : [name, all.map(([, value]) => value)]
    })
  )
}
