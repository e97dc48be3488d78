/** Measurements shared by the benchmarks, and the data that webhook benchmarks send. */

export const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"

export const body = new TextEncoder().encode(
  JSON.stringify({
    id: "evt_019a0c5e7f3a7b009e2b4f6a8c0d1e2f",
    type: "task.succeeded",
    created_at: "2026-01-01T00:00:00.000Z",
    data: {
      vendor: "alibaba",
      model_name: "text-to-image-max",
      payload: {
        task_info: {
          id: "019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f",
          status: "completed",
          created_at: "2026-01-01T00:00:00.000Z",
          updated_at: "2026-01-01T00:00:09.000Z"
        },
        images: ["https://gateway.example.com/artifacts/art_019a0c5e7f3a7b009e2b4f6a8c0d1e2f"]
      }
    }
  })
)

/** CPU time of this process, in milliseconds. */
export const cpuMillis = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/** Interpolates between two values. */
export const quantile = (values: ReadonlyArray<number>, share: number) => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)] ?? Number.NaN
  return low + ((sorted[Math.ceil(at)] ?? low) - low) * (at % 1)
}
export const median = (values: ReadonlyArray<number>) => quantile(values, 0.5)

/** Prints percentiles of lateness in milliseconds on one line. */
export const percentiles = (what: string, late: ReadonlyArray<number>): string => {
  const sorted = [...late].sort((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(1)
  return `${what}: ${sorted.length} attempts, lateness ms p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, max ${at(0.999999)}`
}
