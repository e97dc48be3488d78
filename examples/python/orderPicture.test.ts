import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFile, rm } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, it } from "vitest"
import { MockVendor, startTestGateway } from "../../src/testing/index.ts"
import { temporaryFolder } from "../../test/support/temporaryFolder.ts"

it("order_picture.py orders a picture and saves it, also when a connection breaks and when it is asked to come again", async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await using gateway = await startTestGateway({
    vendor: [MockVendor.result("1 second")],
    env: { BASE_URL: baseUrl }
  })
  let requests = 0
  server.on("request", async (request, response) => {
    requests += 1
    if (requests === 1) return void request.socket.destroy()
    if (requests === 2) return void response.writeHead(503, { "retry-after": "0" }).end()
    const chunks: Array<Uint8Array> = []
    for await (const chunk of request) chunks.push(chunk)
    const answer = await gateway.fetch(`${baseUrl}${request.url}`, {
      method: request.method ?? "GET",
      headers: request.headers as Record<string, string>,
      ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) })
    })
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(new Uint8Array(await answer.arrayBuffer()))
  })
  const folder = temporaryFolder("order-picture")
  try {
    const file = join(folder, "picture.png")
    const program = join(import.meta.dirname, "order_picture.py")
    const env = { ...process.env, GATEWAY_URL: baseUrl, GATEWAY_API_KEY: gateway.key }
    const child = spawn("python3", [program, "A lighthouse", file], { env })
    let output = ""
    child.stdout.on("data", (chunk) => (output += chunk))
    child.stderr.on("data", (chunk) => (output += chunk))
    const [code] = await gateway.whileTimePasses(() => once(child, "exit"))
    assert.strictEqual(code, 0, output)
    assert.strictEqual((await readFile(file)).subarray(1, 4).toString(), "PNG")
    assert.strictEqual((await gateway.submits()).length, 1)
  } finally {
    server.close()
    await rm(folder, { recursive: true })
  }
})
