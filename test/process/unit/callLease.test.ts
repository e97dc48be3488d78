import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { callLeaseSeconds, heartbeatSeconds } from "../../../src/domain/limits/Limits.ts"
import { CallLease } from "../../../src/process/heartbeat/CallLease.ts"

const leaseMillis = (callLeaseSeconds - heartbeatSeconds) * 1000

/** A lease with a monotonic clock and a wall clock that the test moves. */
const make = Effect.map(Clock.Clock, (clock) => {
  const time = { monotonic: 0, wall: 1_800_000_000_000 }
  const lease = new CallLease({
    ...clock,
    monotonicTimeNanosUnsafe: () => BigInt(time.monotonic) * 1_000_000n,
    currentTimeMillisUnsafe: () => time.wall
  })
  const pass = (millis: number) => {
    time.monotonic += millis
    time.wall += millis
  }
  return { lease, pass, time }
})

/** docs/reference/processes.md#leases */
describe("the lease of a process's calls", () => {
  it.effect("counts from the moment before its last confirmed heartbeat was sent", () =>
    Effect.gen(function* () {
      const { lease, pass } = yield* make
      pass(1000)
      const sentAt = lease.now()
      pass(leaseMillis - 1500)
      lease.confirmed(sentAt)
      pass(1499)
      assert.strictEqual(lease.silences(), 0)
      pass(1)
      assert.strictEqual(lease.silences(), 1)
    })
  )

  it.effect("is not shortened by an earlier heartbeat that is confirmed later", () =>
    Effect.gen(function* () {
      const { lease, pass } = yield* make
      const early = lease.now()
      pass(1000)
      lease.confirmed(lease.now())
      lease.confirmed(early)
      pass(leaseMillis - 1)
      assert.strictEqual(lease.silences(), 0)
    })
  )

  it.effect("ends once in each silence, also in one that nobody noticed", () =>
    Effect.gen(function* () {
      const { lease, pass } = yield* make
      pass(leaseMillis)
      assert.strictEqual(lease.silences(), 1)
      pass(leaseMillis)
      assert.strictEqual(lease.silences(), 1)
      lease.confirmed(lease.now())
      assert.strictEqual(lease.silences(), 1)
      pass(leaseMillis)
      lease.confirmed(lease.now())
      assert.strictEqual(lease.silences(), 2)
    })
  )

  for (const [what, monotonic, wall] of [
    ["the machine slept", 0, leaseMillis],
    ["the wall clock was set back meanwhile", leaseMillis, 0],
    ["the wall clock was set back by as much", 0, -leaseMillis]
  ] as const) {
    it.effect(`ends if ${what}`, () =>
      Effect.gen(function* () {
        const { lease, time } = yield* make
        time.monotonic += monotonic
        time.wall += wall
        assert.strictEqual(lease.silences(), 1)
      })
    )
  }
})
