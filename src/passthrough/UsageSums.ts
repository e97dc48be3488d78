import { amounts, booleans, counts, integers, texts } from "../db/Columns.ts"
import type { CallEnd, CallStart } from "./CallStore.ts"

/** What the settled calls of one key and model add to the rollup. */
interface UsageSum {
  /** Of the key in its batch, from 1. */
  readonly place: number
  readonly vendor: string
  readonly model: string
  readonly sandbox: boolean
  requests: number
  input: number
  cached: number
  output: number
  credits: bigint
}

/** Sums of a batch, so that the server need not read every call's usage. docs/reference/usage.md#rollup */
export class UsageSums {
  readonly #sums = new Map<string, UsageSum>()

  add(place: number, start: CallStart, end: CallEnd, captured: bigint): void {
    if (end.outcome !== "settled") return
    const { sandbox, vendor } = start
    const model = start.model ?? ""
    const name = `${place} ${sandbox} ${vendor} ${model}`
    let sum = this.#sums.get(name)
    if (sum === undefined) {
      sum = { place, vendor, model, sandbox, ...nothing }
      this.#sums.set(name, sum)
    }
    sum.requests += 1
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
      amounts(sums, ({ credits }) => credits)
    ]
  }
}

const nothing = { requests: 0, input: 0, cached: 0, output: 0, credits: 0n }

const countOf = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) ? value : 0
