import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { falHeaders, replicateHeaders } from "../../../src/testing/vendors/Callbacks.ts"
import { catalogOfFamilies, startUpstreams, vendorEnv } from "../../support/families.ts"
import type { Upstreams } from "../../support/families.ts"
import type { Fault, Job, Seen, Upstream } from "../../support/upstreams/Upstream.ts"
import { CallVendor } from "./callVendor.ts"
import { Proxy } from "./network.ts"
import type { Random } from "./random.ts"
import { tagPattern } from "./tags.ts"

/** The vendor families of the run. OpenAI's base URL belongs to the calls. */
export const jobVendors = ["dashscope", "gemini", "fal", "replicate"] as const
export type JobVendor = (typeof jobVendors)[number]

/** How a vendor currently responds to most requests. */
export type Mood = "well" | "refuses" | "breaks" | "slow" | "silent"

const moods: Readonly<
  Record<Mood, { readonly rate: number; readonly faults: ReadonlyArray<Fault> }>
> = {
  well: { rate: 0.02, faults: ["429", "unavailable", "drop-before", "edge-502"] },
  refuses: { rate: 0.6, faults: ["429", "429-wait", "unavailable"] },
  breaks: { rate: 0.5, faults: ["drop-before", "drop-after", "garbage", "edge-502", "edge-504"] },
  slow: { rate: 0.02, faults: ["drop-after"] },
  silent: { rate: 0.2, faults: ["hang", "stall"] }
}

/** The vendors of a run. What they sold is known by the tag in the prompt. */
export class Vendors {
  readonly upstreams: Upstreams
  readonly calls: CallVendor
  /** Between the service and each vendor. */
  readonly proxies: ReadonlyMap<string, Proxy>
  readonly moods = new Map<JobVendor, Mood>()
  /** The ids of sold jobs, by tag. */
  readonly sold = new Map<string, Array<string>>()
  readonly counts = { jobs: 0, callbacks: 0, callbacksAccepted: 0, faults: 0 }
  /** The addresses for callbacks, one of which is chosen at random. */
  callbackTargets: ReadonlyArray<string> = []
  readonly #random: Random
  readonly #timers = new Set<NodeJS.Timeout>()

  private constructor(
    upstreams: Upstreams,
    calls: CallVendor,
    proxies: ReadonlyMap<string, Proxy>,
    random: Random
  ) {
    this.upstreams = upstreams
    this.calls = calls
    this.proxies = proxies
    this.#random = random
    for (const name of jobVendors) this.#prepare(name, upstreams[name])
  }

  static async start(random: Random): Promise<Vendors> {
    const upstreams = await startUpstreams()
    const calls = await CallVendor.start(random)
    const proxies = new Map<string, Proxy>()
    for (const name of jobVendors) {
      const proxy = await Proxy.start(upstreams[name].port)
      upstreams[name].publicUrl = `http://127.0.0.1:${proxy.port}`
      proxies.set(name, proxy)
    }
    proxies.set("calls", await Proxy.start(calls.port))
    return new Vendors(upstreams, calls, proxies, random)
  }

  /** The environment variables of a process that uses these vendors. Writes the catalog. */
  async env(folder: string): Promise<Record<string, string>> {
    const file = join(folder, "catalog.json")
    await writeFile(file, JSON.stringify(catalogOfFamilies))
    const { fal } = this.upstreams
    return {
      ...vendorEnv(this.upstreams),
      OPENAI_API_KEY: "sk-chaos-calls",
      OPENAI_BASE_URL: `http://127.0.0.1:${this.proxies.get("calls")!.port}/v1`,
      FAL_API_KEY: `${fal.key};jwks=${fal.url}/.well-known/jwks.json`,
      CATALOG_FILE: file
    }
  }

  #prepare(name: JobVendor, upstream: Upstream): void {
    upstream.keepsRequests = false
    upstream.faultOf = (seen, isSubmit) => this.#faultOf(name, seen, isSubmit)
    upstream.onJob = (job, seen) => this.#sell(name, job, seen)
  }

  #faultOf(name: JobVendor, seen: Seen, isSubmit: boolean): Fault | undefined {
    const random = this.#random
    const mood = this.moods.get(name) ?? "well"
    const { faults, rate } = moods[mood]
    this.upstreams[name].delayMillis = mood === "slow" ? random.between(500, 9000) : 0
    // Its keys are requested once a day
    if (/jwks|secret/u.test(seen.path) || !random.chance(isSubmit ? rate : rate / 2)) return
    this.counts.faults += 1
    const fault = random.pick(faults)
    // A job created by the response to a poll does not exist
    return !isSubmit && fault === "drop-after" ? "drop-before" : fault
  }

  #sell(name: JobVendor, job: Job, seen: Seen): void {
    // DashScope refuses a failed generation that its client waits for: nothing is bought, and the submit is repeated
    if (seen.path.includes("multimodal-generation") && this.upstreams[name].ending === "failed") {
      return
    }
    this.counts.jobs += 1
    const tag = tagPattern.exec(seen.bytes.toString("latin1"))?.[0] ?? "untagged"
    this.sold.set(tag, [...(this.sold.get(tag) ?? []), `${name} ${job.id}`])
    const address = seen.query.get("fal_webhook") ?? seen.json?.webhook
    if (typeof address !== "string") return
    // Some callbacks are lost, some come twice, and they go to any process
    const times = this.#random.pick([0, 1, 1, 1, 2])
    for (let n = 0; n < times; n += 1) {
      const timer = setTimeout(
        () => {
          this.#timers.delete(timer)
          void this.#callBack(name, address, 0)
        },
        this.#random.between(500, 4000)
      )
      this.#timers.add(timer)
    }
  }

  /** Vendors repeat a callback unless the response is 2xx. */
  async #callBack(name: JobVendor, address: string, tries: number): Promise<void> {
    if (this.callbackTargets.length === 0 || tries > 3) return
    this.counts.callbacks += 1
    const url = new URL(address)
    const target = new URL(this.#random.pick(this.callbackTargets))
    url.host = target.host
    const body = JSON.stringify({ status: "OK", payload: {} })
    const at = Math.floor(Date.now() / 1000)
    const id = `call-${this.counts.callbacks}`
    const headers =
      name === "fal" ? falHeaders({ at, body, id }) : replicateHeaders({ at, body, id })
    const status = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
      signal: AbortSignal.timeout(10_000)
    }).then(
      async (response) => (await response.arrayBuffer(), response.status),
      () => 0
    )
    if (status >= 200 && status < 300) this.counts.callbacksAccepted += 1
    else setTimeout(() => void this.#callBack(name, address, tries + 1), 2000).unref()
  }

  /** Ends all failures. */
  heal(): void {
    this.moods.clear()
    this.calls.mood = "well"
    for (const name of jobVendors) {
      this.upstreams[name].faultOf = () => undefined
      this.upstreams[name].delayMillis = 0
      this.upstreams[name].ending = "done"
    }
    for (const proxy of this.proxies.values()) proxy.weather = "passes"
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    for (const proxy of this.proxies.values()) await proxy.close()
    await this.calls.close()
    for (const upstream of Object.values(this.upstreams)) await upstream.close()
  }
}
