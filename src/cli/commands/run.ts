import { Effect, FileSystem, Option, Path, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Base64 } from "effect/encoding"
import { mimesOf, sniff } from "../../catalog/media/Formats.ts"
import { Management } from "../Management.ts"
import { failed, namingFile, wrongUsage } from "../terminal/Fault.ts"
import { note } from "../terminal/Output.ts"
import { findModel, kindsOf, modelName } from "./models.ts"
import type { ModelRow } from "./models.ts"
import { requestKey } from "./RequestKey.ts"
import { followTask, out, timeoutDefault, makeWritable } from "./tasks.ts"

type Body = Record<string, Schema.Json>

const decodeBody = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))
)

/** The body's fields from `--input`. */
const inputBody = Effect.fnUntraced(function* (file: Option.Option<string>) {
  if (Option.isNone(file)) return {}
  const files = yield* FileSystem.FileSystem
  const text = yield* namingFile(file.value)(files.readFileString(file.value))
  return yield* Effect.mapError(decodeBody(text), () =>
    wrongUsage(
      `${file.value} is not a JSON object`,
      "Give the body of the create; `gateway models show` lists the fields of a model"
    )
  )
})

const mimeTypes: ReadonlyMap<string, string> = new Map(
  Object.entries(mimesOf).map(([format, [type]]) => [format, type])
)

/** An image file as a data URI. A URL is returned unchanged. */
const mediumOf = Effect.fnUntraced(function* (image: string) {
  if (/^https?:\/\//u.test(image)) return image
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const bytes = yield* namingFile(image)(files.readFile(image))
  const format = sniff(bytes)
  const type = format === undefined ? undefined : mimeTypes.get(format)
  if (type === undefined) {
    return yield* wrongUsage(
      `${path.basename(image)} is not an image`,
      "Give a JPEG, PNG, WEBP or BMP file"
    )
  }
  return `data:${type};base64,${Base64.encode(bytes)}`
})

const Property = Schema.Struct({ type: Schema.optionalKey(Schema.Json) })
const decodeProperties = Schema.decodeUnknownOption(Schema.Record(Schema.String, Property))

/** Puts images into the model's list of images, or one into each of its image fields, in order. */
const withImages = (row: ModelRow, body: Body, media: ReadonlyArray<string>) => {
  if (media.length === 0) return Effect.succeed(body)
  const properties = Option.getOrElse(decodeProperties(row.body_schema["properties"]), () => ({}))
  const names = Object.entries(kindsOf(row)).flatMap(([name, kind]) =>
    kind === "image" ? [name] : []
  )
  const list = names.find((name) => new Map(Object.entries(properties)).get(name)?.type === "array")
  if (list !== undefined) return Effect.succeed({ ...body, [list]: [...media] })
  const free = names.filter((name) => body[name] === undefined)
  if (free.length < media.length) {
    return wrongUsage(
      `${row.model} takes ${names.length === 0 ? "no images" : `${names.length} (${names.join(", ")})`}`,
      `\`gateway models show ${row.vendor}/${row.model}\` shows the fields of its body`
    )
  }
  return Effect.succeed({
    ...body,
    ...Object.fromEntries(media.map((medium, at) => [free[at] ?? "", medium]))
  })
}

/** The model as the client names it, with the vendor, name and action from its path. */
const nameOf = ({ path }: ModelRow): `${string}/${string}` => {
  const [vendor, model, action] = path
    .replace(/^\/vendors\/([^/]+)\/v1\/([^/]+)\/([^/]+)$/u, "$1 $2 $3")
    .split(" ")
    .map(decodeURIComponent)
  return `${vendor}/${model}/${action}`
}

/** Creates a task. A failed create is repeated with the same key, so that only one task is created. */
const create = Effect.fnUntraced(function* (row: ModelRow, body: Body, idempotencyKey: string) {
  const api = yield* Management
  const unknown = note(
    `It is unknown whether a task was created. Repeat the command with --idempotency-key ${idempotencyKey} to create at most one`
  )
  return yield* api
    .use("user", ({ tasks }) => tasks.create(nameOf(row), body, { idempotencyKey, maxRetries }))
    .pipe(
      Effect.tapError(({ isUnclear }) => (isUnclear === true ? unknown : Effect.void)),
      Effect.onInterrupt(() => unknown)
    )
})

const maxRetries = 5

/** docs/reference/tasks.md#create */
export const runModel = Command.make(
  "run",
  {
    model: modelName,
    prompt: Argument.String("prompt").pipe(
      Argument.withDescription("Description of the result; may be in --input instead"),
      Argument.optional
    ),
    input: Flag.File("input").pipe(
      Flag.withDescription(
        "A JSON file with fields of the body; the prompt and --image override it"
      ),
      Flag.optional
    ),
    images: Flag.String("image").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("An image file or URL; may be repeated"),
      Flag.atLeast(0)
    ),
    out: out.pipe(Flag.withDefault(".")),
    idempotencyKey: requestKey(
      "idempotency-key",
      "Identifies this run: repeating it creates no second task."
    )
  },
  Effect.fnUntraced(function* ({ idempotencyKey, images, input, model, out, prompt }) {
    const api = yield* Management
    const { row } = yield* findModel(model)
    if (row.type !== "media") {
      return yield* failed(
        `${row.vendor}/${row.model} does not create media`,
        `Call it at ${api.url}${row.path}; ${api.url}/docs describes the request`
      )
    }
    const given = yield* inputBody(input)
    const prompted = Option.isSome(prompt) ? { ...given, prompt: prompt.value } : given
    const body = yield* withImages(row, prompted, yield* Effect.forEach(images, mediumOf))
    yield* makeWritable(out)
    const task = yield* create(row, body, idempotencyKey)
    yield* followTask(task, { folder: Option.some(out), timeout: timeoutDefault })
  })
).pipe(
  Command.withDescription("Create a task, wait for it and save its results"),
  Command.provide(Management.layer)
)
