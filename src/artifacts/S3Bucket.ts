import type { S3 } from "@aws-sdk/client-s3"
import { Effect, Option, Predicate, Redacted, Schema } from "effect"
import type { BucketAccess } from "../domain/Bucket.ts"
import { errorCode } from "../domain/ErrorCode.ts"
import { StoreUnavailable } from "../domain/Problem.ts"
import { bucketRetries } from "../domain/Retries.ts"

/** The timeout of one request until its response headers. The body of a stream may take longer. */
const requestMillisMax = 30_000

/** Some services do not implement all operations of S3; a retry does not help. */
const notImplemented = 501

/**
 * A failed request. Contains only the status and the code, because the service's own message may quote the signature
 * and the key id.
 */
export class BucketFault extends Schema.TaggedError<BucketFault>()("BucketFault", {
  /** `None` if there was no response. */
  status: Schema.Option(Schema.Finite),
  /** Such as `NoSuchBucket` or `ECONNREFUSED`. */
  code: Schema.String
}) {
  override get message(): string {
    return Option.match(this.status, {
      onNone: () => `The artifact bucket does not respond (${this.code})`,
      onSome: (status) => `The artifact bucket responded with ${status} (${this.code})`
    })
  }
}

/** Runs a request to the bucket, within 30 seconds and at most three times. */
export type Send = <A>(
  request: (s3: S3, options: { readonly abortSignal: AbortSignal }) => Promise<A>
) => Effect.Effect<A, BucketFault>

/**
 * The client is imported dynamically, because it takes 100 ms and 30 MB, which a store in a folder does not need. It
 * sends with `fetch`, which is the same on Node and Deno.
 */
export const openBucket = Effect.fnUntraced(function* (options: BucketAccess) {
  const [{ S3 }, { FetchHttpHandler }] = yield* Effect.promise(() =>
    Promise.all([import("@aws-sdk/client-s3"), import("@smithy/fetch-http-handler")])
  )
  const s3 = new S3({
    region: options.region,
    credentials: {
      accessKeyId: options.accessKeyId,
      secretAccessKey: Redacted.value(options.secretAccessKey),
      ...Option.match(options.sessionToken, {
        onNone: () => ({}),
        onSome: (token) => ({ sessionToken: Redacted.value(token) })
      })
    },
    // Only the configuration sets the address, not the machine's AWS files
    ignoreConfiguredEndpointUrls: true,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    // Services other than AWS are addressed by path
    ...Option.match(options.endpoint, {
      onNone: () => ({}),
      onSome: (endpoint) => ({ endpoint, forcePathStyle: true })
    }),
    requestHandler: new FetchHttpHandler({ requestInit: () => ({ redirect: "error" }) }),
    // Services other than AWS refuse checksums that they do not know
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    // `send` retries instead, because the client does not know the network errors of `fetch`
    maxAttempts: 1
  })
  const send: Send = (request) =>
    Effect.tryPromise({
      try: async (signal) => {
        const late = new AbortController()
        const timer = setTimeout(() => late.abort(), requestMillisMax)
        try {
          return await request(s3, { abortSignal: AbortSignal.any([signal, late.signal]) })
        } finally {
          clearTimeout(timer)
        }
      },
      catch: faultOf
    }).pipe(
      // Every request names its object or its part, so repeating it changes nothing
      Effect.retry({ ...bucketRetries, while: isTransient })
    )
  return send
})

/** The location of an object, as the client expects it. */
export interface Place {
  readonly Bucket: string
  readonly Key: string
}

/** The key of an object of that name. */
export const keyOf = ({ prefix }: BucketAccess, name: string): string =>
  prefix === "" ? name : `${prefix}/${name}`

/** Whether a retry may help: no response, an error of the service, or too many requests. */
export const isTransient = ({ status }: BucketFault): boolean =>
  Option.match(status, {
    onNone: () => true,
    onSome: (it) => (it >= 500 && it !== notImplemented) || it === 429
  })

const decodeResponded = Schema.decodeUnknownOption(
  Schema.Struct({ $metadata: Schema.Struct({ httpStatusCode: Schema.Finite }) })
)

/** Converts an error of the client or of `fetch`. */
export const faultOf = (thrown: unknown): BucketFault => {
  const { cause, name } = Predicate.isError(thrown) ? thrown : new Error()
  const code = errorCode(cause) ?? name
  return new BucketFault({
    status: Option.map(decodeResponded(thrown), ({ $metadata }) => $metadata.httpStatusCode),
    code: /^\w{1,60}$/u.test(code) ? code : "no code"
  })
}

export const unavailable = (cause: BucketFault) => new StoreUnavailable({ cause })
