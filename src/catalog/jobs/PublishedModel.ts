import { Result } from "effect"
import type { Schema } from "effect"
import { at } from "../../domain/json/Json.ts"
import { bodyFieldsMax } from "../../domain/limits/Limits.ts"
import type { MediaKind } from "../../domain/task/Task.ts"
import { mimeOfExtension } from "../media/Formats.ts"
import { isFieldName, listOf, PublishedSchemas, Unreadable } from "./PublishedSchema.ts"
import type { JsonObject, Resolved, Written } from "./PublishedSchema.ts"
import { isObject } from "./SchemaFaults.ts"

/** The content of a vendor's published schema for a model: a row of `mediaModels` without its price. */
export interface PublishedModel {
  readonly upstreamModel: string
  readonly result: MediaKind
  readonly body: Readonly<Record<string, Schema.Json>>
  readonly media?: Readonly<Record<string, { readonly kind: InputKind }>>
  readonly count?: string
  readonly output?: ReadonlyArray<string>
  /** What was left out, and what the operator must decide. */
  readonly notes: ReadonlyArray<string>
}

export interface PublishedRequest {
  readonly id: string
  readonly document: unknown
  /** What the model makes, if the operator says so. */
  readonly result?: MediaKind | undefined
}

/** The fal queue model that an OpenAPI document describes. */
export const falModel = (request: PublishedRequest) => read(() => falModelIn(request))

/** The newest version of a Replicate model, from the response of `GET /v1/models/{owner}/{name}`. */
export const replicateModel = (request: PublishedRequest) => read(() => replicateModelIn(request))

const read = (make: () => PublishedModel): Result.Result<PublishedModel, string> => {
  try {
    return Result.succeed(make())
  } catch (error) {
    if (error instanceof Unreadable) return Result.fail(error.message)
    throw error
  }
}

const requestSuffix = "/requests/{request_id}"

const contentIn = (value: unknown): unknown => at(value, "content", "application/json", "schema")

const falModelIn = ({ document, id, result: asked }: PublishedRequest): PublishedModel => {
  const paths = at(document, "paths")
  const path = Object.keys(isObject(paths) ? paths : {}).find(
    (it) => !it.includes("/requests/") && contentIn(at(paths, it, "post", "requestBody"))
  )
  if (path === undefined) throw new Unreadable("it has no request that submits a job")
  const schemas = new PublishedSchemas(document)
  const input = contentIn(at(paths, path, "post", "requestBody"))
  const output = contentIn(at(paths, `${path}${requestSuffix}`, "get", "responses", "200"))
  const category = String(at(document, "info", "x-fal-metadata", "category"))
  const files = output === undefined ? [] : filesIn(schemas, output)
  const result = asked ?? resultOf(files, kindIn(category.split("-to-").at(-1) ?? ""))
  const names = namesOf(files, result)
  return {
    upstreamModel: id,
    result,
    ...bodyIn(schemas, input, falOnly),
    ...(names.length === 0 ? {} : { output: names })
  }
}

/** Fields of fal that are left out. With `sync_mode` fal returns a data URI, which a result must not be. */
const falOnly: ReadonlyMap<string, string> = new Map([
  ["sync_mode", "its results would be part of the response"]
])

const replicateModelIn = ({ document, id, result: asked }: PublishedRequest): PublishedModel => {
  const version = at(document, "latest_version", "id")
  const published = at(document, "latest_version", "openapi_schema")
  const definitions = at(published, "components", "schemas")
  const input = at(definitions, "Input")
  if (typeof version !== "string" || input === undefined) {
    throw new Unreadable("the model has no version with a schema")
  }
  const schemas = new PublishedSchemas(published)
  const output = at(definitions, "Output")
  const files = output === undefined ? [] : filesIn(schemas, output)
  const result = asked ?? resultOf(files, kindOfExample(at(document, "default_example")))
  const names = namesOf(files, result)
  return {
    upstreamModel: at(document, "is_official") === true ? id : `${id}:${version}`,
    result,
    ...bodyIn(schemas, input, new Map()),
    ...(names.length === 0 ? {} : { output: names })
  }
}

/** The kind of result, from the extension of the first file in the model's example. */
const kindOfExample = (example: unknown): MediaKind | undefined => {
  const output = at(example, "output")
  const values = [output, ...Object.values(Object(output))].flat()
  const url = values.find((it) => typeof it === "string" && it.startsWith("https://"))
  const ending = /\.([a-z0-9]+)$/iu.exec(URL.parse(String(url))?.pathname ?? "")?.[1] ?? ""
  return kindsOfMime.get(mimeOfExtension(ending.toLowerCase())?.split("/")[0] ?? "")
}

const kindsOfMime: ReadonlyMap<string, MediaKind> = new Map([
  ["image", "images"],
  ["video", "videos"],
  ["audio", "audios"],
  ["model", "meshes"]
])

const words: ReadonlyArray<readonly [RegExp, MediaKind]> = [
  [/(?:image|picture|photo|mask|frame|sketch|logo|face)/giu, "images"],
  [/(?:video|clip|movie)/giu, "videos"],
  [/(?:audio|voice|speech|sound|music|song|vocals)/giu, "audios"],
  [/(?:mesh|glb|gltf|3d)/giu, "meshes"]
]

/** The kind of input, from the last word of the name that tells it: `mask_video_url` is a video. */
const kindIn = (name: string): MediaKind | undefined => {
  let last = -1
  let found: MediaKind | undefined
  for (const [word, kind] of words) {
    for (const { index } of name.matchAll(word)) {
      if (index > last) [last, found] = [index, kind]
    }
  }
  return found
}

/** A place in the output that holds files. The whole output has an empty name. */
interface PublishedFile {
  readonly name: string
  readonly kind: MediaKind | undefined
}

const outputDepthMax = 3

const isFile = ({ format, properties, type }: JsonObject): boolean =>
  (type === "string" && format === "uri") || at(properties, "url") !== undefined

const filesIn = (
  schemas: PublishedSchemas,
  schema: unknown,
  path: ReadonlyArray<string> = [],
  trail: ReadonlyArray<string> = []
): ReadonlyArray<PublishedFile> => {
  if (path.length > outputDepthMax) return []
  const { schema: whole, trail: below }: Resolved = schemas.resolve(schema, trail)
  const choices = [...listOf(whole["anyOf"]), ...listOf(whole["oneOf"])]
  if (choices.length > 0) return choices.flatMap((it) => filesIn(schemas, it, path, below))
  if (isObject(whole["items"])) return filesIn(schemas, whole["items"], path, below)
  const name = path.join(".")
  if (isFile(whole)) {
    const title = `${below.at(-1) ?? ""} ${String(whole["title"] ?? "")}`
    return [{ name, kind: kindIn(path.at(-1) ?? "") ?? kindIn(title) }]
  }
  const { properties } = whole
  return isObject(properties)
    ? Object.entries(properties)
        .filter(([field]) => isFieldName(field) && !field.includes("."))
        .flatMap(([field, property]) => filesIn(schemas, property, [...path, field], below))
    : []
}

const resultOf = (
  files: ReadonlyArray<PublishedFile>,
  otherwise: MediaKind | undefined
): MediaKind => {
  if (files.length === 0) return "documents"
  const kind = files.find((it) => it.kind !== undefined)?.kind ?? otherwise
  if (kind === undefined) throw new Unreadable("it does not say what the model makes: name it")
  return kind
}

const outputsMax = 8

/** The fields that hold the results. Empty if the whole output is the result. */
const namesOf = (files: ReadonlyArray<PublishedFile>, result: MediaKind): ReadonlyArray<string> => {
  if (result === "documents") return []
  const names = files
    .filter(({ kind = result, name }) => name !== "" && kind === result)
    .map(({ name }) => name)
  return [...new Set(names)].slice(0, outputsMax)
}

type InputKind = "image" | "audio" | "video"

const inputKinds: Partial<Record<MediaKind, InputKind>> = {
  images: "image",
  audios: "audio",
  videos: "video"
}

const choicesOf = ({ anyOf }: Written): ReadonlyArray<unknown> =>
  Array.isArray(anyOf) ? anyOf : []

/** Removes `null` from the choices, because clients omit an absent medium. */
const withoutNull = (schema: Written): JsonObject => {
  const rest = choicesOf(schema).filter((it) => at(it, "type") !== "null")
  const [only] = rest
  return rest.length === 1 && isObject(only) ? only : schema
}

/** The body of a field that takes files, or lists of them; `undefined` for any other field. */
const mediumOf = (name: string, schema: Written): Written | undefined => {
  const whole = withoutNull(schema)
  const { items, maxItems, minItems, type } = whole
  const isList = type === "array" && isObject(items)
  const { enum: values, format, type: itemType } = isList ? items : whole
  const isMedium =
    itemType === "string" &&
    values === undefined &&
    (format === "uri" || /(?:^|_)urls?$/iu.test(name))
  if (!isMedium) return undefined
  const description = schema["description"]
  const about = description === undefined ? {} : { description }
  if (!isList) return { type: "string", ...about }
  return {
    type: "array",
    items: { type: "string" },
    ...(typeof minItems === "number" ? { minItems } : {}),
    ...(typeof maxItems === "number" ? { maxItems } : {}),
    ...about
  }
}

/** Fields that set the number of results. */
const counting = ["num_images", "num_outputs", "number_of_images", "num_videos"]

const reserved: ReadonlyMap<string, string> = new Map([
  ["metadata", "every model has this field"],
  ["webhook", "every model has this field"]
])

type Fields = Pick<PublishedModel, "body" | "media" | "count" | "notes">

const bodyIn = (
  schemas: PublishedSchemas,
  input: unknown,
  left: ReadonlyMap<string, string>
): Fields => {
  const { schema, trail } = schemas.resolve(input)
  const given = schema["properties"]
  if (!isObject(given)) throw new Unreadable("its input has no fields")
  if (Object.keys(given).length > bodyFieldsMax) {
    throw new Unreadable(`its input has more than ${bodyFieldsMax} fields`)
  }
  const needed = Array.isArray(schema["required"]) ? schema["required"] : []
  const properties: Array<readonly [string, Written]> = []
  const media: Array<readonly [string, { readonly kind: InputKind }]> = []
  const notes: Array<string> = []
  for (const [name, property] of inOrder(schema, given)) {
    const why = left.get(name) ?? reserved.get(name) ?? nameFault(name)
    const made = why === undefined ? fieldIn(schemas, property, trail) : Result.fail(why)
    if (Result.isFailure(made)) {
      if (needed.includes(name)) throw new Unreadable(`its field ${name}: ${made.failure}`)
      notes.push(`${name} is left out: ${made.failure}`)
      continue
    }
    const medium = mediumOf(name, made.success)
    const about = at(property, "description")
    const kind = medium && inputKinds[kindIn(name) ?? kindIn(String(about)) ?? "documents"]
    if (medium !== undefined && kind === undefined) {
      notes.push(`${name} takes a URL: add it to media if it is an image, a sound or a video`)
    }
    if (kind !== undefined) media.push([name, { kind }])
    properties.push([name, kind === undefined ? made.success : (medium ?? made.success)])
  }
  const fields = new Map(properties)
  const count = counting.find((name) => fields.get(name)?.["type"] === "integer")
  const isSure = count !== undefined && (needed.includes(count) || fields.get(count)?.["default"])
  return {
    body: {
      type: "object",
      properties: Object.fromEntries(properties),
      required: [...fields.keys()].filter((name) => needed.includes(name)),
      additionalProperties: false
    },
    ...(media.length === 0 ? {} : { media: Object.fromEntries(media) }),
    ...(count === undefined
      ? {}
      : { count: isSure ? `body.${count}` : `has(body.${count}) ? body.${count} : 1` }),
    notes
  }
}

const nameFault = (name: string): string | undefined =>
  isFieldName(name) ? undefined : "its name is not one of a field"

const fieldIn = (
  schemas: PublishedSchemas,
  property: unknown,
  trail: ReadonlyArray<string>
): Result.Result<Written, string> => {
  try {
    return Result.succeed(schemas.write(property, trail, 1))
  } catch (error) {
    if (error instanceof Unreadable) return Result.fail(error.message)
    throw error
  }
}

/** Fields in the vendor's display order: fal lists the names, Replicate numbers the fields. */
const inOrder = (
  schema: JsonObject,
  properties: JsonObject
): ReadonlyArray<readonly [string, unknown]> => {
  const listed = schema["x-fal-order-properties"]
  const place = (name: string, property: unknown): number => {
    const numbered = at(property, "x-order")
    if (typeof numbered === "number") return numbered
    const index = Array.isArray(listed) ? listed.indexOf(name) : -1
    return index < 0 ? Number.MAX_SAFE_INTEGER : index
  }
  return Object.entries(properties)
    .map(([name, property]) => ({ name, property, at: place(name, property) }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ name, property }) => [name, property])
}
