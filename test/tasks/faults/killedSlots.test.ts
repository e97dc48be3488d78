import { assert, describe, it } from "@effect/vitest"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

const tooLong = 120_000
const path = "/vendors/fal/v1/flux-dev/generation"
const catalog = {
  add: [
    {
      label: "text-to-image-preview",
      vendor: "fal",
      model: "flux-dev",
      adapter: "fal-queue",
      upstreamModel: "fal-ai/flux/dev",
      input: { fields: { n: "num_images", size: { to: "image_size", as: "size-object" } } }
    }
  ]
}

describe("an account with two slots, when the process is killed at any moment", () => {
  let upstream: Upstream
  let gateway: GatewayProcess
  let folder: string
  beforeAll(async () => {
    upstream = await Upstream.start(fal)
    folder = temporaryFolder("slots")
    await writeFile(join(folder, "catalog.json"), JSON.stringify(catalog))
    gateway = await GatewayProcess.start({
      env: {
        CATALOG_FILE: join(folder, "catalog.json"),
        EMBEDDED_DURABLE: "false",
        FAL_API_KEY: `${upstream.key};concurrent=2`,
        FAL_BASE_URL: upstream.url
      }
    })
    await gateway.key()
  }, tooLong)
  afterAll(async () => {
    await gateway.close()
    await upstream.close()
  })

  const create = async (prompt: string): Promise<string> => {
    const created = await gateway.call("POST", path, { prompt, n: 1 })
    assert.strictEqual(created.status, 202, created.text)
    return created.json.task_info.id
  }

  const infoOf = async (id: string) => {
    const task = await gateway.call("GET", `${path}/${id}`)
    return task.json.task_info as { status: string; error?: { code: number } }
  }

  const ended = (id: string) =>
    until(
      async () => {
        const info = await infoOf(id)
        return /completed|failed/u.test(info.status) ? info : undefined
      },
      { millis: 60_000, what: `the end of ${id}` }
    )

  const wallet = async () => (await gateway.call("GET", "/manage/v1/wallet")).json

  it(
    "a submit that hung at the kill fails with 3004 and its slot goes to a waiting task; a running job keeps its slot, and no third job runs",
    async () => {
      upstream.runningPolls = Number.POSITIVE_INFINITY
      const running = await create("1")
      const polls = () => [...upstream.jobs.values()].map((job) => job.polls)
      await until(() => polls()[0]! > 0, { what: "a polled job" })
      upstream.submitFaults = ["hang"]
      const lost = await create("2")
      await until(() => upstream.seen.some(({ json }) => json?.prompt === "2"), {
        what: "a submit that hangs"
      })
      const waiting = [await create("3"), await create("4"), await create("5")]
      for (const id of waiting) assert.strictEqual((await infoOf(id)).status, "pending")
      await gateway.restart()
      assert.strictEqual((await ended(lost)).error?.code, 3004)
      await until(() => upstream.paidSubmits === 2, { what: "the submit of a waiting task" })
      const before = polls()
      await until(() => polls().every((count, at) => count > before[at]! + 1), {
        what: "two more polls of both jobs"
      })
      assert.strictEqual(upstream.paidSubmits, 2)
      const states = await Promise.all([running, ...waiting].map(infoOf))
      assert.deepStrictEqual(states.map(({ status }) => status).toSorted(), [
        "pending",
        "pending",
        "processing",
        "processing"
      ])
      upstream.runningPolls = 0
      for (const id of [running, ...waiting]) {
        assert.strictEqual((await ended(id)).status, "completed")
      }
      assert.strictEqual(upstream.paidSubmits, 4)
      assert.strictEqual((await wallet()).held_balance, "0.00")
    },
    tooLong
  )
})
