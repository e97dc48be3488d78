import { assert } from "@effect/vitest"
import type { Owned, OwnedTask } from "../../src/tasks/OwnedTask.ts"

/** A task that was claimed, and has no job at its vendor. */
export const withoutJob = (owned: Owned | undefined): OwnedTask => {
  if (owned === undefined || owned.job !== undefined) assert.fail("no task without a job")
  return owned
}
