import { assert, describe, it } from "@effect/vitest"
import { connect } from "node:net"
import type { Socket } from "node:net"
import { GatewayProcess } from "../support/gatewayProcess.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const mebi = 1024 * 1024

describe("large bodies that are announced and never sent", () => {
  it("delay requests of their own user, and of nobody else", async () => {
    await using gateway = await GatewayProcess.start({ env: { MAX_BODY_BYTES: "4 MiB" } })
    const { hostname, port } = new URL(gateway.url)
    const poor = await gateway.makeUser("0.01")
    const sockets = await Promise.all(
      Array.from(
        { length: 8 },
        () =>
          new Promise<Socket>((resolve) => {
            const socket = connect(Number(port), hostname, () => {
              socket.write(
                `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${poor.key}\r\n` +
                  `Content-Type: application/json\r\nContent-Length: ${4 * mebi}\r\n\r\n{`,
                () => resolve(socket)
              )
            })
            socket.on("error", () => {})
          })
      )
    )
    // Sent after them to the same process: the process has read their headers by then
    assert.strictEqual((await gateway.call("GET", "/manage/v1/wallet")).status, 200)
    const answer = await gateway.call("POST", path, { prompt: "x", y: "y".repeat(2 * mebi) })
    assert.deepStrictEqual([answer.status, answer.json.code], [400, 2001])
    for (const socket of sockets) socket.destroy()
  }, 60_000)
})
