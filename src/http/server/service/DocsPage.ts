import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import type { HttpApi, HttpApiGroup } from "effect/http-api"
import { createHash } from "node:crypto"

/** Configured so that the page neither loads from other hosts nor sends anything to them. */
const scalar = {
  withDefaultFonts: false,
  authentication: { preferredSecurityScheme: "bearer" },
  showDeveloperTools: "never",
  hideClientButton: true,
  telemetry: false
}

/** `/docs`: the API reference, rendered at the first request. */
export const makeDocsPage = Effect.fnUntraced(function* <
  Id extends string,
  Groups extends HttpApiGroup.Constraint
>(api: HttpApi.HttpApi<Id, Groups>) {
  // A separate router, because Scalar's layer adds only GET, and the main router must respond with 405 to other methods
  const router = yield* HttpRouter.make
  // The layer loads Scalar's program of 6 MB
  const build = Layer.build(HttpApiScalar.layer(api, { path: "/docs", scalar })).pipe(
    Effect.provideService(HttpRouter.HttpRouter, router)
  )
  const request = HttpServerRequest.fromWeb(new Request("http://localhost/docs"))
  const page = Effect.suspend(() => router.asHttpEffect()).pipe(
    Effect.provideService(HttpServerRequest.HttpServerRequest, request)
  )
  return yield* Effect.andThen(build, page).pipe(
    Effect.scoped,
    Effect.orDie,
    Effect.map(hardened),
    Effect.cached
  )
})

const scripts = /<script>([\s\S]*?)<\/script>/gu

/** Hardens a page: it runs only scripts with known hashes, cannot be framed, and loads nothing from other hosts. */
export const hardened = (
  page: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => {
  const html = page.body._tag === "Uint8Array" ? new TextDecoder().decode(page.body.body) : ""
  const hashes = Array.from(
    html.matchAll(scripts),
    ([, text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
  )
  const policy = [
    "default-src 'none'",
    ...(hashes.length === 0 ? [] : [`script-src ${hashes.join(" ")}`]),
    "style-src 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "media-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ]
  return HttpServerResponse.setHeaders(page, {
    "content-security-policy": policy.join("; "),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY"
  })
}
