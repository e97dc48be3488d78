import { decode } from "fast-png"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { assertConsole, freePort, run, until, untilReady } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const packageFolder = dirname(createRequire(import.meta.url).resolve("deno/package.json"))
const deno = join(packageFolder, process.platform === "win32" ? "deno.exe" : "deno")

describe("Deno", () => {
  it("`deno task start` serves: create, poll, a real PNG, and SIGTERM ends it with status 0", async () => {
    const port = await freePort()
    const service = run(deno, ["task", "start"], {
      DATA_DIR: temporaryFolder("deno"),
      // Compiles the embedded store only once, like `shortLived` for Node
      DENO_V8_FLAGS: "--liftoff-only,--no-maglev",
      EMBEDDED_DURABLE: "false",
      PORT: `${port}`,
      SIMULATOR_DELAY: "100 millis"
    })
    try {
      await untilReady(service, port)
      await assertConsole(port)
      const key = await until(service, async () => /sk-\w+/.exec(service.output())?.[0])
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
      const path = `http://127.0.0.1:${port}/vendors/alibaba/v1/text-to-image-max/generation`
      const body = JSON.stringify({ prompt: "A lighthouse", size: "1328*1328" })
      const created = await fetch(path, { method: "POST", headers, body })
      assert.strictEqual(created.status, 202)
      const { task_info: task } = (await created.json()) as { task_info: { id: string } }
      const result = await until(service, async () => {
        const answer = await fetch(`${path}/${task.id}`, { headers })
        const found = (await answer.json()) as {
          task_info: { status: string }
          images?: Array<string>
        }
        return found.task_info.status === "completed" ? found : undefined
      })
      const image = await fetch(result.images![0]!)
      const { height, width } = decode(await image.arrayBuffer(), { checkCrc: true })
      assert.deepStrictEqual([width, height], [1328, 1328])
      service.kill("SIGTERM")
      assert.strictEqual(await service.ended, 0)
    } finally {
      service.kill("SIGKILL")
    }
  }, 180_000)
})
