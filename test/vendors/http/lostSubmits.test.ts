import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import {
  bodyOf,
  catalogOfFamilies,
  families,
  pathOf,
  startUpstreams,
  vendorEnv
} from "../../support/families.ts"
import type { Upstreams } from "../../support/families.ts"
import { call, endedTask, json, runningGateway } from "../../support/running.ts"
import type { Task } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import type { Fault } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#reconciliation, ADR 0194: the process lives, and the response to its submit was lost. */

const folder = temporaryFolder("lost-submits")
const bought: ReadonlyArray<Fault> = ["drop-after", "garbage", "drop-after"]

describe("a submit whose response was lost in a living process", () => {
  let upstreams: Upstreams
  beforeAll(async () => {
    upstreams = await startUpstreams()
    writeFileSync(join(folder, "catalog.json"), JSON.stringify(catalogOfFamilies))
  })
  beforeEach(() => {
    for (const upstream of Object.values(upstreams)) {
      upstream.reset()
      upstream.runningPolls = 0
    }
  })
  afterAll(async () => {
    await Promise.all(Object.values(upstreams).map((it) => it.close()))
    rmSync(folder, { recursive: true })
  })

  for (const family of families.filter(({ canList }) => canList)) {
    it.live(
      `${family.adapter}: each task gets its own job, and one that was never bought holds up none`,
      () =>
        Effect.suspend(() => {
          const upstream = upstreams[family.upstream]
          upstream.submitFaults = [...bought, "drop-before"]
          return Effect.gen(function* () {
            const path = pathOf(family)
            const prompts = [...bought, "drop-before"].map(
              // In two lines: a list shows the prompt as it was sent
              (fault, n) => `A lighthouse ${n}:\n${fault}`
            )
            const ids = yield* Effect.forEach(prompts, (prompt) =>
              Effect.flatMap(call(path, json(bodyOf(family, prompt))), (got) =>
                Effect.map(
                  Effect.promise(() => got.json() as Promise<Task>),
                  ({ task_info }) => task_info.id
                )
              )
            )
            const ended = yield* Effect.forEach(ids, (id) => endedTask(path, id), {
              concurrency: "unbounded"
            })
            const codes = ended.map(({ task_info }) => task_info.error?.code ?? task_info.status)
            assert.sameMembers(codes, ["completed", "completed", "completed", 3004])
            assert.strictEqual(upstream.paidSubmits, 3)
            assert.strictEqual(upstream.paid.size, 3, "and nothing was submitted twice")
          }).pipe(
            Effect.provide(
              runningGateway({
                CATALOG_FILE: join(folder, "catalog.json"),
                LOG_LEVEL: "None",
                ...vendorEnv(upstreams)
              })
            )
          )
        }),
      120_000
    )
  }
})
