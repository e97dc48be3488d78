import { Effect, Layer } from "effect"
import { join, resolve } from "node:path"
import { Catalog } from "../../catalog/Catalog.ts"
import { AppConfig } from "../../config/Config.ts"
import type { EgressAllow } from "../../domain/network/EgressAllow.ts"
import { EgressGuard } from "../../egress/EgressGuard.ts"
import { guardedConnector, offered } from "../../Gateway.ts"
import { makeFreeCall } from "../../process/accounts/AccountControl.ts"
import { regionOf } from "../../vendors/dashscope/DashScopeModels.ts"
import { Upstream } from "../../vendors/upstream/Upstream.ts"
import { missingAt } from "../ModelCheck.ts"
import { finding, ofFault } from "./Finding.ts"
import type { Finding } from "./Finding.ts"
import { folderFinding, storeFindings } from "./StoreFindings.ts"

const egressFinding = ({ hosts, networks }: EgressAllow): Finding => {
  const say = finding("egress")
  const allowed = [...hosts, ...networks.map((network) => network.join("/"))]
  if (allowed.length === 0) return say("ok", "only public addresses are called")
  return say(
    "warning",
    `EGRESS_ALLOW allows non-public addresses: ${allowed.join(", ")}`,
    "Remove entries that neither vendors nor webhooks need"
  )
}

/** Checks where results are stored: a bucket, or a folder outside the data folder, which has its own finding. */
const mediaFindings = Effect.gen(function* () {
  const { artifactStore, dataDir } = yield* AppConfig
  if (artifactStore._tag === "Directory") {
    const { directory } = artifactStore
    const isBelow = resolve(directory).startsWith(join(resolve(dataDir), "/"))
    return isBelow ? [] : [folderFinding("media", directory, "ARTIFACT_STORE")]
  }
  const { bucket } = artifactStore
  const { tryBucket } = yield* Effect.promise(() => import("../../artifacts/S3Probe.ts"))
  return yield* tryBucket(artifactStore).pipe(
    Effect.as([
      finding("media")("ok", `the bucket ${bucket} allows reading, writing and deleting`)
    ]),
    Effect.catch(({ message }) => Effect.succeed([ofFault("media", message)]))
  )
})

/** Checks each vendor account with a free call. */
const accountFindings = Effect.gen(function* () {
  const { accounts } = yield* AppConfig
  const say = finding("vendors")
  if (accounts.length === 0) {
    return [say("ok", "no vendor key is set: the sandbox serves all models")]
  }
  const check = yield* makeFreeCall
  return yield* Effect.forEach(
    accounts,
    (account) =>
      check(account).pipe(
        Effect.map(({ detail, httpStatus, ok }) =>
          ok
            ? say("ok", `${account.id} accepts its key`)
            : say(
                "broken",
                `${account.id}: ${detail ?? `HTTP ${httpStatus}`}`,
                `Check the key of ${account.provider}, its balance, and that this machine can reach ${new URL(account.baseUrl).host}`
              )
        ),
        Effect.catch(({ detail }) => Effect.succeed(say("skipped", detail)))
      ),
    { concurrency: 4 }
  )
})

const modelFindings = Effect.gen(function* () {
  const { accounts } = yield* AppConfig
  const catalog = (yield* Catalog).current()
  const say = finding("models")
  const unserved = missingAt(catalog, accounts)
  const partly = accounts.flatMap((account) => {
    const missing = missingAt(catalog, [account])
    return missing === ""
      ? []
      : [
          say(
            "warning",
            `${account.id} (${regionOf(account) ?? new URL(account.baseUrl).hostname}) does not have ${missing}`
          )
        ]
  })
  const remedy = "Add an account that has them, or correct their upstreamModel in CATALOG_FILE"
  if (unserved !== "") {
    return [
      ...partly,
      say("broken", `no account has ${unserved}: requests for them get 503`, remedy)
    ]
  }
  return [...partly, say("ok", `${catalog.all.length} media models are served`)]
})

/** The layers for calls to vendors, without a store. */
export const vendorTools = Layer.unwrap(
  Effect.map(AppConfig, ({ egressAllow, upstreamTimeout }) =>
    Layer.mergeAll(
      Upstream.layer({ timeout: upstreamTimeout }).pipe(Layer.provide(guardedConnector)),
      guardedConnector,
      offered
    ).pipe(Layer.provideMerge(EgressGuard.layer({ allow: egressAllow })))
  )
)

/** Runs all checks that are possible on the service's machine with its environment. docs/cli.md#doctor */
export const diagnose = Effect.gen(function* () {
  const config = yield* AppConfig
  const about = finding("configuration")(
    "ok",
    `the environment is valid; the service listens on ${config.host}:${config.port}`
  )
  const vendors = Effect.all([modelFindings, accountFindings]).pipe(
    Effect.map((found) => found.flat()),
    Effect.provide(vendorTools),
    Effect.scoped,
    Effect.catchTag("CatalogError", ({ message }) => Effect.succeed([ofFault("models", message)]))
  )
  const [store, media, rest] = yield* Effect.all([storeFindings, mediaFindings, vendors], {
    concurrency: 3
  })
  return [about, ...store, ...media, egressFinding(config.egressAllow), ...rest]
}).pipe(
  Effect.provide(AppConfig.layer),
  Effect.catchTag("ConfigFault", ({ message }) =>
    Effect.succeed(message.split("\n").map((line) => ofFault("configuration", line)))
  )
)
