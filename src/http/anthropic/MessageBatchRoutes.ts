import { DateTime, Effect, Option, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Files } from "../../artifacts/files/Files.ts"
import type { FileRow } from "../../artifacts/files/Files.ts"
import { AppConfig } from "../../config/Config.ts"
import {
  cancelMessageBatch,
  createMessageBatch,
  customIdPattern,
  getMessageBatch,
  getMessageBatchResults,
  messageBatchesMax
} from "../../contract/MessageBatchesApi.ts"
import type { DeletedMessageBatch, MessageBatchList } from "../../contract/MessageBatchesApi.ts"
import { messageBatchIdOf, taskOfBatch } from "../../domain/Ids.ts"
import { memberOf } from "../../domain/json/JsonBytes.ts"
import {
  batchLineBytesMax,
  batchMarkCharacters,
  batchModelsMax,
  fileSecondsMax,
  messageIdCharactersMax
} from "../../domain/limits/FileLimits.ts"
import { pageSizeDefault } from "../../domain/limits/Limits.ts"
import { LineSplitter } from "../../domain/Lines.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import { inBodyTurns } from "../../domain/shares/BodyTurns.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { Admission, counted } from "../../process/admission/Admission.ts"
import { createdId } from "../../tasks/creation/TaskCreation.ts"
import { repeatedBatch, VendorBatches } from "../../tasks/vendorbatches/VendorBatches.ts"
import type { VendorBatchRow } from "../../tasks/vendorbatches/VendorBatches.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { makeUrlCheck } from "../../webhooks/WebhookUrl.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import type { AdmittedCaller } from "../server/access/Authentication.ts"
import { withClientKey } from "../server/access/ClientKeys.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { idempotencyKeyOf, refuseLongKey } from "../server/IdempotencyKey.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { maxCostHeader, readMaxCost } from "../server/MaxCost.ts"
import { pathOf } from "../server/problems/Problems.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { readAttachments } from "../tasks/Attachments.ts"
import { makeBatchHeaders, makeBatchOrder, makeCreatedResponse } from "../tasks/VendorBatchOrder.ts"
import { bodyOf, messageBatchOf, restOf } from "./MessageBatchObject.ts"
import { makeReceiveRequests } from "./MessageBatchUpload.ts"
import type { StoredRequests } from "./MessageBatchUpload.ts"

const vendor = "anthropic"
const endpoint = "/v1/messages"

/** Message batches with Anthropic's API. docs/reference/vendor-batches.md#anthropics-form */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const create = yield* makeCreate
    const { cancel, get, list, remove } = yield* makeReads
    const results = yield* makeResults
    yield* router.addAll(
      (["", "/vendors/anthropic"] as const)
        .flatMap((base) => [
          resource(`${base}${createMessageBatch.path}`, {
            POST: withClientKey(create),
            GET: withClientKey(list)
          }),
          resource(`${base}${getMessageBatch.path}`, {
            GET: withClientKey(get),
            DELETE: withClientKey(remove)
          }),
          resource(`${base}${cancelMessageBatch.path}`, { POST: withClientKey(cancel) }),
          resource(`${base}${getMessageBatchResults.path}`, { GET: withClientKey(results) })
        ])
        .flat()
    )
  })
)

const makeShow = Effect.gen(function* () {
  const { baseUrl } = yield* AppConfig
  const headersOf = yield* makeBatchHeaders
  return (row: VendorBatchRow, more: Readonly<Record<string, string>> = {}) =>
    HttpServerResponse.jsonUnsafe(messageBatchOf(row, baseUrl), {
      headers: { ...headersOf(row), ...more }
    })
})

/** Anthropic's clients add `?beta=true` for beta features. */
const known = ["beta"]

const shape = {
  body: "params",
  fixed: {},
  at: "#/requests",
  modelsMax: batchModelsMax,
  customId: {
    test: (text: string) => customIdPattern.test(text),
    expected: `1 to ${messageIdCharactersMax} of the characters A-Z, a-z, 0-9, _ and -`
  }
} as const

/** The maximum length of a `custom_id` that leaves room for a mark. */
const markedIdMax = messageIdCharactersMax - batchMarkCharacters

const makeCreate = Effect.gen(function* () {
  const admitCreate = yield* makeAdmitCreate
  const batches = yield* VendorBatches
  const files = yield* Files
  const order = yield* makeBatchOrder
  const show = yield* makeShow
  const requests = yield* makeReceiveRequests
  const checkUrl = yield* makeUrlCheck
  const { creates } = yield* Admission
  const { baseUrl, serviceName } = yield* AppConfig
  const respond = yield* makeCreatedResponse

  /** Deletes the file of requests for which no batch was created. */
  const drop = ({ id, userId }: FileRow) => Effect.ignore(files.delete(userId, id))

  const accept = Effect.fnUntraced(function* (
    principal: Principal,
    { digest, file, webhook }: StoredRequests
  ) {
    const request = yield* HttpServerRequest.HttpServerRequest
    const accepting = {
      principal,
      traceId: (yield* RequestTrace).traceId,
      idempotency: yield* idempotencyOf(request, digest),
      maxCost: yield* readMaxCost(request.headers, maxCostHeader(serviceName))
    }
    const beta = yield* readBeta(request.headers["anthropic-beta"])
    const sandbox = batches.isSandbox(vendor)
    const priced = Effect.gen(function* () {
      const attached = yield* readAttachments({ webhook }, checkUrl)
      return yield* order({
        accept: accepting,
        vendor,
        endpoint,
        file,
        fileUntil: DateTime.add(file.createdAt, { seconds: fileSecondsMax }),
        shape,
        attached,
        more: ({ longestId }) => ({
          ...(longestId <= markedIdMax ? { marked: true } : {}),
          ...(beta === undefined ? {} : { beta })
        }),
        sandbox
      })
    })
    return yield* counted(creates, principal.userId, batches.create(accepting, sandbox, priced))
  })

  const createNew = Effect.fnUntraced(function* (caller: AdmittedCaller) {
    const { principal } = caller
    const stored = yield* requests.store(caller)
    // Not after other failures: the batch may have been accepted
    const created = yield* Effect.tapErrorTag(accept(principal, stored), "Problem", () =>
      drop(stored.file)
    )
    // The first request was accepted while this one arrived
    if (created.replayed) yield* drop(stored.file)
    return created
  })

  return Effect.gen(function* () {
    const caller = yield* admitCreate()
    const { principal } = caller
    yield* refuseUnknownQuery(known)
    const request = yield* HttpServerRequest.HttpServerRequest
    const key = request.headers["idempotency-key"]
    yield* refuseLongKey(key)
    const earlier = yield* batches.earlier(principal, key)
    const created = yield* Option.match(earlier, {
      onNone: () => createNew(caller),
      onSome: Effect.fnUntraced(function* (first) {
        const { digest } = yield* requests.hash(caller)
        const sandbox = batches.isSandbox(vendor)
        return yield* repeatedBatch(yield* idempotencyOf(request, digest), first, sandbox)
      })
    })
    const id = messageBatchIdOf(yield* createdId(created))
    const named = { vendor, userId: principal.userId, id }
    return yield* respond(created, {
      named,
      url: `${baseUrl}${createMessageBatch.path}/${id}`,
      show
    })
  })
})

const idempotencyOf = (request: HttpServerRequest.HttpServerRequest, digest: string) =>
  idempotencyKeyOf(request.headers["idempotency-key"], `POST ${pathOf(request)}`, digest)

const betaCharactersMax = 1000

const readBeta = (beta: string | undefined) =>
  beta === undefined || (beta.length <= betaCharactersMax && /^[\w .,:-]*$/u.test(beta))
    ? Effect.succeed(beta)
    : Effect.fail(
        invalid([
          {
            pointer: "#/headers/anthropic-beta",
            detail: `Expected names of at most ${betaCharactersMax} characters`
          }
        ])
      )

/** The batch that the path names. */
const makeNamed = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  return Effect.gen(function* () {
    const { message_batch_id: id = "" } = yield* HttpRouter.params
    const { principal } = yield* admit(Option.none())
    yield* refuseUnknownQuery(known)
    return { vendor, id, userId: principal.userId }
  })
})

const makeReads = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const batches = yield* VendorBatches
  const { baseUrl } = yield* AppConfig
  const named = yield* makeNamed
  const show = yield* makeShow

  return {
    get: Effect.gen(function* () {
      return show(yield* batches.get(yield* named))
    }),
    cancel: Effect.gen(function* () {
      return show(yield* batches.cancel(yield* named))
    }),
    remove: Effect.gen(function* () {
      const batch = yield* named
      yield* batches.delete(batch)
      const body: typeof DeletedMessageBatch.Type = { id: batch.id, type: "message_batch_deleted" }
      return HttpServerResponse.jsonUnsafe(body)
    }),
    list: Effect.gen(function* () {
      const { principal } = yield* admit(Option.none())
      const { after, isAscending, limit } = yield* readPage
      const page = { vendor, after, isAscending, limit: limit + 1 }
      const rows = yield* batches.list(principal.userId, page)
      const inOrder = rows.slice(0, limit)
      const shown = (isAscending ? inOrder.toReversed() : inOrder).map((row) =>
        messageBatchOf(row, baseUrl)
      )
      const body: typeof MessageBatchList.Type = {
        data: shown,
        has_more: rows.length > limit,
        first_id: shown[0]?.id ?? null,
        last_id: shown.at(-1)?.id ?? null
      }
      return HttpServerResponse.jsonUnsafe(body, { headers: { "cache-control": "no-store" } })
    })
  }
})

const readPage = Effect.gen(function* () {
  yield* refuseUnknownQuery([...known, "after_id", "before_id", "limit"])
  const query = yield* HttpServerRequest.ParsedSearchParams
  const { after_id: after, before_id: before, limit = String(pageSizeDefault) } = query
  const idOf = (text: typeof after) =>
    typeof text === "string" ? taskOfBatch(text) : Option.none()
  const size = typeof limit === "string" && /^\d{1,4}$/u.test(limit) ? Number(limit) : 0
  const given = [
    ["after_id", after],
    ["before_id", before]
  ] as const
  const faults = [
    ...given.flatMap(([name, text]) =>
      text !== undefined && Option.isNone(idOf(text))
        ? [{ pointer: `#/query/${name}`, detail: "Expected the id of a batch" }]
        : []
    ),
    ...(after !== undefined && before !== undefined
      ? [{ pointer: "#/query/before_id", detail: "Expected only one of after_id and before_id" }]
      : []),
    ...(size < 1 || size > messageBatchesMax
      ? [
          {
            pointer: "#/query/limit",
            detail: `Expected a whole number from 1 to ${messageBatchesMax}`
          }
        ]
      : [])
  ]
  if (faults.length > 0) return yield* invalid(faults)
  return {
    after: Option.getOrUndefined(idOf(after ?? before)),
    isAscending: before !== undefined,
    limit: size
  }
})

const makeResults = Effect.gen(function* () {
  const batches = yield* VendorBatches
  const files = yield* Files
  const named = yield* makeNamed

  return Effect.gen(function* () {
    const batch = yield* named
    const row = yield* batches.get(batch)
    if (!isTerminal(row.status)) return yield* notEnded
    const output =
      row.outputFile === null ? undefined : yield* files.get(batch.userId, row.outputFile)
    const options = {
      contentType: "application/x-jsonl",
      headers: {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff"
      }
    }
    const { method } = yield* HttpServerRequest.HttpServerRequest
    if (method === "HEAD") return HttpServerResponse.raw(null, options)
    if (output !== undefined) {
      return HttpServerResponse.stream(inBodyTurns(batch.userId, yield* files.open(output)), {
        ...options,
        contentLength: Number(output.bytes)
      })
    }
    const body = bodyOf(row)
    if (Option.isNone(body)) return yield* noResults
    const { bytes, input_file_id: id } = body.value
    const requests = inBodyTurns(batch.userId, yield* files.open({ id, bytes: BigInt(bytes) }))
    return HttpServerResponse.stream(withoutResults(row, requests), options)
  })
})

const notEnded = problem(2010, "The batch has not ended, so its results are not available yet")
const noResults = problem(2005, "The results are no longer kept")

/** The results of a batch for which the vendor has none: every request gets the result of the whole batch. */
const withoutResults = <E>(
  row: VendorBatchRow,
  requests: Stream.Stream<Uint8Array, E>
): Stream.Stream<Uint8Array, E> => {
  const type = restOf(row)
  const message = row.error?.detail ?? "The request failed"
  const error = { type: "error", error: { type: "api_error", message }, request_id: null }
  const result = JSON.stringify(type === "errored" ? { type, error } : { type })
  const end = Buffer.from(`,"result":${result}}\n`)
  return Stream.suspend(() => {
    const splitter = new LineSplitter(batchLineBytesMax)
    return Stream.map(requests, (chunk) =>
      Buffer.concat(
        splitter.push(chunk).flatMap(({ bytes }) => {
          const customId = memberOf(bytes, "custom_id")
          return customId === undefined ? [] : [Buffer.from('{"custom_id":'), customId, end]
        })
      )
    ).pipe(Stream.filter(({ length }) => length > 0))
  })
}
