import { amounts, booleans, counts, integers, texts } from "../db/Columns.ts"
import { DurationCounts } from "../domain/Durations.ts"
import type { CallEnd, CallStart } from "./CallStore.ts"

/** The sums that the settled calls of one key and model add to the rollup. */
interface UsageSum {
  /** The position of the key in its batch, from 1. */
  readonly place: number
  readonly vendor: string
  readonly model: string
  readonly sandbox: boolean
  requests: number
  input: number
  cached: number
  output: number
  credits: bigint
  errors: number
  readonly durations: DurationCounts
}

/** Sums of a batch, so that the server need not read every call's usage. docs/reference/usage.md#rollup */
export class UsageSums {
  readonly #sums = new Map<string, UsageSum>()

  /** Adds a call that took this many milliseconds. */
  add(place: number, start: CallStart, end: CallEnd, captured: bigint, millis: number): void {
    const { sandbox, vendor } = start
    const model = start.model ?? ""
    const name = `${place} ${sandbox} ${vendor} ${model}`
    let sum = this.#sums.get(name)
    if (sum === undefined) {
      sum = { place, vendor, model, sandbox, ...nothing, durations: new DurationCounts() }
      this.#sums.set(name, sum)
    }
    if (end.outcome !== "settled") {
      sum.errors += 1
      return
    }
    sum.requests += 1
    sum.durations.add(millis)
    sum.credits += captured
    if (end.usage === null) return
    sum.input += countOf(end.usage["inputTokens"])
    sum.cached += countOf(end.usage["cachedInputTokens"])
    sum.output += countOf(end.usage["outputTokens"])
  }

  /** The columns of `drawn_usage`. */
  columns() {
    const sums = [...this.#sums.values()]
    return [
      integers(sums, ({ place }) => place),
      texts(sums, ({ vendor }) => vendor),
      texts(sums, ({ model }) => model),
      booleans(sums, ({ sandbox }) => sandbox),
      counts(sums, ({ requests }) => requests),
      counts(sums, ({ input }) => input),
      counts(sums, ({ cached }) => cached),
      counts(sums, ({ output }) => output),
      amounts(sums, ({ credits }) => credits),
      counts(sums, ({ errors }) => errors),
      texts(sums, ({ durations }) => durations.text())
    ]
  }
}

const nothing = { requests: 0, input: 0, cached: 0, output: 0, credits: 0n, errors: 0 }

const countOf = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) ? value : 0
