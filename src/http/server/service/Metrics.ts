import { Clock, DateTime, Duration, Effect, Option } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { UpstreamCalls } from "../../../passthrough/UpstreamCalls.ts"
import { ProcessGroup } from "../../../process/ProcessGroup.ts"
import { Queues } from "../../../tasks/history/Queues.ts"
import { ConcurrencyLimiter } from "../../../tasks/submission/ConcurrencyLimiter.ts"
import { Wallet } from "../../../wallet/Wallet.ts"
import { metricText, processMetrics } from "./ProcessMetrics.ts"
import type { MetricFamily } from "./ProcessMetrics.ts"

/** Labels that do not identify accounts or tenants. */
const openLabels = new Set([
  "cause",
  "code",
  "kind",
  "le",
  "model",
  "outcome",
  "quantile",
  "reason",
  "state",
  "vendor"
])

/** Removes series with any other label. docs/reference/http.md#metrics */
const withoutNames = (text: string): string =>
  text
    .split("\n")
    .filter(
      (line) =>
        line.startsWith("#") ||
        [...line.matchAll(/[{,](\w+)="/gu)].every(([, label = ""]) => openLabels.has(label))
    )
    .join("\n")

/** The minimum time between two counts of unfinished work, because `/metrics` is public by default. */
const countedEvery = Duration.seconds(5)

/**
 * Half of Prometheus's default `scrape_timeout`. A scrape that fails would not show whether the process or the store is
 * unavailable.
 */
const storeSilenceMax = Duration.seconds(5)

/**
 * The text of `/metrics`: the metrics of all processes of this command, and once those of the store. If the store is
 * unavailable, its metrics are omitted and `gateway_store_up` is 0. ADR 0223, ADR 0295
 */
export const makeMetrics = Effect.gen(function* () {
  const wallet = yield* Wallet
  const upstream = yield* UpstreamCalls
  const slots = yield* ConcurrencyLimiter
  const queues = yield* Effect.cachedWithTTL((yield* Queues).depths, countedEvery)
  const fromStore = Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const drift = driftGauges(yield* wallet.drift, yield* wallet.budgetDrift)
    const seconds = ((yield* Clock.currentTimeMillis) - began) / 1000
    return [
      ...drift,
      auditGauge(yield* wallet.auditedAt),
      ...queueGauges(yield* queues),
      slotGauge(yield* slots.queues),
      gauge(
        "gateway_store_seconds",
        "Time that two small statements take, including waits.",
        seconds
      )
    ]
  })
  // Concurrent scrapes share one read, and so one connection
  const readStore = yield* Effect.cachedWithTTL(fromStore, 0)
  const ofThisProcess = Effect.gen(function* () {
    const families = [...accountGauges(yield* upstream.accounts), ...processMetrics()]
    return `${yield* PrometheusMetrics.format()}${families.map(metricText).join("")}`
  })
  const ofProcesses = yield* Effect.cachedWithTTL((yield* ProcessGroup).metrics(ofThisProcess), 0)
  return Effect.fnUntraced(function* (shown: "all" | "unnamed") {
    const stored = Option.flatten(
      yield* Effect.timeoutOption(Effect.option(readStore), storeSilenceMax)
    )
    const families = [
      gauge("gateway_store_up", "1: the store responds.", Option.isSome(stored) ? 1 : 0),
      ...Option.getOrElse(stored, () => [])
    ]
    const text = `${yield* ofProcesses}${families.map(metricText).join("")}`
    return shown === "all" ? text : withoutNames(text)
  })
})

const gauge = (name: string, help: string, value: number): MetricFamily => ({
  name,
  type: "gauge",
  help,
  samples: [[{}, value]]
})

const byState = (
  name: string,
  help: string,
  states: Readonly<Record<string, number>>
): MetricFamily => ({
  name,
  type: "gauge",
  help,
  samples: Object.entries(states).map(([state, value]) => [{ state }, value])
})

const driftGauges = (wallets: number, budgets: number): ReadonlyArray<MetricFamily> => [
  gauge(
    "gateway_wallet_drift",
    "Wallets that differ from their ledger or holds; must be 0.",
    wallets
  ),
  gauge(
    "gateway_key_budget_drift",
    "Spend limits of keys with impossible counts; must be 0.",
    budgets
  )
]

/** Shows the age of the drift figure, because an outdated 0 proves nothing. docs/reference/wallet.md#wallet-audit */
const auditGauge = (auditedAt: Option.Option<DateTime.Utc>): MetricFamily => ({
  name: "gateway_wallet_audit_timestamp_seconds",
  type: "gauge",
  help: "When every wallet was last compared with its ledger.",
  samples: Option.match(auditedAt, {
    onNone: () => [],
    onSome: (time) => [[{}, DateTime.toEpochMillis(time) / 1000]]
  })
})

/** Unfinished work of all processes. docs/reference/http.md#queues */
const queueGauges = (
  depths: Effect.Success<Queues["Service"]["depths"]>
): ReadonlyArray<MetricFamily> => [
  byState(
    "gateway_tasks",
    "Unfinished tasks over all processes: the total, and the number in some states.",
    {
      unfinished: depths.tasks,
      waiting_for_slot: depths.tasksWaiting,
      unowned: depths.tasksUnowned,
      due: depths.tasksDue
    }
  ),
  gauge(
    "gateway_tasks_lateness_seconds",
    "Lateness of the task whose step has been due longest; 0 if none is due.",
    depths.tasksLatenessMillis / 1000
  ),
  byState(
    "gateway_deliveries",
    "Unfinished deliveries: the total, and the number in some states.",
    {
      unfinished: depths.deliveries,
      due: depths.deliveriesDue,
      in_progress: depths.deliveriesClaimed
    }
  ),
  gauge(
    "gateway_deliveries_lateness_seconds",
    "Lateness of the delivery that has been due longest; 0 if none is due.",
    depths.latenessMillis / 1000
  ),
  gauge(
    "gateway_store_restored_timestamp_seconds",
    "When the store was last found to have gone back in time; 0 if never.",
    depths.restoredAt === null ? 0 : DateTime.toEpochMillis(depths.restoredAt) / 1000
  ),
  gauge(
    "gateway_tasks_in_doubt",
    "Unfinished tasks whose submit a store that went back in time may have lost.",
    depths.tasksInDoubt
  )
]

/** The circuit (0 closed, 1 half-open, 2 open) and the pause of each upstream account. ADR 0132. */
const accountGauges = (
  accounts: Effect.Success<UpstreamCalls["Service"]["accounts"]>
): ReadonlyArray<MetricFamily> => [
  {
    name: "gateway_account_circuit",
    type: "gauge",
    help: "Circuit of the account: 0 closed, 1 half open, 2 open.",
    samples: accounts.map(({ circuit, id }) => [
      { account: id },
      ["Closed", "HalfOpen", "Open"].indexOf(circuit)
    ])
  },
  {
    name: "gateway_account_paused_seconds",
    type: "gauge",
    help: "Seconds until the last paused model of the account resumes.",
    samples: accounts.map(({ id, pausedMillis }) => [{ account: id }, pausedMillis / 1000])
  }
]

/** Tasks that hold a slot at a vendor or wait for one. ADR 0108. */
const slotGauge = (
  queues: Effect.Success<ConcurrencyLimiter["Service"]["queues"]>
): MetricFamily => ({
  name: "gateway_vendor_slots",
  type: "gauge",
  help: "Unfinished tasks by concurrency limit: those that hold a slot, and those that wait.",
  samples: queues.flatMap(({ held, line, waiting }) => [
    [{ line, state: "held" }, held] as const,
    [{ line, state: "waiting" }, waiting] as const
  ])
})
