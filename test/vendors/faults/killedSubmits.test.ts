import { existsSync, readdirSync, readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import {
  bodyOf,
  catalogOfFamilies,
  families,
  pathOf,
  startUpstreams,
  vendorEnv
} from "../../support/families.ts"
import type { Family, Upstreams } from "../../support/families.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"
import type { Upstream } from "../../support/upstreams/Upstream.ts"

const tooLong = 600_000
const main = "test/support/pausingMain.ts"

/** A result in several pieces, and half of it. */
const resultBytes = 400_000
const halfBytes = 200_000
const png = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1")

/** The end of a task whose process is killed while the task waits at a point. */
interface Point {
  /** As in prompts: `[[pause:<name>]]`. */
  readonly name: string
  readonly what: string
  /** Whether the vendor created the job. */
  readonly isPaid: boolean
  /** Otherwise the task fails with 3004, and the hold is released. */
  readonly isCompleted: (family: Family) => boolean
  readonly concerns?: (family: Family) => boolean
}

const never = () => false
const always = () => true
/** The vendor's list shows the job. */
const isFound = ({ canList }: Family) => canList
/** The response itself contains the result, which is stored before the response is recorded. */
const isInline = ({ adapter }: Family) => adapter === "gemini-image" || adapter === "openai-image"
const isLinked = (family: Family) => !isInline(family)

/**
 * Each kill hits tasks of all families at several points. Where jobs are listed, the jobs of several unsettled submits
 * are told apart by their requests (ADR 0194).
 */
const kills: ReadonlyArray<ReadonlyArray<Point>> = [
  [
    { name: "before-submit", what: "before the submit", isPaid: false, isCompleted: never },
    {
      name: "sent",
      what: "after the submit is sent, before the vendor accepts it",
      isPaid: false,
      isCompleted: never
    },
    { name: "recorded", what: "after the handle is recorded", isPaid: true, isCompleted: always },
    {
      name: "copying",
      what: "after the result, before it is copied",
      isPaid: true,
      isCompleted: isLinked
    },
    {
      name: "copied",
      what: "after the result is copied, before the task is finished",
      isPaid: true,
      isCompleted: always
    },
    { name: "finished", what: "after the task is finished", isPaid: true, isCompleted: always },
    {
      name: "answered",
      what: "after the response, before its handle is recorded",
      isPaid: true,
      isCompleted: isFound
    }
  ],
  [
    {
      name: "taken",
      what: "after the vendor accepted the submit, before its response",
      isPaid: true,
      isCompleted: isFound
    },
    {
      name: "half",
      what: "when half of the result is copied",
      isPaid: true,
      isCompleted: always,
      concerns: isLinked
    }
  ]
]

const filesIn = (directory: string): ReadonlyArray<string> =>
  existsSync(directory)
    ? readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((it) => it.isFile())
        .map((it) => it.name)
    : []

const isPart = (name: string) => name.endsWith(".part")

interface Order {
  readonly point: Point
  readonly family: Family
  readonly prompt: string
  readonly id: string
}

describe("a job is paid once by the service and by the client if the process is killed at any moment", () => {
  let folder: string
  let upstreams: Upstreams
  let all: ReadonlyArray<Upstream>
  let gateway: GatewayProcess
  beforeAll(async () => {
    folder = temporaryFolder("vendors")
    await writeFile(join(folder, "catalog.json"), JSON.stringify(catalogOfFamilies))
    upstreams = await startUpstreams()
    all = Object.values(upstreams)
    gateway = await GatewayProcess.start({
      main,
      env: {
        CATALOG_FILE: join(folder, "catalog.json"),
        PAUSE_LOG: join(folder, "paused.log"),
        EMBEDDED_DURABLE: "false",
        ...vendorEnv(upstreams)
      }
    })
    await gateway.key()
  }, tooLong)
  beforeEach(() => {
    for (const upstream of all) upstream.reset()
  })
  afterAll(async () => {
    await gateway.close()
    for (const upstream of all) await upstream.close()
  })

  const walletNow = async () => (await gateway.call("GET", "/manage/v1/wallet")).json

  const ended = (path: string, id: string) =>
    until(
      async () => {
        const task = await gateway.call("GET", `${path}/${id}`)
        return /completed|failed/u.test(task.json.task_info.status) ? task : undefined
      },
      { millis: 240_000, what: `the end of ${id}` }
    )

  const order = async (point: Point, family: Family): Promise<Order> => {
    const prompt = `${family.adapter} [[pause:${point.name}]]`
    const created = await gateway.call("POST", pathOf(family), bodyOf(family, prompt))
    assert.strictEqual(created.status, 202, created.text)
    return { point, family, prompt, id: created.json.task_info.id }
  }

  const parts = () => filesIn(join(gateway.dataDir, "artifacts")).filter(isPart)

  /** Each task waits at its point; `left` holds parts of files from an earlier kill. */
  const standing = (orders: ReadonlyArray<Order>, left: ReadonlyArray<string>) =>
    until(
      async () => {
        const log = gateway.env["PAUSE_LOG"] ?? ""
        const paused = existsSync(log) ? readFileSync(log, "utf8") : ""
        const halves = orders.filter(({ point }) => point.name === "half").length
        const news = parts().filter((it) => !left.includes(it)).length
        const bytes = all.reduce((sum, it) => sum + it.mediaBytesSent, 0)
        return orders.every(({ family, id, point, prompt }) => {
          const { paidBodies, seen } = upstreams[family.upstream]
          if (point.name === "sent") return seen.some((it) => it.bytes.includes(prompt))
          if (point.name === "taken") return paidBodies.some((it) => it.includes(prompt))
          if (point.name !== "half") return paused.includes(id)
          return news === halves && bytes === halves * halfBytes
        })
          ? true
          : undefined
      },
      { millis: 240_000, what: "every task at its point" }
    )

  const check = async ({ family, id, point, prompt }: Order) => {
    const task = await ended(pathOf(family), id)
    const what = `${prompt}: ${task.text}`
    const { paidBodies } = upstreams[family.upstream]
    const paid = paidBodies.filter((it) => it.includes(prompt)).length
    assert.strictEqual(paid, point.isPaid ? 1 : 0, what)
    if (!point.isCompleted(family)) {
      assert.strictEqual(task.json.task_info.error?.code, 3004, what)
      return 0
    }
    assert.strictEqual(task.json.task_info.status, "completed", what)
    const medium = await fetch(task.json[family.result][0])
    const { byteLength } = await medium.arrayBuffer()
    assert.strictEqual(byteLength, isInline(family) ? pixel.length : resultBytes, what)
    return Number(family.price)
  }

  for (const points of kills) {
    it(
      `killed ${points.map(({ what }) => what).join("; ")}`,
      async () => {
        const before = Number((await walletNow()).settled_balance)
        const left = parts()
        const breaks = points.some(({ name }) => name === "half")
          ? { breaks: all.flatMap(() => [halfBytes, halfBytes]), isHanging: true }
          : {}
        for (const upstream of all) {
          upstream.runningPolls = 0
          upstream.heldBeforeTaken = "[[pause:sent]]"
          upstream.heldAfterTaken = "[[pause:taken]]"
          upstream.media = { head: png, size: resultBytes, ...breaks }
        }
        const orders = await Promise.all(
          points.flatMap((point) =>
            families
              .filter((family) => point.concerns?.(family) ?? true)
              .map((family) => order(point, family))
          )
        )
        await standing(orders, left)
        await gateway.kill()
        for (const upstream of all) {
          upstream.heldBeforeTaken = undefined
          upstream.heldAfterTaken = undefined
          upstream.media = { head: png, size: resultBytes }
        }
        await gateway.start()
        const prices = await Promise.all(orders.map(check))
        const wallet = await walletNow()
        assert.strictEqual(wallet.held_balance, "0.00")
        const charged = prices.reduce((sum, price) => sum + price, 0)
        assert.strictEqual(wallet.settled_balance, (before - charged).toFixed(2))
      },
      tooLong
    )
  }

  it(
    "two jobs whose submits hung at the kill are found, both complete, and neither is submitted again",
    async () => {
      const [family] = families as [Family]
      const upstream = upstreams[family.upstream]
      const before = upstream.requests
      upstream.delayMillis = 400
      const path = pathOf(family)
      const created = await Promise.all(
        ["a", "b"].map((prompt) => gateway.call("POST", path, bodyOf(family, prompt)))
      )
      await until(() => upstream.requests >= before + 2)
      await gateway.kill()
      await pause(600)
      await gateway.start()
      for (const { json } of created) {
        const task = await ended(path, json.task_info.id)
        assert.strictEqual(task.json.task_info.status, "completed", task.text)
      }
      assert.deepStrictEqual([...upstream.paid.values()], [1, 1])
      assert.strictEqual((await walletNow()).held_balance, "0.00")
    },
    tooLong
  )
})
