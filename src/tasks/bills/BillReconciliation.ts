import * as Credits from "../../domain/Credits.ts"
import type { BillLine } from "./Bill.ts"
import type { CallRow, JobRow } from "./BillStore.ts"

/** A purchase: the job of a task, or a call. */
interface Purchase {
  readonly taskId: string | null
  readonly callId: string | null
  readonly model: string
  /** `null`: not known yet. */
  readonly captured: Credits.Credits | null
}

/** A billed line for which nothing was charged. Both ids are null if no job or call matches the line. */
export interface BoughtNotCharged {
  readonly line: BillLine
  readonly taskId: string | null
  readonly callId: string | null
}

/** A charged job or call that the bill does not contain. */
export interface ChargedNotBought {
  readonly taskId: string | null
  readonly callId: string | null
  readonly model: string
  readonly day: string
  readonly charged: Credits.Credits
}

/** The amounts billed and charged for one model on one day, where they differ. */
export interface PriceDifference {
  readonly day: string
  readonly model: string
  readonly billed: Credits.Credits
  readonly charged: Credits.Credits
}

/** What the vendor billed, and what users were charged for that work. */
export interface Margin {
  readonly billed: Credits.Credits
  readonly charged: Credits.Credits
}

export interface Reconciled {
  readonly matched: number
  /** Sums of the lines that have an id, without those of unfinished tasks. */
  readonly margins: Margins
  readonly boughtNotCharged: ReadonlyArray<BoughtNotCharged>
  readonly chargedNotBought: ReadonlyArray<ChargedNotBought>
  readonly differences: ReadonlyArray<PriceDifference>
}

/** Compares a bill with jobs and calls; the caller adds them day by day. docs/reference/reconciliation.md */
export class BillReconciliation {
  readonly #lines: ReadonlyArray<BillLine>
  readonly #ids: ReadonlySet<string | null>
  readonly #purchases = new Map<string, Purchase>()
  readonly #unbought = new Map<string, ChargedNotBought>()
  readonly #bought = new Set<string>()

  constructor(lines: ReadonlyArray<BillLine>) {
    this.#lines = lines
    this.#ids = new Set(lines.map(({ id }) => id))
  }

  /** `isJudged`: jobs of this day should appear in the bill, so a charged job that is missing is reported. */
  add(job: JobRow, day: string, isJudged: boolean): void {
    const { captured, model, taskId } = job
    const ids = idsOf(job.handle).filter((id) => this.#ids.has(id))
    for (const id of ids) this.#purchases.set(id, { taskId, callId: null, model, captured })
    if (ids.length > 0) this.#bought.add(taskId)
    else if (isJudged && captured !== null && captured > 0n) {
      this.#unbought.set(taskId, { taskId, callId: null, model, day, charged: captured })
    }
  }

  /** Adds a call that appears in the bill. */
  addCall({ callId, captured, model, requestId }: CallRow): void {
    this.#purchases.set(requestId, { taskId: null, callId, model, captured })
  }

  end(): Reconciled {
    const boughtNotCharged: Array<BoughtNotCharged> = []
    const sums = new Map<string, { day: string; model: string; billed: bigint; charged: bigint }>()
    const charged = new Set<string>()
    const margins = new Margins()
    let matched = 0
    for (const line of this.#lines) {
      if (line.id === null) continue
      const job = this.#purchases.get(line.id)
      if (job === undefined) {
        boughtNotCharged.push({ line, taskId: null, callId: null })
        margins.add({ ...line, billed: line.amount, charged: Credits.zero })
        continue
      }
      matched += 1
      // The charge of an unfinished task is not known yet
      if (job.captured === null) continue
      if (job.captured === 0n) {
        const { callId, taskId } = job
        if (line.amount > 0n) boughtNotCharged.push({ line, taskId, callId })
        margins.add({
          day: line.day,
          model: job.model,
          billed: line.amount,
          charged: Credits.zero
        })
        continue
      }
      const name = `${line.day} ${job.model}`
      const sum = sums.get(name) ?? { day: line.day, model: job.model, billed: 0n, charged: 0n }
      sum.billed += line.amount
      // A task is charged once, even if several lines belong to it
      const subject = job.taskId ?? job.callId ?? line.id
      const paid = charged.has(subject) ? Credits.zero : job.captured
      sum.charged += paid
      margins.add({ day: line.day, model: job.model, billed: line.amount, charged: paid })
      charged.add(subject)
      sums.set(name, sum)
    }
    return {
      matched,
      margins,
      boughtNotCharged,
      // A task that looks unbilled may appear in the bill under another attempt
      chargedNotBought: [...this.#unbought.values()].filter(
        (it) => !this.#bought.has(it.taskId ?? "")
      ),
      differences: [...sums.values()]
        .filter((it) => it.billed !== it.charged)
        .map(({ billed, charged, day, model }) => ({
          day,
          model,
          billed: Credits.make(billed),
          charged: Credits.make(charged)
        }))
        .toSorted((a, b) => (`${a.day} ${a.model}` < `${b.day} ${b.model}` ? -1 : 1))
    }
  }
}

interface Sum {
  billed: bigint
  charged: bigint
}

/** Sums of amounts by model and by day. */
export class Margins {
  readonly #models = new Map<string, Sum>()
  readonly #days = new Map<string, Sum>()

  add({ billed, charged, day, model }: PriceDifference): void {
    addTo(this.#models, model, { billed, charged })
    addTo(this.#days, day, { billed, charged })
  }

  /** The largest amount first. */
  models(): ReadonlyArray<Margin & { readonly model: string }> {
    return [...this.#models]
      .map(([model, { billed, charged }]) => ({
        model,
        billed: Credits.make(billed),
        charged: Credits.make(charged)
      }))
      .toSorted((a, b) => Number(b.billed - a.billed))
  }

  /** The earliest first. */
  days(): ReadonlyArray<Margin & { readonly day: string }> {
    return [...this.#days]
      .map(([day, { billed, charged }]) => ({
        day,
        billed: Credits.make(billed),
        charged: Credits.make(charged)
      }))
      .toSorted((a, b) => (a.day < b.day ? -1 : 1))
  }
}

const addTo = (sums: Map<string, Sum>, name: string, { billed, charged }: Margin): void => {
  const sum = sums.get(name) ?? { billed: 0n, charged: 0n }
  sum.billed += billed
  sum.charged += charged
  sums.set(name, sum)
}

/** Every string in a handle, and the parts of its URLs. One of them is the vendor's id of the job. */
const idsOf = (handle: JobRow["handle"]): ReadonlyArray<string> =>
  Object.values(handle).flatMap((value) =>
    typeof value === "string" ? value.split(/[/?#&=]/u).concat(value) : []
  )
