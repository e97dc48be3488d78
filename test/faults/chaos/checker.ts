import { existsSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { always, atRest, brief, erased } from "./invariants.ts"
import type { Invariant } from "./invariants.ts"
import type { Load } from "./load.ts"
import type { Postgres } from "./postgres.ts"
import type { ServiceProcess } from "./processes.ts"
import type { Receivers } from "./receivers.ts"
import type { Vendors } from "./vendors.ts"

export interface Breach {
  readonly invariant: string
  /** The number of breaches, as far as it is known. */
  readonly count: number
  readonly examples: ReadonlyArray<string>
  /** Seconds since the start. */
  readonly atSeconds: number
}

export interface Checked {
  readonly postgres: Postgres
  readonly load: Load
  readonly vendors: Vendors
  readonly receivers: Receivers
  readonly processes: ReadonlyArray<ServiceProcess>
  readonly wrongAnswers: ReadonlyArray<string>
  readonly beganAt: number
  /** The checkout of the older release with which the run began. */
  readonly oldRelease: string | undefined
}

interface TaskRow {
  readonly id: string
  /** Null: it was erased with its user, and no client knows it. */
  readonly tag: string | null
  readonly status: string
  readonly code: string | null
}

/** Collects violations, each only once. */
export class Checker {
  readonly breaches: Array<Breach> = []
  rounds = 0
  readonly #of: Checked

  constructor(of: Checked) {
    this.#of = of
  }

  #note(invariant: string, examples: ReadonlyArray<string>): void {
    if (examples.length === 0 || this.breaches.some((it) => it.invariant === invariant)) return
    const atSeconds = Math.round((Date.now() - this.#of.beganAt) / 1000)
    this.breaches.push({
      invariant,
      count: examples.length,
      examples: examples.slice(0, 5),
      atSeconds
    })
  }

  async #ask({ name, sql }: Invariant): Promise<void> {
    const { postgres } = this.#of
    const rows = await postgres
      .query<{ what: string }>(`SELECT * FROM (${sql}) x LIMIT 1000`)
      .catch((cause: unknown) => {
        // Before the upgrade, tables or columns of the new release do not exist
        if (/^42(?:P01|703)$/u.test(String((cause as { code?: string }).code))) return []
        throw cause
      })
    this.#note(
      name,
      rows.map(({ what }) => what)
    )
  }

  /** Checks the invariants whose breach lasts only seconds. */
  async checkBrief(): Promise<void> {
    for (const invariant of brief) await this.#ask(invariant)
  }

  /** Checks the invariants that hold even while faults come and go. */
  async check(): Promise<void> {
    this.rounds += 1
    const { oldRelease } = this.#of
    const all = always.filter(
      ({ since }) =>
        since === undefined ||
        oldRelease === undefined ||
        existsSync(join(oldRelease, "schema/migrations", `${since}.sql`))
    )
    for (const invariant of all) await this.#ask(invariant)
    await this.#seeMedia()
    this.#vendorsAndReceivers()
  }

  /** Checks the invariants that hold once all faults are over. */
  async checkAtRest(): Promise<void> {
    await this.check()
    for (const invariant of atRest) await this.#ask(invariant)
    await this.#tasks()
    await this.#deliveries()
    await this.#calls()
    await this.#topUps()
    await this.#processes()
  }

  /** Checks what holds after the last pass of every erasure. */
  async checkErased(mediaFolder: string): Promise<void> {
    for (const invariant of erased) await this.#ask(invariant)
    const { load } = this.#of
    const deleted = new Set(load.deleted.map(({ id }) => id))
    const kept = (await readdir(mediaFolder, { recursive: true })).join()
    this.#note(
      "the media and files of a deleted user are gone from their store",
      [...this.#media]
        .filter(([id, user]) => deleted.has(user) && kept.includes(id))
        .map(([id, user]) => `${id} of ${user}`)
    )
  }

  /** The users of media and files that were seen. */
  readonly #media = new Map<string, string>()

  async #seeMedia(): Promise<void> {
    const rows = await this.#of.postgres.query<{ id: string; user_id: string }>(
      "SELECT id::text, user_id FROM artifacts UNION ALL SELECT id, user_id FROM files"
    )
    for (const { id, user_id } of rows) this.#media.set(id, user_id)
  }

  #vendorsAndReceivers(): void {
    const { load, processes, receivers, vendors, wrongAnswers } = this.#of
    const twice = [...vendors.sold].filter(([, jobs]) => jobs.length > 1)
    this.#note(
      "at most one job is bought for a task",
      twice.map(([tag, jobs]) => `${tag}: ${jobs.join(", ")}`)
    )
    const changed = [...receivers.deliveries].filter(([, { bodies }]) => bodies.size > 1)
    this.#note(
      "a delivery has the same body and receiver on every attempt",
      changed.map(([id]) => id)
    )
    const outcomes = [...receivers.outcomes].filter(([, ids]) => ids.size > 1)
    this.#note(
      "receivers see one outcome of a task",
      outcomes.map(([id, ids]) => `${id}: ${[...ids].join(", ")}`)
    )
    this.#note("no delivery is signed with a secret that has ended", receivers.badlySigned)
    this.#note("every answer has a status that is allowed", wrongAnswers)
    this.#note("clients see what they may expect", load.faults)
    this.#note(
      "no process ends by itself",
      processes.flatMap(({ unexpected }) => unexpected)
    )
  }

  async #tasks(): Promise<void> {
    const { load, postgres, vendors } = this.#of
    const found = await postgres.query<TaskRow>(
      "SELECT id, body ->> 'prompt' AS tag, status, error ->> 'code' AS code FROM tasks"
    )
    const accepted = [...load.tasks.values()]
    const tags = new Map(accepted.map(({ id, tag }) => [id, tag]))
    const byId = new Map(found.map((row) => [row.id, row]))
    const rows = found.flatMap(({ tag: kept, ...row }) => {
      const tag = kept ?? tags.get(row.id)
      return tag === undefined ? [] : [{ ...row, tag }]
    })
    const byTag = Map.groupBy(rows, ({ tag }) => tag)
    this.#note(
      "a create with one idempotency key makes one task",
      [...byTag].filter(([, all]) => all.length > 1).map(([tag]) => tag)
    )
    this.#note(
      "an accepted task is there",
      accepted.filter(({ id }) => !byId.has(id)).map(({ id, tag }) => `${tag} ${id}`)
    )
    this.#note(
      "a terminal state that a client saw has not changed",
      accepted
        .filter(({ ended, id }) => ended !== undefined && byId.get(id)?.status !== ended)
        .map(({ ended, id }) => `${id} was ${ended}`)
    )
    this.#note(
      "a completed task has a job at the vendor",
      rows
        .filter(({ status, tag }) => status === "completed" && !vendors.sold.has(tag))
        .map(({ id, tag }) => `${tag} ${id}`)
    )
    // Where the list shows the prompt, the job can be found
    this.#note(
      "no task fails with 3004 whose job the vendor has and lists by its prompt",
      rows
        .filter(
          ({ code, tag }) => code === "3004" && vendors.sold.get(tag)?.[0]?.startsWith("replicate")
        )
        .map(({ id, tag }) => `${tag} ${id} ${vendors.sold.get(tag)?.join()}`)
    )
  }

  async #deliveries(): Promise<void> {
    const { load, postgres, receivers } = this.#of
    const rows = await postgres.query<{
      id: string
      user_id: string
      status: string
      attempts: number
    }>("SELECT id, user_id, status, attempts FROM deliveries")
    const byId = new Map(rows.map((row) => [row.id, row]))
    this.#note(
      "what is recorded as delivered was accepted by its receiver",
      rows
        .filter(
          ({ id, status }) =>
            status === "succeeded" && (receivers.deliveries.get(id)?.accepted ?? 0) === 0
        )
        .map(({ id }) => id)
    )
    this.#note(
      "a delivery fails after six attempts and not before",
      rows
        .filter(({ attempts, status }) => status === "failed" && attempts !== 6)
        .map(({ id }) => id)
    )
    const deletedAt = new Map(load.deleted.map((user) => [user.id, user.deletedAt]))
    this.#note(
      "after the deletion of its user only the running attempt of a delivery arrives",
      rows
        .map(({ id, user_id }) => {
          const end = deletedAt.get(user_id) ?? Infinity
          const late = (receivers.deliveries.get(id)?.times ?? []).filter((time) => time > end)
          return { id, late: late.map((time) => time - end) }
        })
        .filter(({ late }) => late.length > 1)
        .map(({ id, late }) => `${id}: ${late.join(", ")} ms after`)
    )
    this.#note("every delivery is signed with a secret of its endpoint", receivers.unsigned())
    this.#note(
      "every delivery that came is known",
      [...receivers.deliveries.keys()].filter((id) => !byId.has(id))
    )
  }

  async #calls(): Promise<void> {
    const { load, postgres, vendors } = this.#of
    const rows = await postgres.query<{ id: string; outcome: string; captured: string }>(
      "SELECT id, outcome, captured FROM calls"
    )
    const receipts = new Map(rows.map((row) => [row.id, row]))
    const whole = load.calls.filter(({ callId, status }) => status === 200 && callId !== undefined)
    const free = whole.filter(
      ({ callId }) => Number(receipts.get(callId!)?.captured ?? 0) !== callPrice
    )
    this.#note(
      "a call that was answered by a process which lived on is charged in full",
      free
        .filter(
          ({ from, process, to }) =>
            !process.hits.some((hit) => hit.from < to + settleMillis && hit.to > from)
        )
        .map(({ callId, tag }) => `${tag} ${callId} ${JSON.stringify(receipts.get(callId!))}`)
    )
    const settled = rows.filter(({ outcome }) => outcome === "settled").length
    const requests = [...vendors.calls.sold.values()].reduce((sum, it) => sum + it.requests, 0)
    if (settled > requests) {
      this.#note("no call is charged that the vendor has not seen", [`${settled} of ${requests}`])
    }
    const repeated = [...vendors.calls.sold].filter(([, { answered }]) => answered > 1)
    this.#note(
      "the vendor answers a call once",
      repeated.map(([tag]) => tag)
    )
    this.freeCalls = free.length
    this.settledCalls = settled
  }

  /** Complete responses that were not charged because a fault hit their process. */
  freeCalls = 0
  settledCalls = 0

  async #topUps(): Promise<void> {
    const { load, postgres } = this.#of
    const rows = await postgres.query<{ user_id: string; paid: string }>(
      "SELECT user_id, sum(amount) / 1000000 AS paid FROM wallet_entries WHERE kind = 'top_up' GROUP BY 1"
    )
    const paid = new Map(rows.map((row) => [row.user_id, Number(row.paid)]))
    this.#note(
      "every top-up that was answered is in the ledger once",
      [...load.users, ...load.deleted]
        .filter((user) => paid.get(user.id) !== user.paid)
        .map((user) => `${user.name}: paid ${user.paid}, ledger ${paid.get(user.id)}`)
    )
  }

  async #processes(): Promise<void> {
    for (const process of this.#of.processes) {
      const answer = await fetch(`${process.url}/readyz`).catch(() => undefined)
      await answer?.arrayBuffer()
      if (answer?.status !== 200) {
        this.#note("every process is ready at the end", [`${process.name}: ${answer?.status}`])
      }
    }
  }
}

/** What is answered while Postgres is away is settled later, if its process still exists then. */
const settleMillis = 25_000

/** The price in micro-credits of one call with the vendor's usage. */
const callPrice = 700_000
