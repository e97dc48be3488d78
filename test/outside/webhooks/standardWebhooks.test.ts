import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { assert, describe, it } from "vitest"
import { startReceiving } from "../support/receiving.ts"
import type { Signed } from "../support/receiving.ts"

/** docs/reference/webhooks.md#standard-webhooks: the specification's own packages verify our deliveries. */

const packages = [
  ["standardwebhooks", StandardWebhook],
  ["svix", SvixWebhook]
] as const

describe.each(packages)("%s", (_name, Webhook) => {
  it("verifies every delivery to an endpoint, after a rotation with either secret", async () => {
    await using receiving = await startReceiving()
    const { createTask, post } = receiving
    const endpoint = await post<Signed>("/manage/v1/webhook-endpoints", {
      url: "https://example.com/hook",
      events: ["task.created", "task.succeeded"]
    })
    const first = await createTask()
    assert.strictEqual(first.length, 2)
    for (const { body, headers } of first) {
      new Webhook(endpoint.secret).verify(body, headers)
      assert.throws(() => new Webhook(endpoint.secret).verify(`${body} `, headers))
    }
    const rotated = await post<Signed>(`/manage/v1/webhook-endpoints/${endpoint.id}/rotate`, {})
    const second = await createTask()
    assert.strictEqual(second.length, 2)
    for (const { body, headers } of second) {
      for (const secret of [rotated.secret, endpoint.secret]) {
        new Webhook(secret).verify(body, headers)
      }
    }
  }, 60_000)
})
