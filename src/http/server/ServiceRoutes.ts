import { DateTime, Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { OpenApi } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import { Catalog } from "../../catalog/Catalog.ts"
import type { CatalogVersion } from "../../catalog/CatalogContent.ts"
import { AppConfig } from "../../config/Config.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { UpstreamCalls } from "../../passthrough/UpstreamCalls.ts"
import type { AccountState } from "../../passthrough/UpstreamCalls.ts"
import { Drain } from "../../process/Drain.ts"
import { Process } from "../../process/Process.ts"
import { Secrets } from "../../process/Secrets.ts"
import { ConcurrencyLimiter } from "../../tasks/submission/ConcurrencyLimiter.ts"
import { Wallet } from "../../wallet/Wallet.ts"
import { documentedApi } from "../openapi/OpenApiDocument.ts"
import { hasOperatorToken } from "./Authentication.ts"
import { hardened, makeDocsPage } from "./DocsPage.ts"
import { errorsPage } from "./ErrorsPage.ts"
import { basePathOf } from "./Paths.ts"
import { resource } from "./Resource.ts"

/** Health, metrics and documentation; none needs a key. docs/reference/http.md#service-routes */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const { baseUrl } = yield* AppConfig
    const { current: documents } = yield* makeDocuments
    const process = yield* Process
    const drain = yield* Drain
    const wallet = yield* Wallet
    const upstream = yield* UpstreamCalls
    const slots = yield* ConcurrencyLimiter
    const secrets = yield* Secrets
    const ok = HttpServerResponse.jsonUnsafe({ status: "ok" })
    const errors = hardened(errorsPage)
    const console = `${basePathOf(baseUrl)}/console`
    return HttpRouter.addAll([
      resource("/", {
        GET: Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
          HttpServerResponse.redirect(
            /\btext\/html\b/iu.test(headers["accept"] ?? "") ? console : "/docs"
          )
        )
      }),
      resource("/healthz", { GET: Effect.succeed(ok) }),
      resource("/readyz", {
        GET: Effect.suspend((): Effect.Effect<typeof ok, Problem | StoreUnavailable> =>
          drain.isDraining() ? Effect.fail(stopping) : Effect.as(process.ping, ok)
        )
      }),
      resource("/openapi.json", { GET: Effect.map(documents, ({ document }) => document) }),
      resource("/docs", { GET: Effect.flatMap(documents, ({ page }) => page) }),
      // The browser keeps the fragment, in which a link has its secret
      resource("/sign-in", {
        GET: Effect.succeed(HttpServerResponse.redirect(`${console}/sign-in`))
      }),
      resource("/docs/errors", { GET: Effect.succeed(errors) }),
      resource("/metrics", {
        GET: Effect.gen(function* () {
          const drift = { wallets: yield* wallet.drift, budgets: yield* wallet.budgetDrift }
          const auditedAt = yield* wallet.auditedAt
          const text = yield* PrometheusMetrics.format()
          const accounts = accountGauges(yield* upstream.accounts)
          const queues = slotGauges(yield* slots.queues)
          const audit = driftGauge(drift, auditedAt)
          const all = `${text}${audit}${accounts}${queues}`
          const shown = (yield* hasOperatorToken(secrets)) ? all : withoutNames(all)
          return HttpServerResponse.text(shown, {
            contentType: "text/plain; version=0.0.4; charset=utf-8"
          })
        })
      })
    ])
  })
)

const stopping = problem(5003, "The process stops: send requests to another one")

/** Labels that name no account and no tenant. */
const openLabels = new Set(["cause", "le", "model", "outcome", "quantile", "state", "vendor"])

/** Without the series that have any other label. docs/reference/http.md#metrics */
export const withoutNames = (text: string): string =>
  text
    .split("\n")
    .filter(
      (line) =>
        line.startsWith("#") ||
        [...line.matchAll(/[{,](\w+)="/gu)].every(([, label = ""]) => openLabels.has(label))
    )
    .join("\n")

/** The OpenAPI document and its page, of the catalog that is sold now: made by the first request after a start or a reload. */
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

/**
 * Must be 0. The time of the last audit is exported too: an old 0 proves nothing.
 * docs/reference/wallet.md#wallet-audit
 */
const driftGauge = (
  drift: { readonly wallets: number; readonly budgets: number },
  auditedAt: Option.Option<DateTime.Utc>
): string =>
  [
    "# HELP gateway_wallet_drift Wallets that differ from their ledger or holds; must be 0.",
    "# TYPE gateway_wallet_drift gauge",
    `gateway_wallet_drift ${drift.wallets}`,
    "# HELP gateway_key_budget_drift Spend limits of keys that count what cannot be right; must be 0.",
    "# TYPE gateway_key_budget_drift gauge",
    `gateway_key_budget_drift ${drift.budgets}`,
    "# HELP gateway_wallet_audit_timestamp_seconds When every wallet was last compared with its ledger.",
    "# TYPE gateway_wallet_audit_timestamp_seconds gauge",
    ...Option.toArray(
      Option.map(
        auditedAt,
        (time) => `gateway_wallet_audit_timestamp_seconds ${DateTime.toEpochMillis(time) / 1000}`
      )
    ),
    ""
  ].join("\n")

/** Circuit (0 closed, 1 half open, 2 open) and pause of each upstream account. ADR 0132. */
const accountGauges = (accounts: ReadonlyArray<AccountState>): string =>
  accounts.length === 0
    ? ""
    : [
        "# HELP gateway_account_circuit Circuit of the account: 0 closed, 1 half open, 2 open.",
        "# TYPE gateway_account_circuit gauge",
        ...accounts.map(
          ({ circuit, id }) =>
            `gateway_account_circuit{account="${id}"} ${["Closed", "HalfOpen", "Open"].indexOf(circuit)}`
        ),
        "# HELP gateway_account_paused_seconds Seconds until no model of the account pauses any more.",
        "# TYPE gateway_account_paused_seconds gauge",
        ...accounts.map(
          ({ id, pausedMillis }) =>
            `gateway_account_paused_seconds{account="${id}"} ${pausedMillis / 1000}`
        ),
        ""
      ].join("\n")

type SlotQueue = Effect.Success<ConcurrencyLimiter["Service"]["queues"]>[number]

/** Tasks that hold a slot at a vendor, and those that wait for one. ADR 0108. */
const slotGauges = (queues: ReadonlyArray<SlotQueue>): string =>
  queues.length === 0
    ? ""
    : [
        "# HELP gateway_vendor_slots Unfinished tasks by concurrency limit: those that hold a slot, and those that wait.",
        "# TYPE gateway_vendor_slots gauge",
        ...queues.flatMap(({ held, line, waiting }) => [
          `gateway_vendor_slots{line=${JSON.stringify(line)},state="held"} ${held}`,
          `gateway_vendor_slots{line=${JSON.stringify(line)},state="waiting"} ${waiting}`
        ]),
        ""
      ].join("\n")
