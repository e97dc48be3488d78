import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { json, mockVendor } from "../../support/mockVendors.ts"
import { ownClock } from "../../support/ownClock.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

const median = (values: ReadonlyArray<number>) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Infinity

const withPair = async (
  databaseUrl: string,
  env: Readonly<Record<string, string>>,
  run: (first: GatewayProcess, second: GatewayProcess) => Promise<void>
) => {
  await using first = await GatewayProcess.start({ databaseUrl, env })
  await using second = await GatewayProcess.start({ databaseUrl, env })
  second.useKey(await first.key())
  await run(first, second)
}

const image = "/vendors/alibaba/v1/text-to-image-max/generation"

/** How much later a request at the other process ends than one at the process that runs the task. */
const waiting = async (first: GatewayProcess, second: GatewayProcess) => {
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

/** Cancels at the other process than the one that polls. */
const cancelling = async (databaseUrl: string) => {
  const upstream = await Upstream.start(fal)
  // Else the second poll ends a job, before the last cancel of a slow machine
  upstream.runningPolls = 1_000_000
  upstream.runningPolls = Infinity
  const folder = temporaryFolder("cross-process")
  await writeFile(join(folder, "catalog.json"), JSON.stringify(catalog))
  const env = {
    CATALOG_FILE: join(folder, "catalog.json"),
    FAL_API_KEY: upstream.key,
    FAL_BASE_URL: upstream.url
  }
  await withPair(databaseUrl, env, async (first, second) => {
    const count = 12
    const create = async (n: number) => {
      const made = await first.call("POST", flux, { prompt: `${n}`, n: 1 })
      assert.strictEqual(made.status, 202, made.text)
      return String(made.json.task_info.id)
    }
    const ids = await Promise.all(Array.from({ length: count }, (_, n) => create(n)))
    await until(() => upstream.jobs.size === count)
    // The handles are recorded, and the polls have begun
    await until(async () =>
      [...upstream.jobs.values()].every(({ polls }) => polls > 0) ? 1 : undefined
    )
    for (const id of ids) {
      const cancelled = await second.call("DELETE", `${flux}/${id}`)
      assert.strictEqual(cancelled.status, 200, cancelled.text)
    }
    const cancelled = () => upstream.seen.filter(({ path }) => path.endsWith("/cancel"))
    await until(() => cancelled().length >= count)
    // A poll that was under way when its run stopped
    await pause(200)
    const polls = upstream.requests
    // Longer than the process that ran them would need to look by itself
    await pause(7000)
    const cancels = cancelled()
    assert.strictEqual(cancels.length, count, "the vendor is told once of each")
    assert.strictEqual(new Set(cancels.map(({ path }) => path)).size, count)
    assert.strictEqual(upstream.requests, polls, "the other process has stopped polling")
  })
  await rm(folder, { recursive: true })
  await upstream.close()
}

/** Failures at one process open the circuit of the other, a success at one closes both. */
const circuits = async (databaseUrl: string) => {
  const upstream = await mockVendor((_request, response) =>
    json(response, 500, { error: { message: "broken" } })
  )
  const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `${upstream.origin}/v1` }
  await withPair(databaseUrl, env, async (first, second) => {
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
    // Five failures of two callers, at both processes
    for (let n = 0; n < 5; n += 1) {
      assert.strictEqual(await call(n < 3 ? first : second, n), 500)
    }
    for (const gateway of [first, second]) {
      await until(async () => {
        const { text } = await gateway.manage("GET", "/accounts")
        return text.includes('"circuit":"open"')
      })
    }
    const seen = upstream.seen.length
    assert.deepStrictEqual([await call(first, 7), await call(second, 8)], [503, 503])
    assert.strictEqual(upstream.seen.length, seen, "nothing was sent")
  })
  await upstream.close()
}

describe("two processes over one Postgres", () => {
  const onDatabase = (run: (databaseUrl: string) => Promise<void>) => () =>
    Effect.gen(function* () {
      const { href } = yield* processDatabaseUrl
      yield* Effect.promise(() => run(href))
    })

  it.live(
    "a request that waits at one for a task of the other ends within 50 ms",
    onDatabase((url) => withPair(url, {}, waiting)),
    120_000
  )
  it.live(
    "a cancel at one stops the run of the other, and the vendor is told once",
    onDatabase(cancelling),
    120_000
  )
  it.live("failures at one count at the other", onDatabase(circuits), 120_000)
})
