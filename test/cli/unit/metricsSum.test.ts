import { assert, describe, it } from "vitest"
import { lasting, sumMetrics } from "../../../src/cli/processes/MetricsSum.ts"

const one = `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{vendor="a b"} 3
calls_total{vendor="c"} 1
# HELP memory Bytes.
# TYPE memory gauge
memory 100
# HELP gateway_account_circuit Circuit.
# TYPE gateway_account_circuit gauge
gateway_account_circuit{account="x"} 2
# HELP process_start_time_seconds Start.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 20
# HELP seconds Durations.
# TYPE seconds histogram
seconds_bucket{le="+Inf"} 4
seconds_sum 0.5
seconds_count 4
`

const two = `# HELP calls_total All calls.
# TYPE calls_total counter
calls_total{vendor="a b"} 4
calls_total{vendor="d"} 5
# HELP memory Bytes.
# TYPE memory gauge
memory 50
# HELP gateway_account_circuit Circuit.
# TYPE gateway_account_circuit gauge
gateway_account_circuit{account="x"} 0
# HELP process_start_time_seconds Start.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 10
# HELP seconds Durations.
# TYPE seconds histogram
seconds_bucket{le="+Inf"} 6
seconds_sum 0.25
seconds_count 6
`

/** docs/reference/processes.md#all-cores-of-a-machine */
describe("the metrics of several processes", () => {
  it("are added up by series, with the highest circuit state and the earliest start time", () => {
    assert.strictEqual(
      sumMetrics([one, two]),
      `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{vendor="a b"} 7
calls_total{vendor="c"} 1
calls_total{vendor="d"} 5
# HELP memory Bytes.
# TYPE memory gauge
memory 150
# HELP gateway_account_circuit Circuit.
# TYPE gateway_account_circuit gauge
gateway_account_circuit{account="x"} 2
# HELP process_start_time_seconds Start.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 10
# HELP seconds Durations.
# TYPE seconds histogram
seconds_bucket{le="+Inf"} 10
seconds_sum 0.75
seconds_count 10
`
    )
  })

  it("keep the counters and histograms of a process that has ended, but not its gauges", () => {
    const summed = sumMetrics([one, lasting(two)])
    assert.include(summed, 'calls_total{vendor="a b"} 7')
    assert.include(summed, "seconds_count 10")
    assert.include(summed, "memory 100\n")
    assert.strictEqual(sumMetrics(["", lasting("")]), "")
  })
})
