import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { execFile } from "node:child_process"
import { writeFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Client } from "pg"
import { afterAll, beforeAll } from "vitest"
import { startVendorServer } from "../../../src/testing/vendors/VendorServer.ts"
import type { VendorServer } from "../../../src/testing/vendors/VendorServer.ts"
import { pixel } from "../../../src/vendors/mock/Pixel.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { bodyOf, catalogOfFamilies, familyOf, pathOf } from "../../support/families.ts"
import type { Family } from "../../support/families.ts"
import { adminToken, masterKey } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { newServer, runFolderPrefix, stopServer } from "../../support/postgresProcess.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"

/** docs/standbys.md: a store that is restored to an earlier time, while the service runs or before it starts. */

const exec = promisify(execFile)
/** Both use one account, which lists only the jobs of the first family. */
const listed = familyOf("dashscope-async")
const unlisted = familyOf("dashscope-sync")
const tasksPerFamily = 6
const jobMillis = 1500

/** A Postgres for this test, whose data can be saved and restored. */
const ownPostgres = async () => {
  const folder = await mkdtemp(join(tmpdir(), `${runFolderPrefix}${process.pid}-`))
  const server = await newServer(folder)
  await server.start()
  const copy = join(folder, "copy")
  const stop = () => stopServer(folder, "SIGINT")
  return {
    url: server.url,
    start: server.start,
    stop,
    /** Saves the store; the service finds the server restarted. */
    save: async () => {
      await stop()
      await rm(copy, { recursive: true, force: true })
      await exec("cp", ["-a", server.data, copy])
      await server.start()
    },
    /** Restores the saved store without starting it. */
    goBack: async () => {
      await stop()
      await rm(server.data, { recursive: true })
      await exec("cp", ["-a", copy, server.data])
    },
    [Symbol.asyncDispose]: async () => {
      await stopServer(folder)
      await rm(folder, { recursive: true, force: true })
    }
  }
}

interface Order {
  readonly id: string
  readonly family: Family
  readonly prompt: string
}

/** The processes and everything that they are connected to. */
interface World {
  readonly postgres: Awaited<ReturnType<typeof ownPostgres>>
  readonly vendor: VendorServer
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>
  readonly first: GatewayProcess
  readonly second: GatewayProcess
}

const create = async (gateway: GatewayProcess, family: Family, prompt: string): Promise<Order> => {
  const key = { "idempotency-key": `create-${prompt}` }
  const answer = await until(
    async () => {
      const answer = await gateway.call("POST", pathOf(family), bodyOf(family, prompt), key)
      return answer.status >= 500 ? undefined : answer
    },
    { what: "the response to a create" }
  )
  assert.strictEqual(answer.status, 202, answer.text)
  return { id: answer.json.task_info.id, family, prompt }
}

const taskOf = async (gateway: GatewayProcess, { family, id }: Order) =>
  (await gateway.call("GET", `${pathOf(family)}/${id}`)).json.task_info

const ended = async (gateway: GatewayProcess, orders: ReadonlyArray<Order>) => {
  const infos = []
  for (const order of orders) {
    const info = await until(
      async () => {
        const info = await taskOf(gateway, order)
        return /completed|failed/u.test(info?.status) ? info : undefined
      },
      // A task that has no job is submitted after 70 seconds
      { millis: 150_000, what: "the end of every task" }
    )
    infos.push(info)
  }
  return infos
}

/** How often a task's job was bought. */
const bought = (vendor: VendorServer, { prompt }: Order) =>
  vendor.requests.filter(
    (it) => it.method === "POST" && JSON.stringify(it.json).includes(JSON.stringify(prompt))
  ).length

const startVendor = () =>
  startVendorServer("dashscope", {
    script: [
      {
        _tag: "Result",
        after: Duration.millis(jobMillis),
        items: [{ _tag: "Bytes", mime: "image/png", bytes: new Uint8Array(pixel) }]
      }
    ]
  })

const metric = async (gateway: GatewayProcess, name: string) =>
  new RegExp(`^${name} (\\S+)$`, "mu").exec((await gateway.call("GET", "/metrics")).text)?.[1]

const queuesOf = async (gateway: GatewayProcess) =>
  (
    await gateway.call("GET", "/manage/v1/queues", undefined, {
      authorization: `Bearer ${gateway.adminToken}`
    })
  ).json

const markRestored = async (databaseUrl: string, ...flags: ReadonlyArray<string>) => {
  const ran = await withEnvironment({
    DATABASE_URL: databaseUrl,
    ADMIN_TOKEN: adminToken,
    MASTER_KEY: masterKey,
    BASE_URL: "http://localhost:8080"
  }).pipe(
    Effect.andThen(runCommand(["store", "mark-restored", "--json", ...flags])),
    Effect.scoped,
    Effect.runPromise
  )
  assert.strictEqual(ran.code, 0, ran.error)
  return JSON.parse(ran.out)
}

/** Marks a store that lost nothing, with tasks that were never submitted. Returns their outcomes. */
const unsubmitted = async (
  name: string,
  gateway: GatewayProcess,
  vendor: VendorServer,
  databaseUrl: string,
  ...flags: ReadonlyArray<string>
) => {
  const { sold } = vendor
  const orders: Array<Order> = []
  for (const family of [listed, unlisted, listed, unlisted]) {
    orders.push(await create(gateway, family, `${name} ${family.adapter} ${orders.length}`))
  }
  await until(() => vendor.sold > sold, { what: "the first submit" })
  await gateway.kill("SIGTERM")
  const before = orders.map((order) => bought(vendor, order))
  await markRestored(databaseUrl, ...flags)
  await gateway.start()
  const tasks = await ended(gateway, orders)
  return orders.flatMap((order, n) =>
    before[n] === 0
      ? [{ family: order.family, code: tasks[n].error?.code, times: bought(vendor, order) }]
      : []
  )
}

/** The store's record of these tasks' submits, to explain a failure. */
const stepsOf = async (orders: ReadonlyArray<Order>, databaseUrl: string) => {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  const { rows } = await client.query(
    `SELECT t.created_at, t.body ->> 'prompt' AS prompt, v.*, encode(v.body_hash, 'hex') AS body_hash
     FROM tasks t LEFT JOIN vendor_attempts v ON v.task_id = t.id WHERE t.id = ANY ($1::uuid[]) ORDER BY t.id, v.n`,
    [orders.map(({ id }) => id)]
  )
  await client.end()
  return rows
}

/** Restores a store to a time before some submits, and checks what is bought afterwards. */
const scenario = async (
  { first, postgres, receiver, second, vendor }: World,
  how: "while the service runs" | "before it starts"
) => {
  const { sold } = vendor
  const restoredBefore = Number(
    (await metric(first, "gateway_store_restored_timestamp_seconds")) ?? 0
  )
  const orders: Array<Order> = []
  for (let n = 0; n < tasksPerFamily; n += 1) {
    for (const family of [listed, unlisted]) {
      orders.push(
        await create(n % 2 === 0 ? first : second, family, `${how} ${family.adapter} ${n}`)
      )
    }
  }
  await until(() => vendor.sold >= sold + 2, { what: "the first submits" })
  await postgres.save()
  await ended(first, orders)
  const lost = await create(second, listed, `${how}, of the time that is lost`)
  await ended(second, [lost])
  for (const order of [...orders, lost]) assert.isAtMost(bought(vendor, order), 1, order.prompt)
  const before = orders.map((order) => bought(vendor, order))

  await postgres.goBack()
  if (how === "before it starts") {
    await Promise.all([first.kill(), second.kill()])
    await postgres.start()
    assert.isAbove((await markRestored(postgres.url)).tasks_in_doubt, 0)
    await Promise.all([first.start(), second.start()])
  } else {
    await postgres.start()
  }

  const tasks = await ended(first, orders)
  const twice = orders.filter((order) => bought(vendor, order) !== 1)
  if (twice.length > 0) {
    const steps = JSON.stringify(await stepsOf(twice, postgres.url), null, 1)
    assert.fail(`not bought once, before the store went back ${before}: ${steps}`)
  }
  const states = orders.map((order, n) => {
    const { error, status } = tasks[n]
    return `${order.family.adapter} ${error === undefined ? status : error.code}`
  })
  // Jobs in the vendor's list are found
  assert.notInclude(states, `${listed.adapter} 3004`)
  assert.include(states, `${unlisted.adapter} 3004`)
  assert.strictEqual((await taskOf(first, lost)) ?? null, null)

  const wallet = (await first.call("GET", "/manage/v1/wallet")).json
  assert.strictEqual(wallet.held_balance, "0.00")
  assert.strictEqual(await metric(first, "gateway_wallet_drift"), "0")
  const restored = Number(await metric(first, "gateway_store_restored_timestamp_seconds"))
  assert.isAbove(restored, restoredBefore)
  const { store } = await queuesOf(second)
  assert.isString(store.restored_at)
  assert.strictEqual(store.tasks_in_doubt, 0)
  if (how === "while the service runs") {
    const said = `${first.output}${second.output}`.split("\n")
    const errors = said.filter((line) => line.includes("The store has gone back in time: what was"))
    assert.strictEqual(errors.length, 1, "one process marks the store and logs it")
  }

  // What the vendor accepted and the store lost is not bought again, unless a client repeats its request
  const again = await create(first, lost.family, lost.prompt)
  assert.notStrictEqual(again.id, lost.id)
  await ended(first, [again])
  assert.strictEqual(bought(vendor, lost), 2)
  // New work continues as usual
  const [next] = await ended(second, [await create(second, unlisted, `${how}, afterwards`)])
  assert.strictEqual(next.status, "completed")

  // A second outcome event has the same end of its id as the first
  const outcomes = receiver.received.filter((it) => it.event.type !== "task.created")
  for (const { event } of outcomes) {
    const id: string = event.data.payload.task_info.id
    assert.strictEqual(event.id.slice(-20), id.replaceAll("-", "").slice(-20))
  }
}

const folder = temporaryFolder("back")
const catalog = join(folder, "catalog.json")
writeFileSync(catalog, JSON.stringify(catalogOfFamilies))

describe("a store that went back in time", { timeout: 240_000 }, () => {
  describe("is found by both of its processes", () => {
    const stack = new AsyncDisposableStack()
    let world: World

    beforeAll(async () => {
      const postgres = stack.use(await ownPostgres())
      const vendor = stack.use(await startVendor())
      const receiver = stack.use(await startReceiver())
      const env = {
        ...receiver.env,
        ...vendor.env,
        CATALOG_FILE: catalog,
        DASHSCOPE_API_KEY: `${vendor.key};concurrent=2`
      }
      const options = { databaseUrl: postgres.url, env }
      const first = stack.use(await GatewayProcess.start(options))
      const second = stack.use(await GatewayProcess.start(options))
      second.useKey(await first.key())
      const hook = { url: receiver.url, events: ["task.created", "task.succeeded", "task.failed"] }
      const made = await first.call("POST", "/manage/v1/webhook-endpoints", hook)
      assert.strictEqual(made.status, 201)
      world = { postgres, vendor, receiver, first, second }
    }, 240_000)
    afterAll(() => stack.disposeAsync())

    for (const how of ["while the service runs", "before it starts"] as const) {
      it(`${how}: nothing is bought twice`, () => scenario(world, how))
    }
  })

  it.live(
    "a task that the vendor's list does not show is submitted once, and one without a list fails; all are submitted without a search if the operator says that nothing was lost",
    () =>
      Effect.gen(function* () {
        const { href } = yield* processDatabaseUrl
        yield* Effect.promise(async () => {
          await using vendor = await startVendor()
          const env = {
            ...vendor.env,
            CATALOG_FILE: catalog,
            DASHSCOPE_API_KEY: `${vendor.key};concurrent=1`
          }
          await using gateway = await GatewayProcess.start({ databaseUrl: href, env })
          await gateway.key()
          const found = await unsubmitted("looked for", gateway, vendor, href)
          assert.includeMembers(
            found.map(({ family }) => family),
            [listed, unlisted]
          )
          for (const { code, family, times } of found) {
            const expected = family === listed ? [undefined, 1] : [3004, 0]
            assert.deepStrictEqual([code, times], expected, family.adapter)
          }

          const allowed = await unsubmitted("allowed", gateway, vendor, href, "--allow-submits")
          assert.isNotEmpty(allowed)
          for (const { code, times } of allowed) {
            assert.deepStrictEqual([code, times], [undefined, 1])
          }
        })
      })
  )
})
