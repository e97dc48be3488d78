import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { namedModels } from "../../../src/tasks/vendorbatches/NamedModels.ts"
import { digestOf } from "../../../src/tasks/vendorbatches/ResultLine.ts"

/** docs/reference/vendor-batches.md#anthropics-form */

const lines = [
  '{"custom_id":"a","params":{"model":"first","messages":[{"model":"inner"}]}}',
  '{"params":{"messages":[{"role":"user","content":"\\"model\\":\\"text\\""}],"model":"second"},"custom_id":"b"}',
  '{ "custom_\\u0069d" : "c\\u0064" , "params" : { "mod\\u0065l" : "thi\\u0072d" } }',
  "",
  '{"custom_id":"d","params":{"model":"second"}}'
]

it.effect("which model a request names is read however its bytes are split and escaped", () =>
  Effect.gen(function* () {
    const bytes = Buffer.from(`${lines.join("\n")}\n`)
    for (const length of [1, 7, 64, 1000]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / length) }, (_, n) =>
        bytes.subarray(n * length, (n + 1) * length)
      )
      const models = yield* namedModels(Stream.fromIterable(chunks), "first")
      assert.deepStrictEqual(
        models,
        new Map([
          [digestOf("b"), "second"],
          [digestOf("cd"), "third"],
          [digestOf("d"), "second"]
        ])
      )
    }
  })
)
