import { DateTime, Duration, Effect, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { ArtifactId } from "../domain/Ids.ts"
import { problem } from "../domain/Problem.ts"
import { Artifacts } from "../services/Artifacts.ts"
import { resource } from "./Resource.ts"

/** Media kept by the service: the signed URL is the permission. Contract 3. */
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
      const left = DateTime.distance(yield* DateTime.now, artifact.expiresAt)
      return HttpServerResponse.uint8Array(artifact.bytes, {
        contentType: artifact.mime,
        headers: {
          etag: `"${artifact.sha256}"`,
          "cache-control": `private, max-age=${Math.max(0, Math.floor(Duration.toSeconds(left)))}, immutable`,
          "content-disposition": "inline",
          "x-content-type-options": "nosniff"
        }
      })
    })
    yield* router.addAll([resource("/artifacts/:id", { GET: open })])
  })
)

const decodeId = Schema.decodeUnknownOption(ArtifactId)

const single = (value: string | ReadonlyArray<string> | undefined): string =>
  typeof value === "string" ? value : ""
