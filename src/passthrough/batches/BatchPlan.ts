import { Effect, Result, Schema } from "effect"
import type { Stream } from "effect"
import { capFaults, describeValue } from "../../catalog/FieldFaults.ts"
import type { OpenRoute, TokenModel } from "../../catalog/OpenRoutes.ts"
import type { UpstreamCatalog } from "../../catalog/UpstreamCatalog.ts"
import { bounded, zero } from "../../domain/Credits.ts"
import type { Credits } from "../../domain/Credits.ts"
import { at, hasDuplicateKeys } from "../../domain/json/Json.ts"
import { memberOf } from "../../domain/json/JsonBytes.ts"
import { documentOf, isMark, keepDocument, parseDocument } from "../../domain/json/JsonDocument.ts"
import type { JsonDocument } from "../../domain/json/JsonDocument.ts"
import { JsonScanner } from "../../domain/json/JsonScanner.ts"
import { batchLineBytesMax, batchLinesMax } from "../../domain/limits/FileLimits.ts"
import { faultsMax } from "../../domain/limits/Limits.ts"
import { forEachLine } from "../../domain/Lines.ts"
import type { Line } from "../../domain/Lines.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault, Problem } from "../../domain/Problem.ts"
import { inSlices, sliceBytes } from "../../domain/shares/Slices.ts"
import type { Sliced } from "../../domain/shares/Slices.ts"
import { planCall } from "../CallPlan.ts"

/** The form of a vendor's batch: which requests it may contain, and how its file holds them. */
export interface BatchShape {
  readonly catalog: UpstreamCatalog
  /** The route of every request. */
  readonly route: OpenRoute
  /** The member of a line that contains the request body. */
  readonly body: "body" | "params"
  /** The required values of other members. */
  readonly fixed: Readonly<Record<string, string>>
  /** Whether faults name a request by its line, from 1, or by its index in the client's list. */
  readonly at: "#/lines" | "#/requests"
  /** What the vendor accepts as `custom_id`. */
  readonly customId: CustomIdRule
  /** The most different models that the requests may name. */
  readonly modelsMax: number
  readonly nowMillis: number
}

export interface CustomIdRule {
  readonly test: (customId: string) => boolean
  /** For error messages, such as `a string of 1 to 256 characters`. */
  readonly expected: string
}

/** A model as requests name it, and as it is priced. */
export interface PlannedModel {
  readonly name: string
  readonly model: TokenModel
}

/** A batch that may be accepted. */
export interface PlannedBatch {
  readonly requests: number
  /** The models of the requests, in order of first use. */
  readonly models: readonly [PlannedModel, ...ReadonlyArray<PlannedModel>]
  /** The length of the longest `custom_id` in characters. */
  readonly longestId: number
  /** The total maximum cost of the requests, at batch prices. */
  readonly hold: Credits
}

/**
 * Reads the requests of a batch and plans each as a call. Fails with 2001, which names up to `faultsMax` faults, each
 * with its line or index. docs/reference/vendor-batches.md#price
 */
export const planBatch = Effect.fn("planBatch")(function* <E>(
  shape: BatchShape,
  file: Stream.Stream<Uint8Array, E>
): Effect.fn.Return<PlannedBatch, Problem | E> {
  const plan = new BatchPlan(shape)
  yield* forEachLine(file, batchLineBytesMax, (line) =>
    Effect.andThen(
      inSlices(() => plan.add(line)),
      Effect.suspend(() => (plan.isFull ? plan.refusal : Effect.void))
    )
  )
  return yield* plan.end()
})

const Named = Schema.Struct({ custom_id: Schema.String })
const isNamed = Schema.is(Named)

class BatchPlan {
  readonly #shape: BatchShape
  readonly #ids = new Set<string>()
  readonly #models = new Map<string, TokenModel>()
  readonly #faults: Array<FieldFault> = []
  #line = 0
  #hold = zero
  #longestId = 0

  constructor(shape: BatchShape) {
    this.#shape = shape
  }

  /** Whether the reading stops: the batch has too many requests or lines, or the most faults that are reported. */
  get isFull(): boolean {
    const isLong = this.#ids.size > batchLinesMax || this.#line > 2 * batchLinesMax
    return isLong || this.#faults.length >= faultsMax
  }

  get refusal(): Effect.Effect<never, Problem> {
    const [first, ...rest] = this.#faults
    if (first === undefined) return Effect.fail(tooMany(this.#shape))
    return Effect.fail(invalid(capFaults([first, ...rest])))
  }

  /** Adds a line. Skips empty lines. */
  *add(line: Line): Sliced<void> {
    this.#line += 1
    if (line.length === 0) return
    if (line.tail !== undefined) {
      return this.#refuse("", `Expected at most ${batchLineBytesMax} bytes, got ${line.length}`)
    }
    const document = yield* readDocument(line.bytes)
    if (Result.isFailure(document)) return this.#refuse("", lineFault(document.failure))
    const { keys, value } = document.success
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return this.#refuse("", "Expected an object")
    }
    if (hasDuplicateKeys(keys, value)) return this.#refuse("", "An object has the same key twice")
    this.#checkMembers(value)
    const { body: name } = this.#shape
    if (at(value, name, "stream") === true) {
      this.#refuse(`/${name}/stream`, "A request of a batch cannot be streamed")
    }
    const body = memberOf(line.bytes, name)
    if (body === undefined || typeof at(value, name) !== "object") {
      return this.#refuse(`/${name}`, "Expected the body of a request")
    }
    // Parses in slices and caches the result, because the plan would parse the body without a pause
    const parsed = yield* readDocument(body)
    if (Result.isFailure(parsed)) return this.#refuse(`/${name}`, lineFault(parsed.failure))
    this.#plan(body)
  }

  end(): Effect.Effect<PlannedBatch, Problem> {
    if (this.#faults.length > 0) return this.refusal
    const [first, ...rest] = [...this.#models].map(([name, model]) => ({ name, model }))
    if (first === undefined) {
      return Effect.fail(
        invalid([{ pointer: this.#shape.at, detail: "Expected at least one request" }])
      )
    }
    return Effect.succeed({
      requests: this.#ids.size,
      models: [first, ...rest],
      longestId: this.#longestId,
      hold: this.#hold
    })
  }

  #refuse(pointer: string, detail: string): void {
    if (this.#faults.length < faultsMax) {
      const { at: list } = this.#shape
      const place = list === "#/lines" ? this.#line : this.#line - 1
      this.#faults.push({ pointer: `${list}/${place}${pointer}`, detail })
    }
  }

  #checkMembers(value: object): void {
    const { body, customId, fixed } = this.#shape
    for (const key of Object.keys(value)) {
      const isKnown = key === "custom_id" || key === body || Object.hasOwn(fixed, key)
      if (!isKnown) this.#refuse(`/${encodeURIComponent(key.slice(0, 60))}`, "Unknown member")
    }
    for (const [key, expected] of Object.entries(fixed)) {
      const given = at(value, key)
      if (given !== expected) {
        this.#refuse(`/${key}`, `Expected ${expected}, got ${describeValue(given)}`)
      }
    }
    if (!isNamed(value) || isMark(value.custom_id) || !customId.test(value.custom_id)) {
      return this.#refuse("/custom_id", `Expected ${customId.expected}`)
    }
    if (this.#ids.has(value.custom_id)) {
      return this.#refuse("/custom_id", "An earlier request has the same custom_id")
    }
    this.#ids.add(value.custom_id)
    this.#longestId = Math.max(this.#longestId, value.custom_id.length)
  }

  #plan(body: Uint8Array): void {
    const { body: name, catalog, modelsMax, nowMillis, route } = this.#shape
    const planned = planCall(catalog, route, undefined, body, nowMillis, { inBatch: true })
    if (Result.isFailure(planned)) {
      const { detail, errors } = planned.failure
      if (errors === undefined) return this.#refuse(`/${name}/model`, detail)
      for (const fault of errors) {
        this.#refuse(`/${name}${fault.pointer.slice(1)}`, fault.detail)
      }
      return
    }
    const { hold, metered, model } = planned.success
    if (metered._tag !== "Tokens" || model === null) {
      return this.#refuse(`/${name}/model`, "Expected a model that is charged by the token")
    }
    if (!this.#models.has(model) && this.#models.size >= modelsMax) {
      return this.#refuse(`/${name}/model`, this.#otherModel)
    }
    this.#models.set(model, metered.model)
    this.#hold = bounded(this.#hold + hold)
  }

  get #otherModel(): string {
    const { modelsMax } = this.#shape
    if (modelsMax > 1) return `Expected one of the ${modelsMax} models that earlier requests name`
    const [first] = this.#models.keys()
    return `Expected ${first}, as in the first request: all requests of a batch name one model`
  }
}

const lineFault = (fault: string): string => fault.replace("The body", "The request")

const tooMany = ({ at: pointer }: BatchShape): Problem =>
  invalid([{ pointer, detail: `Expected at most ${batchLinesMax} requests` }])

/** Parses a line or its body in slices, and caches the document if it holds long texts separately. */
export function* readDocument(bytes: Uint8Array): Sliced<Result.Result<JsonDocument, string>> {
  if (bytes.length <= sliceBytes) return documentOf(bytes)
  const scanner = new JsonScanner()
  for (let start = 0; start < bytes.length; start += sliceBytes) {
    const fault = scanner.add(bytes.subarray(start, start + sliceBytes))
    if (fault !== undefined) return Result.fail(fault)
    yield
  }
  const parsed = yield* parseDocument(bytes, scanner)
  if (Result.isSuccess(parsed)) keepDocument(bytes, parsed.success)
  return parsed
}
