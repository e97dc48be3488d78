import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { EventId, TaskId } from "../../../src/domain/Ids.ts"
import { openAiOutcome } from "../../../src/webhooks/OpenAiEvents.ts"

const id = EventId.make("evt_0123456789ab0123456789abcdef0123")
const task = {
  id: TaskId.make("00000000-0000-7000-8000-000000000001"),
  resultKind: "batches",
  vendor: "openai"
}
const now = DateTime.makeUnsafe(1_764_133_200_000)
const charge = { captured: 1n, urls: [] }

/** docs/reference/webhooks.md#openais-format */
describe("the outcome of a batch as OpenAI's event", () => {
  it.each([
    ["batch.completed", { status: "completed" }],
    ["batch.cancelled", { status: "failed", error: { code: 4004 }, charge }],
    ["batch.expired", { status: "failed", error: { code: 4005 }, charge }],
    ["batch.failed", { status: "failed", error: { code: 4005 } }],
    ["batch.failed", { status: "failed", error: { code: 3004 } }]
  ] as const)("is %s", (type, outcome) => {
    const event = openAiOutcome(id, task, { isIncomplete: false, ...outcome }, now)
    assert.strictEqual(event?.type, type)
    assert.deepStrictEqual(JSON.parse(event?.body ?? ""), {
      id,
      object: "event",
      created_at: 1_764_133_200,
      type,
      data: { id: "batch_00000000000070008000000000000001" }
    })
  })

  it("does not exist for the batch of another vendor", () => {
    const other = { ...task, vendor: "anthropic" }
    const outcome = { status: "completed", isIncomplete: false } as const
    assert.isUndefined(openAiOutcome(id, other, outcome, now))
  })
})
