import { Effect, Exit, Scope } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { ownClock } from "../../support/ownClock.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** docs/catalog.md#reload, docs/catalog.md#after-a-restart */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const priced = (amount: string) => ({
  change: { "text-to-image-max": { price: { per: "image", amount } } }
})

/** A separate catalog file for a process. */
const newFile = (content: unknown) => {
  const file = join(temporaryFolder("catalog"), "catalog.json")
  const write = (content: unknown) =>
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
  write(content)
  return { file, write, env: { CATALOG_FILE: file } }
}

const quoteOf = async (gateway: GatewayProcess): Promise<string> => {
  const { json } = await gateway.call("POST", `${path}?dry_run=true`, { prompt: "a" })
  return json.quote?.amount ?? String(json.code)
}

const hashOf = async (gateway: GatewayProcess): Promise<string> =>
  (await gateway.manage("GET", "/catalog")).json.hash

/** The milliseconds until the process sells at this price. */
const timeTo = async (
  gateway: GatewayProcess,
  amount: string,
  ...others: ReadonlyArray<GatewayProcess>
): Promise<number> => {
  const now = ownClock(gateway.pid, ...others.map(({ pid }) => pid))
  const began = now()
  await until(async () => (await quoteOf(gateway)) === amount, {
    what: `the price of ${amount}`
  })
  return now() - began
}

const scope = Scope.makeUnsafe()
const [one, two] = [newFile({}), newFile({})]
let first: GatewayProcess
let second: GatewayProcess

/** Two processes, each with its own file. Every test continues from the state that the previous one left. */
beforeAll(async () => {
  const { href } = await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))
  first = await GatewayProcess.start({ databaseUrl: href, env: one.env })
  second = await GatewayProcess.start({ databaseUrl: href, env: two.env })
  second.useKey(await first.key())
}, 180_000)

afterAll(async () => {
  await Promise.all([first?.close(), second?.close()])
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

describe("several processes", { timeout: 180_000 }, () => {
  it("all adopt within a second the catalog that one of them reads, by HTTP or by SIGHUP", async () => {
    assert.strictEqual(await hashOf(first), await hashOf(second))

    one.write(priced("8.00"))
    const reloaded = await first.manage("POST", "/catalog/reload")
    assert.strictEqual(reloaded.json.adopted, true, reloaded.text)
    assert.strictEqual(await quoteOf(first), "8.00")
    assert.isBelow(await timeTo(second, "8.00", first), 1000)
    assert.strictEqual(await hashOf(second), reloaded.json.hash)

    two.write(priced("9.00"))
    process.kill(second.pid!, "SIGHUP")
    assert.isBelow(await timeTo(second, "9.00", first), 1000)
    assert.isBelow(await timeTo(first, "9.00", second), 1000)

    two.write("{ broken")
    process.kill(second.pid!, "SIGHUP")
    await until(() => second.output.includes("Expected valid JSON"), {
      what: "the log of the fault"
    })
    assert.isTrue(second.isRunning)
    assert.deepStrictEqual([await quoteOf(first), await quoteOf(second)], ["9.00", "9.00"])
  })

  it("one that starts beside others has their catalog, and its new file applies to all", async () => {
    two.write(priced("9.00"))
    one.write(priced("10.00"))
    await first.manage("POST", "/catalog/reload")
    await timeTo(second, "10.00")
    // Its file was replaced. SIGTERM, because a killed process would count as running for ten seconds
    await second.restart("SIGTERM")
    assert.deepStrictEqual([await quoteOf(first), await quoteOf(second)], ["10.00", "10.00"])
    assert.include(second.output, "has a catalog that was replaced")
    two.write(priced("11.00"))
    await second.restart("SIGTERM")
    assert.strictEqual(await quoteOf(second), "11.00")
    assert.isBelow(await timeTo(first, "11.00", second), 1000)
  })

  it("one that starts alone has its own file, even if the file was replaced before", async () => {
    await second.kill("SIGTERM")
    // The adopted catalog came from the other process's file
    await first.restart("SIGTERM")
    assert.strictEqual(await quoteOf(first), "10.00")
    one.write(priced("8.00"))
    await first.restart("SIGTERM")
    assert.strictEqual(await quoteOf(first), "8.00")
    // After kill -9 the file is the same as the adopted one
    await first.restart("SIGKILL")
    assert.strictEqual(await quoteOf(first), "8.00")
  })
})

describe("a task that runs while its model leaves the catalog", () => {
  // On Postgres alone: catalogs are stored by the same statements, which test/process/contract/catalogStore.test.ts
  // runs on both stores
  it("ends with the catalog entry by which it was accepted", { timeout: 180_000 }, async () => {
    const created = await first.call("POST", path, { prompt: "a [[sim:slow=3s]]" })
    assert.strictEqual(created.status, 202, created.text)
    const { id } = created.json.task_info
    const accepted = await hashOf(first)
    // An earlier kill would leave it open whether the job was bought
    await until(async () => {
      const { json } = await first.call("GET", `/manage/v1/tasks/${id}`)
      return json.attempts[0]?.state === "submitted"
    })
    one.write({ remove: ["text-to-image-max"] })
    await first.restart()
    assert.notStrictEqual(await hashOf(first), accepted)
    assert.strictEqual(await quoteOf(first), "2006")
    const task = await until(
      async () => {
        const { json } = await first.call("GET", `${path}/${id}`)
        return json.task_info?.status === "completed" || json.task_info?.status === "failed"
          ? json
          : undefined
      },
      { what: "the end of the task" }
    )
    assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
    const history = await first.call("GET", `/manage/v1/tasks/${id}`)
    assert.strictEqual(history.json.catalog, accepted)
    assert.strictEqual(history.json.receipt.captured, "8.00")
  })
})
