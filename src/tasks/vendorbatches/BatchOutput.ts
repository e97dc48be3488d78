import { Context, DateTime, Effect, Layer, Option, Schema, Semaphore, Stream } from "effect"
import { createHash } from "node:crypto"
import { Files } from "../../artifacts/files/Files.ts"
import { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import { BatchRequests } from "../../catalog/bodies/BatchRequests.ts"
import { batchPriceOf } from "../../catalog/Price.ts"
import { priceAt } from "../../catalog/PriceRow.ts"
import { AppConfig } from "../../config/Config.ts"
import { retryStore } from "../../db/StoreFailures.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { make } from "../../domain/Credits.ts"
import type { Credits } from "../../domain/Credits.ts"
import { outputFileIdOf } from "../../domain/Ids.ts"
import type { FileId } from "../../domain/Ids.ts"
import { batchLineBytesMax, resultsAtOnce } from "../../domain/limits/FileLimits.ts"
import { LineSplitter } from "../../domain/Lines.ts"
import type { Line } from "../../domain/Lines.ts"
import { StoreUnavailable } from "../../domain/Problem.ts"
import { batchFileRetries } from "../../domain/Retries.ts"
import { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"
import type { BatchResult, UrlItem, VendorAccount } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import { lost } from "../completion/ResultStream.ts"
import type { PersistedOutput } from "../completion/TaskOutput.ts"
import { Fenced } from "../submission/PaidSubmit.ts"
import type { TaskUsage } from "../TaskStore.ts"
import { TaskStore } from "../TaskStore.ts"
import { withoutMarks } from "./Marks.ts"
import { metered } from "./MeteredResults.ts"
import type { ReadResults } from "./MeteredResults.ts"
import type { BatchModel, BatchPricing } from "./ResultLine.ts"
import { VendorBatchStore } from "./VendorBatchStore.ts"
import type { BatchReceipt, InHand, ReceiptSum } from "./VendorBatchStore.ts"

/** A batch that has ended at its vendor. */
export interface EndedBatch {
  readonly account: VendorAccount
  readonly result: BatchResult
}

/**
 * Reads the results of a batch in one pass. While they stream through, they are stored as the user's files and turned
 * into receipts, so they are never in memory as a whole. If the process dies, the next owner reads them again: receipts
 * already written stay, and the file replaces the partial one. docs/reference/vendor-batches.md#results, ADR 0300
 */
export class BatchOutput extends Context.Service<
  BatchOutput,
  {
    readonly persist: (
      owned: InHand,
      ended: EndedBatch
    ) => Effect.Effect<PersistedOutput, VendorError | Fenced>
  }
>()("gateway/tasks/BatchOutput") {
  static readonly layer = Layer.effect(
    BatchOutput,
    Effect.gen(function* () {
      const places = yield* Semaphore.make(resultsAtOnce)
      const persist = yield* makePersist
      return BatchOutput.of({
        persist: (owned, ended) => places.withPermit(persist(owned, ended))
      })
    })
  )
}

const decodeBody = Schema.decodeUnknownOption(BatchBody)

const makePersist = Effect.gen(function* () {
  const { baseUrl } = yield* AppConfig
  const store = yield* VendorBatchStore
  const pricingOf = pricingWith(yield* CatalogVersions, yield* BatchRequests)
  const tasks = yield* TaskStore
  const files = yield* Files
  const copy = copyWith(files, store)

  return Effect.fn("BatchOutput.persist")(function* (
    owned: InHand,
    { account, result }: EndedBatch
  ) {
    const row = yield* retryStore(tasks.find(owned.task.id))
    const body = Option.flatMap(row, (it) => decodeBody(it.body))
    if (Option.isNone(row) || Option.isNone(body)) return yield* new Fenced()
    const task = row.value
    const pricing = yield* pricingOf(task, body.value, {
      account: account.accountId,
      file: requestsOf(files, body.value)
    })
    const before = yield* retryStore(store.sumReceipts(task))
    let left = make(task.price - capturedOf(before))
    const source = { owned, task, pricing, take: () => left, read: new Map() }
    const copyOf = Effect.fnUntraced(function* (
      kind: "output" | "errors",
      open: Effect.Effect<Stream.Stream<Uint8Array, VendorError>, VendorError, never> | undefined
    ) {
      if (open === undefined) return null
      return yield* copy(source, kind, open, (charged) => {
        left = make(left - charged)
      })
    })
    const output = yield* copyOf("output", outputOf(files, account, result, body.value))
    const errors = yield* copyOf(
      "errors",
      result.errors === undefined ? undefined : downloadOf(account, result.errors)
    )
    const sums = yield* retryStore(store.sumReceipts(task))
    const counts =
      account.answerLine !== undefined
        ? {
            status: result.status,
            completed: total(sums, (it) => it.settled),
            failed: total(sums, (it) => it.released)
          }
        : result
    yield* retryStore(store.noteEnd(owned, counts, { output, errors }))
    return {
      urls: [output, errors].flatMap((id) =>
        id === null ? [] : [`${baseUrl}/v1/files/${id}/content`]
      ),
      captured: capturedOf(sums),
      usage: {
        ...tokensOf(sums),
        counted: sums.some((it) => it.counted),
        ...sharesOf(body.value, sums)
      }
    }
  })
})

type Sums = ReadonlyArray<ReceiptSum>

const capturedOf = (sums: Sums): Credits =>
  make(sums.reduce((sum, { captured }) => sum + captured, 0n))

const total = (sums: Sums, figure: (of: ReceiptSum) => number): number =>
  sums.reduce((sum, it) => sum + figure(it), 0)

const tokensOf = (sums: Sums) => ({
  inputTokens: total(sums, (it) => it.input),
  cachedInputTokens: total(sums, (it) => it.cached),
  cacheWriteTokens: total(sums, (it) => it.written),
  outputTokens: total(sums, (it) => it.output),
  reasoningTokens: total(sums, (it) => it.reasoning)
})

/** The usage of each model, for a batch whose requests name several models. */
const sharesOf = ({ models }: BatchBody, sums: Sums): Pick<TaskUsage, "models"> =>
  models === undefined
    ? {}
    : {
        models: models.map((model) => {
          const own = sums.filter((it) => it.model === model)
          return { model, captured: String(capturedOf(own)), ...tokensOf(own) }
        })
      }

interface Requests {
  readonly account: string
  readonly file: Opened
}

/** Reads the prices that were valid when the batch was created. */
const pricingWith = (versions: CatalogVersions["Service"], requests: BatchRequests["Service"]) =>
  Effect.fnUntraced(function* (
    { catalogId, createdAt, model: name, vendor }: TaskRow,
    { endpoint, models: [first, ...others] = [name] }: BatchBody,
    { account, file }: Requests
  ): Effect.fn.Return<BatchPricing, VendorError> {
    const version = yield* retryStore(versions.withId(catalogId))
    const catalog = Option.getOrUndefined(version)?.upstream
    const found = catalog?.match(vendor, "POST", endpoint)
    const route = found?._tag === "Open" ? found.route : undefined
    // Cannot normally happen: the same catalog priced the batch when it was accepted
    if (catalog === undefined || route?.meter.per !== "tokens") return yield* noPrice
    const nowMillis = DateTime.toEpochMillis(createdAt)
    const priced = Effect.fnUntraced(function* (model: string) {
      const found = catalog.priced(vendor, model)
      const listed = found && priceAt(found, nowMillis)
      const price = listed && batchPriceOf(listed)
      if (found === undefined || price === undefined) return yield* noPrice
      return { name: model, model: found, price } satisfies BatchModel
    })
    const ofFirst = yield* priced(first)
    const ofOthers = new Map(
      yield* Effect.forEach(others, (it) => Effect.map(priced(it), (model) => [it, model] as const))
    )
    return {
      catalog,
      protocol: route.meter.protocol,
      account,
      requests: yield* requests.read({ catalog, route, nowMillis }, yield* file),
      modelOf: ({ model }) => ofOthers.get(model) ?? ofFirst,
      nowMillis
    }
  })

const noPrice = new VendorError({
  class: "OPERATOR",
  message: "the catalog that priced the batch cannot be read"
})

type Opened = Effect.Effect<Stream.Stream<Uint8Array, VendorError>, VendorError>

/** The responses: the vendor's file, or what the simulator generates from the requests. */
const outputOf = (
  files: Files["Service"],
  account: VendorAccount,
  { mark, output }: BatchResult,
  body: BatchBody
): Opened | undefined => {
  const { answerLine } = account
  if (answerLine === undefined) {
    if (output === undefined) return undefined
    const opened = downloadOf(account, output)
    return mark === undefined ? opened : Effect.map(opened, (bytes) => withoutMarks(mark, bytes))
  }
  return Effect.map(requestsOf(files, body), (stream) => {
    const splitter = new LineSplitter(batchLineBytesMax)
    const answers = (lines: ReadonlyArray<Line>) =>
      lines.filter(({ length }) => length > 0).map(({ bytes }) => answerLine(body.endpoint, bytes))
    return stream.pipe(
      Stream.map((chunk) => answers(splitter.push(chunk))),
      Stream.concat(Stream.suspend(() => Stream.succeed(answers(splitter.end())))),
      Stream.flatMap((lines) => Stream.fromIterable(lines))
    )
  })
}

/** The file with the requests of a batch. */
const requestsOf = (files: Files["Service"], body: BatchBody): Opened => {
  const file = { id: body.input_file_id, bytes: BigInt(body.bytes) }
  return files.open(file).pipe(
    Effect.map((stream) => Stream.mapError(stream, () => storeAway)),
    Effect.mapError(() => storeAway)
  )
}

const storeAway = new VendorError({
  class: "RETRYABLE",
  message: "The artifact store cannot be reached"
})

const downloadOf = (account: VendorAccount, item: UrlItem): Opened =>
  Effect.succeed(
    Stream.unwrap(
      Effect.gen(function* () {
        const opened = yield* account.download?.(item) ?? Effect.succeedNone
        return Option.isSome(opened)
          ? opened.value.stream
          : Stream.fail(lost("it is not at the vendor's own address"))
      })
    )
  )

interface Source {
  readonly owned: InHand
  readonly task: TaskRow
  readonly pricing: BatchPricing
  /** How much may still be charged. */
  readonly take: () => Credits
  readonly read: ReadResults
}

/** Stores a file of results and writes the receipts of its lines as they stream through. Returns the file's id. */
const copyWith = (files: Files["Service"], store: VendorBatchStore["Service"]) =>
  Effect.fnUntraced(function* (
    source: Source,
    kind: "output" | "errors",
    open: Opened,
    charged: (amount: Credits) => void
  ): Effect.fn.Return<FileId | null, VendorError | Fenced> {
    const { owned, take, task } = source
    const id = outputFileIdOf(
      task.id,
      createHash("sha256").update(`${task.id}:${kind}`).digest("hex")
    )
    const write = Effect.fnUntraced(function* (receipts: ReadonlyArray<BatchReceipt>) {
      if (receipts.length === 0) return
      const now = yield* DateTime.now
      const written = yield* retryStore(store.addReceipts(owned, take(), receipts, now))
      if (Option.isNone(written)) return yield* new Fenced()
      charged(written.value)
    })
    const file = { id, userId: task.userId, filename: `${kind}.jsonl` }
    const once = Effect.flatMap(open, (stream) =>
      files.putOutput(file, metered({ ...source, kind }, stream, write))
    ).pipe(
      Effect.catchIf(
        (error) => error instanceof StoreUnavailable,
        () => Effect.fail(storeAway)
      )
    )
    const isKept = yield* Effect.retry(once, {
      ...batchFileRetries,
      while: (error) => error._tag === "VendorError" && error.class === "RETRYABLE"
    })
    return isKept ? id : null
  })
