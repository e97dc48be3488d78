import * as fc from "fast-check"
import type { Kind, StoreFault } from "./faultyStores.ts"
import type { SubmitAnswer, VendorStory } from "./storyVendor.ts"

/** A task with the actions of its client and its vendor. Times in seconds. */
export interface TaskStory {
  readonly at: number
  readonly isRepeated: boolean
  readonly cancelAt: number | null
  readonly vendor: VendorStory
}

export interface History {
  readonly tasks: ReadonlyArray<TaskStory>
  readonly faults: ReadonlyArray<StoreFault>
}

const answers: ReadonlyArray<SubmitAnswer> = [
  "retryable",
  "limited",
  "ambiguous, sold",
  "ambiguous, not sold",
  "accepted"
]
const kinds: ReadonlyArray<Kind> = [
  "fails",
  "fails when done",
  "is slow",
  "dies",
  "dies when done",
  "sleeps"
]
/** Store calls that move a task, its money or its deliveries. */
const calls = [
  "TaskStore.accept",
  "TaskStore.claim",
  "TaskStore.beginAttempt",
  "TaskStore.endStep",
  "TaskStore.finish",
  "TaskStore.releaseRun",
  "TaskStore.handOver",
  "TaskStore.share",
  "TaskStore.releaseOrphans",
  "TaskStore.queues",
  "TaskStore.view",
  "TaskStore.job",
  "VendorAttemptStore.concurrent",
  "DeliveryStore.claim",
  "DeliveryStore.record",
  "ProcessStore.heartbeat"
]

const taskStory: fc.Arbitrary<TaskStory> = fc.record({
  at: fc.nat(12),
  isRepeated: fc.boolean(),
  cancelAt: fc.option(fc.nat(20), { freq: 4 }),
  vendor: fc.record({
    submits: fc.array(fc.constantFrom(...answers), { maxLength: 2 }),
    slow: fc.constantFrom(0, 0, 1, 6),
    polls: fc.nat(3),
    badPoll: fc.nat(3),
    ending: fc.constantFrom("done", "done", "done", "failed", "lost")
  })
})

export const historyArbitrary: fc.Arbitrary<History> = fc.record({
  tasks: fc.array(taskStory, { minLength: 1, maxLength: 80, size: "max" }),
  faults: fc.array(
    fc.record({
      call: fc.constantFrom(...calls),
      nth: fc.integer({ min: 1, max: 25 }),
      kind: fc.constantFrom(...kinds)
    }),
    { maxLength: 6 }
  )
})
