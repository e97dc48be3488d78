import { Effect, Result, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { createHash } from "node:crypto"
import { Files } from "../../artifacts/files/Files.ts"
import type { FileRow } from "../../artifacts/files/Files.ts"
import { documentOf } from "../../domain/json/JsonDocument.ts"
import {
  fileBytesMax,
  unacceptedSecondsMax,
  uploadsAtOnce
} from "../../domain/limits/FileLimits.ts"
import { invalid, Problem, problem } from "../../domain/Problem.ts"
import type { FieldFault, StoreUnavailable } from "../../domain/Problem.ts"
import { FairShares } from "../../domain/shares/FairShares.ts"
import type { AdmittedCaller } from "../server/access/Authentication.ts"
import { arriving, cutOffOnError } from "../server/bodies/ArrivingBody.ts"
import { isPlainJson, notJson } from "../server/bodies/JsonBody.ts"
import { RequestSplitter } from "./RequestSplitter.ts"

/** What the body of a create contains besides the requests themselves. */
interface Received {
  /** A hash of the requests and the webhook, which identifies a repeated create. */
  readonly digest: string
  /** The webhook of the batch, not checked yet; `null` without one. */
  readonly webhook: unknown
}

/** The requests of a create, stored as a JSONL file of the user. The acceptance has to extend its short lifetime. */
export interface StoredRequests extends Received {
  readonly file: FileRow
}

/** Reads the requests as they arrive, so that they are never in memory as a whole. */
export const makeReceiveRequests = Effect.gen(function* () {
  const files = yield* Files
  const places = new FairShares(uploadsAtOnce)
  const inTurn = <A, E, R>({ principal }: AdmittedCaller, reading: Effect.Effect<A, E, R>) =>
    Effect.catchTag(places.within(principal.userId)(reading), "ShareExhausted", () =>
      Effect.fail(tooManyUploads)
    )

  const store = Effect.fnUntraced(function* (
    caller: AdmittedCaller
  ): Effect.fn.Return<
    StoredRequests,
    Problem | StoreUnavailable,
    HttpServerRequest.HttpServerRequest
  > {
    const { userId } = caller.principal
    const { announced, bytes, cutOff, described, received } = yield* arrivingRequests(caller)
    yield* files.admit(userId, announced)
    const file = yield* cutOff(files.upload(userId, bytes, described))
    return { file, ...received() }
  })

  const hash = Effect.fnUntraced(function* (caller: AdmittedCaller) {
    const { bytes, cutOff, described, received } = yield* arrivingRequests(caller)
    yield* cutOff(Effect.andThen(Stream.runDrain(bytes), described))
    return received()
  })

  return {
    store: (caller: AdmittedCaller) => inTurn(caller, store(caller)),
    /** Stores nothing. For a create that may be a repeat. */
    hash: (caller: AdmittedCaller) => inTurn(caller, hash(caller))
  }
})

/** The body of the create, which has not been read yet: the requests as lines, and what else is known at its end. */
const arrivingRequests = Effect.fnUntraced(function* ({ mayStill, principal }: AdmittedCaller) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!isPlainJson(request.headers)) return yield* notJson
  const announced = Number(request.headers["content-length"] ?? 0)
  if (announced > fileBytesMax) return yield* tooLarge
  const splitter = new RequestSplitter()
  const hash = createHash("sha256")
  let size = 0
  let lines = 0
  const bytes = arriving(request, fileBytesMax, principal.userId).pipe(
    Stream.mapEffect((chunk) => {
      size += chunk.length
      if (size > fileBytesMax) return Effect.fail(tooLarge)
      const found = splitter.push(chunk)
      if (!Buffer.isBuffer(found)) return refused(found)
      hash.update(found)
      lines += found.length
      return Effect.succeed(found)
    }),
    Stream.filter(({ length }) => length > 0)
  )
  let webhook: unknown = null
  const describe = Effect.suspend(() => {
    const fault = splitter.end()
    if (fault !== undefined) return refused(fault)
    if (lines === 0) return refused(noRequests)
    if (splitter.webhook !== undefined) {
      const document = documentOf(splitter.webhook)
      if (Result.isFailure(document)) return refused(document.failure)
      webhook = document.success.value
      hash.update(splitter.webhook)
    }
    return Effect.succeed({ filename: "requests.jsonl", seconds: unacceptedSecondsMax })
  })
  const received = (): Received => ({ digest: hash.digest("hex"), webhook })
  const described = Effect.andThen(mayStill, describe)
  return { announced, bytes, described, received, cutOff: cutOffOnError(request) }
})

const refused = (fault: string | FieldFault): Effect.Effect<never, Problem> =>
  Effect.fail(typeof fault === "string" ? problem(2002, fault) : invalid([fault]))

const noRequests: FieldFault = { pointer: "#/requests", detail: "Expected at least one request" }
const tooLarge = problem(2004, `The body is larger than ${fileBytesMax} bytes`)

const tooManyUploads = new Problem({
  code: 1202,
  detail: "Too many batches of this user are being sent: send one after another",
  retryAfterSeconds: 5
})
