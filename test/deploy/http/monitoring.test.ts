import { assert, describe, it } from "@effect/vitest"
import { PrometheusRule } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1"
import { DateTime, Effect, Schema } from "effect"
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { parse } from "yaml"
import { ArtifactIndexStore, ArtifactRow } from "../../../src/artifacts/ArtifactIndexStore.ts"
import { Artifacts } from "../../../src/artifacts/Artifacts.ts"
import { makeArtifactId, makeTaskId } from "../../../src/domain/Ids.ts"
import { listenerBounds } from "../../../src/http/server/listener/Listener.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { eventually } from "../../support/gateway.ts"
import { scrapedOf, selectedBy } from "../../support/promQl.ts"
import type { Scraped } from "../../support/promQl.ts"
import {
  call,
  finishedTask,
  json,
  metricsText,
  Running,
  runningGateway
} from "../../support/running.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/operating.md#monitoring, ADR 0223 */

const Rules = Schema.Struct({
  groups: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      rules: Schema.Array(
        Schema.Struct({
          alert: Schema.String,
          expr: Schema.String,
          for: Schema.optionalKey(Schema.String),
          labels: Schema.Struct({ severity: Schema.Literals(["critical", "warning", "info"]) }),
          annotations: Schema.Struct({
            summary: Schema.String,
            description: Schema.String,
            runbook_url: Schema.String
          })
        })
      )
    })
  )
})

const Place = Schema.Struct({ h: Schema.Int, w: Schema.Int, x: Schema.Int, y: Schema.Int })
const Source = Schema.Struct({
  type: Schema.Literal("prometheus"),
  uid: Schema.Literal("${datasource}")
})

/** What Grafana needs to import and draw a dashboard. */
const Dashboard = Schema.Struct({
  title: Schema.String,
  uid: Schema.String,
  schemaVersion: Schema.Int,
  templating: Schema.Struct({
    list: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String }))
  }),
  panels: Schema.Array(
    Schema.Struct({
      id: Schema.Int,
      type: Schema.Literals(["row", "stat", "timeseries"]),
      title: Schema.String,
      gridPos: Place,
      datasource: Schema.optionalKey(Source),
      targets: Schema.optionalKey(
        Schema.Array(
          Schema.Struct({ refId: Schema.String, expr: Schema.String, datasource: Source })
        )
      )
    })
  )
})

const rulesText = readFileSync("deploy/prometheus/alerts.yml", "utf8")
const rules = Schema.decodeUnknownSync(Rules)(parse(rulesText)).groups.flatMap(
  (group) => group.rules
)
const dashboard = Schema.decodeUnknownSync(Dashboard)(
  JSON.parse(readFileSync("deploy/grafana/gateway.json", "utf8"))
)
const drawn = dashboard.panels.filter(({ type }) => type !== "row")

const queries = [
  ...rules.map(({ alert, expr }) => [`alert ${alert}`, expr] as const),
  ...drawn.flatMap(({ targets = [], title }) =>
    targets.map(({ expr, refId }) => [`panel ${title}, ${refId}`, expr] as const)
  )
  // Variables that Grafana replaces
].map(([name, expr]) => [name, expr.replaceAll("$__rate_interval", "5m")] as const)

/** Prometheus adds these to every series and creates `up` itself. */
const added = ["instance", "job"]
const ofPrometheus = new Map<string, Scraped>([["up", { type: "gauge", labels: new Set() }]])

/** The functions that read a counter; `unless` compares it with its past to see whether it has just started. */
const rates = new Set(["rate", "irate", "increase", "unless"])

describe("the queries of the dashboard and of the alerts", () => {
  let vendor: Upstream
  let scraped: ReadonlyMap<string, Scraped>
  /** Excludes the counters of other services in this worker, which share the registry. */
  let counted: ReadonlyMap<string, Scraped>
  beforeAll(async () => {
    vendor = await Upstream.start(dashscope)
    vendor.runningPolls = Number.POSITIVE_INFINITY
    const env = {
      DASHSCOPE_API_KEY: `${vendor.key};name=one;concurrent=2;base=${vendor.url}`,
      OPENAI_API_KEY: "sk-vendor;base=http://127.0.0.1:1"
    }
    const receiver = () => Effect.succeed(mockOutcome(200))
    const [before, after] = await Effect.runPromise(
      Effect.provide(work, runningGateway(env, listenerBounds, receiver)).pipe(Effect.scoped)
    )
    scraped = scrapedOf(after)
    const seen = new Set(before.split("\n"))
    const isUntouched = (line: string) => /_total[ {]/u.test(line) && seen.has(line)
    counted = scrapedOf(
      after
        .split("\n")
        .filter((line) => line.startsWith("#") || !isUntouched(line))
        .join("\n")
    )
  }, 180_000)
  afterAll(() => vendor.close())

  /** Makes every part of the service work, and some of it fail. */
  const work = Effect.gen(function* () {
    const before = yield* metricsText
    const hook = { url: "https://127.0.0.1/hook", events: ["task.succeeded", "task.failed"] }
    yield* call("/manage/v1/webhook-endpoints", json(hook))
    yield* finishedTask("/vendors/alibaba/v1/text-to-image-max/generation", { prompt: "One" })
    // Runs until the end of the test
    yield* call("/vendors/alibaba/v1/text-to-image-preview/generation", json({ prompt: "Two" }))
    yield* eventually(
      Effect.sync(() => vendor.paidSubmits),
      (jobs) => jobs === 2
    )
    vendor.submitFaults = ["operator"]
    yield* finishedTask("/vendors/alibaba/v1/text-to-image-preview/generation", { prompt: "Three" })
    const messages = [{ role: "user", content: "Hello" }]
    const chat = yield* call("/v1/chat/completions", json({ model: "gpt-4o", messages }))
    assert.strictEqual(chat.status, 502)
    yield* call("/manage/v1/wallet", { headers: { authorization: "Bearer nobody" } })
    yield* refusedRemoval
    const after = yield* Effect.repeat(metricsText, {
      until: (text) => scrapedOf(text).has("gateway_delivery_attempts_total"),
      times: 500
    })
    return [before, after] as const
  })

  /** Fails to remove an expired medium, because its file is a folder. */
  const refusedRemoval = Effect.gen(function* () {
    const { dataDir, userId } = yield* Running
    const expiresAt = DateTime.subtract(yield* DateTime.now, { hours: 2 })
    const createdAt = DateTime.subtract(expiresAt, { hours: 24 })
    const millis = DateTime.toEpochMillis(createdAt)
    const id = makeArtifactId(millis)
    mkdirSync(join(dataDir, "artifacts", id.slice(4, 11), id, "full"), { recursive: true })
    yield* (yield* ArtifactIndexStore).add(
      new ArtifactRow({
        id,
        userId,
        taskId: makeTaskId(millis),
        role: "output",
        mime: "image/png",
        bytes: 1n,
        sha256: new Uint8Array(32),
        createdAt,
        expiresAt
      })
    )
    yield* (yield* Artifacts).removeExpired
  })

  it("use the metrics and labels that a working service shows, according to their types", () => {
    for (const [name, query] of queries) {
      for (const { groupedBy, labels, metric, within } of selectedBy(query)) {
        const found = scraped.get(metric) ?? ofPrometheus.get(metric)
        assert.isDefined(found, `${name}: no metric ${metric}`)
        const known = new Set([...found!.labels, ...added])
        for (const label of [...labels, ...groupedBy]) {
          assert.isTrue(known.has(label), `${name}: ${metric} has no label ${label}`)
        }
        const isRated = within.some((it) => rates.has(it))
        const isCounted = found!.type !== "gauge"
        assert.strictEqual(isRated, isCounted, `${name}: ${metric} is a ${found!.type}`)
        const isBucket = found!.type === "histogram" && metric.endsWith("_bucket")
        assert.strictEqual(within.includes("histogram_quantile"), isBucket, name)
        if (isBucket) assert.include(groupedBy, "le", name)
      }
    }
  })

  it("use every metric of the service", () => {
    const used = new Set(
      queries.flatMap(([, query]) => selectedBy(query).map(({ metric }) => metric))
    )
    const unused = [...counted.keys()].filter(
      (name) => !used.has(name) && !/_(?:bucket|count|sum)$/u.test(name)
    )
    assert.sameMembers(unused, ["process_start_time_seconds"])
  })
})

describe("the alert rules", () => {
  it("have the form that Prometheus reads", () => {
    const spec = parse(rulesText)
    const rule = new PrometheusRule({ metadata: { name: "gateway" }, spec })
    assert.doesNotThrow(() => rule.validate())
    assert.strictEqual(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  })

  it("see the first event of a counter that has no series before it", () => {
    for (const { alert, expr } of rules.filter(({ expr }) => expr.includes("increase("))) {
      const read = selectedBy(expr).map(({ within }) => within.find((it) => rates.has(it)))
      assert.deepStrictEqual(read, ["increase", "unless", "unless"], alert)
    }
  })

  it("each fire in a test case for promtool", () => {
    const cases = readFileSync("deploy/prometheus/alerts.test.yml", "utf8")
    const firing = [...cases.matchAll(/labels: '\{alertname="(\w+)"\}'/gu)].map(([, it]) => it)
    assert.sameMembers(
      [...new Set(firing)],
      rules.map(({ alert }) => alert)
    )
  })

  it("compare with a bound, and link to a heading that says what to do", () => {
    const headings = readFileSync("docs/operating.md", "utf8")
      .split("\n")
      .flatMap((line) => /^#+ (.*)$/u.exec(line)?.[1]?.toLowerCase() ?? [])
    for (const { alert, annotations, expr } of rules) {
      assert.match(expr, / (?:>|==) [\d.]+$/u, alert)
      assert.strictEqual(annotations.runbook_url, `docs/operating.md#${alert.toLowerCase()}`)
      assert.include(headings, alert.toLowerCase())
    }
  })
})

describe("the dashboard", () => {
  it("has panels with unique ids that fit into the grid without overlaps", () => {
    assert.strictEqual(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
    const taken = new Set<string>()
    for (const { gridPos, title } of dashboard.panels) {
      assert.isAtMost(gridPos.x + gridPos.w, 24, title)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          assert.isFalse(taken.has(`${x} ${y}`), title)
          taken.add(`${x} ${y}`)
        }
      }
    }
  })

  it("queries the chosen source in every panel, with a unique letter for each query", () => {
    assert.sameMembers(
      dashboard.templating.list.map(({ name }) => name),
      ["datasource", "job"]
    )
    for (const { targets = [], title } of drawn) {
      assert.isNotEmpty(targets, title)
      assert.strictEqual(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
    }
  })
})
