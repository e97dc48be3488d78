/**
 * Compares passthrough in one run, alternating: direct calls of the upstream, a bare node:http + undici proxy, the same
 * proxy with what every gateway needs (`relay`), and this gateway (with authentication, metering, ledger and Postgres).
 * The proxy under test has one core; load, upstream and Postgres share the other. Latencies of one client need the right to
 * set real-time priorities (`chrt`). `peers.ts` compares other gateways.
 *
 *   node bench/passthrough.ts [rounds]
 */
import { Agent } from "undici"
import { median, quantile } from "./measures.ts"
import { cpuMicros, residentMiB } from "./processes.ts"
import {
  aheadOfPostgres,
  bench,
  database,
  makeKey,
  pause,
  press,
  small,
  startBareProxy,
  startGateway,
  startUpstream,
  streamed
} from "./proxies.ts"
import type { Subject } from "./proxies.ts"

const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.env.SECONDS_EACH ?? 4)
const connections = Number(process.env.CONNECTIONS ?? 32)
const only = process.env.ONLY?.split(",")
const agent = new Agent({ connections: 2000, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
const held = { ...streamed, messages: [{ role: "user", content: "held open" }] }

/** Makes one call. Returns the milliseconds to the first byte of the body and to the end. */
const call = (subject: Subject, body: object, onFirst?: () => void) =>
  new Promise<{ first: number; total: number }>((resolve, reject) => {
    const began = performance.now()
    let first = 0
    let status = 0
    agent.dispatch(
      {
        origin: subject.origin,
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json", ...subject.headers },
        body: JSON.stringify(body)
      },
      {
        onRequestStart: () => {},
        onResponseStart: (_, code) => void (status = code),
        onResponseData: () => {
          if (first === 0) {
            first = performance.now() - began
            onFirst?.()
          }
        },
        onResponseEnd: () =>
          status === 200
            ? resolve({ first, total: performance.now() - began })
            : reject(new Error(`${subject.name}: HTTP ${status}`)),
        onResponseError: (_, error) => reject(error)
      }
    )
  })

/** One client that calls repeatedly. */
const repeat = async (subject: Subject, body: object, millis: number) => {
  const totals: Array<number> = []
  const firsts: Array<number> = []
  const until = performance.now() + millis
  const cpu = cpuMicros(subject.child.pid!)
  while (performance.now() < until) {
    const { first, total } = await call(subject, body)
    totals.push(total)
    firsts.push(first)
  }
  return {
    cpu: (cpuMicros(subject.child.pid!) - cpu) / totals.length,
    p50: quantile(totals, 0.5),
    p99: quantile(totals, 0.99),
    first50: quantile(firsts, 0.5),
    first99: quantile(firsts, 0.99)
  }
}

const openStreams = async (subject: Subject, count: number) => {
  const opened: Array<number> = []
  for (let i = 0; i < count; i += 1) {
    void call(subject, held, () => opened.push(i)).catch(() => {})
    if (i % 50 === 49) await pause(40)
  }
  for (let tries = 0; tries < 200 && opened.length < count; tries += 1) await pause(50)
  return { open: opened.length, memory: residentMiB(subject.child.pid!) }
}

const main = async () => {
  const direct = await startUpstream()
  const bare = await startBareProxy(direct.origin)
  const started = await startGateway(await database("gateway"), {
    OPENAI_API_KEY: "sk-vendor",
    OPENAI_BASE_URL: `${direct.origin}/v1`
  })
  const { headers } = await makeKey(started.origin)
  const gateway: Subject = { name: "gateway", ...started, headers }
  const relay = await startBareProxy(direct.origin, "sk-client")
  const subjects = [direct, bare, relay, gateway].filter(
    ({ name }) => only === undefined || only.includes(name)
  )
  const results = new Map<string, Array<Record<string, number>>>()
  const oneClient = (subject: Subject, body: object) =>
    aheadOfPostgres(direct, () => repeat(subject, body, seconds * 500))
  const withStreams = process.env.SMALL !== "1"
  for (const subject of subjects) {
    await press(subject, small, connections, 1.5)
    if (withStreams) await oneClient(subject, streamed)
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) {
      const busy = await press(subject, small, connections, seconds)
      const calm = await oneClient(subject, small)
      const flow = withStreams ? await oneClient(subject, streamed) : calm
      const list = results.get(subject.name) ?? []
      results.set(subject.name, list)
      list.push({
        "requests/s": busy.perSecond,
        "CPU µs": busy.cpu,
        "Postgres µs": busy.postgresCpu,
        "CPU µs, low": busy.cpuLow,
        "Postgres µs, low": busy.postgresCpuLow,
        "busy p50": busy.p50,
        "busy p99": busy.p99,
        p50: calm.p50,
        p99: calm.p99,
        "TTFB p50": flow.first50,
        "TTFB p99": flow.first99,
        "stream CPU µs": flow.cpu
      })
    }
  }
  const table = Object.fromEntries(
    [...results].map(([name, list]) => [
      name,
      Object.fromEntries(
        Object.keys(list[0]!).map((key) => [
          key,
          Number(median(list.map((it) => it[key]!)).toFixed(2))
        ])
      )
    ])
  )
  console.table(table)
  if (!withStreams) return
  const idle = residentMiB(gateway.child.pid!)
  const { memory, open } = await openStreams(gateway, 1000)
  console.log(
    `${open} open streams: ${memory.toFixed(0)} MiB resident (before: ${idle.toFixed(0)})`
  )
}

await bench(main)
