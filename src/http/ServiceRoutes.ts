import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiScalar, OpenApi } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import { Catalog } from "../models/Catalog.ts"
import { Process } from "../services/Process.ts"
import { Wallet } from "../services/Wallet.ts"
import { errorsPage } from "./ErrorsPage.ts"
import { documentedApi } from "./OpenApiDocument.ts"
import { resource } from "./Resource.ts"

/** Health, metrics and documentation; none needs a key. Contract 3. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const catalog = yield* Catalog
    const api = documentedApi(catalog)
    const document = HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))
    const process = yield* Process
    const wallet = yield* Wallet
    const ok = HttpServerResponse.jsonUnsafe({ status: "ok" })
    const routes = HttpRouter.addAll([
      resource("/", { GET: Effect.succeed(HttpServerResponse.redirect("/docs")) }),
      resource("/healthz", { GET: Effect.succeed(ok) }),
      resource("/readyz", { GET: Effect.as(process.ping, ok) }),
      resource("/openapi.json", { GET: Effect.succeed(document) }),
      resource("/docs/errors", { GET: Effect.succeed(errorsPage) }),
      resource("/metrics", {
        GET: Effect.gen(function* () {
          const drift = yield* wallet.drift
          const text = yield* PrometheusMetrics.format()
          return HttpServerResponse.text(`${text}${gauge(drift)}`, {
            contentType: "text/plain; version=0.0.4; charset=utf-8"
          })
        })
      })
    ])
    return Layer.merge(routes, HttpApiScalar.layer(api, { path: "/docs" }))
  })
)

/** Contract 6: must read 0. */
const gauge = (drift: number): string =>
  [
    "# HELP gateway_wallet_drift Wallets that differ from their ledger or holds; must be 0.",
    "# TYPE gateway_wallet_drift gauge",
    `gateway_wallet_drift ${drift}`,
    ""
  ].join("\n")
