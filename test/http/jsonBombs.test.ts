import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { formPartsMax } from "../../src/domain/limits/ShapeLimits.ts"
import { rawHttp } from "../support/rawHttp.ts"
import { call, Running, runningGateway } from "../support/running.ts"

const mebi = 1024 * 1024
const announced = 127 * mebi

/** The beginning of a body of 127 MiB whose rest never comes. */
const bombs = {
  objects: "{},".repeat(mebi / 2),
  keys: `{${'"a":1,'.repeat(mebi / 4)}`,
  levels: "[".repeat(mebi)
}

const part = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'

describe("a body that would hold the process for long", () => {
  layer(runningGateway(), { excludeTestServices: true })((it) => {
    const refused = Effect.fnUntraced(function* (path: string, type: string, body: string) {
      const { key, port } = yield* Running
      // The gateway closes the connection and waits for nothing more
      const { text } = yield* rawHttp(port, (write) =>
        write(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
            `Content-Type: ${type}\r\nContent-Length: ${announced}\r\n\r\n${body}`
        )
      )
      assert.match(text, /^HTTP\/1\.1 400 /u, text.slice(0, 300))
      assert.match(text, /^connection: close\r$/imu)
      return text
    })

    it.effect.each([
      "/v1/chat/completions",
      "/vendors/openai/v1/embeddings",
      "/vendors/alibaba/v1/text-to-image-max/generation",
      "/vendors/alibaba/v1/text-to-image-max/generation?dry_run=true",
      "/v1/images/generations",
      "/v1/videos",
      "/manage/v1/api-keys",
      "/mcp"
    ])(
      "is refused before it has arrived: %s",
      (path) =>
        Effect.gen(function* () {
          for (const [name, body] of Object.entries(bombs)) {
            const text = yield* refused(path, "application/json", `[${body}`)
            assert.match(text, path === "/mcp" ? /-32700/u : /"code":2002/u, name)
            assert.match(text, /too (?:complex|deeply)|too deeply/u, name)
          }
        }),
      60_000
    )

    it.effect("is refused as a form of too many parts", () =>
      Effect.gen(function* () {
        for (const path of ["/v1/images/edits", "/v1/videos"]) {
          const text = yield* refused(path, "multipart/form-data; boundary=b", part.repeat(1000))
          assert.include(text, `The form has more than ${formPartsMax} parts`)
        }
      })
    )

    it.effect(
      "arrives in any pieces, after 100 Continue or with no length, as far as it is good",
      () =>
        Effect.gen(function* () {
          const { key, port } = yield* Running
          const body = JSON.stringify({ prompt: "a".repeat(600) })
          const head = (more: string) =>
            `POST /vendors/alibaba/v1/text-to-image-max/generation?dry_run=true HTTP/1.1\r\nHost: x\r\n` +
            `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nConnection: close\r\n${more}\r\n\r\n`
          const chunked = [...body].map((it) => `1\r\n${it}\r\n`).join("")
          for (const sent of [
            `${head(`Content-Length: ${body.length}`)}${body}`,
            `${head("Transfer-Encoding: chunked")}${chunked}0\r\n\r\n`,
            `${head(`Expect: 100-continue\r\nContent-Length: ${body.length}`)}${body}`
          ]) {
            const { text } = yield* rawHttp(port, (write) => write(sent))
            assert.match(text, /HTTP\/1\.1 200 /u, text)
            assert.strictEqual(text.includes("100 Continue"), sent.includes("100-continue"))
          }
        })
    )

    it.effect("a number of a form that JSON does not know is a fault of its field", () =>
      Effect.gen(function* () {
        for (const n of ["01", "-0", "1e3", "+1", "0x1", "1.5", " 1", "NaN"]) {
          const form = new FormData()
          form.set("model", "text-to-image-max")
          form.set("prompt", "a")
          form.set("n", n)
          form.set("seed", n)
          const answer = yield* call("/v1/images/generations", { method: "POST", body: form })
          const { code, errors } = JSON.parse(yield* Effect.promise(() => answer.text()))
          assert.deepStrictEqual([answer.status, code], [400, 2001], n)
          const pointers = errors.map(({ pointer }: { pointer: string }) => pointer)
          assert.includeMembers(pointers, ["#/n", "#/seed"], n)
        }
      })
    )
  })
})
