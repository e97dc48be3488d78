import { DateTime, Duration, Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import type { OpenedArtifact } from "../../artifacts/Artifacts.ts"
import { getArtifact } from "../../contract/ServiceApi.ts"
import { ArtifactId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import { inBodyTurns } from "../../domain/shares/BodyTurns.ts"
import { matches, selectRange } from "../server/ByteRanges.ts"
import { problemResponse } from "../server/problems/Problems.ts"
import { resource } from "../server/Resource.ts"

/** Serves stored media. The signed URL is the authorization. docs/reference/tasks.md#artifacts */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const artifacts = yield* Artifacts
    const open = Effect.gen(function* () {
      const { id = "" } = yield* HttpRouter.params
      const query = yield* HttpServerRequest.ParsedSearchParams
      const artifactId = yield* Effect.mapError(Effect.fromOption(decodeId(id)), () =>
        problem(2005, "There is no such artifact")
      )
      const artifact = yield* artifacts.open(
        artifactId,
        single(query["expires"]),
        single(query["signature"])
      )
      return yield* respondArtifact(artifact)
    })
    yield* router.addAll(resource(getArtifact.path, { GET: open }))
  })
)

/**
 * Prevents a browser from executing the bytes, whatever they are: no script, no sniffing, an opaque origin. Pages of
 * other origins may embed the medium, which is the purpose of the URL.
 */
const sandbox = {
  "content-security-policy":
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox",
  "cross-origin-resource-policy": "cross-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

/** Responds with the medium, a range of it, or 304 (RFC 9110, sections 13 and 14). */
export const respondArtifact = Effect.fnUntraced(function* (artifact: OpenedArtifact) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { mime, size } = artifact
  const left = DateTime.distance(yield* DateTime.now, artifact.expiresAt)
  const etag = `"${artifact.sha256}"`
  const headers = {
    ...sandbox,
    etag,
    "accept-ranges": "bytes",
    "cache-control": `private, max-age=${Math.max(0, Math.floor(Duration.toSeconds(left)))}, immutable`,
    "content-disposition": "inline"
  }
  if (matches(request.headers["if-none-match"], etag)) {
    return HttpServerResponse.empty({ status: 304, headers })
  }
  const condition = request.headers["if-range"]
  const isRange = request.method === "GET" && (condition === undefined || condition === etag)
  const selected = selectRange(isRange ? request.headers["range"] : undefined, size)
  if (selected._tag === "Unsatisfiable") {
    return HttpServerResponse.setHeader(
      yield* problemResponse(problem(2013, `The artifact has ${size} bytes`)),
      "content-range",
      `bytes */${size}`
    )
  }
  const range = selected._tag === "Part" ? selected.range : { start: 0, end: size - 1 }
  const options = {
    contentType: mime,
    contentLength: range.end - range.start + 1,
    headers:
      selected._tag === "Part"
        ? { ...headers, "content-range": `bytes ${range.start}-${range.end}/${size}` }
        : headers
  }
  if (request.method === "HEAD") return HttpServerResponse.raw(null, options)
  return HttpServerResponse.stream(inBodyTurns(artifact.userId, yield* artifact.stream(range)), {
    ...options,
    status: selected._tag === "Part" ? 206 : 200
  })
})

const decodeId = Schema.decodeUnknownOption(ArtifactId)

const single = (value: string | ReadonlyArray<string> | undefined): string =>
  typeof value === "string" ? value : ""
