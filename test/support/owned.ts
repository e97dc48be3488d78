import { assert } from "@effect/vitest"
import { DateTime, Option } from "effect"
import { builtInEntries } from "../../src/catalog/BuiltInModels.ts"
import { TaskRow } from "../../src/db/TaskRow.ts"
import { zero } from "../../src/domain/Credits.ts"
import { TaskId, UserId } from "../../src/domain/Ids.ts"
import type { Owned, OwnedTask } from "../../src/tasks/running/OwnedTask.ts"

/** Asserts that a claimed task has no job at its vendor. */
export const withoutJob = (owned: Owned | undefined): OwnedTask => {
  if (owned === undefined || owned.job !== undefined) assert.fail("no task without a job")
  return owned
}

/** The model of `ownedTask`. */
export const ownedEntry = builtInEntries.find(({ label }) => label === "text-to-image-max")!

const epoch = DateTime.makeUnsafe(0)

/** A task in hand that is about to be submitted for the first time. It is not in any store. */
export const ownedTask: OwnedTask = {
  task: new TaskRow({
    id: TaskId.make("019a0000-0000-7000-8000-000000000001"),
    userId: UserId.make("019a0000-0000-7000-8000-000000000002"),
    vendor: ownedEntry.vendor,
    model: ownedEntry.model,
    action: ownedEntry.action,
    resultKind: ownedEntry.result,
    status: "pending",
    body: { prompt: "A lighthouse" },
    sandbox: false,
    price: zero,
    catalogId: null,
    captured: null,
    result: null,
    metadata: null,
    error: null,
    traceId: null,
    createdAt: epoch,
    startedAt: null,
    updatedAt: epoch
  }),
  epoch: 1,
  deadlineAt: DateTime.add(epoch, { hours: 1 }),
  attempt: Option.none(),
  queue: "submits",
  startsAt: epoch,
  accountId: null,
  slotHeld: false,
  inputs: {},
  inDoubt: false
}
