import { adminToken } from "../../support/gateway.ts"
import { pause } from "./processes.ts"
import type { ServiceProcess } from "./processes.ts"
import type { Random } from "./random.ts"

/** The statuses allowed while faults come and go. Any other status is a violation. */
const allowed = {
  create: [200, 202, 402, 409, 429, 503],
  read: [200, 503],
  cancel: [200, 409, 503],
  // A vendor's own refusals are relayed
  call: [200, 402, 429, 502, 503, 504],
  manage: [200, 201, 202, 204, 409, 503],
  gone: [404, 503]
} as const

export type Kind = keyof typeof allowed

export interface Answer {
  /** 0: there was no complete response. */
  readonly status: number
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever the service says
  readonly json: any
  /** Those of a response that began, even if it broke off. */
  readonly headers: Headers | undefined
  readonly process: ServiceProcess
  readonly token: string
}

export interface Request {
  readonly method?: string
  /** A function, if the secret may be replaced while the request is repeated. */
  readonly token: string | (() => string)
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds after which the client leaves. */
  readonly timeout?: number
}

/** The times from which a secret may be refused and must be refused. */
interface End {
  readonly may: number
  readonly must: number
}

/** Sends requests to any of the processes and counts the outcomes. */
export class Clients {
  readonly processes: ReadonlyArray<ServiceProcess>
  /** The number of requests by kind and status. */
  readonly statuses = new Map<string, number>()
  /** Responses that are not allowed. */
  readonly wrong: Array<string> = []
  /** Whether requests are repeated until they get a response. */
  isPatient = true
  readonly #random: Random
  readonly #ends = new Map<string, End>()

  constructor(processes: ReadonlyArray<ServiceProcess>, random: Random) {
    this.processes = processes
    this.#random = random
  }

  /** Sends one request to a randomly chosen process. */
  async send(kind: Kind, path: string, request: Request): Promise<Answer> {
    const process = this.#random.pick(this.processes)
    const {
      body,
      headers,
      method = body === undefined ? "GET" : "POST",
      timeout = 30_000
    } = request
    const token = typeof request.token === "string" ? request.token : request.token()
    const none = { status: 0, text: "", json: undefined, headers: undefined, process, token }
    const from = Date.now()
    let begun: Headers | undefined
    try {
      const response = await fetch(process.url + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined || body instanceof FormData
            ? {}
            : { "content-type": "application/json" }),
          ...headers
        },
        ...(body === undefined
          ? {}
          : { body: body instanceof FormData ? body : JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeout)
      })
      begun = response.headers
      const text = await response.text()
      const isJson = /\bjson\b/u.test(response.headers.get("content-type") ?? "")
      const json = isJson && text !== "" ? JSON.parse(text) : undefined
      this.#count(kind, response.status)
      if (!this.#isOfAccess(token, from, response.status)) {
        this.#judge(kind, `${method} ${path}`, response.status, text)
      } else if (response.status !== 401) {
        this.wrong.push(`${method} ${path} with an ended secret: ${response.status}`)
      }
      return { status: response.status, text, json, headers: begun, process, token }
    } catch {
      this.#count(kind, 0)
      return { ...none, headers: begun }
    }
  }

  /** Repeats the request, to any of the processes, until it gets a response that is not a temporary failure. */
  async surely(kind: Kind, path: string, request: Request): Promise<Answer | undefined> {
    const end = Date.now() + 240_000
    while (Date.now() < end && this.isPatient) {
      const answer = await this.send(kind, path, request)
      const isPassing =
        // 409: the first request with the same idempotency key is still running, or died with its process
        [0, 408, 429, 503].includes(answer.status) ||
        (answer.status === 409 && kind !== "cancel") ||
        (answer.status === 401 && this.#isReplaced(request, answer.token))
      if (!isPassing) return answer
      await pause(this.#random.between(200, 1500))
    }
    return undefined
  }

  /** Ends secrets by a request: they may be refused from its start, and must be after its response. */
  async ending(
    secrets: ReadonlyArray<string>,
    request: Promise<Answer | undefined>
  ): Promise<Answer | undefined> {
    for (const it of secrets) this.end(it, Date.now(), Infinity)
    const answer = await request
    const isDone = answer !== undefined && answer.status < 300
    if (isDone) for (const it of secrets) this.end(it, Infinity, Date.now())
    return answer
  }

  /** The secret may be refused from one time on, and must be from another. The earliest times apply. */
  end(secret: string, may: number, must: number): void {
    const before = this.#ends.get(secret) ?? { may: Infinity, must: Infinity }
    this.#ends.set(secret, { may: Math.min(before.may, may), must: Math.min(before.must, must) })
  }

  /** Whether another secret has replaced this one, or is about to. */
  #isReplaced({ token }: Request, used: string): boolean {
    if (typeof token === "string") return false
    return token() !== used || this.#ends.get(used)?.must === Infinity
  }

  /** Whether the response is decided by the end of the secret. */
  #isOfAccess(secret: string, from: number, status: number): boolean {
    const end = this.#ends.get(secret)
    if (end === undefined) return false
    if (from >= end.must) return ![408, 503].includes(status)
    return status === 401 && Date.now() >= end.may
  }

  #count(kind: Kind, status: number): void {
    const key = `${kind} ${status === 0 ? "without an answer" : status}`
    this.statuses.set(key, (this.statuses.get(key) ?? 0) + 1)
  }

  #judge(kind: Kind, what: string, status: number, text: string): void {
    const known: ReadonlyArray<number> = allowed[kind]
    // 408: the request arrived while its process was stopped, so nothing was done
    if (status === 408 || known.includes(status)) return
    this.wrong.push(`${what}: ${status} ${text.slice(0, 300)}`)
  }
}

/** How much the clocks of a process and of the run may differ, both ways: they jump by up to 15 seconds. */
export const clocksMillis = 35_000

/** After its first request has died, an idempotency key is free in a minute: the repeat may have done the same again. */
export const mayBeTwice = (began: number): boolean => Date.now() - began > 60_000 - clocksMillis

/** Makes calls as the operator. */
export const operatorToken = adminToken
