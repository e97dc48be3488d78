import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { rawHttp } from "../support/rawHttp.ts"
import { Running, runningGateway } from "../support/running.ts"

const mebi = 1024 * 1024
const routes = [
  "/vendors/alibaba/v1/text-to-image-max/generation",
  "/manage/v1/api-keys",
  "/v1/chat/completions"
]

/** docs/reference/http.md#request-bodies */
layer(runningGateway({ MAX_BODY_BYTES: String(4 * mebi) }))(
  "a large body that arrives slowly",
  (it) => {
    for (const path of routes) {
      for (const length of [`Content-Length: ${4 * mebi}`, "Transfer-Encoding: chunked"]) {
        it.effect(`ends with 408 and a closed connection: ${path}, ${length}`, () =>
          Effect.gen(function* () {
            const { key, port } = yield* Running
            const answer = yield* rawHttp(port, (write) => {
              write(
                `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
                  `Content-Type: application/json\r\n${length}\r\n\r\n`
              )
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
