import { Effect, Exit, Scope } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { json, mockVendor } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { ownClock } from "../../support/ownClock.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

const median = (values: ReadonlyArray<number>) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Infinity

const image = "/vendors/alibaba/v1/text-to-image-max/generation"

/** How much later a request in the other process ends than one in the process that runs the task. */
const waiting = async () => {
  const now = ownClock(first.pid, second.pid)
  const later: Array<number> = []
  const streamed: Array<number> = []
  for (let n = 0; n < 9; n += 1) {
    const created = await first.call("POST", image, { prompt: "[[sim:slow=700ms]]" })
    const id = String(created.json.task_info.id)
    const ended = async (gateway: GatewayProcess, headers: Record<string, string>) => {
      const answer = await gateway.call("GET", `${image}/${id}`, undefined, headers)
      assert.include(answer.text, "completed")
      return now()
    }
    const [here, there, stream] = await Promise.all([
      ended(first, { prefer: "wait=20" }),
      ended(second, { prefer: "wait=20" }),
      ended(second, { accept: "text/event-stream" })
    ])
    later.push(there - here)
    streamed.push(stream - here)
  }
  assert.isBelow(median(later), 50, `${later}`)
  assert.isBelow(median(streamed), 50, `${streamed}`)
}

const flux = "/vendors/fal/v1/flux-dev/generation"
const catalog = {
  add: [
    {
      label: "text-to-image-preview",
      vendor: "fal",
      model: "flux-dev",
      adapter: "fal-queue",
      upstreamModel: "fal-ai/flux/dev",
      input: { fields: { n: "num_images" } }
    }
  ]
}

const scope = Scope.makeUnsafe()
let queue: Upstream
let broken: MockVendor
let first: GatewayProcess
let second: GatewayProcess

/** Two processes with a vendor of jobs and one whose calls all fail; the third vendor is in the sandbox. */
beforeAll(async () => {
  queue = await Upstream.start(fal)
  // Otherwise the second poll would end a job before the last cancel on a slow machine
  queue.runningPolls = Infinity
  broken = await mockVendor((_request, response) =>
    json(response, 500, { error: { message: "broken" } })
  )
  const file = join(temporaryFolder("cross-process"), "catalog.json")
  writeFileSync(file, JSON.stringify(catalog))
  const { href } = await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))
  const options = {
    databaseUrl: href,
    env: {
      CATALOG_FILE: file,
      FAL_API_KEY: queue.key,
      FAL_BASE_URL: queue.url,
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: `${broken.origin}/v1`
    }
  }
  first = await GatewayProcess.start(options)
  second = await GatewayProcess.start(options)
  second.useKey(await first.key())
}, 120_000)

afterAll(async () => {
  await Promise.all([first?.close(), second?.close()])
  await Promise.all([queue?.close(), broken?.close()])
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

/** Cancels in a different process from the one that polls. */
const cancelling = async () => {
  const count = 12
  const create = async (n: number) => {
    const made = await first.call("POST", flux, { prompt: `${n}`, n: 1 })
    assert.strictEqual(made.status, 202, made.text)
    return String(made.json.task_info.id)
  }
  const ids = await Promise.all(Array.from({ length: count }, (_, n) => create(n)))
  await until(() => queue.jobs.size === count)
  // The handles are recorded, and the polls have begun
  await until(() => [...queue.jobs.values()].every(({ polls }) => polls > 0))
  for (const id of ids) {
    const cancelled = await second.call("DELETE", `${flux}/${id}`)
    assert.strictEqual(cancelled.status, 200, cancelled.text)
  }
  const cancelled = () => queue.seen.filter(({ path }) => path.endsWith("/cancel"))
  await until(() => cancelled().length >= count)
  // A poll that was running when its run stopped
  await pause(200)
  const polls = queue.requests
  // Longer than the process that ran the tasks would need to find out by itself
  await pause(7000)
  const cancels = cancelled()
  assert.strictEqual(cancels.length, count, "the vendor is told once of each")
  assert.strictEqual(new Set(cancels.map(({ path }) => path)).size, count)
  assert.strictEqual(queue.requests, polls, "the other process has stopped polling")
}

/** Failures in one process open the circuit in the other; a success in one closes both. */
const circuits = async () => {
  const other = (await first.makeUser()).key
  const call = async (gateway: GatewayProcess, n: number) => {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${n % 2 === 0 ? other : await first.key()}`,
        "content-type": "application/json"
      },
      body: JSON.stringify({ model: "gpt-4o", max_tokens: 10, user: `${n}`, messages: [] })
    })
    await answer.arrayBuffer()
    return answer.status
  }
  // Five failures of two callers, in both processes
  for (let n = 0; n < 5; n += 1) {
    assert.strictEqual(await call(n < 3 ? first : second, n), 500)
  }
  for (const gateway of [first, second]) {
    await until(async () => {
      const { text } = await gateway.manage("GET", "/accounts")
      return text.includes('"circuit":"open"')
    })
  }
  const seen = broken.seen.length
  assert.deepStrictEqual([await call(first, 7), await call(second, 8)], [503, 503])
  assert.strictEqual(broken.seen.length, seen, "nothing was sent")
}

describe("two processes over one Postgres", { timeout: 120_000 }, () => {
  it(
    "a request at one process that waits for a task of the other ends within 50 ms of the task",
    waiting
  )
  it(
    "a cancel at one process stops the run at the other, and cancels once at the vendor",
    cancelling
  )
  it("failures at one process count at the other", circuits)
})
