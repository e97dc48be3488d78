import { Layer } from "effect"
import { Process } from "../../src/process/heartbeat/Process.ts"

/** A process that is alive and owns all tasks. The members with effects are defects unless they are given. */
export const mockProcess = (given: Partial<Process["Service"]> = {}) =>
  Layer.mock(Process, {
    id: "proc_a",
    publishChange: () => {},
    onWaiting: () => {},
    silences: () => 0,
    databaseMillis: () => 0,
    isAlive: () => true,
    ownedTasks: () => true,
    ...given
  })
