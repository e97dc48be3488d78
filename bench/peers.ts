/**
 * Compares this gateway with its peers: gateways for language models, and job engines that run the same tasks. Uses one
 * upstream, one Postgres, pinned cores and alternating rounds. Prints a table, and draws `peers.svg` if it measures all.
 *
 *   node bench/peers.ts [rounds] [--only=calls,tasks,bare proxy,portkey,…] [--seconds=1.2] [--tasks=600]
 */
import { writeFileSync } from "node:fs"
import { median } from "./measures.ts"
import { chart } from "./peers/chart.ts"
import type { Bar } from "./peers/chart.ts"
import { gatewayEngine, kill, measureTasks, peerEngine, startVendor } from "./peers/engines.ts"
import type { Engine } from "./peers/engines.ts"
import {
  bareGateway,
  bifrost,
  bounds,
  climb,
  litellm,
  litellmPostgres,
  ownGateway,
  portkey,
  spend
} from "./peers/gateways.ts"
import type { Gateway, Kind } from "./peers/gateways.ts"
import { installers } from "./peers/install.ts"
import type { Installed, Peer } from "./peers/install.ts"
import { residentMiB } from "./processes.ts"
import { bench, here, pause, startUpstream, stop } from "./proxies.ts"

const option = (name: string) =>
  process.argv.find((it) => it.startsWith(`--${name}=`))?.slice(name.length + 3)
const rounds = Number(process.argv.slice(2).find((it) => /^\d+$/u.test(it)) ?? 3)
const only = option("only")?.split(",")
const seconds = Number(option("seconds") ?? 1.2)
const tasks = Number(option("tasks") ?? 600)

/** Prepares the selected peers. A peer that cannot be installed or started is skipped, and the reason is printed. */
const select = async <A>(name: string, prepare: () => Promise<A>): Promise<ReadonlyArray<A>> => {
  if (only !== undefined && !only.includes(name)) return []
  try {
    return [await prepare()]
  } catch (error) {
    console.log(`Skipped: ${name} (${error instanceof Error ? error.message : String(error)})`)
    return []
  }
}

/** The rows of the table; those with a value become panels of the picture. */
const rows = new Map<string, Map<string, string>>()
const panels = new Map<string, Array<Bar>>()
const versions = new Map<string, string>()

const record = (row: string, name: string, text: string, value?: number) => {
  rows.set(row, (rows.get(row) ?? new Map()).set(name, text))
  if (value !== undefined) panels.set(row, [...(panels.get(row) ?? []), { name, text, value }])
}

const printTable = () => {
  const line = (cells: ReadonlyArray<string>) =>
    console.log(`|${cells.map((it) => (it === "" ? "" : ` ${it} `)).join("|")}|`)
  const names = [...versions.keys()]
  line(["Figure", ...names.map((name) => `${name} ${versions.get(name)}`)])
  line(["---", ...names.map(() => "---")])
  for (const [row, cells] of rows) line([row, ...names.map((name) => cells.get(name) ?? "")])
}

const whole = (value: number) => Math.round(value).toLocaleString("en")
const thousandths = (value: number) => (value / 1000).toFixed(2)

/** Figures measured in rounds. Each reported figure is a median. */
const inRounds = <A extends Record<string, number>>() => {
  const lists = new Map<string, Array<A>>()
  return {
    add: (key: string, it: A) => lists.set(key, [...(lists.get(key) ?? []), it]),
    of: (key: string, member: keyof A) => median(lists.get(key)!.map((it) => it[member]!))
  }
}

const begin = async (gateway: Gateway) => {
  const subject = await gateway.start()
  await pause(1000)
  return { gateway, subject, rest: residentMiB(subject.child.pid!) }
}

const measureGateways = async (running: ReadonlyArray<Awaited<ReturnType<typeof begin>>>) => {
  const measured = inRounds<Awaited<ReturnType<typeof climb>>>()
  const kinds: ReadonlyArray<Kind> = ["calls", "streams"]
  // The first round is a warm-up
  for (let round = -1; round < rounds; round += 1) {
    for (const kind of kinds) {
      for (const { subject } of running) {
        const it = await climb(subject, kind, round < 0 ? seconds / 3 : seconds)
        if (round >= 0) measured.add(`${kind} ${subject.name}`, it)
      }
    }
  }
  for (const { gateway, rest, subject } of running) {
    const { name, usesPostgres, version } = gateway
    versions.set(name, version)
    const withPostgres = (own: string, postgres: string) =>
      usesPostgres ? `${own} + ${postgres}` : own
    const calls = (member: keyof Awaited<ReturnType<typeof climb>>) =>
      measured.of(`calls ${name}`, member)
    const streams: typeof calls = (member) => measured.of(`streams ${name}`, member)
    const rate = calls("perSecond")
    record(`calls/s, p99 ≤ ${bounds.calls} ms`, name, whole(rate), rate)
    const ofCall = withPostgres(whole(calls("cpu")), whole(calls("postgres")))
    record("CPU of a call + Postgres, µs", name, ofCall, calls("cpu"))
    record(`streams/s, p99 ≤ ${bounds.streams} ms`, name, whole(streams("perSecond")))
    const ofStream = withPostgres(thousandths(streams("cpu")), thousandths(streams("postgres")))
    record("CPU of a stream of 200 events + Postgres, ms", name, ofStream, streams("cpu"))
    const most = Math.max(calls("memory"), streams("memory"))
    record("MiB at rest, under load", name, `${whole(rest)}, ${whole(most)}`)
    const began = performance.now()
    const { child: again } = await gateway.start()
    record("start, s", name, ((performance.now() - began) / 1000).toFixed(1))
    await stop(again)
    // A call needs 40 tokens, so a hold for 100 is more than twice its price
    for (const maxTokens of [100, 40]) {
      const budget = await gateway.budget?.(subject, 100)
      const passed = budget === undefined ? 0 : await spend(budget.subjects, 500, maxTokens)
      const money = budget === undefined ? "none" : `${passed}; ${await budget.ledger()}`
      record(`passed of 500 with a budget of 100, max_tokens ${maxTokens}; records`, name, money)
      for (const { child } of budget?.subjects ?? []) if (child !== subject.child) await stop(child)
    }
    await stop(subject.child)
  }
}

const run = async (engine: Engine) => ({ engine, process: await engine.start() })

const measureEngines = async (
  running: ReadonlyArray<Awaited<ReturnType<typeof run>>>,
  vendor: Awaited<ReturnType<typeof startVendor>>
) => {
  const measured = inRounds<Awaited<ReturnType<typeof measureTasks>>>()
  for (let round = -1; round < rounds; round += 1) {
    for (const { engine, process } of running) {
      const it = await measureTasks(engine, process, round < 0 ? tasks / 4 : tasks)
      if (round >= 0) measured.add(engine.name, it)
    }
  }
  for (const { process } of running) await stop(process.child)
  for (const { engine } of running) {
    const { name, recovery, version } = engine
    versions.set(name, version)
    const of = (member: keyof Awaited<ReturnType<typeof measureTasks>>) => measured.of(name, member)
    record("tasks/s", name, whole(of("perSecond")))
    const ofTask = `${thousandths(of("cpu"))} + ${thousandths(of("postgres"))}`
    record("CPU of a task + Postgres, ms", name, ofTask, of("cpu"))
    record("transactions of a task", name, of("transactions").toFixed(1))
    record(
      "create to completed, p50, p99, s",
      name,
      `${thousandths(of("p50"))}, ${thousandths(of("p99"))}`
    )
    record("MiB after the tasks", name, whole(of("memory")))
    const { failed, jobs, tasks } = await kill(engine, vendor)
    const outcome = `${jobs} for ${tasks}; ${failed} failed`
    record("killed while it submits: jobs at the vendor for tasks", name, outcome)
    record("continues after, by default", name, recovery.after)
  }
}

await bench(async () => {
  const upstream = (await startUpstream()).origin
  const model = async (name: Peer, of: (it: Installed, upstream: string) => Gateway) =>
    select(name, () => begin(of(installers[name](), upstream)))
  const gateways = [
    ...(await select("calls", async () => begin(await ownGateway(upstream)))),
    ...(await select("bare proxy", () => begin(bareGateway(upstream)))),
    ...(await model("portkey", portkey)),
    ...(await select("bifrost", () => begin(bifrost(upstream)))),
    ...(await model("litellm", litellm)),
    ...(await select("litellm-postgres", async () =>
      begin(await litellmPostgres(installers["litellm-postgres"](), upstream))
    ))
  ]
  await measureGateways(gateways)
  const vendor = await startVendor()
  const engine = (name: Parameters<typeof peerEngine>[0]) =>
    select(name, async () => run(await peerEngine(name, installers[name](), vendor.url)))
  const engines = [
    ...(await select("tasks", async () => run(await gatewayEngine(vendor.url)))),
    ...(await engine("graphile-worker")),
    ...(await engine("pg-boss")),
    ...(await engine("river"))
  ]
  await measureEngines(engines, vendor)
  vendor.stop()
  printTable()
  if (only === undefined) writeFileSync(here("peers.svg"), chart(panels))
})
