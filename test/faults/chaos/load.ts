import { bodyOf, families, pathOf } from "../../support/families.ts"
import type { Family } from "../../support/families.ts"
import { clocksMillis, mayBeTwice, operatorToken } from "./clients.ts"
import type { Answer, Clients } from "./clients.ts"
import { pause } from "./processes.ts"
import type { ServiceProcess } from "./processes.ts"
import type { Random } from "./random.ts"
import type { Receivers } from "./receivers.ts"
import { makeUser, secretsOf } from "./users.ts"
import type { Key, User } from "./users.ts"
import { jobVendors } from "./vendors.ts"

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

/** Streams end within a second. Postgres may be away meanwhile. */
const openMillis = 30_000

/** Clients that create, await and cancel tasks, make calls, pay in credits, and change keys and users. */
export class Load {
  readonly tasks = new Map<string, TaskSeen>()
  readonly calls: Array<CallSeen> = []
  readonly faults: Array<string> = []
  readonly users: Array<User>
  readonly deleted: Array<User> = []
  readonly changes = {
    "rotated at once": 0,
    "rotated with a grace": 0,
    "keys deleted": 0,
    "webhook secrets rotated": 0
  }
  refusedForBalance = 0
  refusedForLimit = 0
  refusedCreates = 0
  unanswered = 0
  cancelled = 0
  #isOn = true
  #number = 0
  readonly #under = new Set<Promise<void>>()
  readonly #seed: number
  #isChanging = false
  readonly #clients: Clients
  readonly #receivers: Receivers
  readonly #random: Random

  constructor(
    seed: number,
    clients: Clients,
    receivers: Receivers,
    users: Array<User>,
    random: Random
  ) {
    this.#seed = seed
    this.#clients = clients
    this.#receivers = receivers
    this.users = users
    this.#random = random
  }

  /** Starts the load. `stop` resolves when all requests have got a response. */
  start({ callsPerSecond, tasksPerSecond }: Rates): void {
    // The first change, so that a short run has one
    this.#begin(this.#alone(() => this.#rotateHook(this.#random.pick(this.users))))
    this.#every(tasksPerSecond, () => this.#task())
    this.#every(callsPerSecond, () => this.#call(this.#random.pick(this.users)))
    // A key with frequent calls has a reservation
    this.#every(0.04, () => this.#burst())
    this.#every(0.1, () => this.#alone(() => this.#payIn()))
    this.#every(0.3, () => this.#alone(() => this.#change()))
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
    const token = this.#secretOf(user)
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

  /** Mostly the current secret of a key, sometimes one from before a rotation. */
  #secretOf({ key, limited }: User): () => string {
    const random = this.#random
    const of = limited !== undefined && random.chance(0.5) ? limited : key
    const old = random.chance(0.1) && of.old.length > 0 ? random.pick(of.old) : undefined
    return () => old ?? of.secret
  }

  #refused({ json, status }: Answer): void {
    this.refusedCreates += 1
    if (status === 402 && json.code === 1101) this.refusedForBalance += 1
    else if (status === 402 && json.code === 1102) this.refusedForLimit += 1
  }

  async #follow(task: TaskSeen, { adapter }: Family): Promise<void> {
    const random = this.#random
    const token = () => task.user.key.secret
    if (random.chance(0.15)) {
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

  async #call(user: User, token: string | (() => string) = this.#secretOf(user)): Promise<void> {
    const random = this.#random
    const tag = this.#tag("c")
    const isStream = random.chance(0.4)
    const leaves = random.chance(0.05)
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
        token: user.key.secret,
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

  /** One change of wallets, keys and users at a time, so that their clients know the state. */
  async #alone(work: () => Promise<void>): Promise<void> {
    if (this.#isChanging) return
    this.#isChanging = true
    await work().finally(() => {
      this.#isChanging = false
    })
  }

  async #change(): Promise<void> {
    const random = this.#random
    const user = random.pick(this.users)
    if (random.chance(0.3)) return this.#deleteUser(user)
    if (random.chance(0.2)) return this.#deleteKey(user)
    if (random.chance(0.3)) return this.#rotateHook(user)
    const isLimited = user.limited !== undefined && random.chance(0.5)
    await this.#rotate(isLimited ? user.limited : user.key, random.chance(0.5) ? 45 : 0)
  }

  /** The operator rotates: a repeat by the key itself would come with a secret that has ended. */
  async #rotate(key: Key, grace: number): Promise<void> {
    const { old, secret } = key
    const began = Date.now()
    const rotation = {
      token: operatorToken,
      body: { grace_seconds: grace },
      headers: { "idempotency-key": this.#tag("r") }
    }
    // At most two secrets are valid
    const ended = grace === 0 ? [...old, secret] : old
    const manages = grace > 0 || "limit" in key ? undefined : secret
    const rotated = await this.#ending(ended, manages, () =>
      this.#clients.surely("manage", `/manage/v1/api-keys/${key.id}/rotate`, rotation)
    )
    if (rotated?.status !== 200) {
      return void this.faults.push(`a rotation has no answer: ${rotated?.status}`)
    }
    old.push(secret)
    key.secret = rotated.json.key
    this.changes[grace === 0 ? "rotated at once" : "rotated with a grace"] += 1
    if (grace === 0) return
    const until = Date.parse(rotated.json.old_key_expires_at)
    this.#clients.end(
      secret,
      mayBeTwice(began) ? began : until - clocksMillis,
      until + clocksMillis
    )
  }

  /** After the second rotation the first secret no longer signs. */
  async #rotateHook(user: User): Promise<void> {
    const { id, path } = this.#random.pick(user.hooks)
    for (let times = 0; times < 2; times += 1) {
      const began = Date.now()
      const rotated = await this.#clients.surely(
        "manage",
        `/manage/v1/webhook-endpoints/${id}/rotate`,
        {
          token: () => user.key.secret,
          method: "POST",
          headers: { "idempotency-key": this.#tag("w") }
        }
      )
      if (rotated?.status !== 200) {
        return void this.faults.push(`a webhook's rotation has no answer: ${rotated?.status}`)
      }
      if (mayBeTwice(began)) this.#receivers.signUnseen(path)
      this.#receivers.sign(path, rotated.json.secret)
      this.changes["webhook secrets rotated"] += 1
    }
  }

  /** Ends secrets while one that manages has an open stream, which must end with it, and then tries the newest. */
  async #ending(
    secrets: ReadonlyArray<string>,
    manages: string | undefined,
    request: () => Promise<Answer | undefined>
  ): Promise<Answer | undefined> {
    const open =
      manages === undefined
        ? undefined
        : this.#clients.send("read", "/manage/v1/events?events=task.succeeded", {
            token: manages,
            timeout: 75_000
          })
    if (open !== undefined) await pause(300)
    const answer = await this.#clients.ending(secrets, request())
    if (answer === undefined || answer.status >= 300) return answer
    if (open !== undefined) this.#begin(this.#endOf(open, Date.now()))
    for (const token of secrets.slice(-3)) this.#begin(this.#tryEnded(token))
    return answer
  }

  async #tryEnded(token: string): Promise<void> {
    const tag = this.#tag("e")
    const family = this.#random.pick(usable)
    const headers = { "idempotency-key": tag }
    const create = { token, body: bodyOf(family, tag), headers }
    await this.#clients.send("create", pathOf(family, "copy"), create)
    await this.#call(this.users[0]!, token)
  }

  async #endOf(open: Promise<Answer>, end: number): Promise<void> {
    const { process } = await open
    const millis = Date.now() - end
    const isHit = process.hits.some((hit) => hit.from < end + openMillis && hit.to > end)
    if (millis > openMillis && !isHit) {
      this.faults.push(`a stream of events was open for ${millis} ms after the end of its secret`)
    }
  }

  /** A new key takes the place of the old one, which then revokes it. */
  async #deleteKey(user: User): Promise<void> {
    const { id, old, secret } = user.key
    const made = await this.#clients.surely("manage", `/manage/v1/users/${user.id}/api-keys`, {
      token: operatorToken,
      body: { name: user.name, scopes: ["inference", "manage"] },
      headers: { "idempotency-key": this.#tag("k") }
    })
    if (made?.status !== 201) return void this.faults.push(`a key has no answer: ${made?.status}`)
    user.key = { id: made.json.id, secret: made.json.key, old: [...old, secret] }
    const path = `/manage/v1/api-keys/${id}`
    const revocation = { token: user.key.secret, method: "DELETE" }
    const revoked = await this.#ending([...old, secret], secret, () =>
      this.#clients.surely("manage", path, revocation)
    )
    if (revoked?.status === 204) this.changes["keys deleted"] += 1
    else this.faults.push(`a revocation has no answer: ${revoked?.status}`)
  }

  /** The address of a deleted user is free, and is used by the next one. */
  async #deleteUser(user: User): Promise<void> {
    const path = `/manage/v1/users/${user.id}`
    const deletion = { token: operatorToken, method: "DELETE" }
    const done = await this.#ending(secretsOf(user), user.key.secret, () =>
      this.#clients.surely("manage", path, deletion)
    )
    if (done?.status !== 202) {
      return void this.faults.push(`a deletion has no answer: ${done?.status}`)
    }
    for (const { path } of user.hooks) this.#receivers.end(path)
    user.deletedAt = Date.now()
    this.deleted.push(user)
    const request = { token: operatorToken, body: { amount: "1" } }
    const headers = { "idempotency-key": this.#tag("p") }
    await this.#clients.surely("gone", `${path}/top-ups`, { ...request, headers })
    const { limited, name } = user
    const paid = name === "poor" ? 60 : 1_000_000
    const hasLimited = limited !== undefined
    const tag = this.#tag("u")
    const next = await makeUser(this.#clients, this.#receivers, name, paid, hasLimited, tag)
    this.users[this.users.indexOf(user)] = next
  }
}
