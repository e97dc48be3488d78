import { Effect } from "effect"
import type { Array as Arr } from "effect"
import type { ArtifactRow, Artifacts } from "../artifacts/Artifacts.ts"
import type { TaskModel } from "../catalog/CatalogEntry.ts"
import { mapMedia, referenceTo } from "../catalog/media/Media.ts"
import type { InlineMedium } from "../catalog/media/Media.ts"
import type { ArtifactId, TaskId, UserId } from "../domain/Ids.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { StoredBody } from "./creation/Offer.ts"

/** Keeps the inline media of a body: all, or none. Fails with 1202 when the user keeps too many. */
export const storeInputs = (
  artifacts: Artifacts["Service"],
  userId: UserId,
  taskId: TaskId,
  media: ReadonlyArray<Pick<InlineMedium, "bytes" | "mime">>
): Effect.Effect<ReadonlyArray<ArtifactRow>, Problem | StoreUnavailable> =>
  Effect.suspend(() => {
    const stored: Array<ArtifactId> = []
    return Effect.forEach(media, ({ bytes, mime }) =>
      Effect.tap(artifacts.putInput({ userId, taskId, mime, bytes }), ({ id }) =>
        Effect.sync(() => stored.push(id))
      )
    ).pipe(Effect.onError(() => Effect.ignore(artifacts.remove(stored))))
  })

/** The same for several tasks: of all, or of none. */
export const storeAllInputs = Effect.fnUntraced(function* (
  artifacts: Artifacts["Service"],
  userId: UserId,
  tasks: Arr.NonEmptyReadonlyArray<{
    readonly taskId: TaskId
    readonly media: ReadonlyArray<Pick<InlineMedium, "bytes" | "mime">>
  }>
) {
  const stored: Array<ReadonlyArray<ArtifactRow>> = []
  return yield* Effect.forEach(tasks, ({ media, taskId }) =>
    Effect.tap(storeInputs(artifacts, userId, taskId, media), (inputs) =>
      Effect.sync(() => stored.push(inputs))
    )
  ).pipe(Effect.onError(() => Effect.ignore(artifacts.remove(stored.flat().map(({ id }) => id)))))
})

const placeholder = /^artifact:(\d+)$/u

/**
 * Replaces inline media by artifact ids: a row holds references, never bytes.
 * docs/reference/models.md#stored-media
 */
export const withReferences = (
  { label }: TaskModel,
  body: StoredBody,
  inputs: ReadonlyArray<ArtifactRow>
): Effect.Effect<StoredBody> => {
  const [first] = inputs
  if (first === undefined) return Effect.succeed(body)
  if ("request" in body) return Effect.succeed({ ...body, request: referenceTo(first.id) })
  if (label === "response") return Effect.die("a response has a request")
  return mapMedia(label, body, (_pointer, text) => {
    const stored = inputs[Number(placeholder.exec(text)?.[1])]
    return stored === undefined ? text : referenceTo(stored.id)
  }).pipe(Effect.orDie)
}
