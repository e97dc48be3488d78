import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { readResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { readDocument } from "../../support/samples/documents.ts"
import { SamplePage, startVariables, stepsOf } from "../../support/samples/SamplePage.ts"
import type { Step } from "../../support/samples/SamplePage.ts"
import { answerFaults } from "../../support/samples/Shape.ts"
import type { Bindings } from "../../support/samples/Shape.ts"
import { freePort } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { notRun, samplePages } from "../notRun.ts"

/**
 * Runs every sample of the tutorials as a reader would: page by page in a shell, against one sandbox gateway, started
 * with the variables that the pages name. The output shown on the page is compared with the actual output. Each page
 * has its own user with 1000 credits; the first one uses the key of the first start.
 */

const folder = temporaryFolder("samples")
let gateway: GatewayProcess
let adminToken = ""
const pages = new Map<string, SamplePage>()

beforeAll(async () => {
  for (const path of samplePages) {
    const steps = stepsOf(readDocument(path), notRun[path] ?? {})
    const own = join(folder, path.replaceAll(/[^a-z0-9]/giu, "-"))
    pages.set(path, new SamplePage(own, steps, await freePort()))
  }
  await Promise.all([...pages.values()].map((page) => page.prepare()))
  const variables = [...pages.values()].map(({ clone, steps }) => startVariables(steps, clone))
  gateway = await GatewayProcess.start({
    // The first start creates its own secrets and prints what a reader sees
    env: Object.assign(
      { ADMIN_TOKEN: "", MASTER_KEY: "", EGRESS_ALLOW: "", LOG_FORMAT: "pretty" },
      ...variables
    )
  })
  adminToken = readFileSync(join(gateway.dataDir, "admin-token"), "utf8").trim()
})

afterAll(async () => {
  for (const page of pages.values()) page.close()
  await gateway?.close()
  rmSync(folder, { recursive: true, force: true })
})

const manage = async (path: string, body: unknown) => {
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/json" }
  const init = { method: "POST", headers, body: JSON.stringify(body) }
  const { json, status } = await readResult(await fetch(`${gateway.url}/manage/v1${path}`, init))
  assert.strictEqual(status, 201, path)
  return json
}

const userKey = async (email: string): Promise<string> => {
  const { id } = await manage("/users", { email })
  await manage(`/users/${id}/top-ups`, { amount: "1000.00" })
  const scopes = ["inference", "manage"]
  return (await manage(`/users/${id}/api-keys`, { name: "samples", scopes })).key
}

describe("the samples of", () => {
  for (const [index, path] of samplePages.entries()) {
    it(`${path} print what it shows`, async () => {
      const page = pages.get(path)!
      const port = Number(new URL(gateway.url).port)
      const key = index === 0 ? await gateway.key() : await userKey(`samples-${index}@example.com`)
      await page.run({ port, key, adminToken })
      const bindings: Bindings = new Map()
      const outputOf = (step: Step) =>
        (step.kind === "start" ? gateway.output : page.output(step)).replaceAll(
          new RegExp(`(?:127\\.0\\.0\\.1|localhost):${port}`, "gu"),
          "localhost:8080"
        )
      const faults = page.steps.flatMap((step) =>
        step.kind === "answer"
          ? answerFaults(step.block.language, step.block.text, outputOf(step.to), bindings).map(
              (fault) => `${path}:${step.block.line}: ${fault}`
            )
          : []
      )
      assert.deepEqual(faults, [])
    }, 180_000)
  }
})
