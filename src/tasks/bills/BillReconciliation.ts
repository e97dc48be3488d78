import * as Credits from "../../domain/Credits.ts"
import type { BillLine } from "./Bill.ts"
import type { JobRow } from "./BillStore.ts"

/** A line whose job has charged nothing. `taskId` null: no job has this id. */
export interface BoughtNotCharged {
  readonly line: BillLine
  readonly taskId: string | null
}

/** A job whose task has charged, and that the bill does not name. */
export interface ChargedNotBought {
  readonly taskId: string
  readonly model: string
  readonly day: string
  readonly charged: Credits.Credits
}

/** What was billed and charged for a model on a day, where the two differ. */
export interface PriceDifference {
  readonly day: string
  readonly model: string
  readonly billed: Credits.Credits
  readonly charged: Credits.Credits
}

export interface Reconciled {
  readonly matched: number
  readonly boughtNotCharged: ReadonlyArray<BoughtNotCharged>
  readonly chargedNotBought: ReadonlyArray<ChargedNotBought>
  readonly differences: ReadonlyArray<PriceDifference>
}

/** Compares a bill with jobs, given a day at a time. docs/reference/reconciliation.md */
export class BillReconciliation {
  readonly #lines: ReadonlyArray<BillLine>
  readonly #byId = new Map<string, Array<BillLine>>()
  readonly #jobs = new Map<string, JobRow>()
  readonly #unbought = new Map<string, ChargedNotBought>()
  readonly #bought = new Set<string>()

  constructor(lines: ReadonlyArray<BillLine>) {
    this.#lines = lines
    for (const line of lines) {
      if (line.id === null) continue
      const same = this.#byId.get(line.id)
      if (same === undefined) this.#byId.set(line.id, [line])
      else same.push(line)
    }
  }

  /** `isJudged`: the bill should name jobs of this day. */
  add(job: JobRow, day: string, isJudged: boolean): void {
    const { captured, model, taskId } = job
    const ids = idsOf(job.handle).filter((id) => this.#byId.has(id))
    for (const id of ids) this.#jobs.set(id, job)
    if (ids.length > 0) this.#bought.add(taskId)
    else if (isJudged && captured !== null && captured > 0n) {
      this.#unbought.set(taskId, { taskId, model, day, charged: captured })
    }
  }

  end(): Reconciled {
    const boughtNotCharged: Array<BoughtNotCharged> = []
    const sums = new Map<string, { day: string; model: string; billed: bigint; charged: bigint }>()
    const charged = new Set<string>()
    let matched = 0
    for (const line of this.#lines) {
      if (line.id === null) continue
      const job = this.#jobs.get(line.id)
      if (job === undefined) {
        boughtNotCharged.push({ line, taskId: null })
        continue
      }
      matched += 1
      // What an unfinished task will charge is not known yet
      if (job.captured === null) continue
      if (job.captured === 0n) {
        if (line.amount > 0n) boughtNotCharged.push({ line, taskId: job.taskId })
        continue
      }
      const name = `${line.day} ${job.model}`
      const sum = sums.get(name) ?? { day: line.day, model: job.model, billed: 0n, charged: 0n }
      sum.billed += line.amount
      // A task is charged once, whatever number of lines it has
      if (!charged.has(job.taskId)) sum.charged += job.captured
      charged.add(job.taskId)
      sums.set(name, sum)
    }
    return {
      matched,
      boughtNotCharged,
      // Another attempt of the task may be the one that the bill names
      chargedNotBought: [...this.#unbought.values()].filter((it) => !this.#bought.has(it.taskId)),
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

/** All texts of a handle, and the parts of its URLs: the vendor's id is among them. */
const idsOf = (handle: JobRow["handle"]): ReadonlyArray<string> =>
  Object.values(handle).flatMap((value) =>
    typeof value === "string" ? value.split(/[/?#&=]/u).concat(value) : []
  )
