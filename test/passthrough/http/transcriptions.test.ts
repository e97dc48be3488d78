import { createServer, request as httpRequest } from "node:http"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, assert, beforeEach, describe, it } from "vitest"
import { hertz, samplesOf } from "../../../src/sandbox/media/Sound.ts"
import { wavOf } from "../../../src/sandbox/media/WavFile.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"

/** Forms with a file are forwarded as they arrive. docs/reference/wallet.md#speech-transcription-and-reranking */

interface Seen {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly chunks: Array<Buffer>
  end: "whole" | "broken" | undefined
}

type Answer = (response: ServerResponse) => void

const seen: Array<Seen> = []
let answer: Answer = () => {}

const says = (value: unknown, status = 200) => {
  answer = (response) => {
    response.writeHead(status, { "content-type": "application/json" })
    response.end(JSON.stringify(value))
  }
}

const vendor = createServer((request, response) => {
  const record: Seen = {
    url: request.url ?? "",
    headers: request.headers,
    chunks: [],
    end: undefined
  }
  seen.push(record)
  request.on("data", (chunk: Buffer) => record.chunks.push(chunk))
  request.on("error", () => (record.end ??= "broken"))
  request.on("close", () => (record.end ??= request.complete ? "whole" : "broken"))
  request.on("end", () => {
    record.end = "whole"
    answer(response)
  })
})
await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve))
const origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
const gateway = await gatewayOfTests(
  {
    // Nothing listens at the first account, which is tried first
    OPENAI_API_KEY: `sk-dead;name=dead;base=http://127.0.0.1:9/v1,sk-vendor-openai;name=alive;base=${origin}/v1`
  },
  100_000n
)
afterAll(async () => {
  vendor.closeAllConnections()
  await new Promise((resolve) => vendor.close(resolve))
})
beforeEach(() => {
  seen.length = 0
})

const wav = wavOf(samplesOf("a".repeat(45)), hertz)
const path = "/v1/audio/transcriptions"

/** A form with its parts in this order; a Buffer is the file. */
const formOf = (...parts: ReadonlyArray<readonly [string, string | Buffer]>) => {
  const boundary = "----of-this-test"
  const bytes = Buffer.concat([
    ...parts.flatMap(([name, value]) => {
      const file = typeof value === "string" ? "" : '; filename="a.wav"\r\nContent-Type: audio/wav'
      return [
        Buffer.from(
          `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`
        ),
        Buffer.from(value),
        Buffer.from("\r\n")
      ]
    }),
    Buffer.from(`--${boundary}--\r\n`)
  ])
  return { bytes, type: `multipart/form-data; boundary=${boundary}` }
}

const send = (
  { bytes, type }: ReturnType<typeof formOf>,
  headers: Record<string, string> = {},
  to = path
) =>
  fetch(`${gateway.origin}${to}`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": type, ...headers },
    body: bytes
  })

const whisper = formOf(["model", "whisper-1"], ["file", wav])
const fileFirst = (model: string) =>
  formOf(["file", wav], ["model", model], ["response_format", "json"])
const tokens = {
  type: "tokens",
  input_tokens: 30,
  output_tokens: 9,
  input_token_details: { audio_tokens: 28 }
}

const until = async (isSo: () => boolean) => {
  for (let tries = 0; tries < 500; tries += 1) {
    if (isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  assert.fail("it did not happen")
}

/** A request whose bytes are written one by one. */
const slowly = (form: ReturnType<typeof formOf>) => {
  const request = httpRequest(`${gateway.origin}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${gateway.key}`,
      "content-type": form.type,
      "content-length": form.bytes.length
    }
  })
  request.on("error", () => {})
  return request
}

describe("a form with a file", () => {
  it("reaches the vendor byte for byte, with the length that it had", async () => {
    says({ text: "Hello", usage: { type: "duration", seconds: 3 } })
    const response = await send(whisper)
    assert.equal(response.status, 200)
    assert.deepInclude(await response.json(), { text: "Hello" })
    assert.lengthOf(seen, 1)
    assert.isTrue(Buffer.concat(seen[0]!.chunks).equals(whisper.bytes))
    assert.equal(seen[0]!.headers["content-length"], String(whisper.bytes.length))
    assert.equal(seen[0]!.headers["content-type"], whisper.type)
    assert.equal(seen[0]!.headers.authorization, "Bearer sk-vendor-openai")
    const call = await gateway.newest()
    // 3 seconds at 0.60 credits a minute
    assert.equal(call.captured, 30_000n)
    assert.deepInclude(call.usage, { seconds: 3, counted: false })
    assert.equal(call.model, "whisper-1")
    // According to the WAV header a second has 48,000 bytes
    assert.isBelow(Number(call.held), 31_000)
  })

  it("is held for the most expensive model, and charged by its own, if the model follows the file", async () => {
    says({ text: "Hello", usage: tokens })
    const form = fileFirst("gpt-4o-mini-transcribe")
    const response = await send(form)
    assert.equal(response.status, 200)
    assert.isTrue(Buffer.concat(seen[0]!.chunks).equals(form.bytes))
    const call = await gateway.newest()
    assert.equal(call.model, "gpt-4o-mini-transcribe")
    assert.isNull(call.alias)
    // 2 tokens of text and 28 of sound at 125 and 300 credits a million, 9 at 500
    assert.equal(call.captured, 2n * 125n + 28n * 300n + 9n * 500n)
    assert.isTrue(call.held >= 2000n * 1000n)
  })

  it.each([
    ["not sold", "whisper-9", 404, 2006],
    ["of another kind", "gpt-4o", 404, 2006]
  ])(
    "is cut off before its end if the model that follows the file is %s",
    async (_, model, status, code) => {
      const response = await send(fileFirst(model))
      assert.equal(response.status, status)
      assert.deepInclude(await response.json(), { code })
      await until(() => seen.every(({ end }) => end === "broken"))
      const call = await gateway.newest()
      assert.equal(call.outcome, "released")
    }
  )

  it("is streamed to the vendor while the client still sends it", async () => {
    says({ text: "Hello", usage: { type: "duration", seconds: 3 } })
    const request = slowly(whisper)
    const answered = new Promise<number>((resolve) =>
      request.on("response", (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
    )
    const half = whisper.bytes.length >> 1
    request.write(whisper.bytes.subarray(0, half))
    await until(() => Buffer.concat(seen[0]?.chunks ?? []).length === half)
    assert.isUndefined(seen[0]!.end)
    request.end(whisper.bytes.subarray(half))
    assert.equal(await answered, 200)
    assert.equal((await gateway.newest()).captured, 30_000n)
  })

  it("costs nothing if the client leaves before its end, and what was counted after it", async () => {
    const early = slowly(whisper)
    early.write(whisper.bytes.subarray(0, whisper.bytes.length >> 1))
    await until(() => seen.length === 1)
    early.destroy()
    await until(() => seen[0]!.end === "broken")
    assert.equal((await gateway.newest()).outcome, "released")
    answer = () => {}
    const late = slowly(whisper)
    late.end(whisper.bytes)
    await until(() => seen[1]?.end === "whole")
    late.destroy()
    const call = await gateway.newest()
    assert.equal(call.outcome, "settled")
    assert.equal(call.captured, 30_000n)
    assert.deepInclude(call.usage, { seconds: 3, counted: true })
  })

  it.each([
    ["a text", "text/plain; charset=utf-8", "Hello\n"],
    ["subtitles", "text/vtt", "WEBVTT\n\n00:00.000 --> 00:03.000\nHello\n"]
  ])("costs the length of the file without figures: %s", async (_, type, text) => {
    answer = (response) => {
      response.writeHead(200, { "content-type": type })
      response.end(text)
    }
    assert.equal(await (await send(whisper)).text(), text)
    const call = await gateway.newest()
    assert.equal(call.captured, 30_000n)
    assert.deepInclude(call.usage, { seconds: 3, counted: true })
  })

  it("counts a second for each 4,000 bytes of a file that does not show its length", async () => {
    answer = (response) => response.end("Hello\n")
    await (await send(formOf(["model", "whisper-1"], ["file", Buffer.alloc(10_000, 1)]))).text()
    const call = await gateway.newest()
    assert.deepInclude(call.usage, { seconds: 2.5, counted: true })
    assert.equal(call.captured, 25_000n)
  })

  it("the duration of a verbose transcript, and the figures of events, are charged", async () => {
    says({ text: "Hello", duration: "2.5", segments: [] })
    await (await send(whisper)).text()
    assert.equal((await gateway.newest()).captured, 25_000n)
    answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write('data: {"type":"transcript.text.delta","delta":"Hello"}\n\n')
      response.end(`data: ${JSON.stringify({ type: "transcript.text.done", usage: tokens })}\n\n`)
    }
    const form = formOf(["stream", "true"], ["file", wav], ["model", "gpt-4o-transcribe"])
    assert.include(await (await send(form)).text(), "transcript.text.done")
    assert.equal((await gateway.newest()).captured, 2n * 250n + 28n * 600n + 9n * 1000n)
  })

  it("is charged by counted tokens if the model is charged by tokens and its vendor reports only seconds", async () => {
    says({ text: "Hello", duration: 3, segments: [], usage: { type: "duration", seconds: 3 } })
    await (await send(fileFirst("gpt-4o-transcribe-diarize"))).text()
    const call = await gateway.newest()
    // 3 seconds at 10 tokens of sound and 4 of text
    assert.equal(call.captured, 30n * 600n + 12n * 1000n)
    assert.deepInclude(call.usage, { audioInputTokens: 30, outputTokens: 12, counted: true })
  })

  it("costs nothing and is not sent again if the vendor refuses it or breaks off", async () => {
    says({ error: { message: "slow down" } }, 429)
    assert.equal((await send(whisper)).status, 429)
    assert.lengthOf(seen, 1)
    assert.equal((await gateway.newest()).captured, 0n)
    answer = (response) => response.destroy()
    const broken = await send(fileFirst("gpt-transcribe"))
    assert.equal(broken.status, 502)
    assert.lengthOf(seen, 2)
    const call = await gateway.newest()
    assert.equal(call.outcome, "released")
  })

  it.each([
    [
      "it names the model twice",
      formOf(["model", "whisper-1"], ["file", wav], ["model", "whisper-1"]),
      2002
    ],
    ["its model is a file", formOf(["model", Buffer.from("whisper-1")], ["file", wav]), 2002],
    ["its model is empty", formOf(["model", ""], ["file", wav]), 2001],
    [
      "its text is not a form",
      { bytes: Buffer.from("Hello"), type: "multipart/form-data; boundary=x" },
      2002
    ]
  ])("is refused if %s", async (_, form, code) => {
    const response = await send(form)
    assert.equal(response.status, 400)
    assert.deepInclude(await response.json(), { code })
    assert.isFalse(seen.some(({ end }) => end === "whole"))
    await gateway.settled()
  })

  it("cannot be replaced by JSON", async () => {
    const response = await gateway.post(path, { model: "whisper-1" })
    assert.equal(response.status, 415)
  })

  it("is refused above the request's maximum cost before anything is sent", async () => {
    const long = formOf(["model", "whisper-1"], ["file", Buffer.alloc(100_000, 1)])
    const response = await send(long, { "x-service-max-cost": "1.00" })
    assert.equal(response.status, 402)
    assert.lengthOf(seen, 0)
  })

  it("is limited to the key's models, wherever it names its model", async () => {
    const created = await gateway.post("/manage/v1/api-keys", {
      name: "whisper only",
      allowed_models: ["whisper-1"]
    })
    // A key with the scope of its user creates another
    const { key } = (await created.json()) as { key: string }
    const authorization = `Bearer ${key}`
    const refused = await send(fileFirst("gpt-4o-transcribe"), { authorization })
    assert.equal(refused.status, 403)
    says({ text: "Hello", usage: { type: "duration", seconds: 3 } })
    assert.equal((await send(fileFirst("whisper-1"), { authorization })).status, 200)
    const call = await gateway.newest()
    assert.equal(call.model, "whisper-1")
    assert.isBelow(Number(call.held), 31_000)
  })

  it("translations go to their own path", async () => {
    says({ text: "Hello", usage: { type: "duration", seconds: 3 } })
    await send(whisper, {}, "/vendors/openai/v1/audio/translations")
    assert.equal(seen[0]?.url, "/v1/audio/translations")
    assert.equal((await gateway.newest()).route, "POST /v1/audio/translations")
  })
})
