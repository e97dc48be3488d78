import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { makeTaskId } from "../../../src/domain/Ids.ts"
import { webhookPayloadBytesMax } from "../../../src/domain/limits/Limits.ts"
import {
  metadataKeyCharactersMax,
  metadataKeysMax,
  metadataValueCharactersMax
} from "../../../src/domain/limits/ShapeLimits.ts"
import { taskResult } from "../../../src/domain/task/TaskBody.ts"
import { taskEvent } from "../../../src/webhooks/Events.ts"

/** A character that JSON escapes with six. */
const long = "\u0001"

const metadata = Object.fromEntries(
  Array.from({ length: metadataKeysMax }, (_, n) => [
    String(n).padStart(2, "0") + long.repeat(metadataKeyCharactersMax - 2),
    long.repeat(metadataValueCharactersMax)
  ])
)
const now = DateTime.makeUnsafe(0)
const task = { id: makeTaskId(0), createdAt: now, updatedAt: now, metadata }
const sizeOf = (facts: Parameters<typeof taskResult>[0]) =>
  taskEvent({ vendor: "v".repeat(64), model: "m".repeat(128) }, taskResult(facts, "images"), now)
    .body.byteLength

/** docs/reference/webhooks.md#delivery-request */
describe("the event of an outcome", () => {
  it("stays under 64 KB with the largest metadata, ten results or the longest error", () => {
    const result = Array.from({ length: 10 }, () => `https://example.com/${"a".repeat(480)}`)
    const sizes = [
      sizeOf({ ...task, status: "completed", error: null, result }),
      sizeOf({
        ...task,
        status: "failed",
        error: { code: 3005, title: "t".repeat(50), detail: long.repeat(500) },
        result: null
      })
    ]
    for (const size of sizes) assert.isBelow(size, webhookPayloadBytesMax)
    assert.isAbove(Math.max(...sizes), webhookPayloadBytesMax * 0.85)
  })
})
