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
  manage: [200, 201, 204, 409, 503]
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
}

export interface Request {
  readonly method?: string
  readonly token: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds after which the client leaves. */
  readonly timeout?: number
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
    const none = { status: 0, text: "", json: undefined, headers: undefined, process }
    let begun: Headers | undefined
    try {
      const response = await fetch(process.url + path, {
        method,
        headers: {
          authorization: `Bearer ${request.token}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeout)
      })
      begun = response.headers
      const text = await response.text()
      const isJson = /\bjson\b/u.test(response.headers.get("content-type") ?? "")
      const json = isJson && text !== "" ? JSON.parse(text) : undefined
      this.#count(kind, response.status)
      this.#judge(kind, `${method} ${path}`, response.status, text)
      return { status: response.status, text, json, headers: begun, process }
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
        [0, 408, 429, 503].includes(answer.status) || (answer.status === 409 && kind !== "cancel")
      if (!isPassing) return answer
      await pause(this.#random.between(200, 1500))
    }
    return undefined
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

/** Makes calls as the operator. */
export const operatorToken = adminToken
