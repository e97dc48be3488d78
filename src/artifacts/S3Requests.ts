import { AwsClient } from "aws4fetch"
import { Effect, Option, Redacted, Schedule } from "effect"
import type { BucketAccess } from "../domain/Bucket.ts"
import { StoreUnavailable } from "../domain/Problem.ts"

/** One request, its answer's headers included; the body of a stream may take longer. */
const requestMillisMax = 30_000

/** Some that speak S3 leave something out: asking again does not help. */
const notImplemented = 501

/** A signed request; `path` is a key of the bucket with its query, or the bucket's own query. */
export type Send = (
  method: string,
  path: string,
  init?: RequestInit
) => Effect.Effect<Response, StoreUnavailable>

export const sender = (options: BucketAccess): Send => {
  const client = new AwsClient({
    accessKeyId: options.accessKeyId,
    secretAccessKey: Redacted.value(options.secretAccessKey),
    ...Option.match(options.sessionToken, {
      onNone: () => ({}),
      onSome: (token) => ({ sessionToken: Redacted.value(token) })
    }),
    service: "s3",
    region: options.region
  })
  const base = baseOf(options)
  return (method, path, init = {}) =>
    Effect.tryPromise({
      try: async (signal) => {
        const late = new AbortController()
        const timer = setTimeout(() => late.abort(new Error("no answer in time")), requestMillisMax)
        try {
          const request = await client.sign(`${base}${path}`, { ...init, method })
          const either = AbortSignal.any([signal, late.signal])
          return await fetch(request, { signal: either, redirect: "error" })
        } finally {
          clearTimeout(timer)
        }
      },
      catch: (cause) => new StoreUnavailable({ cause })
    }).pipe(
      Effect.filterOrElse(
        ({ status }) => (status < 500 && status !== 429) || status === notImplemented,
        (answer) => refusedBy(answer)
      ),
      // All of these requests may be repeated: they are told apart by their whole name
      Effect.retry({ times: 2, schedule: Schedule.exponential("200 millis") })
    )
}

/** The key under which an object of that name lies. */
export const keyOf = ({ prefix }: BucketAccess, name: string): string =>
  prefix === "" ? name : `${prefix}/${name}`

/** A bucket of AWS by host name, any other by path; dots in a name would break its certificate. */
const baseOf = ({ bucket, endpoint, region }: BucketAccess): string =>
  Option.match(endpoint, {
    onSome: (url) => `${url.replace(/\/+$/u, "")}/${bucket}/`,
    onNone: () =>
      bucket.includes(".")
        ? `https://s3.${region}.amazonaws.com/${bucket}/`
        : `https://${bucket}.s3.${region}.amazonaws.com/`
  })

/** The text of an answer, empty when it breaks off. */
export const textOf = (answer: Response) => Effect.promise(() => answer.text().catch(() => ""))

/** Lets the connection go. */
export const drop = (answer: Response) => Effect.asVoid(textOf(answer))

/** What is no success, by the bucket's own code. */
export const refusedBy = Effect.fnUntraced(function* (answer: Response) {
  const code = /<Code>([A-Za-z0-9]{1,60})<\/Code>/u.exec(yield* textOf(answer))?.[1] ?? "no code"
  return yield* new StoreUnavailable({
    cause: new Error(`The artifact bucket answered ${answer.status} (${code})`)
  })
})
