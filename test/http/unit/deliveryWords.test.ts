import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { DeliveryId, EndpointId, EventId, UserId } from "../../../src/domain/Ids.ts"
import { explain } from "../../../src/http/mcp/DeliveryWords.ts"
import { AttemptRow, DeliveryRow } from "../../../src/webhooks/DeliveryLogStore.ts"
import { EndpointRow } from "../../../src/webhooks/EndpointStore.ts"

/** docs/reference/mcp.md#explain_delivery */

const time = DateTime.makeUnsafe(0)
const endpoint = new EndpointRow({
  id: EndpointId.make("whe_1"),
  userId: UserId.make("019a0000-0000-7000-8000-000000000002"),
  url: "https://receiver.example/hook",
  events: ["task.succeeded"],
  description: null,
  enabled: true,
  filter: null,
  format: "gateway",
  failingSince: null,
  secret: new Uint8Array(),
  secretPreview: "",
  previousSecret: null,
  previousSecretUntil: null,
  createdAt: time,
  updatedAt: time
})
const row = new DeliveryRow({
  id: DeliveryId.make("whd_1"),
  endpointId: endpoint.id,
  eventId: EventId.make("evt_1"),
  eventType: "task.succeeded",
  taskId: null,
  status: "failed",
  attempts: 1,
  nextDueAt: null,
  endpointDeleted: false,
  webhookUrl: null,
  createdAt: time,
  updatedAt: time
})
const attempt = new AttemptRow({
  seq: 1,
  dueAt: time,
  startedAt: time,
  endedAt: time,
  status: null,
  failure: "payload_too_large",
  detail: null,
  answer: null,
  remoteAddress: null
})

describe("the words of a delivery", () => {
  it("say that the gateway did not send an event that is too large", () => {
    const words = explain({ row, endpoint, attempts: [attempt] })
    assert.include(words, "the event is larger than 64 KB, and was not sent")
    for (const wrong of ["receiver", "was sent at", "of 6 was the last"]) {
      assert.notInclude(words.replaceAll(endpoint.url, ""), wrong)
    }
  })
})
