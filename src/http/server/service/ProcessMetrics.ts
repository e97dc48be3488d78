import { existsSync, readdirSync, readFileSync } from "node:fs"
import { performance } from "node:perf_hooks"

/** A metric with its samples by labels. */
export interface MetricFamily {
  readonly name: string
  readonly type: "counter" | "gauge"
  readonly help: string
  readonly samples: ReadonlyArray<
    readonly [labels: Readonly<Record<string, string>>, value: number]
  >
}

/**
 * Metrics of the process, under the names that Node dashboards use. Read only on request, so that an idle process stays
 * idle.
 */
export const processMetrics = (): ReadonlyArray<MetricFamily> => {
  const { arrayBuffers, external, heapUsed, rss } = process.memoryUsage()
  const { system, user } = process.cpuUsage()
  const metric = (
    type: MetricFamily["type"],
    name: string,
    help: string,
    value: number
  ): MetricFamily => ({ name, type, help, samples: [[{}, value]] })
  return [
    metric(
      "counter",
      "process_cpu_seconds_total",
      "CPU time of the process, all threads.",
      (user + system) / 1e6
    ),
    metric(
      "gauge",
      "process_start_time_seconds",
      "When the process was started.",
      performance.timeOrigin / 1000
    ),
    metric("gauge", "process_resident_memory_bytes", "Memory of the process.", rss),
    metric("gauge", "nodejs_heap_size_used_bytes", "JavaScript objects.", heapUsed),
    metric(
      "gauge",
      "nodejs_external_memory_bytes",
      "Buffers and native objects outside the heap.",
      Math.max(external, arrayBuffers)
    ),
    metric(
      "counter",
      "nodejs_eventloop_active_seconds_total",
      "Busy time of the event loop; a rate near 1 per second means it is saturated.",
      performance.eventLoopUtilization().active / 1000
    ),
    ...openFiles().map((it) => metric("gauge", ...it))
  ]
}

/** Open files and their limit, where there is `/proc`. Node reports nothing when the limit refuses a connection. */
const openFiles = (): ReadonlyArray<readonly [name: string, help: string, value: number]> => {
  if (!existsSync("/proc/self/fd")) return []
  const limits = readFileSync("/proc/self/limits", "utf8")
  const max = Number(/^Max open files +(\d+)/mu.exec(limits)?.[1] ?? Infinity)
  return [
    ["process_open_fds", "Open files and sockets.", readdirSync("/proc/self/fd").length],
    ["process_max_fds", "Open files and sockets allowed.", max]
  ]
}

/** In Prometheus' text format. */
export const metricText = ({ help, name, samples, type }: MetricFamily): string =>
  samples.length === 0
    ? ""
    : [
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${type}`,
        ...samples.map(([labels, value]) => {
          const pairs = Object.entries(labels).map(
            ([label, text]) => `${label}=${JSON.stringify(text)}`
          )
          return pairs.length === 0 ? `${name} ${value}` : `${name}{${pairs.join(",")}} ${value}`
        }),
        ""
      ].join("\n")
