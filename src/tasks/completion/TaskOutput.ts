import {
  Context,
  DateTime,
  Duration,
  Effect,
  Layer,
  Metric,
  Option,
  Result,
  Schema,
  Stream
} from "effect"
import type { Scope } from "effect"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import type { ArtifactRow } from "../../artifacts/Artifacts.ts"
import { chargeUsage } from "../../catalog/ModelPrice.ts"
import { capturedBy, chargeHeld, countOf, requestedOf } from "../../catalog/Price.ts"
import type { PriceRule } from "../../catalog/Price.ts"
import { priceAt as priceRowAt } from "../../catalog/PriceRow.ts"
import { settledPrice } from "../../catalog/SettledPrice.ts"
import { credibleUsage } from "../../catalog/Usage.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import type { Credits } from "../../domain/Credits.ts"
import { StoreUnavailable } from "../../domain/Problem.ts"
import {
  artifactRetries,
  failingHostRetrySeconds,
  resultRetrySeconds
} from "../../domain/Retries.ts"
import { modelAt, priceAt } from "../../domain/task/Candidate.ts"
import { MediaFetch } from "../../egress/MediaFetch.ts"
import type { MediaFetchFailed } from "../../egress/MediaFetch.ts"
import { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"
import type {
  Download,
  ResultItem,
  UrlItem,
  VendorAccount,
  VendorResult,
  VendorTokens
} from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import type { TaskUsage } from "../TaskStore.ts"
import { lost, resultStream } from "./ResultStream.ts"

/** The result URLs of a completed task, and its price. */
export interface PersistedOutput {
  readonly urls: ReadonlyArray<string>
  readonly captured: Credits
  /** The usage for which a response is charged. */
  readonly usage?: TaskUsage
  /** The response ended because it reached its token limit. */
  readonly isIncomplete?: boolean
}

/** A vendor's result, and the account that made it. */
export interface JobResult {
  readonly account: VendorAccount
  readonly result: VendorResult
}

type WithoutBytes = Exclude<ResultItem, { readonly _tag: "Bytes" }>

/** Turns a vendor's result into URLs that last 24 hours, and computes its price. */
export class TaskOutput extends Context.Service<
  TaskOutput,
  {
    /**
     * Stores inline bytes in the artifact store, so that the result can be recorded. Runs without interruption; fails
     * if the store is still unavailable at `until`.
     */
    readonly persistInline: (
      task: TaskRow,
      result: VendorResult,
      until: DateTime.Utc
    ) => Effect.Effect<ReadonlyArray<WithoutBytes>, VendorError>
    /**
     * Copies results whose URL needs the vendor's key or lasts less than 24 hours; copies the others too if the catalog
     * says so (`artifacts`). Results that cannot be copied are left out and not charged (ADR 0255). Fails if there is
     * no result, and as `LOST` if no result can be copied.
     */
    readonly persistResults: (
      task: TaskRow,
      job: JobResult,
      deadlineAt: DateTime.Utc
    ) => Effect.Effect<PersistedOutput, VendorError>
  }
>()("gateway/tasks/TaskOutput") {
  static readonly layer = Layer.effect(
    TaskOutput,
    Effect.gen(function* () {
      const artifacts = yield* Artifacts
      const versions = yield* CatalogVersions
      const isCopied = isCopiedWith(versions)
      const pricingOf = pricingWith(versions)
      const chargeResponse = chargeResponseWith(versions)
      const open = openWith(yield* MediaFetch)

      const output = (task: TaskRow, mime: string) =>
        ({ userId: task.userId, taskId: task.id, role: "output", mime }) as const

      const put = (task: TaskRow, bytes: Uint8Array, mime: string, until?: DateTime.Utc) =>
        Effect.map(
          retryStoring(artifacts.put({ ...output(task, mime), bytes }), until),
          artifacts.urlOf
        )

      const copy = Effect.fnUntraced(function* (
        task: TaskRow,
        account: VendorAccount,
        item: UrlItem
      ) {
        const { mime, stream } = yield* resultStream(yield* open(account, item), task.resultKind)
        return yield* artifacts.putStream(output(task, mime), stream)
      }, Effect.scoped)

      const urlOf = Effect.fnUntraced(function* (
        task: TaskRow,
        account: VendorAccount,
        item: ResultItem,
        until: DateTime.Utc
      ) {
        if (item._tag === "Kept") return item.url
        if (item._tag === "Bytes") return yield* put(task, item.bytes, item.mime)
        if (!(yield* isCopied(task, item))) return item.url
        return artifacts.urlOf(
          yield* Effect.mapError(
            retryDownload(retryStoring(copy(task, account, item)), until),
            resultLost
          )
        )
      })

      return TaskOutput.of({
        persistInline: Effect.fnUntraced(function* (task, result, until) {
          const { requested } = yield* pricingOf(task)
          return yield* Effect.forEach(yield* quotedItems(task, result, requested), (item) =>
            item._tag === "Bytes"
              ? Effect.map(put(task, item.bytes, item.mime, until), (url) => ({
                  _tag: "Kept" as const,
                  url
                }))
              : Effect.succeed(item)
          )
        }),
        persistResults: Effect.fn("TaskOutput.persistResults")(function* (
          task,
          { account, result },
          deadlineAt
        ) {
          const pricing = yield* pricingOf(task)
          const items = yield* quotedItems(task, result, pricing.requested)
          const until = yield* lastTry(deadlineAt)
          const copied = Effect.partition(items, (item) => urlOf(task, account, item, until))
          if (result.tokens === undefined) {
            return yield* outputOf(task, pricing, result, ...(yield* copied))
          }
          // A cancelled response may have no result
          const [urls, [failure]] = yield* copied
          if (failure !== undefined) return yield* failure
          const isIncomplete = result.tokens.end === "incomplete"
          return { urls, isIncomplete, ...(yield* chargeResponse(task, result.tokens, account)) }
        })
      })
    })
  )
}

/**
 * The price of a response: its usage at the prices valid when it was created, at most its hold.
 * docs/reference/wallet.md#price-of-a-call
 */
const chargeResponseWith = (versions: CatalogVersions["Service"]) =>
  Effect.fnUntraced(function* (
    task: TaskRow,
    { counted, responder, usage }: VendorTokens,
    { accountId }: VendorAccount
  ): Effect.fn.Return<Pick<PersistedOutput, "captured" | "usage">, VendorError> {
    const { catalogId, createdAt, model: name, price: held, vendor } = task
    const version = yield* retryStore(versions.withId(catalogId))
    const catalog = Option.getOrUndefined(version)?.upstream
    const model = catalog?.priced(vendor, name)
    const nowMillis = DateTime.toEpochMillis(createdAt)
    const price = model && priceRowAt(model, nowMillis)
    // Cannot normally happen: the same catalog priced the response when it was accepted
    if (catalog === undefined || model === undefined || price === undefined) return yield* noPrice
    const reported = credibleUsage(usage, model, accountId)
    const charged = reported ?? counted
    const request = { catalog, model, price, nowMillis, fallbacks: [] }
    const settled = settledPrice(request, name, responder)
    const cost = chargeUsage(settled.price, charged)
    return {
      captured: cost > held ? held : cost,
      usage: {
        ...charged,
        counted: reported === undefined,
        ...(settled.pricedAs === undefined ? {} : { pricedAs: settled.pricedAs })
      } satisfies TaskUsage
    }
  })

const noPrice = new VendorError({
  class: "OPERATOR",
  message: "the catalog that priced the response cannot be read"
})

/** The output from the results that could be copied; fails if none could. ADR 0255. */
const outputOf = (
  task: TaskRow,
  { price, requested }: Pricing,
  { items, usage = {} }: VendorResult,
  urls: ReadonlyArray<string>,
  failures: ReadonlyArray<VendorError>
): Effect.Effect<PersistedOutput, VendorError> => {
  const [failure = noResult] = failures
  if (urls.length === 0) return Effect.fail(failure)
  const held = priceAt(task)
  const produced = { body: task.body, usage, results: urls.length }
  // The vendor's figures include lost results, which are not charged. If any are lost, charge by number instead
  const byFigures =
    price === undefined || failures.length > 0 ? undefined : capturedBy(price, held, produced)
  const captured = byFigures ?? chargeHeld(held, requested ?? items.length, urls.length)
  const lostOnes = `Task ${task.id} lost ${failures.length} results: ${failure.message}`
  return Effect.as(failures.length === 0 ? Effect.void : Effect.logWarning(lostOnes), {
    urls,
    captured
  })
}

const noResult = new VendorError({
  class: "FAILED",
  message: "The upstream reported success without any result"
})

/** Whether to copy the model's results, according to the catalog with which the task was accepted. */
const isCopiedWith = (versions: CatalogVersions["Service"]) =>
  Effect.fnUntraced(function* (task: TaskRow, item: UrlItem) {
    if (item.needsAuth || item.isShortLived === true) return true
    const { action, catalogId } = task
    const { model, vendor } = modelAt(task)
    const catalog = yield* retryStore(versions.withId(catalogId))
    const entry = Option.flatMap(catalog, ({ taskModel }) => taskModel(vendor, model, action))
    return !Option.exists(entry, ({ artifacts: policy }) => policy === "vendor-url")
  })

const surplusTotal = Metric.counter("gateway_vendor_surplus_results_total", {
  description: "Results beyond the number that was ordered and paid for, which were dropped",
  incremental: true
})

/** Keeps as many results as the price covers. Drops and counts the rest. */
const quotedItems = (
  task: TaskRow,
  { items }: VendorResult,
  requested = items.length
): Effect.Effect<ReadonlyArray<ResultItem>> => {
  const surplus = items.length - requested
  const { vendor } = modelAt(task)
  return surplus <= 0
    ? Effect.succeed(items)
    : Effect.logWarning(`${vendor} made ${items.length} results, ${requested} were ordered`).pipe(
        Effect.andThen(Metric.update(Metric.withAttributes(surplusTotal, { vendor }), surplus)),
        Effect.as(items.slice(0, requested))
      )
}

/** Retries a few times at once; while the host fails temporarily, retries until `until`. */
const retryDownload = Effect.fnUntraced(function* <A>(
  download: Effect.Effect<A, VendorError>,
  until: DateTime.Utc
) {
  let tries = 0
  while (true) {
    const downloaded = yield* Effect.result(download)
    if (Result.isSuccess(downloaded)) return downloaded.success
    const error = downloaded.failure
    if (error.class === "OPERATOR" || error.class === "FAILED") return yield* error
    const seconds = resultRetrySeconds[tries]
    if (seconds !== undefined) {
      tries += 1
      yield* Effect.sleep(Duration.seconds(seconds))
      continue
    }
    const isLate = DateTime.isGreaterThanOrEqualTo(yield* DateTime.now, until)
    if (error.class !== "RETRYABLE" || isLate) return yield* error
    tries = 0
    yield* Effect.sleep(Duration.seconds(failingHostRetrySeconds))
  }
})

/**
 * How long a temporary failure of the host is retried. Enough for a restart or a failover, and the client waits no
 * longer than this for it.
 */
const failingHostMax = Duration.minutes(1)

/** A minute before the deadline, so that results already copied can still be delivered. */
const lastTry = (deadlineAt: DateTime.Utc) =>
  Effect.map(DateTime.now, (now) =>
    DateTime.min(
      DateTime.addDuration(now, failingHostMax),
      DateTime.subtract(deadlineAt, { minutes: 1 })
    )
  )

/** A result that cannot be downloaded is `LOST`, whatever status the host returned. */
const resultLost = (error: VendorError): VendorError =>
  error.class === "OPERATOR" || error.class === "LOST" ? error : lost(error.message)

const isStoreUnavailable = Schema.is(StoreUnavailable)

/**
 * Retries while the artifact store is unavailable. The task's deadline interrupts the retries; an uninterruptible
 * caller passes it as `until`.
 */
const retryStoring = <E>(
  store: Effect.Effect<ArtifactRow, E | StoreUnavailable>,
  until?: DateTime.Utc
) =>
  store.pipe(
    Effect.retry({
      schedule: artifactRetries,
      while: (error) =>
        Effect.map(
          DateTime.now,
          (now) =>
            isStoreUnavailable(error) && (until === undefined || DateTime.isLessThan(now, until))
        )
    }),
    Effect.catchTag("StoreUnavailable", () =>
      Effect.fail(lost("the artifact store cannot be reached"))
    )
  )

/** Downloads directly from the account's configured base, and from any other host through the egress guard. */
const openWith = (web: MediaFetch["Service"]) =>
  Effect.fnUntraced(function* (
    account: VendorAccount,
    item: UrlItem
  ): Effect.fn.Return<Download, VendorError, Scope.Scope> {
    const own = yield* account.download?.(item) ?? Effect.succeedNone
    if (Option.isSome(own)) return own.value
    if (item.needsAuth) return yield* lost("it is not at the vendor's own address")
    const from = { url: item.url, schemes: ["https", "http"] } as const
    const { stream, ...found } = yield* Effect.mapError(web.open(from), notFetched)
    return { ...found, mime: item.mime, stream: Stream.mapError(stream, notFetched) }
  })

const notFetched = ({ detail, isTransient }: MediaFetchFailed): VendorError =>
  isTransient ? new VendorError({ class: "RETRYABLE", message: detail }) : lost(detail)

/** What determines a task's charge, apart from its results. */
interface Pricing {
  /** The number of results requested. Absent: the vendor decides. */
  readonly requested: number | undefined
  /** The price at which the task was accepted. */
  readonly price: PriceRule | undefined
}

/** Reads the pricing from the catalog with which the task was accepted. */
const pricingWith = (versions: CatalogVersions["Service"]) =>
  Effect.fnUntraced(function* (task: TaskRow): Effect.fn.Return<Pricing> {
    const { action, body, catalogId, createdAt } = task
    const { model, vendor } = modelAt(task)
    if (action === "responses") return { requested: requestedOf(body), price: undefined }
    const catalog = yield* retryStore(versions.withId(catalogId))
    const entry = Option.flatMap(catalog, ({ find }) => find(vendor, model, action))
    if (Option.isNone(entry)) return { requested: requestedOf(body), price: undefined }
    const { described } = entry.value
    return {
      requested: described === undefined ? requestedOf(body) : countOf(described.count, body),
      price: priceRowAt(entry.value, DateTime.toEpochMillis(createdAt))
    }
  })
