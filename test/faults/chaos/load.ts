import { bodyOf, families, pathOf } from "../../support/families.ts"
import type { Family } from "../../support/families.ts"
import { operatorToken } from "./clients.ts"
import type { Answer, Clients } from "./clients.ts"
import { pause } from "./processes.ts"
import type { ServiceProcess } from "./processes.ts"
import type { Random } from "./random.ts"
import { jobVendors } from "./vendors.ts"

/** A user of the run with a key. */
export interface User {
  readonly id: string
  readonly name: string
  readonly key: string
  /** Another key with a spend limit in credits, which is raised during the run. */
  readonly limited?: { readonly id: string; readonly key: string; limit: number }
  /** The paths of its endpoints at the receivers. */
  readonly hooks: ReadonlyArray<string>
  /** Whole credits paid in. */
  paid: number
}

export interface TaskSeen {
  readonly tag: string
  readonly path: string
  readonly adapter: string
  readonly user: User
  readonly id: string
  /** The final state that a client saw. */
  ended: string | undefined
}

export interface CallSeen {
  readonly tag: string
  readonly from: number
  readonly to: number
  readonly process: ServiceProcess
  /** 0: the client got no complete response. */
  readonly status: number
  readonly isStream: boolean
  /** The id of the receipt, if the client knows it. */
  readonly callId: string | undefined
}

export interface Rates {
  readonly tasksPerSecond: number
  readonly callsPerSecond: number
}

const usable = families.filter(({ upstream }) =>
  (jobVendors as ReadonlyArray<string>).includes(upstream)
)

/** Clients that create, await and cancel tasks, make calls, and pay in credits. */
export class Load {
  readonly tasks = new Map<string, TaskSeen>()
  readonly calls: Array<CallSeen> = []
  readonly faults: Array<string> = []
  readonly users: ReadonlyArray<User>
  refusedForBalance = 0
  refusedForLimit = 0
  refusedCreates = 0
  unanswered = 0
  cancelled = 0
  #isOn = true
  #number = 0
  readonly #under = new Set<Promise<void>>()
  readonly #seed: number
  readonly #clients: Clients
  readonly #random: Random

  constructor(seed: number, clients: Clients, users: ReadonlyArray<User>, random: Random) {
    this.#seed = seed
    this.#clients = clients
    this.users = users
    this.#random = random
  }

  /** Starts the load. `stop` resolves when all requests have got a response. */
  start({ callsPerSecond, tasksPerSecond }: Rates): void {
    this.#every(tasksPerSecond, () => this.#task())
    this.#every(callsPerSecond, () => this.#call(this.#random.pick(this.users)))
    // A key with frequent calls has a reservation
    this.#every(0.04, () => this.#burst())
    this.#every(0.1, () => this.#payIn())
  }

  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#under)
  }

  #every(perSecond: number, work: () => Promise<void>): void {
    const repeat = async () => {
      while (this.#isOn) {
        await pause(this.#random.gap(perSecond))
        // The number of requests is limited even if the service is away for a long time
        if (this.#isOn && this.#under.size < 150) this.#begin(work())
      }
    }
    this.#begin(repeat())
  }

  #begin(work: Promise<void>): void {
    const one = work
      .catch((cause: unknown) => void this.faults.push(String(cause)))
      .finally(() => this.#under.delete(one))
    this.#under.add(one)
  }

  #tag(kind: string): string {
    this.#number += 1
    return `chaos-${this.#seed}-${kind}${this.#number}`
  }

  async #task(): Promise<void> {
    const random = this.#random
    const user = random.pick(this.users)
    const family = random.pick(usable)
    const tag = this.#tag("t")
    const path = pathOf(family, random.chance(0.7) ? "copy" : "vendor-url")
    const token = user.limited !== undefined && random.chance(0.5) ? user.limited.key : user.key
    const request = { token, body: bodyOf(family, tag), headers: { "idempotency-key": tag } }
    const made = await this.#clients.surely("create", path, request)
    if (made === undefined) return void (this.unanswered += 1)
    if (made.status !== 202) return this.#refused(made)
    const id = String(made.json.task_info.id)
    const task: TaskSeen = {
      tag,
      path: `${path}/${id}`,
      adapter: family.adapter,
      user,
      id,
      ended: undefined
    }
    this.tasks.set(tag, task)
    if (random.chance(0.1)) {
      const again = await this.#clients.surely("create", path, request)
      const replayed = again?.json?.task_info?.id
      if (replayed !== undefined && replayed !== id)
        this.faults.push(`${tag}: two tasks, ${id} and ${replayed}`)
    }
    await this.#follow(task, family)
  }

  #refused({ json, status }: Answer): void {
    this.refusedCreates += 1
    if (status === 402 && json.code === 1101) this.refusedForBalance += 1
    else if (status === 402 && json.code === 1102) this.refusedForLimit += 1
  }

  async #follow(task: TaskSeen, { adapter }: Family): Promise<void> {
    const random = this.#random
    const token = task.user.key
    if (random.chance(0.08)) {
      await pause(random.between(0, 6000))
      const ended = await this.#clients.surely("cancel", task.path, { token, method: "DELETE" })
      if (ended?.status === 200) {
        this.cancelled += 1
        this.#note(task, ended)
      }
      return
    }
    if (random.chance(0.3)) {
      const headers = { prefer: `wait=${Math.round(random.between(1, 30))}` }
      this.#note(
        task,
        await this.#clients.send("read", task.path, { token, headers, timeout: 40_000 })
      )
    } else if (random.chance(0.15) && adapter !== "gemini-image") {
      const headers = { accept: "text/event-stream" }
      await this.#clients.send("read", task.path, { token, headers, timeout: 20_000 })
    }
  }

  /** A final state never changes. */
  #note(task: TaskSeen, { json, status }: Answer): void {
    const state = json?.task_info?.status
    if (status === 200 && /completed|failed/u.test(String(state))) task.ended ??= String(state)
  }

  async #call(user: User): Promise<void> {
    const random = this.#random
    const tag = this.#tag("c")
    const isStream = random.chance(0.4)
    const leaves = random.chance(0.05)
    const token = user.limited !== undefined && random.chance(0.5) ? user.limited.key : user.key
    const from = Date.now()
    const answer = await this.#clients.send("call", "/v1/chat/completions", {
      token,
      body: {
        model: "gpt-4o",
        max_tokens: 1000,
        user: tag,
        messages: [],
        ...(isStream ? { stream: true, stream_options: { include_usage: true } } : {})
      },
      timeout: leaves ? random.between(5, 300) : 60_000
    })
    const { process, status } = answer
    const callId = answer.headers?.get("x-service-call-id") ?? undefined
    this.calls.push({ tag, from, to: Date.now(), process, status, isStream, callId })
    if (isStream && answer.status === 200 && !/\[DONE\]|"error"/u.test(answer.text)) {
      this.faults.push(`${tag}: a stream ended without its end`)
    }
  }

  async #burst(): Promise<void> {
    const [user] = this.users
    for (let n = 0; n < 40 && this.#isOn; n += 1) {
      this.#begin(this.#call(user!))
      await pause(25)
    }
  }

  async #payIn(): Promise<void> {
    const user = this.#random.pick(this.users)
    const { limited } = user
    if (limited !== undefined) {
      const amount = limited.limit + 40
      const path = `/manage/v1/api-keys/${limited.id}`
      const body = { spend_limit: String(amount), reset: "never" }
      const raised = await this.#clients.surely("manage", path, {
        token: user.key,
        method: "PATCH",
        body
      })
      if (raised?.status === 200) limited.limit = amount
    }
    const headers = { "idempotency-key": this.#tag("p") }
    const path = `/manage/v1/users/${user.id}/top-ups`
    const amount = 30
    const paid = await this.#clients.surely("manage", path, {
      token: operatorToken,
      body: { amount: String(amount) },
      headers
    })
    if (paid?.status === 201) user.paid += amount
    else this.faults.push(`a top-up has no answer: ${paid?.status}`)
  }
}
