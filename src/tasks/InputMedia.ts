import { Array as Arr, Effect } from "effect"
import type { ArtifactRow, Artifacts } from "../artifacts/Artifacts.ts"
import type { TaskModel } from "../catalog/CatalogEntry.ts"
import { mapMedia, referenceTo } from "../catalog/media/Media.ts"
import type { InlineMedium } from "../catalog/media/Media.ts"
import type { ArtifactId, TaskId, UserId } from "../domain/Ids.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { StoredBody } from "./creation/Offer.ts"
import type { PricedCreate } from "./creation/TaskAcceptance.ts"

/** Stores the inline media of a body, all or none. Fails with 1202 if the user has too many stored inputs. */
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

/** The same for the bodies of several tasks, all or none. */
const storeAllInputs = Effect.fnUntraced(function* (
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
 * Replaces inline media with artifact ids: a row holds references, never bytes. docs/reference/models.md#stored-media
 */
export const withReferences = (
  entry: TaskModel,
  body: StoredBody,
  inputs: ReadonlyArray<ArtifactRow>
): Effect.Effect<StoredBody> => {
  const [first] = inputs
  if (first === undefined) return Effect.succeed(body)
  if ("request" in body) return Effect.succeed({ ...body, request: referenceTo(first.id) })
  if (entry.label === "response" || entry.label === "batch" || "input_file_id" in body) {
    return Effect.die("the body has no media")
  }
  return mapMedia(entry, body, (_pointer, text) => {
    const stored = inputs[Number(placeholder.exec(text)?.[1])]
    return stored === undefined ? text : referenceTo(stored.id)
  }).pipe(Effect.orDie)
}

/**
 * Stores the media of creates, then accepts the creates with references to them; uninterruptible. The media of
 * refused tasks are removed. If the outcome is unknown, retention removes the unused media.
 */
export const acceptWithInputs = <A extends { readonly outcome: { readonly _tag: string } }, E, R>(
  artifacts: Artifacts["Service"],
  userId: UserId,
  creates: Arr.NonEmptyReadonlyArray<PricedCreate>,
  accept: (creates: Arr.NonEmptyReadonlyArray<PricedCreate>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Problem | StoreUnavailable, R> => {
  let mayBeAccepted = false
  const acceptOnce = (stored: Arr.NonEmptyReadonlyArray<PricedCreate>) =>
    Effect.suspend(() => {
      mayBeAccepted = true
      return Effect.tap(accept(stored), ({ outcome }) =>
        Effect.sync(() => {
          mayBeAccepted = outcome._tag === "Accepted"
        })
      )
    })
  return Effect.acquireUseRelease(
    storeAllInputs(
      artifacts,
      userId,
      Arr.map(creates, ({ priced: { media }, taskId }) => ({ taskId, media }))
    ),
    (inputs) =>
      Effect.forEach(Arr.zip(creates, inputs), ([create, own]) => withInputs(create, own)).pipe(
        Effect.flatMap((stored) => Effect.uninterruptible(acceptOnce(stored)))
      ),
    (inputs) =>
      mayBeAccepted
        ? Effect.void
        : Effect.ignore(artifacts.remove(inputs.flat().map(({ id }) => id)))
  )
}

const withInputs = (create: PricedCreate, inputs: ReadonlyArray<ArtifactRow>) =>
  Effect.map(
    withReferences(create.priced.models[0].entry, create.priced.body, inputs),
    (body): PricedCreate => ({ ...create, priced: { ...create.priced, body } })
  )
