/** Gateways for language models: the cost of calls and streams, and whether a budget holds. */
import { spawnSync } from "node:child_process"
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Agent } from "undici"
import { freePort } from "../../test/support/spawnService.ts"
import {
  database,
  folder,
  makeKey,
  manage,
  pause,
  press,
  query,
  reachable,
  small,
  start,
  startBareProxy,
  startGateway,
  streamed
} from "../proxies.ts"
import type { Subject } from "../proxies.ts"
import type { Installed } from "./install.ts"

/** Two processes that should both respect one budget. */
interface Budget {
  readonly subjects: readonly [Subject, Subject]
  /** The content of its records after the calls. */
  readonly ledger: () => Promise<string>
}

export interface Gateway {
  readonly name: string
  readonly version: string
  /** Otherwise Postgres's CPU is not attributed to it. */
  readonly usesPostgres?: true
  /** Starts another process of it. */
  readonly start: () => Promise<Subject>
  /** A budget for this many calls like `slow`. Absent if it has no budgets. */
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
        ledger: async () => `${await key.spent()} of ${amount} credits`
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
 * Bifrost with its default store, one file per process, because its documentation describes no store that two can share.
 * `BIFROST` is the path of the program, because no package registry has it.
 */
export const bifrost = (upstream: string): Gateway => {
  const program = process.env["BIFROST"]
  if (program === undefined)
    throw new Error("BIFROST is not the path of bifrost-http, which no package registry has")
  const headers = { authorization: "Bearer sk-bf-bench" }
  const prepare = (name: string, limit?: number) => {
    const place = join(folder, name)
    const store = join(place, "config.db")
    const access = { provider: "openai", allowed_models: ["*"], key_ids: ["*"], weight: 1 }
    const key = { id: "bench", name: "bench", value: "sk-bf-bench", provider_configs: [access] }
    const budget = { id: "bench", virtual_key_id: "bench", max_limit: limit, reset_duration: "1d" }
    const settings = {
      client: { enforce_auth_on_inference: true, enable_logging: false },
      config_store: { enabled: true, type: "sqlite", config: { path: store } },
      logs_store: { enabled: false },
      framework: { pricing: { pricing_url: upstream } },
      providers: {
        openai: {
          keys: [{ name: "vendor", value: "sk-vendor", models: ["*"], weight: 1 }],
          network_config: { base_url: upstream }
        }
      },
      governance: { virtual_keys: [key], budgets: limit === undefined ? [] : [budget] }
    }
    mkdirSync(place)
    writeFileSync(join(place, "config.json"), JSON.stringify(settings))
    return { store, flags: ["-app-dir", place, "-log-level", "error"] }
  }
  // Its first start fails if it cannot download prices and parameters of models, so they are written here
  const first = prepare("bifrost")
  const { stdout } = spawnSync(program, first.flags, { encoding: "utf8", timeout: 60_000 })
  const catalog = new DatabaseSync(first.store)
  catalog.exec(`INSERT INTO governance_model_parameters (model, data) VALUES ('gpt-4o', '{}');
    INSERT INTO governance_model_pricing (model, provider, mode, input_cost_per_token, output_cost_per_token)
      VALUES ('gpt-4o', 'openai', 'chat', 2.5e-6, 1e-5)`)
  catalog.close()
  const run = async (limit?: number): Promise<Subject> => {
    const port = await freePort()
    const { flags, store } = prepare(`bifrost-${port}`, limit)
    copyFileSync(first.store, store)
    const child = start([program, ...flags, "-port", `${port}`])
    const origin = `http://127.0.0.1:${port}`
    await reachable(`${origin}/health`, child)
    return { name: "bifrost", origin, child, headers }
  }
  return {
    name: "bifrost",
    version: /v\d+\.[\w.-]*/u.exec(stdout)?.[0] ?? "",
    start: run,
    budget: async (_, calls) => {
      const limit = gpt4oDollars * calls
      const subjects = [await run(limit), await run(limit)] as const
      const spent = async ({ origin }: Subject) => {
        const response = await fetch(`${origin}/api/governance/budgets?from_memory=true`)
        const { budgets } = (await response.json()) as {
          readonly budgets: Readonly<Record<string, { readonly current_usage: number }>>
        }
        return Object.values(budgets)[0]?.current_usage ?? Number.NaN
      }
      return {
        subjects,
        ledger: async () => {
          await pause(1000)
          const [a, b] = await Promise.all(subjects.map(spent))
          return `counted ${a!.toFixed(4)} + ${b!.toFixed(4)} of $${limit.toFixed(4)}`
        }
      }
    }
  }
}

/** A process of LiteLLM whose operator has the key `sk-operator`. */
const startLitellm = async (
  { words }: Installed,
  upstream: string,
  env: Record<string, string> = {},
  settings: object = {}
) => {
  const port = await freePort()
  const file = join(folder, `litellm-${port}.yaml`)
  const parameters = { model: "openai/gpt-4o", api_base: `${upstream}/v1`, api_key: "sk-vendor" }
  const models = { model_list: [{ model_name: "gpt-4o", litellm_params: parameters }] }
  const general = { general_settings: { master_key: "sk-operator" } }
  // JSON is YAML
  writeFileSync(file, JSON.stringify({ ...models, ...general, ...settings }))
  const child = start([...words, "--config", file, "--host", "127.0.0.1", "--port", `${port}`], {
    LITELLM_MODE: "PRODUCTION",
    LITELLM_LOG: "ERROR",
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
    ...env
  })
  const origin = `http://127.0.0.1:${port}`
  await reachable(`${origin}/health/readiness`, child)
  return { origin, child, headers: operator }
}

const operator = { authorization: "Bearer sk-operator" }

/** LiteLLM without Postgres: no keys and no ledger; its budget applies to a provider. */
export const litellm = (installed: Installed, upstream: string): Gateway => {
  const run = async (limit?: number): Promise<Subject> => {
    const openai = { budget_limit: limit, time_period: "1d" }
    const settings = { router_settings: { provider_budget_config: { openai } } }
    const started = await startLitellm(installed, upstream, {}, limit === undefined ? {} : settings)
    return { name: "litellm", ...started }
  }
  return {
    name: "litellm",
    version: installed.version,
    start: run,
    budget: async (_, calls) => {
      const limit = gpt4oDollars * calls
      const subjects = [await run(limit), await run(limit)] as const
      const spent = async ({ origin }: Subject) => {
        const response = await fetch(`${origin}/provider/budgets`, { headers: operator })
        const { providers } = (await response.json()) as Budgets
        return providers["openai"]?.spend ?? Number.NaN
      }
      return {
        subjects,
        ledger: async () => {
          await pause(5000)
          const [a, b] = await Promise.all(subjects.map(spent))
          return `counted ${a!.toFixed(4)} + ${b!.toFixed(4)} of $${limit.toFixed(4)}`
        }
      }
    }
  }
}

/** LiteLLM with Postgres: keys, budgets per key, and a table of spending. */
export const litellmPostgres = async (
  installed: Installed & { readonly migrations: string },
  upstream: string
): Promise<Gateway> => {
  const { migrations, version } = installed
  const url = await database("litellm")
  for (const name of globSync("*/migration.sql", { cwd: migrations }).sort()) {
    await query(url, readFileSync(join(migrations, name), "utf8"))
  }
  let unlimited: Subject["headers"] | undefined
  const makeKey = async (origin: string, settings: object) => {
    const response = await fetch(`${origin}/key/generate`, {
      method: "POST",
      headers: { ...operator, "content-type": "application/json" },
      body: JSON.stringify(settings)
    })
    if (!response.ok) throw new Error(`litellm: ${response.status} ${await response.text()}`)
    const { key, token } = (await response.json()) as { key: string; token: string }
    return { token, headers: { authorization: `Bearer ${key}` } }
  }
  const run = async (): Promise<Subject> => {
    const env = { DATABASE_URL: url, DISABLE_SCHEMA_UPDATE: "true" }
    const started = await startLitellm(installed, upstream, env)
    unlimited ??= (await makeKey(started.origin, {})).headers
    return { name: "litellm-postgres", ...started, headers: unlimited }
  }
  return {
    name: "litellm-postgres",
    version,
    usesPostgres: true,
    start: run,
    budget: async (first, calls) => {
      const limit = gpt4oDollars * calls
      const { token, headers } = await makeKey(first.origin, { max_budget: limit })
      const second = await run()
      return {
        subjects: [
          { ...first, headers },
          { ...second, headers }
        ],
        ledger: async () => {
          // It writes spending every ten to fifteen seconds
          await pause(30_000)
          const [row] = await query<{ spend: number; logged: number }>(
            url,
            `SELECT spend, (SELECT sum(spend) FROM "LiteLLM_SpendLogs" WHERE api_key = token) AS logged
            FROM "LiteLLM_VerificationToken" WHERE token = '${token}'`
          )
          const { logged, spend } = row!
          return `$${spend.toFixed(4)} of $${limit.toFixed(4)} and $${logged.toFixed(4)} logged`
        }
      }
    }
  }
}

/** 20 input tokens and 40 output tokens, as counted by the upstream. */
const gpt4oDollars = 20 * 2.5e-6 + 40 * 1e-5

interface Budgets {
  readonly providers: Readonly<Record<string, { readonly spend: number }>>
}

const agent = new Agent({ connections: 250, headersTimeout: 60_000 })

/** Makes this many calls at once, spread over the processes. Returns how many passed. */
export const spend = async (
  subjects: ReadonlyArray<Subject>,
  calls: number,
  maxTokens = small.max_tokens
): Promise<number> => {
  const body = JSON.stringify({ ...slow, max_tokens: maxTokens })
  const statuses = await Promise.all(
    Array.from({ length: calls }, async (_, n) => {
      const { headers, origin } = subjects[n % subjects.length]!
      const response = await agent.request({
        origin,
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body
      })
      await response.body.dump()
      return response.statusCode
    })
  )
  return statuses.filter((status) => status === 200).length
}

/** The p99 limits for a rate, and the numbers of connections to try. */
const kinds = {
  calls: { body: small, p99: 100, connections: [1, 8, 32, 128] },
  streams: { body: streamed, p99: 500, connections: [1, 4, 16] }
}
export type Kind = keyof typeof kinds
export const bounds: Readonly<Record<Kind, number>> = {
  calls: kinds.calls.p99,
  streams: kinds.streams.p99
}

/** The highest rate of calls within the p99 limit, over all numbers of connections. */
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
