import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { startTestGateway } from "../../src/testing/index.ts"
import { freePort, killAtExit } from "../../test/support/spawnService.ts"
import { temporaryFolder } from "../../test/support/temporaryFolder.ts"
import { docsBlock } from "../../test/support/webhookDocs.ts"

const source = join(import.meta.dirname, "main.go")
const isGoHere = spawnSync("go", ["version"]).status === 0
const folder = temporaryFolder("go-receiver")
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Compiles the receiver and starts it. Returns its address and what it prints. */
const startReceiver = async (secret: string) => {
  const program = join(folder, "receiver")
  const built = spawnSync("go", ["build", "-o", program, source], { encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stderr)
  const port = await freePort()
  const child = spawn(program, {
    env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) }
  })
  killAtExit(child)
  const printed: Array<string> = []
  child.stdout.on("data", (chunk) => printed.push(...String(chunk).trim().split("\n")))
  const url = `http://127.0.0.1:${port}/`
  for (;;) {
    assert.isNull(child.exitCode)
    if (await fetch(url, { method: "POST" }).catch(() => undefined)) return { child, printed, url }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe("main.go", () => {
  it("is the receiver of docs/webhooks.md", () => {
    assert.strictEqual(readFileSync(source, "utf8"), docsBlock("go receiver"))
  })

  if (isGoHere) {
    it("accepts what a gateway delivers, once, and nothing that was changed", async () => {
      let url = ""
      const statuses: Array<number> = []
      await using gateway = await startTestGateway({
        receiver: async (request) => {
          const { headers } = request
          const body = await request.text()
          const changed = await fetch(url, { method: "POST", headers, body: `${body} ` })
          assert.strictEqual(changed.status, 400)
          const answer = await fetch(url, { method: "POST", headers, body })
          statuses.push(answer.status)
          return answer
        }
      })
      const { secret } = await gateway.webhooks.listen()
      const receiver = await startReceiver(secret)
      url = receiver.url
      await gateway.failNext("crash after webhook")
      const created = await gateway.fetch("/vendors/alibaba/v1/text-to-image-max/generation", {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
        body: JSON.stringify({ prompt: "A lighthouse" })
      })
      assert.strictEqual(created.status, 202)
      await gateway.runUntilQuiet()
      receiver.child.kill()
      await once(receiver.child, "close")
      assert.deepEqual(receiver.printed.toSorted(), [
        "received balance.low",
        "received task.created",
        "received task.succeeded"
      ])
      // One of them twice: the process died before it had recorded the answer
      assert.deepEqual(statuses, [204, 204, 204, 204])
    }, 120_000)
  } else {
    it("names id, time and body in the order of the signature (Go is not here: not compiled)", () => {
      const text = readFileSync(source, "utf8")
      const parts = [
        "Webhook-Id",
        "Webhook-Timestamp",
        "hmac.New(sha256.New",
        '"v1="',
        "hmac.Equal"
      ]
      for (const part of parts) assert.include(text, part)
    })
  }
})
