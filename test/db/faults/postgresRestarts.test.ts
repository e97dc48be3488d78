import { assert, describe, it } from "@effect/vitest"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { HttpResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { runFolderPrefix, startServer, stopServer } from "../../support/postgresProcess.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const deliveries = "/manage/v1/webhook-deliveries"
const events = ["task.created", "task.succeeded", "task.failed"]
const tasks = 40
const restarts = 4

/** A Postgres for this test. What it has acknowledged survives its crash. */
const ownPostgres = async () => {
  const folder = await mkdtemp(join(tmpdir(), `${runFolderPrefix}${process.pid}-`))
  const server = await startServer(folder, ["synchronous_commit=on"])
  return {
    ...server,
    [Symbol.asyncDispose]: async () => {
      await stopServer(folder)
      await rm(folder, { recursive: true, force: true })
    }
  }
}

const createSurely = async (gateway: GatewayProcess, n: number) => {
  const key = { "idempotency-key": `create-${n}` }
  const answer = await until<HttpResult>(
    async () => {
      const answer = await gateway.call("POST", path, { prompt: `${n}` }, key)
      return answer.status >= 500 || answer.status === 409 ? undefined : answer
    },
    { what: "the response to a create", millis: 60_000 }
  )
  assert.strictEqual(answer.status, 202, answer.text)
  return String(answer.json.task_info.id)
}

interface Attempt {
  readonly seq: number
  readonly failure: string | null
  readonly due_at: string
  readonly started_at: string
  readonly ended_at: string | null
}

describe("a Postgres that is restarted every two seconds under load", () => {
  it("delays but loses no event of two processes: each reaches both endpoints under one id, with one body and never early; the log is complete and the processes stay up", async () => {
    await using postgres = await ownPostgres()
    // One in eight is refused once, so that retries are part of the test
    await using receiver = await startReceiver((one, before) =>
      Number(`0x${one.deliveryId.slice(-2)}`) % 8 === 0 &&
      !before.some((it) => it.deliveryId === one.deliveryId)
        ? 500
        : 200
    )
    const options = { databaseUrl: postgres.url, env: receiver.env }
    await using first = await GatewayProcess.start(options)
    await using second = await GatewayProcess.start(options)
    second.useKey(await first.key())
    const pids = [first.pid, second.pid]
    for (const name of ["a", "b"]) {
      const hook = { url: `${receiver.url}/${name}`, events }
      const made = await first.call("POST", "/manage/v1/webhook-endpoints", hook)
      assert.strictEqual(made.status, 201, made.text)
    }
    const creating = (async () => {
      const ids: Array<string> = []
      for (let n = 0; n < tasks; n += 4) {
        const four = [0, 1, 2, 3].map((m) => createSurely(m % 2 === 0 ? first : second, n + m))
        ids.push(...(await Promise.all(four)))
        // The creates last as long as the restarts
        await pause(600)
      }
      return ids
    })()
    for (let n = 0; n < restarts; n += 1) {
      await pause(2000)
      // Alternates between an orderly stop, which closes all connections, and a crash
      await postgres.restart(n % 2 === 0 ? "SIGINT" : "SIGQUIT")
    }
    const ids = await creating
    assert.strictEqual(new Set(ids).size, tasks)

    const rows = await until<ReadonlyArray<{ readonly id: string; readonly endpoint_id: string }>>(
      async () => {
        const pending = await first.call("GET", `${deliveries}?status=pending&limit=1`)
        if (pending.status !== 200 || pending.json.data.length > 0) return undefined
        const all: Array<{ id: string; status: string; endpoint_id: string }> = []
        let cursor = ""
        do {
          const page = await first.call("GET", `${deliveries}?limit=100${cursor}`)
          if (page.status !== 200) return undefined
          all.push(...page.json.data)
          cursor = page.json.next_cursor === null ? "" : `&cursor=${page.json.next_cursor}`
        } while (cursor !== "")
        const isWhole = all.length === tasks * 4 && all.every((it) => it.status === "succeeded")
        return isWhole ? all : undefined
      },
      { what: "the end of every delivery", millis: 90_000 }
    )
    assert.deepStrictEqual(
      [first.pid, second.pid, first.isRunning, second.isRunning],
      [...pids, true, true]
    )
    assert.strictEqual((await second.call("GET", "/readyz")).status, 200)

    const outcomes = new Map<string, Set<string>>()
    for (const it of receiver.received) {
      const what = `${it.event.data.payload.task_info.id} ${it.event.type}`
      const delivery = `${it.deliveryId} ${it.event.id} ${it.body}`
      outcomes.set(what, (outcomes.get(what) ?? new Set()).add(delivery))
    }
    assert.strictEqual(outcomes.size, tasks * 2, "created, and one outcome, of each task")
    for (const [what, distinct] of outcomes) assert.strictEqual(distinct.size, 2, what)

    let retried = 0
    for (const { id } of rows) {
      const log = (await first.call("GET", `${deliveries}/${id}`)).json
      const attempts: ReadonlyArray<Attempt> = log.attempts
      const came = receiver.received.filter((it) => it.deliveryId === id)
      assert.isAtLeast(came.length, 1)
      assert.isAtMost(came.length, attempts.length)
      assert.strictEqual(attempts.at(-1)?.failure, null)
      attempts.forEach((attempt, index) => {
        assert.strictEqual(attempt.seq, index + 1)
        assert.isNotNull(attempt.ended_at)
        assert.isAtLeast(Date.parse(attempt.started_at), Date.parse(attempt.due_at))
        const before = attempts[index - 1]
        if (before?.failure !== "http_status") return
        retried += 1
        assert.strictEqual(Date.parse(attempt.due_at) - Date.parse(before.ended_at ?? ""), 15_000)
      })
    }
    assert.isAbove(retried, 0)
  }, 240_000)
})
