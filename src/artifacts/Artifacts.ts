import { Clock, Context, DateTime, Effect, Layer, Metric, Option, Stream } from "effect"
import { createHash } from "node:crypto"
import { AppConfig } from "../config/Config.ts"
import { makeArtifactId } from "../domain/Ids.ts"
import type { ArtifactId, TaskId, UserId } from "../domain/Ids.ts"
import { artifactHours } from "../domain/limits/Limits.ts"
import { Problem, problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { ArtifactBlobs } from "./ArtifactBlobs.ts"
import type { ByteRange } from "./ArtifactBlobs.ts"
import { ArtifactIndexStore, ArtifactRow } from "./ArtifactIndexStore.ts"

export type { ArtifactRow } from "./ArtifactIndexStore.ts"

export interface NewArtifact {
  readonly userId: UserId
  readonly taskId: TaskId
  readonly role: "input" | "output"
  readonly mime: string
  readonly bytes: Uint8Array
}

/** A stored medium, opened by its signed URL. */
export interface OpenedArtifact {
  /** Its owner. */
  readonly userId: UserId
  readonly mime: string
  /** Bytes. */
  readonly size: number
  /** The bytes of a range within `size`, in chunks. Fails with 2005 if they no longer exist. */
  readonly stream: (
    range: ByteRange
  ) => Effect.Effect<Stream.Stream<Uint8Array, StoreUnavailable>, Problem | StoreUnavailable>
  /** SHA-256 as hex, the entity tag. */
  readonly sha256: string
  readonly expiresAt: DateTime.Utc
}

/** Media that the service stores for 24 hours behind signed URLs. docs/reference/tasks.md#artifacts */
export class Artifacts extends Context.Service<
  Artifacts,
  {
    readonly put: (artifact: NewArtifact) => Effect.Effect<ArtifactRow, StoreUnavailable>
    /** Stores an input of a create. Fails with 1202 if its user has too many bytes of stored inputs. */
    readonly putInput: (
      artifact: Omit<NewArtifact, "role">
    ) => Effect.Effect<ArtifactRow, Problem | StoreUnavailable>
    /**
     * Stores a stream, which is hashed and counted as it passes and is never in memory as a whole. If the stream fails
     * or the process dies, no part of it can be read. ADR 0150.
     */
    readonly putStream: <E>(
      artifact: Omit<NewArtifact, "bytes">,
      bytes: Stream.Stream<Uint8Array, E>
    ) => Effect.Effect<ArtifactRow, StoreUnavailable | E>
    /** The public URL, with its expiry and signature. */
    readonly urlOf: (artifact: ArtifactRow) => string
    /** Fails with 2012 (expired or forged) or 2005 (removed). */
    readonly open: (
      id: ArtifactId,
      expires: string,
      signature: string
    ) => Effect.Effect<OpenedArtifact, Problem | StoreUnavailable>
    /** The row of an artifact, for the service's own use. */
    readonly find: (id: ArtifactId) => Effect.Effect<Option.Option<ArtifactRow>, StoreUnavailable>
    /** The bytes, for the service's own use. */
    readonly read: (id: ArtifactId) => Effect.Effect<Option.Option<Uint8Array>, StoreUnavailable>
    /** Removes bytes and rows. `false`: some cannot be removed now, and are removed after their expiry. */
    readonly remove: (ids: ReadonlyArray<ArtifactId>) => Effect.Effect<boolean, StoreUnavailable>
    /** Removes bytes and rows of all artifacts due for removal: they have expired, or their task has failed. */
    readonly removeDue: Effect.Effect<void, StoreUnavailable>
    /** Like `removeDue`, and also removes remains of dead processes. */
    readonly removeExpired: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/artifacts/Artifacts") {
  static readonly layer = Layer.effect(
    Artifacts,
    Effect.gen(function* () {
      const blobs = yield* ArtifactBlobs
      const index = yield* ArtifactIndexStore
      const secrets = yield* Secrets
      const { baseUrl, keptInputBytesPerUser } = yield* AppConfig

      const signed = (id: string, expires: string) => `${id}.${expires}`

      const { putStream, remove, removeDue } = makeStorage(blobs, index)
      const addInput = (row: ArtifactRow) =>
        keptInputBytesPerUser === 0
          ? index.add(row)
          : Effect.filterOrFail(
              index.addWithin(keptInputBytesPerUser, row),
              (isAdded) => isAdded,
              () => tooManyInputs(keptInputBytesPerUser)
            )

      return Artifacts.of({
        put: ({ bytes, ...artifact }) => putStream(artifact, Stream.succeed(bytes), index.add),
        putInput: ({ bytes, ...artifact }) =>
          putStream({ ...artifact, role: "input" }, Stream.succeed(bytes), addInput),
        putStream: (artifact, bytes) => putStream(artifact, bytes, index.add),
        urlOf: (artifact) => {
          const expires = String(Math.floor(DateTime.toEpochMillis(artifact.expiresAt) / 1000))
          return `${baseUrl}/artifacts/${artifact.id}?expires=${expires}&signature=${secrets.mac("artifact", signed(artifact.id, expires))}`
        },
        open: Effect.fn("Artifacts.open")(function* (id, expires, signature) {
          const nowSeconds = (yield* Clock.currentTimeMillis) / 1000
          const isSigned = secrets.isMac("artifact", signed(id, expires), signature)
          if (!isSigned || Number(expires) <= nowSeconds) {
            return yield* problem(2012, "This link has expired or was altered")
          }
          const notFound = problem(2005, `There is no artifact ${id}`)
          const row = yield* index.find(id)
          if (Option.isNone(row)) return yield* notFound
          return {
            userId: row.value.userId,
            mime: row.value.mime,
            size: Number(row.value.bytes),
            stream: (range) =>
              Effect.flatMap(blobs.stream(id, range), (found) =>
                Effect.mapError(Effect.fromOption(found), () => notFound)
              ),
            sha256: Buffer.from(row.value.sha256).toString("hex"),
            expiresAt: row.value.expiresAt
          }
        }),
        find: index.find,
        read: blobs.get,
        remove: (ids) => Effect.map(remove(ids), ({ failures }) => failures.length === 0),
        removeDue,
        removeExpired: removeDue.pipe(
          Effect.andThen(DateTime.now),
          Effect.flatMap((now) =>
            blobs.removeOlder(DateTime.subtract(now, { hours: artifactHours + 1 }))
          ),
          Effect.withSpan("Artifacts.removeExpired")
        )
      })
    })
  )

  /** Removes the media of failed tasks every 30 seconds. `removeExpired` would do so only at the next full hour. */
  static readonly layerLoop = Duty.layer(
    { name: "media of failed tasks", seconds: 30 },
    Effect.flatMap(Artifacts, ({ removeDue }) => removeDue)
  )
}

/** Stores and removes media: bytes and rows together. */
const makeStorage = (blobs: ArtifactBlobs["Service"], index: ArtifactIndexStore["Service"]) => {
  /** Keeps the row of an artifact whose bytes cannot be removed, and removes the others. */
  const remove = Effect.fn("Artifacts.remove")(function* (ids: ReadonlyArray<ArtifactId>) {
    const [removed, failures] = yield* Effect.partition(
      ids,
      (id) =>
        blobs.remove(id).pipe(
          Effect.as(id),
          Effect.mapError((error) => ({ id, error }))
        ),
      { concurrency: 8 }
    )
    if (removed.length > 0) yield* index.remove(removed)
    return { removed, failures }
  })

  const removeLogged = (ids: ReadonlyArray<ArtifactId>) =>
    Effect.tap(remove(ids), ({ failures: { 0: first, length } }) =>
      first === undefined
        ? Effect.void
        : Effect.logWarning(`Could not remove ${length} media`, first.error)
    )

  /** Postpones failed removals, so that they do not block others. ADR 0150. */
  const removeSome = Effect.fnUntraced(function* (began: DateTime.Utc) {
    const due = yield* index.expired(began, removedAtOnceMax)
    const { failures, removed } = yield* removeLogged(due)
    if (failures.length > 0) {
      const refused = failures.filter(({ error }) => error._tag === "RemovalRefused").length
      yield* countFailed("refused", refused)
      yield* countFailed("unavailable", failures.length - refused)
      yield* index.postpone(
        failures.map(({ id }) => id),
        yield* DateTime.now
      )
      // If the store does not respond, the next round an hour later may remove more
      if (removed.length === 0 && refused === 0) return false
    }
    return due.length === removedAtOnceMax
  })

  const removeDue = Effect.flatMap(DateTime.now, (began) =>
    Effect.asVoid(Effect.repeat(removeSome(began), { while: (hasMore) => hasMore }))
  )

  const putStream = Effect.fn("Artifacts.putStream")(function* <E, E2>(
    artifact: Omit<NewArtifact, "bytes">,
    bytes: Stream.Stream<Uint8Array, E>,
    add: (row: ArtifactRow) => Effect.Effect<unknown, E2>
  ) {
    const now = yield* DateTime.now
    const id = makeArtifactId(DateTime.toEpochMillis(now))
    const hash = createHash("sha256")
    let size = 0n
    const counted = Stream.map(bytes, (chunk) => {
      hash.update(chunk)
      size += BigInt(chunk.length)
      return chunk
    })
    const record = Effect.suspend(() => {
      const row = new ArtifactRow({
        ...artifact,
        id,
        bytes: size,
        sha256: hash.digest(),
        createdAt: now,
        expiresAt: DateTime.add(now, { hours: artifactHours })
      })
      return Effect.as(add(row), row)
    })
    return yield* (
      blobs
        .put(id, counted, record)
        // Not logged: a store that takes no bytes may remove none either, and the row removes them after its expiry
        .pipe(Effect.onError(() => Effect.ignore(remove([id]))))
    )
  })

  return { putStream, remove: removeLogged, removeDue }
}

const failedTotal = Metric.counter("gateway_artifact_removals_failed_total", {
  description: "Expired media whose removal the artifact store refused or did not answer",
  incremental: true
})

const countFailed = (cause: "refused" | "unavailable", media: number) =>
  media === 0 ? Effect.void : Metric.update(Metric.withAttributes(failedTotal, { cause }), media)

const tooManyInputs = (bytesMax: number) =>
  new Problem({
    code: 1202,
    detail: `The stored inputs of this user's tasks would exceed ${bytesMax} bytes: send media by URL, or wait until inputs are removed, 24 hours after their task was created or soon after it has failed`,
    retryAfterSeconds: inputsRetryAfterSeconds
  })

/** Enough time for the inputs of tasks that have just failed to be removed. */
const inputsRetryAfterSeconds = 60

/** The number of expired artifacts that are removed at a time. */
const removedAtOnceMax = 500
