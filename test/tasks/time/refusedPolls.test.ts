import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Progress } from "../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { acceptingVendor, onePicture } from "../../support/acceptedJobs.ts"
import {
  adminToken,
  advance,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser
} from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** As the adapters report it: the vendor refused the poll itself. */
const refused = new VendorError({
  class: "OPERATOR",
  message: "Invalid API-key provided.",
  httpStatus: 401,
  vendorCode: "InvalidApiKey"
})

/** A task at a vendor that accepts the job at once and then returns this for each poll. */
const submittedJob = (answer: () => Progress | VendorError, env: Record<string, string> = {}) => {
  const { asked, vendor } = acceptingVendor(answer)
  const task = Effect.gen(function* () {
    const user = yield* makeUser()
    const created = yield* user.call("POST", path, { prompt: "x" })
    assert.strictEqual(created.status, 202, created.text)
    const get = user.call("GET", `${path}/${created.json.task_info.id}`)
    const held = Effect.map(user.call("GET", "/manage/v1/wallet"), ({ json, status, text }) => {
      assert.strictEqual(status, 200, text)
      return json.held_balance as string
    })
    return { user, held, info: Effect.map(get, ({ json }) => json.task_info) }
  })
  return { asked, task, layer: layerGateway({ vendor, env }) }
}

describe("a submitted job whose polls the vendor refuses because of the service's own account", () => {
  it.effect("is polled until the account is repaired, and the result is fetched", () => {
    let isRepaired = false
    const { asked, layer, task } = submittedJob(() => (isRepaired ? onePicture : refused))
    return Effect.gen(function* () {
      const { held, info, user } = yield* task
      yield* advance("3 minutes", "2 seconds")
      assert.strictEqual((yield* info).status, "processing")
      assert.strictEqual(yield* held, "7.50")
      // At most once a minute. The fault is reported, and no other task is submitted there meanwhile
      assert.isAtLeast(asked.polls, 2)
      assert.isAtMost(asked.polls, 4)
      const metrics = yield* (yield* GatewayHttp).fetch("/metrics", {
        headers: { authorization: `Bearer ${adminToken}` }
      })
      const text = yield* Effect.promise(() => metrics.text())
      assert.match(text, /^gateway_vendor_operator_faults_total\{.*account="scripted".*\} [1-9]/mu)
      const refusedCreate = yield* user.call("POST", path, { prompt: "y" })
      assert.deepStrictEqual([refusedCreate.status, refusedCreate.json.code], [503, 5003])
      isRepaired = true
      yield* advance("1 minute", "2 seconds")
      yield* eventually(info, ({ status }) => status === "completed")
      assert.strictEqual(yield* held, "0.00")
      assert.deepStrictEqual([asked.submits, asked.cancels], [1, 0])
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "fails with 4005 at the task's deadline, which releases the hold and cancels the job",
    () => {
      const { asked, layer, task } = submittedJob(() => refused, { TASK_DEADLINE: "2 minutes" })
      return Effect.gen(function* () {
        const { held, info } = yield* task
        yield* advance("110 seconds", "2 seconds")
        assert.strictEqual((yield* info).status, "processing")
        yield* advance("20 seconds", "2 seconds")
        const ended = yield* eventually(info, ({ status }) => status === "failed")
        assert.strictEqual(ended.error.code, 4005)
        assert.strictEqual(yield* held, "0.00")
        assert.deepStrictEqual([asked.submits, asked.cancels], [1, 1])
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("fails with 4008 if the job itself failed because of the account", () => {
    const failed = new VendorError({
      class: "OPERATOR",
      message: "Access denied",
      vendorCode: "Arrearage"
    })
    const { asked, layer, task } = submittedJob(() => failed)
    return Effect.gen(function* () {
      const { held, info } = yield* task
      yield* advance("4 seconds")
      const ended = yield* eventually(info, ({ status }) => status === "failed")
      assert.strictEqual(ended.error.code, 4008)
      assert.strictEqual(yield* held, "0.00")
      assert.strictEqual(asked.polls, 1)
    }).pipe(Effect.provide(layer))
  })
})
