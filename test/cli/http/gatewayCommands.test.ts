import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

/** docs/reference/reconciliation.md#command, docs/reference/usage.md#rebuild */

const token = "operator-token-of-the-tests"
let gateway: TestGateway
let folder: string
beforeAll(async () => {
  gateway = await startGateway({ ADMIN_TOKEN: token })
  folder = await mkdtemp(join(tmpdir(), "gateway-bill-"))
}, 60_000)
afterAll(async () => {
  await gateway.stop()
  await rm(folder, { recursive: true, force: true })
})

const run = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  new Promise<{ code: number; out: string; error: string }>((resolve) => {
    execFile(
      process.execPath,
      ["src/cli/gateway.ts", ...args],
      { env: { GATEWAY_URL: gateway.origin, ADMIN_TOKEN: token, ...env } },
      (failure, out, error) => resolve({ code: failure === null ? 0 : 1, out, error })
    )
  })

describe("the operator's commands", () => {
  it("compare a bill and rebuild usage", { timeout: 60_000 }, async () => {
    const file = join(folder, "bill.csv")
    await writeFile(file, "job,model,date,amount\nx,m,2026-11-20,0.05\n")
    const report = await run(["reconcile", "--vendor", "fal", "--file", file, "--id", "job"])
    assert.strictEqual(report.code, 0, report.error)
    const json = JSON.parse(report.out)
    assert.strictEqual(json.bought_not_charged.count, 1)
    assert.strictEqual(json.bought_not_charged.data[0].id, "x")
    const rebuilt = await run(["rebuild-usage", "--from", "2026-11-01", "--to", "2026-11-30"])
    assert.deepStrictEqual([rebuilt.code, JSON.parse(rebuilt.out)], [0, { corrected: 0 }])
  })

  it("fail with a reason", { timeout: 60_000 }, async () => {
    for (const [args, env, reason] of [
      [["reconcile", "--vendor", "fal"], {}, "gateway reconcile --vendor"],
      [["reconcile", "--vendor", "fal", "--file", "/nowhere.csv"], {}, "ENOENT"],
      [["rebuild-usage", "--from", "2026-11-01"], {}, "returned 400"],
      [["rebuild-usage"], { ADMIN_TOKEN: "wrong" }, "returned 401"],
      [["dance"], {}, "gateway rebuild-usage"],
      [["--what"], {}, "gateway reconcile"]
    ] as const) {
      const refused = await run(args, env)
      assert.strictEqual(refused.code, 1, args.join(" "))
      assert.include(refused.error, reason)
    }
  })
})
