import { assert, describe, it } from "@effect/vitest"
import { GatewayProcess, until } from "../support/gatewayProcess.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

describe("kill -9 at any moment and start again", () => {
  it("an accepted task still ends", async () => {
    await using gateway = await GatewayProcess.start()
    const created = await gateway.call("POST", path, { prompt: "A lighthouse" })
    assert.strictEqual(created.status, 202, created.text)
    await gateway.restart()
    const done = await until(async () => {
      const task = await gateway.call("GET", `${path}/${created.json.task_info.id}`)
      return task.json.task_info.status === "completed" ? task : undefined
    })
    assert.strictEqual(done.json.images.length, 1)
  }, 60_000)
})
