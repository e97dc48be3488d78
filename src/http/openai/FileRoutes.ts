import { DateTime, Effect, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Files, noFile } from "../../artifacts/files/Files.ts"
import type { FileRow } from "../../artifacts/files/Files.ts"
import { createFile, getFile, getFileContent } from "../../contract/FilesApi.ts"
import type { DeletedFile, FileList, FileObject } from "../../contract/FilesApi.ts"
import { FileId } from "../../domain/Ids.ts"
import { pageSizeDefault, pageSizeMax } from "../../domain/limits/Limits.ts"
import { invalid } from "../../domain/Problem.ts"
import { inBodyTurns } from "../../domain/shares/BodyTurns.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { makeUpload } from "./Upload.ts"

/** Files for batches, with OpenAI's API. docs/reference/files.md */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { content, create, get, list, remove } = yield* makeHandlers
    yield* router.addAll(
      (["", "/vendors/openai"] as const)
        .flatMap((base) => [
          resource(`${base}${createFile.path}`, { POST: create, GET: list }),
          resource(`${base}${getFile.path}`, { GET: get, DELETE: remove }),
          resource(`${base}${getFileContent.path}`, { GET: content })
        ])
        .flat()
    )
  })
)

const seconds = (time: DateTime.Utc): number => Math.floor(DateTime.toEpochMillis(time) / 1000)

const fileOf = (row: FileRow): typeof FileObject.Type => ({
  id: row.id,
  object: "file",
  bytes: Number(row.bytes),
  created_at: seconds(row.createdAt),
  expires_at: seconds(row.expiresAt),
  filename: row.filename,
  purpose: row.purpose,
  status: "processed"
})

const unstored = { headers: { "cache-control": "no-store" } }
const decodeId = Schema.decodeUnknownOption(FileId)

const makeHandlers = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const admitCreate = yield* makeAdmitCreate
  const files = yield* Files
  const upload = yield* makeUpload

  /** The file that the path names, for its owner. */
  const named = Effect.gen(function* () {
    const { file_id: text = "" } = yield* HttpRouter.params
    const { principal } = yield* admit(Option.none())
    yield* refuseUnknownQuery([])
    const id = decodeId(text)
    if (Option.isNone(id)) return yield* noFile(text)
    return { id: id.value, userId: principal.userId }
  })
  const found = Effect.flatMap(named, ({ id, userId }) => files.get(userId, id))

  return {
    create: Effect.gen(function* () {
      const caller = yield* admitCreate()
      yield* refuseUnknownQuery([])
      return HttpServerResponse.jsonUnsafe(fileOf(yield* upload(caller)), unstored)
    }),
    list: Effect.gen(function* () {
      const { principal } = yield* admit(Option.none())
      const page = yield* readPage
      const rows = yield* files.list(principal.userId, { ...page, limit: page.limit + 1 })
      const shown = rows.slice(0, page.limit)
      const body: typeof FileList.Type = {
        object: "list",
        data: shown.map(fileOf),
        first_id: shown[0]?.id ?? null,
        last_id: shown.at(-1)?.id ?? null,
        has_more: rows.length > page.limit
      }
      return HttpServerResponse.jsonUnsafe(body, unstored)
    }),
    get: Effect.map(found, (row) => HttpServerResponse.jsonUnsafe(fileOf(row), unstored)),
    remove: Effect.gen(function* () {
      const { id, userId } = yield* named
      yield* files.delete(userId, id)
      const body: typeof DeletedFile.Type = { id, object: "file", deleted: true }
      return HttpServerResponse.jsonUnsafe(body)
    }),
    content: Effect.gen(function* () {
      const row = yield* found
      const { method } = yield* HttpServerRequest.HttpServerRequest
      const options = {
        contentType: "application/octet-stream",
        contentLength: Number(row.bytes),
        headers: {
          "cache-control": "no-store",
          "content-disposition": `attachment; filename="${row.id}.jsonl"`,
          "content-security-policy": "default-src 'none'; sandbox",
          "x-content-type-options": "nosniff"
        }
      }
      return method === "HEAD" || row.bytes === 0n
        ? HttpServerResponse.raw(null, options)
        : HttpServerResponse.stream(inBodyTurns(row.userId, yield* files.open(row)), options)
    })
  }
})

const readPage = Effect.gen(function* () {
  yield* refuseUnknownQuery(["after", "limit", "order", "purpose"])
  const query = yield* HttpServerRequest.ParsedSearchParams
  const { after, limit = String(pageSizeDefault), order = "desc", purpose } = query
  const id = after === undefined ? Option.none() : decodeId(after)
  const size = typeof limit === "string" && /^\d{1,3}$/u.test(limit) ? Number(limit) : 0
  const isPurpose = purpose === undefined || purpose === "batch" || purpose === "batch_output"
  const faults = [
    ...(after !== undefined && Option.isNone(id) ? [fault("after", "the id of a file")] : []),
    ...(size < 1 || size > pageSizeMax
      ? [fault("limit", `a whole number from 1 to ${pageSizeMax}`)]
      : []),
    ...(order === "asc" || order === "desc" ? [] : [fault("order", "asc or desc")]),
    ...(isPurpose ? [] : [fault("purpose", "batch or batch_output")])
  ]
  if (faults.length > 0) return yield* invalid(faults)
  return {
    after: Option.getOrUndefined(id),
    limit: size,
    isAscending: order === "asc",
    purpose: typeof purpose === "string" ? purpose : undefined
  }
})

const fault = (name: string, expected: string) => ({
  pointer: `#/query/${name}`,
  detail: `Expected ${expected}`
})
