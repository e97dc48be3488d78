import type { Schemas } from "../../api/schema.ts"
import { taskPath } from "../../format/paths.ts"

type Task = Schemas["TaskTimeline"]
type Attempt = Task["attempts"][number]

/** The class of a failed job, by its error code. docs/reference/errors.md#task-error-codes */
const classes: Readonly<Record<number, string>> = {
  400: "FATAL_CLIENT",
  3001: "CONTENT",
  3002: "RATE_LIMITED",
  3003: "TIMEOUT",
  3004: "LOST",
  3005: "FAILED",
  4002: "MEDIA",
  4008: "OPERATOR"
}

const inCode = (text: string): string => JSON.stringify(text)

const refused = ({ failure_class: kind, state }: Attempt): ReadonlyArray<string> =>
  state === "submitted"
    ? []
    : [`MockVendor.refused(${inCode(kind ?? "RETRYABLE")}, "as the vendor refused it")`]

/** The outcome of the last job. */
const outcomeOf = (task: Task, seconds: number): ReadonlyArray<string> => {
  if (task.status !== "failed") return [`MockVendor.result("${seconds} seconds")`]
  const isSubmitted = task.attempts.some(({ state }) => state === "submitted")
  const kind = classes[task.error?.code ?? 0]
  return isSubmitted && kind !== undefined
    ? [`MockVendor.jobFails("${kind}", ${inCode(task.error?.detail ?? "")}, "${seconds} seconds")`]
    : []
}

const secondsOf = ({ ended_at: end, started_at: start }: Task): number =>
  end === null || start === null
    ? 2
    : Math.max(1, Math.round((new Date(end).getTime() - new Date(start).getTime()) / 1000))

/** All lines after the first are indented. */
const valueOf = (value: unknown, indent: string): string =>
  JSON.stringify(value, null, 2).replaceAll("\n", `\n${indent}`)

/** A test of a program against the gateway, with a vendor that behaves as it did for this task. docs/developing.md */
export const testOf = (task: Task): string => {
  const seconds = secondsOf(task)
  const steps = [...task.attempts.flatMap(refused), ...outcomeOf(task, seconds)]
  const { body, error, id } = task
  const script = steps.length === 0 ? [`MockVendor.result("${seconds} seconds")`] : steps
  // Media in the stored body are references, which no client may send
  const sent = JSON.stringify(body).includes('"artifact:art_')
    ? `// Replace the references with media\n        `
    : ""
  return `import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { layerTest, MockVendor, TestGateway } from "generation-gateway/testing"

const gateway = layerTest({
  vendor: [${script.join(", ")}]
})

layer(gateway)("task ${id}", (it) => {
  it.effect(${inCode(task.status === "failed" ? "fails as it did" : "is completed")}, () =>
    Effect.gen(function* () {
      const { fetch, key, runUntilQuiet } = yield* TestGateway
      const path = ${inCode(taskPath(task))}
      const headers = { authorization: \`Bearer \${key}\`, "content-type": "application/json" }
      const created = yield* fetch(path, {
        method: "POST",
        headers,
        ${sent}body: JSON.stringify(${valueOf(body, "        ")})
      })
      assert.strictEqual(created.status, 202)
      const { task_info } = yield* Effect.promise(() => created.json())
      yield* runUntilQuiet()
      const read = yield* fetch(\`\${path}/\${task_info.id}\`, { headers })
      const task = yield* Effect.promise(() => read.json())
      assert.strictEqual(task.task_info.status, ${inCode(task.status === "failed" ? "failed" : "completed")})${
        error === null ? "" : `\n      assert.strictEqual(task.task_info.error.code, ${error.code})`
      }
    })
  )
})
`
}
