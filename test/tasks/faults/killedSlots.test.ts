import { assert, describe, it } from "@effect/vitest"
import { rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
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
        FAL_API_KEY: `${upstream.key};concurrent=2`,
        FAL_BASE_URL: upstream.url
      }
    })
    await gateway.key()
  }, tooLong)
  beforeEach(() => upstream.reset())
  afterAll(async () => {
    await gateway.close()
    await rm(folder, { recursive: true })
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
    "submits that hung at the kill fail with 3004, and their slots go to waiting tasks",
    async () => {
      upstream.submitFaults = ["hang", "hang"]
      const lost = [await create("1"), await create("2")]
      await until(() => upstream.seen.length === 2, { what: "submits" })
      const waiting = [await create("3"), await create("4"), await create("5")]
      for (const id of waiting) assert.strictEqual((await infoOf(id)).status, "pending")
      await gateway.restart()
      for (const id of lost) assert.strictEqual((await ended(id)).error?.code, 3004)
      for (const id of waiting) assert.strictEqual((await ended(id)).status, "completed")
      assert.strictEqual(upstream.paidSubmits, 3)
      assert.strictEqual((await wallet()).held_balance, "0.00")
    },
    tooLong
  )

  it(
    "jobs that ran at the kill keep their slots, and no other job runs beside them",
    async () => {
      upstream.runningPolls = Number.POSITIVE_INFINITY
      const running = [await create("1"), await create("2")]
      const polled = () => [...upstream.jobs.values()].filter(({ polls }) => polls > 0).length
      await until(() => polled() === 2, { what: "two polled jobs" })
      const waiting = await create("3")
      await gateway.restart()
      const polls = [...upstream.jobs.values()].map((job) => job.polls)
      await until(
        async () =>
          [...upstream.jobs.values()].every((job, at) => job.polls > polls[at]! + 1)
            ? true
            : undefined,
        { millis: 60_000, what: "both jobs to be polled again, twice" }
      )
      assert.strictEqual(upstream.paidSubmits, 2)
      assert.strictEqual((await infoOf(waiting)).status, "pending")
      upstream.runningPolls = 0
      for (const id of [...running, waiting]) {
        assert.strictEqual((await ended(id)).status, "completed")
      }
      assert.strictEqual(upstream.paidSubmits, 3)
      assert.strictEqual((await wallet()).held_balance, "0.00")
    },
    tooLong
  )
})
