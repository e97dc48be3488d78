import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

describe("a process that stops", () => {
  let gateway: GatewayProcess
  beforeAll(async () => {
    gateway = await GatewayProcess.start()
  })
  afterAll(() => gateway.close())

  it("responds at once to those who wait for a task, created or read", async () => {
    const headers = {
      authorization: `Bearer ${await gateway.key()}`,
      "content-type": "application/json"
    }
    const waiting = { ...headers, prefer: "wait=60" }
    const body = JSON.stringify({ prompt: "[[sim:hang]]" })
    const first = await fetch(gateway.url + path, { method: "POST", headers, body })
    const { id } = JSON.parse(await first.text()).task_info
    const asked = [
      fetch(gateway.url + path, { method: "POST", headers: waiting, body }),
      fetch(`${gateway.url}${path}/${id}`, { headers: waiting })
    ].map(async (answer) => {
      const { headers, status } = await answer
      return { status, applied: headers.get("preference-applied"), at: performance.now() }
    })
    // The second task is there: both wait
    await new Promise((resolve) => setTimeout(resolve, 500))
    const stopped = performance.now()
    await gateway.kill("SIGTERM")
    const [created, read] = await Promise.all(asked)
    assert.deepInclude(created, { status: 202, applied: "wait=60" })
    assert.deepInclude(read, { status: 200, applied: "wait=60" })
    for (const { at } of [created!, read!]) assert.isBelow(at - stopped, 2000)
    assert.isBelow(performance.now() - stopped, 4500)
  })
})
