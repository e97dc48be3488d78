import type { Fiber } from "effect"
import type { Scheduler, SchedulerDispatcher } from "effect/Scheduler"
import { makeRandom } from "../random.ts"

/** Runs ready fibers in an order given by the seed, and makes fibers yield early. */
export const seededScheduler = (seed: number): Scheduler => {
  const random = makeRandom(seed, "scheduler")
  const operations = random.pick([16, 64, 256, 2048])
  const makeDispatcher = (): SchedulerDispatcher => {
    let ready: Array<{ readonly task: () => void; readonly priority: number }> = []
    let isPlanned = false
    const flush = () => {
      isPlanned = false
      const tasks = ready
      ready = []
      while (tasks.length > 0) {
        const first = Math.min(...tasks.map(({ priority }) => priority))
        const equal = tasks.flatMap(({ priority }, n) => (priority === first ? [n] : []))
        const [next] = tasks.splice(random.pick(equal), 1)
        next?.task()
      }
    }
    return {
      flush,
      scheduleTask: (task, priority) => {
        ready.push({ task, priority })
        if (isPlanned) return
        isPlanned = true
        setImmediate(flush)
      }
    }
  }
  return {
    executionMode: "async",
    makeDispatcher,
    shouldYield: (fiber: Fiber.Fiber<unknown, unknown>) => fiber.currentOpCount >= operations
  }
}
