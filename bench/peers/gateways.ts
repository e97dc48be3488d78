/** Gateways for language models: what calls and streams cost, and whether a budget holds. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Agent } from "undici"
import { freePort } from "../../test/support/spawnService.ts"
import {
  database,
  folder,
  makeKey,
  manage,
  pause,
  press,
  reachable,
  small,
  start,
  startBareProxy,
  startGateway,
  streamed
} from "../proxies.ts"
import type { Subject } from "../proxies.ts"
import type { Installed } from "./install.ts"

/** Two processes, and a budget that both should keep. */
interface Budget {
  readonly subjects: readonly [Subject, Subject]
  /** What its records say after the calls. */
  readonly ledger: () => Promise<string>
}

export interface Gateway {
  readonly name: string
  readonly version: string
  /** Otherwise the CPU of Postgres is not its own. */
  readonly usesPostgres?: true
  /** Starts one more process of it. */
  readonly start: () => Promise<Subject>
  /** A budget of so many calls like `slow`; absent if it has none. */
  readonly budget?: (first: Subject, calls: number) => Promise<Budget>
}

const slow = { ...small, messages: [{ role: "user", content: "Please take your time." }] }

export const bareGateway = (upstream: string): Gateway => ({
  name: "bare proxy",
  version: `Node ${process.version}`,
  start: () => startBareProxy(upstream)
})

export const ownGateway = async (upstream: string): Promise<Gateway> => {
  const databaseUrl = await database("calls_gateway")
  const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `${upstream}/v1` }
  let headers: Subject["headers"] | undefined
  const run = async (): Promise<Subject> => {
    const started = await startGateway(databaseUrl, env)
    headers ??= (await makeKey(started.origin)).headers
    return { name: "gateway", ...started, headers }
  }
  const limited = async (origin: string, amount: string) => {
    const key = await makeKey(origin, { spend_limit: amount, reset: "never" })
    const spent = async () => {
      await pause(1000)
      const path = `/api-keys/${key.id}?user_id=${key.user}`
      return (await manage<{ spent: string }>(origin, path)).spent
    }
    return { ...key, spent }
  }
  return {
    name: "gateway",
    version: "this commit",
    usesPostgres: true,
    start: run,
    budget: async (first, calls) => {
      // The price of a call has more decimals than an amount
      const probe = await limited(first.origin, "1000000")
      await spend([{ ...first, headers: probe.headers }], calls)
      const amount = await probe.spent()
      const key = await limited(first.origin, amount)
      const second = await run()
      return {
        subjects: [
          { ...first, headers: key.headers },
          { ...second, headers: key.headers }
        ],
        ledger: async () => `${await key.spent()} of ${amount} credits spent`
      }
    }
  }
}

export const portkey = ({ version, words }: Installed, upstream: string): Gateway => ({
  name: "portkey",
  version,
  start: async () => {
    const port = await freePort()
    const child = start([...words, `--port=${port}`, "--headless"])
    const origin = `http://127.0.0.1:${port}`
    await reachable(origin, child)
    return {
      name: "portkey",
      origin,
      child,
      headers: {
        authorization: "Bearer sk-vendor",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": `${upstream}/v1`
      }
    }
  }
})

/**
 * LiteLLM without Postgres: its client for it, Prisma, downloads an engine that no package registry serves. So there
 * are neither keys nor a ledger, and the budget is that of a provider.
 */
export const litellm = ({ version, words }: Installed, upstream: string): Gateway => {
  const headers = { authorization: "Bearer sk-operator" }
  const run = async (budget?: number): Promise<Subject> => {
    const port = await freePort()
    const file = join(folder, `litellm-${port}.yaml`)
    const parameters = { model: "openai/gpt-4o", api_base: `${upstream}/v1`, api_key: "sk-vendor" }
    const openai = { budget_limit: budget, time_period: "1d" }
    const settings = {
      model_list: [{ model_name: "gpt-4o", litellm_params: parameters }],
      general_settings: { master_key: "sk-operator" },
      ...(budget === undefined ? {} : { router_settings: { provider_budget_config: { openai } } })
    }
    // JSON is YAML
    writeFileSync(file, JSON.stringify(settings))
    const child = start([...words, "--config", file, "--host", "127.0.0.1", "--port", `${port}`], {
      LITELLM_MODE: "PRODUCTION",
      LITELLM_LOG: "ERROR",
      LITELLM_LOCAL_MODEL_COST_MAP: "True"
    })
    const origin = `http://127.0.0.1:${port}`
    await reachable(`${origin}/health/readiness`, child)
    return { name: "litellm", origin, child, headers }
  }
  return {
    name: "litellm",
    version,
    start: run,
    budget: async (_, calls) => {
      const limit = gpt4oDollars * calls
      const subjects = [await run(limit), await run(limit)] as const
      const spent = async ({ origin }: Subject) => {
        const response = await fetch(`${origin}/provider/budgets`, { headers })
        const { providers } = (await response.json()) as Budgets
        return providers["openai"]?.spend ?? Number.NaN
      }
      return {
        subjects,
        ledger: async () => {
          await pause(5000)
          const [a, b] = await Promise.all(subjects.map(spent))
          return `no ledger; counted ${a!.toFixed(4)} and ${b!.toFixed(4)} of $${limit.toFixed(4)}`
        }
      }
    }
  }
}

/** 20 tokens of input and 40 of output, as the upstream counts them. */
const gpt4oDollars = 20 * 2.5e-6 + 40 * 1e-5

interface Budgets {
  readonly providers: Readonly<Record<string, { readonly spend: number }>>
}

const agent = new Agent({ connections: 250, headersTimeout: 60_000 })

/** So many calls at once, spread over the processes; returns how many passed. */
export const spend = async (subjects: ReadonlyArray<Subject>, calls: number): Promise<number> => {
  const statuses = await Promise.all(
    Array.from({ length: calls }, async (_, n) => {
      const { headers, origin } = subjects[n % subjects.length]!
      const response = await agent.request({
        origin,
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(slow)
      })
      await response.body.dump()
      return response.statusCode
    })
  )
  return statuses.filter((status) => status === 200).length
}

/** The bounds of p99 that a rate has to keep, and the connections that are tried. */
const kinds = {
  calls: { body: small, p99: 100, connections: [1, 8, 32, 128] },
  streams: { body: streamed, p99: 500, connections: [1, 4, 16] }
}
export type Kind = keyof typeof kinds
export const bounds: Readonly<Record<Kind, number>> = {
  calls: kinds.calls.p99,
  streams: kinds.streams.p99
}

/** The most calls a second within the bound of p99, over the connections that keep it. */
export const climb = async (subject: Subject, kind: Kind, seconds: number) => {
  const { body, connections, p99 } = kinds[kind]
  const steps: Array<Awaited<ReturnType<typeof press>>> = []
  for (const count of connections) {
    const step = await press(subject, body, count, seconds)
    steps.push(step)
    if (step.p99 > p99) break
  }
  const within = steps.filter((step) => step.p99 <= p99)
  const best = (within.length > 0 ? within : steps.slice(0, 1)).reduce((a, b) =>
    a.perSecond >= b.perSecond ? a : b
  )
  return {
    perSecond: within.length > 0 ? best.perSecond : 0,
    cpu: best.cpu,
    postgres: best.postgresCpu,
    memory: Math.max(...steps.map((step) => step.memory))
  }
}
