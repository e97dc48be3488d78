import { assert, describe, it } from "vitest"
import { MockVendor, startTestGateway } from "../../src/testing/index.ts"
import { makeHandlers } from "./handlers.ts"

describe("route handlers with a webhook receiver", () => {
  it("order a picture, and show it when its webhook has come, also if that comes twice", async () => {
    let secret = ""
    let receive: (request: Request) => Promise<Response> = () => Promise.resolve(new Response(null))
    await using gateway = await startTestGateway({
      vendor: [MockVendor.result("2 minutes"), MockVendor.jobFails("FAILED", "it broke")],
      receiver: (request) => receive(request)
    })
    const handlers = makeHandlers({
      fetch: gateway.fetch,
      gatewayUrl: gateway.baseUrl,
      apiKey: gateway.key,
      webhookSecret: () => secret
    })
    receive = handlers.receiveWebhook
    ;({ secret } = await gateway.webhooks.listen({ events: ["task.succeeded", "task.failed"] }))
    await gateway.failNext("crash after webhook")

    const order = async () => {
      const body = JSON.stringify({ prompt: "A lighthouse" })
      const ordered = await handlers.orderPicture(
        new Request("https://app.test/pictures", { method: "POST", body })
      )
      assert.strictEqual(ordered.status, 202)
      return ((await ordered.json()) as { id: string }).id
    }
    const show = async (id: string) => {
      const shown = handlers.showPicture(new Request(`https://app.test/pictures?id=${id}`))
      return (await shown.json()) as { status: string; url?: string }
    }
    const first = await order()
    assert.strictEqual((await show(first)).status, "ordered")
    await gateway.webhooks.received("task.succeeded", { taskId: first })
    const picture = await show(first)
    assert.strictEqual(picture.status, "ready")
    assert.match(picture.url ?? "", /^http:\/\/gateway\.test\/artifacts\//u)

    const second = await order()
    await gateway.runUntilQuiet()
    assert.strictEqual((await show(second)).status, "failed")
    const forged = new Request("https://app.test/webhooks", { method: "POST", body: "{}" })
    assert.strictEqual((await handlers.receiveWebhook(forged)).status, 400)
  })
})
