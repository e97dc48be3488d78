import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { until } from "../../support/until.ts"

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
    const now = ownClock(gateway.pid)
    const asked = [
      fetch(`${gateway.url}${path}/${id}`, { headers: waiting }),
      fetch(gateway.url + path, { method: "POST", headers: waiting, body })
    ].map(async (answer) => {
      const { headers, status } = await answer
      return { status, applied: headers.get("preference-applied"), at: now() }
    })
    // The task of the later request is there: both wait
    await until(async () => {
      const { json } = await gateway.call("GET", "/manage/v1/tasks")
      return json.data.length === 2
    })
    const stopped = now()
    assert.isBelow(await gateway.kill("SIGTERM"), 4500)
    const [read, created] = await Promise.all(asked)
    assert.deepInclude(created, { status: 202, applied: "wait=60" })
    assert.deepInclude(read, { status: 200, applied: "wait=60" })
    for (const { at } of [created!, read!]) assert.isBelow(at - stopped, 2000)
  })
})
