import { Context, Effect, Layer, Option, Schema, Stream } from "effect"
import type { ArtifactRow } from "../../artifacts/Artifacts.ts"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import { Files } from "../../artifacts/files/Files.ts"
import { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import { ResponseBody } from "../../catalog/bodies/ResponseBody.ts"
import type { TaskModel } from "../../catalog/CatalogEntry.ts"
import { inspectMedia, mediaIn, referenceIn, referenceTo } from "../../catalog/media/Media.ts"
import type { MediaText } from "../../catalog/media/Media.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { ArtifactId } from "../../domain/Ids.ts"
import { taskDownloadsMax } from "../../domain/limits/Limits.ts"
import { ShareExhausted } from "../../domain/shares/FairShares.ts"
import { MediaFetch } from "../../egress/MediaFetch.ts"
import { mediumFault } from "../../vendors/BodyFaults.ts"
import type { SubmitFile, SubmitMedium } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { OwnedTask, StoredInputs } from "./OwnedTask.ts"

/** The media of a submit, and the artifacts of those that were fetched. */
export interface ResolvedMedia {
  readonly media: ReadonlyArray<SubmitMedium>
  /** The input file of a batch. */
  readonly file?: SubmitFile
  readonly inputs: StoredInputs
}

/**
 * Prepares the input media of a task for its submit. Media by URL are downloaded, checked and stored; inline media are
 * read from the artifact store. docs/reference/models.md#media-by-url, ADR 0040.
 */
export class TaskMedia extends Context.Service<
  TaskMedia,
  {
    /**
     * Resolves all media of the task's body in order, `taskDownloadsMax` at a time. Media fetched by an earlier step
     * are read from the artifact store. Fails as `FATAL_CLIENT` (code 400) if a medium breaks a rule of the model, and
     * as `MEDIA` (4002) if it cannot be fetched. Fails as `ShareExhausted`, before fetching anything, if too many of
     * the user's downloads are waiting.
     */
    readonly resolve: (
      owned: Pick<OwnedTask, "task" | "inputs">,
      entry: TaskModel
    ) => Effect.Effect<ResolvedMedia, VendorError | ShareExhausted>
  }
>()("gateway/tasks/TaskMedia") {
  static readonly layer = Layer.effect(
    TaskMedia,
    Effect.gen(function* () {
      const readStored = readStoredWith(yield* Artifacts)
      const fileOf = submitFileWith(yield* Files)
      const readRequest = (task: TaskRow) => {
        const medium = { pointer: "#/request" }
        const id = Option.flatMap(requestIn(task.body), decodeId)
        return Option.isNone(id) ? expired(medium) : readStored(medium, id.value, {})
      }
      const download = yield* makeDownload
      const { mayWait } = yield* MediaFetch

      /** Includes the artifact's id if the medium came from a client's URL. */
      const resolveOne = Effect.fnUntraced(function* (
        { inputs, task }: Pick<OwnedTask, "task" | "inputs">,
        entry: TaskModel,
        medium: MediaText
      ) {
        const inline = Option.flatMap(referenceIn(medium.text), decodeId)
        if (Option.isSome(inline)) {
          return { id: undefined, medium: yield* readStored(medium, inline.value, {}) }
        }
        const fetched = fetchedIn(inputs, medium)
        if (Option.isNone(fetched)) return yield* download(task, entry, medium)
        const { from, id, stored } = fetched.value
        return { id: stored, medium: yield* readStored(medium, id, from) }
      })

      return TaskMedia.of({
        resolve: Effect.fn("TaskMedia.resolve")(function* (owned, entry) {
          if (entry.label === "batch") {
            // Keeps what was already prepared for the submit
            return { media: [], file: yield* fileOf(owned.task), inputs: owned.inputs }
          }
          if (entry.label === "response") {
            return { media: [yield* readRequest(owned.task)], inputs: {} }
          }
          const media = mediaIn(entry, owned.task.body)
          const isFetched = media.some((medium) => isToFetch(owned, medium))
          if (isFetched && !mayWait(owned.task.userId, taskDownloadsMax)) {
            return yield* new ShareExhausted()
          }
          const resolved = yield* Effect.forEach(
            media,
            (medium) => resolveOne(owned, entry, medium),
            { concurrency: taskDownloadsMax }
          )
          return {
            media: resolved.map(({ medium }) => medium),
            inputs: Object.fromEntries(
              resolved.flatMap(({ id, medium }) =>
                id === undefined ? [] : [[medium.pointer, id] as const]
              )
            )
          }
        })
      })
    })
  )
}

const decodeBatch = Schema.decodeUnknownOption(BatchBody)

/** The input file of a batch. It stays readable until the batch has ended, even if its user has deleted it. */
const submitFileWith =
  (files: Files["Service"]) =>
  ({ body }: TaskRow): Effect.Effect<SubmitFile, VendorError> =>
    Option.match(decodeBatch(body), {
      onNone: () => expired({ pointer: "#/input_file_id" }),
      onSome: ({ bytes, input_file_id: id }) => {
        const open = Effect.mapError(files.open({ id, bytes: BigInt(bytes) }), (error) =>
          error._tag === "Problem" ? gone : storeAway
        )
        return Effect.succeed({
          bytes,
          open: Effect.map(open, (stream) => Stream.mapError(stream, () => storeAway))
        })
      }
    })

const gone = new VendorError({ class: "MEDIA", message: "#/input_file_id: The file is gone" })

const storeAway = new VendorError({
  class: "RETRYABLE",
  message: "The artifact store cannot be reached"
})

const decodeResponse = Schema.decodeUnknownOption(ResponseBody)

/** The artifact that contains the request of a background response. */
const requestIn = (body: unknown) =>
  Option.flatMap(decodeResponse(body), ({ request }) => referenceIn(request))

/** Whether the medium is a URL that no earlier step of the task has fetched. */
const isToFetch = ({ inputs }: Pick<OwnedTask, "inputs">, medium: MediaText): boolean =>
  Option.isNone(Option.flatMap(referenceIn(medium.text), decodeId)) &&
  Option.isNone(fetchedIn(inputs, medium))

type FromUrl = Pick<SubmitMedium, "sourceUrl">

/** The artifact that an earlier step stored for this medium. */
const fetchedIn = (inputs: StoredInputs, { pointer, text }: MediaText) => {
  const stored = inputs[pointer] ?? ""
  const cut = Option.flatMap(referenceIn(stored), decodeId)
  const from: FromUrl = Option.isSome(cut) ? {} : { sourceUrl: text }
  return Option.map(
    Option.orElse(cut, () => decodeId(stored)),
    (id) => ({ stored, id, from })
  )
}

const mediumOf = (
  artifacts: Artifacts["Service"],
  row: ArtifactRow,
  medium: Pick<MediaText, "pointer">,
  from: FromUrl
): SubmitMedium => ({
  pointer: medium.pointer,
  mime: row.mime,
  size: Number(row.bytes),
  artifactUrl: artifacts.urlOf(row),
  bytes: readBack(artifacts, row, medium),
  ...from
})

const readStoredWith = (artifacts: Artifacts["Service"]) =>
  Effect.fnUntraced(function* (medium: Pick<MediaText, "pointer">, id: ArtifactId, from: FromUrl) {
    const row = yield* retryStore(artifacts.find(id))
    return Option.isSome(row)
      ? mediumOf(artifacts, row.value, medium, from)
      : yield* expired(medium)
  })

/** Fetches and checks a medium, then stores it immediately, so that its bytes do not stay in memory. */
const makeDownload = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  const web = yield* MediaFetch
  return Effect.fnUntraced(function* (task: TaskRow, entry: TaskModel, medium: MediaText) {
    const { pointer, rules, text: url } = medium
    const schemes = rules.kind === "image" ? (["https", "http"] as const) : (["https"] as const)
    const bytes = yield* web
      .fetch({ url, schemes, bytesMax: rules.bytesMax, caller: task.userId })
      .pipe(
        Effect.catchTag("MediaFetchFailed", ({ detail, reason }) =>
          mediaError(reason === "too-large" ? "FATAL_CLIENT" : "MEDIA", pointer, detail)
        )
      )
    const info = yield* inspectMedia(bytes, rules).pipe(
      Effect.mapError(({ detail }) => mediaError("FATAL_CLIENT", pointer, detail))
    )
    const fault = mediumFault(entry, task.body, info)
    if (fault !== undefined) {
      return yield* new VendorError({
        class: "FATAL_CLIENT",
        message: `${pointer}: ${fault}`,
        vendorCode: mediumNotTaken
      })
    }
    const { content, mime } = info
    const row = yield* retryStore(
      artifacts.put({ userId: task.userId, taskId: task.id, role: "input", mime, bytes: content })
    )
    // A vendor that reads the URL would also get the bytes after the end of the file, so the artifact is sent instead
    return content.length < bytes.length
      ? { id: referenceTo(row.id), medium: mediumOf(artifacts, row, medium, {}) }
      : { id: row.id, medium: mediumOf(artifacts, row, medium, { sourceUrl: url }) }
  })
})

/** The medium satisfies its label's rules, but this model does not accept it. */
export const mediumNotTaken = "medium_not_taken"

const decodeId = Schema.decodeUnknownOption(ArtifactId)

const mediaError = (kind: "FATAL_CLIENT" | "MEDIA", pointer: string, detail: string): VendorError =>
  new VendorError({ class: kind, message: `${pointer}: ${detail}` })

const expired = (medium: Pick<MediaText, "pointer">) =>
  mediaError("MEDIA", medium.pointer, "The medium is no longer kept: it expired before it was used")

const readBack = (
  artifacts: Artifacts["Service"],
  row: ArtifactRow,
  medium: Pick<MediaText, "pointer">
): SubmitMedium["bytes"] =>
  artifacts.read(row.id).pipe(
    Effect.mapError(() => storeAway),
    Effect.flatMap((bytes) => Effect.mapError(Effect.fromOption(bytes), () => expired(medium)))
  )
