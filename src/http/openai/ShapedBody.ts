import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import { invalid, problem } from "../../domain/Problem.ts"
import { readJsonBody } from "../server/JsonBody.ts"
import type { JsonBody } from "../server/JsonBody.ts"

/** The fields of a request in OpenAI's shape, whether they came as JSON or as a form. */
export interface ShapedBody {
  readonly fields: Readonly<Record<string, unknown>>
  /** By which a repeat is recognized: of a form without its boundary, a file as its hash. */
  readonly given: JsonBody
}

/** Reads JSON, or a form as OpenAI's clients send files. docs/reference/shapes.md#forms */
export const readShapedBody = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (/^multipart\/form-data\s*;/iu.test(request.headers["content-type"] ?? "")) {
    return yield* readForm(request)
  }
  const given = yield* readJsonBody
  const { value } = given
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return yield* invalid([{ pointer: "#", detail: "Expected an object" }])
  }
  // `null` is what a client sends that leaves a field out
  const fields = Object.fromEntries(Object.entries(value).filter(([, it]) => it !== null))
  return { fields, given } satisfies ShapedBody
})

const readForm = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const bytes = yield* request.arrayBuffer
  const headers = { "content-type": request.headers["content-type"] ?? "" }
  const entries = yield* Effect.tryPromise({
    try: async () => {
      const form = await new Response(bytes, { headers }).formData()
      return Promise.all(
        [...form].map(async ([name, value]) => [name, await readPart(value)] as const)
      )
    },
    catch: () => problem(2002, "The body is not a valid form")
  })
  const fields = fieldsOf(entries.map(([name, { value }]) => [name, value]))
  const value = fieldsOf(entries.map(([name, { hash }]) => [name, hash]))
  return {
    fields,
    given: { bytes: new TextEncoder().encode(JSON.stringify(value)), value }
  } satisfies ShapedBody
})

/** The value of a part, and what it is recognized by. A file is Base64, as a body of a model has it. */
const readPart = async (part: File | string) => {
  if (typeof part === "string") return { value: part, hash: part }
  const bytes = Buffer.from(await part.arrayBuffer())
  return {
    value: bytes.toString("base64"),
    hash: `sha256 ${createHash("sha256").update(bytes).digest("hex")}`
  }
}

/** Fields that are no texts; in a form everything is one. */
const scalars = new Set(["n", "seed", "prompt_extend", "safety_filter", "audio", "stream"])

const scalarOf = (name: string, text: string): unknown =>
  scalars.has(name) && /^(?:true|false|-?\d{1,15})$/u.test(text) ? JSON.parse(text) : text

/** `image[]` is an item of a list, `metadata[order]` a member of an object. */
const bracketed = /^([^[\]]+)\[([^\]]*)\]$/u

const fieldsOf = (entries: ReadonlyArray<readonly [string, string]>): Record<string, unknown> => {
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
