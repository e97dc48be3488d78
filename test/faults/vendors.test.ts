import { assert, describe, it } from "@effect/vitest"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { dashscope } from "../support/upstreams/dashscope.ts"
import { gemini } from "../support/upstreams/gemini.ts"
import { Upstream, pixel } from "../support/upstreams/Upstream.ts"
import { GatewayProcess, pause, until } from "../support/gatewayProcess.ts"

const tooLong = 120_000

interface Purchase {
  readonly what: string
  readonly path: string
  readonly body: object
  /** Credits of the task when it succeeds. */
  readonly price: string
  /** The vendor can list its jobs, so that one whose answer was lost is found again. */
  readonly canList: boolean
}

const dataUri = `data:image/png;base64,${pixel.toString("base64")}`

const purchases: ReadonlyArray<Purchase> = [
  {
    what: "a task that runs upstream (DashScope, can list)",
    path: "/vendors/alibaba/v1/text-to-image-preview/generation",
    body: { prompt: "A lighthouse", n: 1 },
    price: "3.00",
    canList: true
  },
  {
    what: "a blocking call (DashScope, leaves nothing to ask for)",
    path: "/vendors/alibaba/v1/text-to-image-max/generation",
    body: { prompt: "A lighthouse" },
    price: "7.50",
    canList: false
  },
  {
    what: "a blocking call with an inline answer (Gemini)",
    path: "/vendors/google/v1/image-edit-pro/edit",
    body: { prompt: "Brighter", images: [dataUri] },
    price: "13.40",
    canList: false
  }
]

/** A new model of a known family needs no code; this one has no limit of 2 submits a minute. */
const catalog = { change: { "text-to-image-max": { upstreamModel: "wan2.6-t2i" } } }

describe("a job is paid for once, whenever the process is killed", () => {
  const upstreams: Array<Upstream> = []
  let gateway: GatewayProcess
  let folder: string
  beforeAll(async () => {
    const alibaba = await Upstream.start(dashscope)
    const google = await Upstream.start(gemini)
    upstreams.push(alibaba, google)
    folder = await mkdtemp(join(tmpdir(), "vendors-"))
    await writeFile(join(folder, "catalog.json"), JSON.stringify(catalog))
    gateway = await GatewayProcess.start({
      env: {
        CATALOG_FILE: join(folder, "catalog.json"),
        DASHSCOPE_API_KEY: alibaba.key,
        DASHSCOPE_BASE_URL: `${alibaba.url}/api/v1`,
        GEMINI_API_KEY: google.key,
        GEMINI_BASE_URL: google.url
      }
    })
    await gateway.key()
  }, tooLong)
  beforeEach(() => {
    for (const upstream of upstreams) upstream.reset()
  })
  afterAll(async () => {
    await gateway.close()
    await rm(folder, { recursive: true })
    for (const upstream of upstreams) await upstream.close()
  })

  const upstreamOf = ({ path }: Purchase): Upstream =>
    upstreams[path.includes("/google/") ? 1 : 0] as Upstream

  const create = async ({ body, path }: Purchase): Promise<string> => {
    const created = await gateway.call("POST", path, body)
    assert.strictEqual(created.status, 202, created.text)
    return created.json.task_info.id
  }

  const ended = ({ path }: Purchase, id: string) =>
    until(
      async () => {
        const task = await gateway.call("GET", `${path}/${id}`)
        return /completed|failed/u.test(task.json.task_info.status) ? task : undefined
      },
      { millis: 60_000, what: `the end of ${id}` }
    )

  const wallet = async () => (await gateway.call("GET", "/manage/v1/wallet")).json

  const spent = async (before: { settled_balance: string }) =>
    Math.round(100 * (Number(before.settled_balance) - Number((await wallet()).settled_balance))) /
    100

  for (const purchase of purchases) {
    it(
      `without a crash: ${purchase.what}`,
      async () => {
        const before = await wallet()
        const task = await ended(purchase, await create(purchase))
        assert.strictEqual(task.json.task_info.status, "completed", task.text)
        assert.strictEqual(upstreamOf(purchase).paidSubmits, 1)
        assert.strictEqual(await spent(before), Number(purchase.price))
        assert.isNull(task.headers.get("x-service-sandbox"))
        const [url] = task.json.images
        assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/artifacts\//u)
        const image = await fetch(url)
        assert.deepEqual(Buffer.from(await image.arrayBuffer()), pixel)
      },
      tooLong
    )

    it(
      `killed after the vendor took it, before its answer was recorded: ${purchase.what}`,
      async () => {
        const before = await wallet()
        const upstream = upstreamOf(purchase)
        upstream.onPaid = async () => {
          upstream.onPaid = () => {}
          await gateway.kill()
        }
        const id = await create(purchase)
        await gateway.ended
        await gateway.start()
        const task = await ended(purchase, id)
        assert.strictEqual(upstream.paidSubmits, 1)
        if (purchase.canList) {
          assert.strictEqual(task.json.task_info.status, "completed", task.text)
          assert.strictEqual(await spent(before), Number(purchase.price))
        } else {
          assert.strictEqual(task.json.task_info.error.code, 3004, task.text)
          assert.strictEqual(await spent(before), 0)
        }
        assert.strictEqual((await wallet()).held_balance, "0.00")
      },
      tooLong
    )

    it(
      `killed before the vendor took it: ${purchase.what}`,
      async () => {
        const before = await wallet()
        const upstream = upstreamOf(purchase)
        upstream.submitFaults = ["hang"]
        const id = await create(purchase)
        await until(async () => (upstream.seen.length > 0 ? true : undefined))
        await gateway.restart()
        const task = await ended(purchase, id)
        assert.strictEqual(task.json.task_info.error.code, 3004, task.text)
        assert.strictEqual(upstream.paidSubmits, 0)
        assert.strictEqual(await spent(before), 0)
        assert.strictEqual((await wallet()).held_balance, "0.00")
      },
      tooLong
    )
  }

  it(
    "killed after the answer was recorded: goes on with the job, and buys nothing again",
    async () => {
      const [purchase] = purchases as [Purchase]
      const before = await wallet()
      const upstream = upstreamOf(purchase)
      upstream.runningPolls = 3
      const id = await create(purchase)
      await until(async () => ([...upstream.jobs.values()][0]?.polls ? true : undefined))
      await gateway.restart()
      const task = await ended(purchase, id)
      assert.strictEqual(task.json.task_info.status, "completed", task.text)
      assert.strictEqual(upstream.paidSubmits, 1)
      assert.strictEqual(await spent(before), Number(purchase.price))
    },
    tooLong
  )

  it(
    "two jobs of which one was lost cannot be told apart: neither is bought again",
    async () => {
      const [purchase] = purchases as [Purchase]
      const upstream = upstreamOf(purchase)
      const first = create(purchase)
      upstream.delayMillis = 400
      const second = create(purchase)
      const ids = await Promise.all([first, second])
      await until(async () => (upstream.seen.length >= 2 ? true : undefined))
      await gateway.kill()
      await pause(600)
      await gateway.start()
      const tasks = await Promise.all(ids.map((id) => ended(purchase, id)))
      assert.isAtMost(upstream.paidSubmits, 2)
      for (const task of tasks) {
        const { error, status } = task.json.task_info
        assert.isTrue(status === "completed" || error.code === 3004, task.text)
      }
      assert.strictEqual((await wallet()).held_balance, "0.00")
    },
    tooLong
  )
})
