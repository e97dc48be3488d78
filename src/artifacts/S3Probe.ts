import { Duration, Effect, Option } from "effect"
import { randomUUID } from "node:crypto"
import type { BucketAccess } from "../domain/Bucket.ts"
import { ArtifactStoreUnusable } from "./ArtifactBlobs.ts"
import { keyOf, openBucket } from "./S3Bucket.ts"
import type { BucketFault, Send } from "./S3Bucket.ts"

const rights =
  "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the permissions to list, read, write and delete"

const unusable = (options: BucketAccess, why: string, remedy: string) =>
  new ArtifactStoreUnusable({
    message: `ARTIFACT_STORE: the bucket ${options.bucket} ${why}; ${remedy}`
  })

const unreachable = "check AWS_ENDPOINT_URL and AWS_REGION"

/** Reads an object that does not exist. Only a usable bucket reports that it does not exist. */
export const probe = Effect.fnUntraced(function* (options: BucketAccess, send: Send) {
  const object = { Bucket: options.bucket, Key: keyOf(options, ".probe") }
  yield* send((s3, init) => s3.getObject(object, init)).pipe(
    Effect.catch(({ code, status }) => {
      if (Option.isNone(status)) return unusable(options, "cannot be reached", unreachable)
      if (code === "NoSuchBucket") {
        return unusable(options, "does not exist", "create it, or name another")
      }
      if (status.value === 404) return Effect.void
      return unusable(options, `answered ${status.value}`, rights)
    })
  )
})

/** For all requests together; `Send` retries requests without a response. */
const timeout = Duration.seconds(15)

/**
 * Whether the bucket allows the service to read, write and delete. Writes one object under a unique name and deletes
 * it. docs/cli.md#doctor
 */
export const tryBucket = (options: BucketAccess) =>
  Effect.gen(function* () {
    const send = yield* openBucket(options)
    yield* probe(options, send)
    const object = { Bucket: options.bucket, Key: keyOf(options, `.doctor-${randomUUID()}`) }
    const refused = (verb: string) =>
      Effect.mapError(({ code, status }: BucketFault) =>
        unusable(
          options,
          `cannot be ${verb}: ${Option.match(status, { onNone: () => `no response (${code})`, onSome: (it) => `it responded with ${it} (${code})` })}`,
          Option.isNone(status) ? unreachable : rights
        )
      )
    yield* send((s3, init) => s3.putObject({ ...object, Body: "gateway doctor" }, init)).pipe(
      refused("written")
    )
    yield* send((s3, init) => s3.deleteObject(object, init)).pipe(
      refused(`cleared of ${object.Key}`)
    )
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () =>
        unusable(options, `did not respond within ${Duration.format(timeout)}`, unreachable)
    })
  )
