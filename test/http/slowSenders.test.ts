import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { connect } from "node:net"
import type { Socket } from "node:net"
import { makeCaller } from "../support/callers.ts"
import { rawHttp } from "../support/rawHttp.ts"
import { call, json, read, Running, runningGateway } from "../support/running.ts"

const mebi = 1024 * 1024
const routes = [
  "/vendors/alibaba/v1/text-to-image-max/generation",
  "/manage/v1/api-keys",
  "/v1/chat/completions"
] as const

const headOf = (path: string, key: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`

/** docs/reference/http.md#request-bodies */
layer(runningGateway({ MAX_BODY_BYTES: String(4 * mebi) }), { timeout: "60 seconds" })(
  "a large body that arrives slowly",
  (it) => {
    it.effect("delays only requests of the same user, even if it never arrives", () =>
      Effect.gen(function* () {
        const { port } = yield* Running
        const poor = yield* makeCaller(0.01)
        const socketOf = Effect.acquireRelease(
          Effect.promise(
            () =>
              new Promise<Socket>((resolve) => {
                const socket = connect(port, "127.0.0.1", () => {
                  socket.write(
                    `${headOf(routes[0], poor.key)}Content-Length: ${4 * mebi}\r\n\r\n{`,
                    () => resolve(socket)
                  )
                })
                socket.on("error", () => {})
              })
          ),
          (socket) => Effect.sync(() => socket.destroy())
        )
        yield* Effect.all(
          Array.from({ length: 8 }, () => socketOf),
          { concurrency: "unbounded" }
        )
        // Sent after them, so that the gateway has read their headers by then
        assert.strictEqual((yield* call("/manage/v1/wallet")).status, 200)
        const answer = yield* read(routes[0], json({ prompt: "x", y: "y".repeat(2 * mebi) }))
        assert.deepStrictEqual([answer.status, answer.json.code], [400, 2001])
      })
    )

    for (const path of routes) {
      for (const length of [`Content-Length: ${4 * mebi}`, "Transfer-Encoding: chunked"]) {
        it.effect(`ends with 408 and a closed connection: ${path}, ${length}`, () =>
          Effect.gen(function* () {
            const { key, port } = yield* Running
            const answer = yield* rawHttp(port, (write) => {
              write(`${headOf(path, key)}${length}\r\n\r\n`)
              // More than a small body, and then nothing
              const bytes = 2 * mebi
              const isChunked = length.endsWith("chunked")
              if (isChunked) write(`${bytes.toString(16)}\r\n`)
              write(Buffer.alloc(bytes, " "))
              if (isChunked) write("\r\n")
            }).pipe(
              Effect.raceFirst(
                Effect.forever(
                  Effect.andThen(
                    TestClock.adjust("10 seconds"),
                    Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
                  )
                )
              )
            )
            assert.isTrue(answer.text.startsWith("HTTP/1.1 408 "), answer.text.slice(0, 300))
            assert.match(answer.text, /"code":2015/u)
            assert.match(answer.text, /^connection: close$/imu)
            assert.strictEqual(answer.text.split("HTTP/1.1 ").length, 2, "one response")
          })
        )
      }
    }
  }
)
