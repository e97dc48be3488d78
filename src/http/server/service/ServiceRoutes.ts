import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { OpenApi } from "effect/http-api"
import { Catalog } from "../../../catalog/Catalog.ts"
import type { CatalogVersion } from "../../../catalog/CatalogContent.ts"
import { AppConfig } from "../../../config/Config.ts"
import { health, metrics, openApi, pages, readiness } from "../../../contract/ServiceApi.ts"
import { problem } from "../../../domain/Problem.ts"
import type { Problem } from "../../../domain/Problem.ts"
import { Drain } from "../../../process/Drain.ts"
import { Process } from "../../../process/heartbeat/Process.ts"
import { ProcessGroup } from "../../../process/ProcessGroup.ts"
import { Secrets } from "../../../process/secrets/Secrets.ts"
import { documentedApi } from "../../openapi/OpenApiDocument.ts"
import { admitMetrics } from "../access/Authentication.ts"
import { basePathOf } from "../Paths.ts"
import { resource } from "../Resource.ts"
import { hardened, makeDocsPage } from "./DocsPage.ts"
import { errorsPage } from "./ErrorsPage.ts"
import { makeMetrics } from "./Metrics.ts"

/** Health, metrics and documentation, without authentication. docs/reference/http.md#service-routes */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const { baseUrl } = yield* AppConfig
    const { current: documents } = yield* makeDocuments
    const process = yield* Process
    const drain = yield* Drain
    const collect = yield* makeMetrics
    const secrets = yield* Secrets
    const ok = HttpServerResponse.jsonUnsafe({ status: "ok" })
    const { ready: readyWith } = yield* ProcessGroup
    // Concurrent probes share one check, because anyone may send them
    const ready = yield* Effect.cachedWithTTL(
      readyWith(
        Effect.suspend((): Effect.Effect<void, Problem> =>
          drain.isDraining() ? Effect.fail(stopping) : process.ready
        )
      ),
      0
    )
    const errors = hardened(errorsPage)
    const console = `${basePathOf(baseUrl)}/console`
    return HttpRouter.addAll([
      ...resource(pages.root.path, {
        GET: Effect.succeed(HttpServerResponse.redirect(console))
      }),
      ...resource(health.path, { GET: Effect.succeed(ok) }),
      ...resource(readiness.path, {
        GET: Effect.as(ready, ok)
      }),
      ...resource(openApi.path, { GET: Effect.map(documents, ({ document }) => document) }),
      ...resource(pages.docs.path, { GET: Effect.flatMap(documents, ({ page }) => page) }),
      // The browser keeps the fragment, which contains the secret of a link
      ...resource(pages.signIn.path, {
        GET: Effect.succeed(HttpServerResponse.redirect(`${console}/sign-in`))
      }),
      ...resource(pages.errors.path, { GET: Effect.succeed(errors) }),
      ...resource(metrics.path, {
        GET: Effect.gen(function* () {
          const shown = yield* collect(yield* admitMetrics(secrets))
          return HttpServerResponse.text(shown, {
            contentType: "text/plain; version=0.0.4; charset=utf-8"
          })
        })
      })
    ])
  })
)

const stopping = problem(5003, "The process is stopping: send requests to another one")

/** The OpenAPI document and its page for the current catalog, built at the first request after a start or a reload. */
const makeDocuments = Effect.gen(function* () {
  const catalog = yield* Catalog
  const { serviceName } = yield* AppConfig
  const make = Effect.fnUntraced(function* (version: CatalogVersion) {
    const api = documentedApi(version, serviceName)
    const document = HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))
    return { hash: version.hash, document, page: yield* makeDocsPage(api) }
  })
  let made: Effect.Success<ReturnType<typeof make>> | undefined
  const current = Effect.suspend(() => {
    const version = catalog.current()
    if (version.hash === made?.hash) return Effect.succeed(made)
    return Effect.tap(make(version), (next) =>
      Effect.sync(() => {
        made = next
      })
    )
  })
  return { current }
})
