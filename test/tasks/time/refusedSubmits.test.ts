import { assert, describe, layer } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { advance, layerGateway, makeUser } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** A task whose process died right after recording that submit `n` was refused with this failure. */
const abandoned = Effect.fnUntraced(function* (n: number, failure: string) {
  const sql = yield* SqlClient.SqlClient
  const user = yield* makeUser()
  // The run's owner has no heartbeat, so the rescuer treats it as dead
  yield* sql`
    CREATE OR REPLACE FUNCTION own_it() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN NEW.owner = 'proc_dead'; NEW.epoch = 7; RETURN NEW; END $$`
  yield* sql`
    CREATE OR REPLACE TRIGGER own_it BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION own_it()`
  const created = yield* user.call("POST", path, { prompt: "x" })
  assert.strictEqual(created.status, 202, created.text)
  const id = String(created.json.task_info.id)
  yield* sql`UPDATE runs SET attempt = ${n} WHERE task_id = ${id}`
  yield* sql`
    INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, failure, started_at)
    VALUES (${id}, ${n}, 'alibaba', 'scripted', '\\x00', 'refused', ${failure}, 'epoch')`
  yield* sql`UPDATE tasks SET status = 'processing' WHERE id = ${id}`
  return { user, get: user.call("GET", `${path}/${id}`) }
})

let submits = 0
const vendor = {
  submit: () => {
    submits += 1
    const pollAfter = Duration.seconds(2)
    return Effect.succeed({ _tag: "Accepted" as const, handle: { job: "j" }, pollAfter })
  },
  poll: () => Effect.fail(new VendorError({ class: "FAILED", message: "the job failed" }))
}

/** What the next process does: the number of its submits, and the task's end. */
const resumed = Effect.fnUntraced(function* (n: number, failure: string) {
  const before = submits
  const { get, user } = yield* abandoned(n, failure)
  yield* advance("20 seconds")
  const { error, status } = (yield* get).json.task_info
  const wallet = yield* user.call("GET", "/manage/v1/wallet")
  assert.strictEqual(wallet.status, 200, wallet.text)
  return { submits: submits - before, status, error, held: wallet.json.held_balance }
})

// One gateway for all tests, because a store with an extra trigger is not reused
layer(layerGateway({ vendor }), { timeout: "60 seconds" })((it) => {
  describe("a task whose process was killed after a refusal was recorded, before the task ended", () => {
    const final = [
      ["CONTENT: no violence: please", 1, 3001, "no violence: please"],
      ["FATAL_CLIENT: bad size", 1, 400, "bad size"],
      ["MEDIA: not found", 2, 4002, "not found"],
      ["RETRYABLE: busy", 6, 3005, "busy"]
    ] as const
    for (const [failure, n, code, detail] of final) {
      it.effect(
        `ends with the refusal of submit ${n}, ${failure}, and is not submitted again`,
        () =>
          Effect.gen(function* () {
            const { error, held, status, submits } = yield* resumed(n, failure)
            assert.deepStrictEqual([status, submits, held], ["failed", 0, "0.00"])
            assert.deepStrictEqual([error.code, error.detail], [code, detail])
          })
      )
    }

    for (const failure of ["RETRYABLE: busy", "RATE_LIMITED: wait", "MEDIA: not found"]) {
      it.effect(
        `is submitted again after the refusal of submit 1, ${failure}, because no job was created`,
        () =>
          Effect.gen(function* () {
            const { error, submits } = yield* resumed(1, failure)
            assert.deepStrictEqual([submits, error.detail], [1, "the job failed"])
          })
      )
    }
  })
})
