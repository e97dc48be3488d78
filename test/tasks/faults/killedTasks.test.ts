import { assert, describe, it } from "@effect/vitest"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { aliasCatalog, aliasPath, catalogFile } from "../../support/aliases.ts"
import type { HttpResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"
import type { Received } from "../../support/webhookReceiver.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const main = "test/support/crashingMain.ts"
const events = ["task.created", "task.succeeded", "task.failed"]
/** Raise it by `KILL_ROUNDS` for a longer search. */
const rounds = Number(process.env["KILL_ROUNDS"] ?? 8)

/** A small random generator with a seed, so that a failed run can be repeated. */
const dice = (seed: number) => {
  let state = seed
  return (sides: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % sides
  }
}

interface TaskJson {
  readonly task_info: {
    readonly id: string
    readonly status: string
    readonly error?: { readonly code: number }
  }
}

/** Sends the same create until it gets a response, however often the service is killed. */
const createSurely = async (gateway: GatewayProcess, prompt: string, key: string) => {
  const answer = await until<HttpResult>(
    () => gateway.call("POST", path, { prompt }, { "idempotency-key": key }).catch(() => undefined),
    { what: "the response to a create" }
  )
  assert.strictEqual(answer.status, 202, answer.text)
  return String(answer.json.task_info.id)
}

const endOf = (gateway: GatewayProcess, id: string, at = path) =>
  until<TaskJson>(
    async () => {
      const task = await gateway.call("GET", `${at}/${id}`)
      const { status } = task.json.task_info
      return status === "completed" || status === "failed" ? task.json : undefined
    },
    { what: `the end of task ${id}`, millis: 30_000 }
  )

const drift = async (gateway: GatewayProcess) =>
  /^gateway_wallet_drift (\d+)$/mu.exec((await gateway.call("GET", "/metrics")).text)?.[1]

/** The received events of a task, each with its delivery ids and bodies. */
const arrivals = (received: ReadonlyArray<Received>, id: string) => {
  const of = received.filter((it) => it.event.data.payload.task_info.id === id)
  const types = [...new Set(of.map((it) => it.event.type))].sort()
  const distinct = new Set(of.map((it) => `${it.deliveryId} ${it.body}`)).size
  return { types, distinct }
}

describe("kill -9 at any moment and start again", () => {
  it(
    "every accepted task ends once, no hold stays open, no webhook is lost, nothing is submitted twice",
    async () => {
      const roll = dice(20_261_121)
      // One of nine deliveries is refused first, so that kills also happen during retries
      await using receiver = await startReceiver((one, before) =>
        Number(`0x${one.deliveryId.slice(-4)}`) % 9 === 0 &&
        !before.some((it) => it.deliveryId === one.deliveryId)
          ? 500
          : 200
      )
      await using gateway = await GatewayProcess.start({
        main,
        // A kill of the process loses nothing without fsync either
        env: { ...receiver.env, EMBEDDED_DURABLE: "false" }
      })
      const log = join(gateway.dataDir, "submits.log")
      await gateway.key()
      const hook = { url: receiver.url, events }
      const made = await gateway.call("POST", "/manage/v1/webhook-endpoints", hook)
      assert.strictEqual(made.status, 201, made.text)

      const ids: Array<string> = []
      for (let round = 0; round < rounds; round += 1) {
        const creates = ["", " [[sim:fail]]", " [[sim:refuse]]"].map((script, n) =>
          createSurely(gateway, `round ${round}${script}`, `create-${round}-${n}`)
        )
        await pause(roll(400))
        await gateway.restart()
        ids.push(...(await Promise.all(creates)))
      }

      const ended: Array<TaskJson> = []
      for (const id of ids) ended.push(await endOf(gateway, id))
      assert.strictEqual(new Set(ids).size, rounds * 3)
      const completed = ended.filter((it) => it.task_info.status === "completed").length
      assert.isAbove(completed, 0)
      for (const { task_info: task } of ended) {
        if (task.error !== undefined) assert.include([3001, 3004, 3005], task.error.code)
      }
      const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
      assert.strictEqual(wallet.held_balance, "0.00")
      assert.strictEqual(wallet.settled_balance, (1000 - 7.5 * completed).toFixed(2))
      assert.strictEqual(await drift(gateway), "0")
      const submits = (await readFile(log, "utf8")).trim().split("\n")
      assert.strictEqual(new Set(submits).size, submits.length, "a task was submitted twice")

      const missing = () =>
        ended.filter(({ task_info: task }) => {
          const outcome = task.status === "completed" ? "task.succeeded" : "task.failed"
          return arrivals(receiver.received, task.id).types.join() !== `task.created,${outcome}`
        })
      await until(() => missing().length === 0, {
        millis: 40_000,
        what: "every webhook"
      })
      for (const id of ids) assert.strictEqual(arrivals(receiver.received, id).distinct, 2)
    },
    150_000 + rounds * 15_000
  )
})

describe("a crash at the most critical points", () => {
  let gateway: GatewayProcess
  beforeAll(async () => {
    gateway = await GatewayProcess.start({ main })
  }, 180_000)
  afterAll(() => gateway.close())

  const submitted: Array<string> = []
  for (const point of ["before-submit", "after-submit"]) {
    it(`${point}: the task fails with 3004, its hold is released, and it is not submitted again`, async () => {
      const log = join(gateway.dataDir, "submits.log")
      const prompt = `x [[sim:crash=${point}]]`
      const key = { "idempotency-key": point }
      await gateway.call("POST", path, { prompt }, key).catch(() => undefined)
      assert.strictEqual(await gateway.ended, "SIGKILL")
      await gateway.start()
      const id = await createSurely(gateway, prompt, point)
      assert.strictEqual((await endOf(gateway, id)).task_info.error?.code, 3004)
      const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
      assert.strictEqual(wallet.available_balance, "1000.00")
      assert.strictEqual(await drift(gateway), "0")
      submitted.push(`${id}\n`)
      assert.strictEqual(await readFile(log, "utf8"), submitted.join(""))
    }, 180_000)
  }
})

describe("a crash at the second model of an alias", () => {
  it("that has bought the job: the task fails with 3004, and the third model is not asked", async () => {
    const env = { CATALOG_FILE: catalogFile(aliasCatalog) }
    await using gateway = await GatewayProcess.start({ main, env })
    const prompt = "x [[sim:503=1]] [[sim:crash=after-submit]]"
    const key = { "idempotency-key": "crash" }
    await gateway.call("POST", aliasPath, { prompt }, key).catch(() => undefined)
    assert.strictEqual(await gateway.ended, "SIGKILL")
    await gateway.start()
    const again = await gateway.call("POST", aliasPath, { prompt }, key)
    const id = String(again.json.task_info.id)
    const ended = await endOf(gateway, id, aliasPath)
    assert.strictEqual(ended.task_info.error?.code, 3004)
    const { candidates, receipt } = (await gateway.call("GET", `/manage/v1/tasks/${id}`)).json
    assert.deepStrictEqual(
      candidates.map((it: { skipped: { reason: string } | null }) => it.skipped?.reason ?? null),
      ["unavailable", null, null]
    )
    assert.deepStrictEqual(
      [receipt.model, receipt.captured, receipt.released],
      ["flux", "0.00", "12.00"]
    )
    assert.strictEqual(await drift(gateway), "0")
    const log = join(gateway.dataDir, "submits.log")
    assert.strictEqual(await readFile(log, "utf8"), `${id}\n${id}\n`)
  }, 180_000)
})

describe("SIGTERM", () => {
  it("releases everything, ends with 0 at once, and the next start continues", async () => {
    await using gateway = await GatewayProcess.start({ main })
    const log = join(gateway.dataDir, "submits.log")
    const ids = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        createSurely(gateway, `${n} [[sim:slow=4s]]`, `create-${n}`)
      )
    )
    await pause(300)
    assert.isBelow(await gateway.kill("SIGTERM"), 3000)
    assert.strictEqual(await gateway.ended, 0, gateway.output)
    assert.notMatch(gateway.output, /"level":"(?:WARN|ERROR|FATAL)"/u)
    await gateway.start()
    const now = ownClock(gateway.pid)
    const again = now()
    for (const id of ids) {
      assert.strictEqual((await endOf(gateway, id)).task_info.status, "completed")
    }
    assert.isBelow(now() - again, 8000)
    const submits = (await readFile(log, "utf8")).trim().split("\n")
    assert.strictEqual(submits.length, ids.length)
  }, 180_000)
})
