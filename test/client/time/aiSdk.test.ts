import { afterEach, assert, describe, it, vi } from "vitest"
import { createGenerationGateway } from "../../../src/ai-sdk/index.ts"
import { ConnectionError, NotFoundError } from "../../../src/client/index.ts"

/** docs/ai-sdk.md, with responses that a proxy loses */

type Answer = (init: RequestInit) => Response | Promise<Response>

const lost: Answer = () => Promise.reject(new TypeError("fetch failed"))

const cut: Answer = () =>
  new Response(
    new ReadableStream({
      start: (controller) => {
        controller.enqueue(new Uint8Array([1]))
        controller.error(new TypeError("terminated"))
      }
    })
  )

const bytes: Answer = () => new Response(new Uint8Array([1, 2, 3]))
const status =
  (code: number): Answer =>
  () =>
    new Response("", { status: code })

const refusal = { code: 3002, title: "Content Rejected", detail: "The vendor refused the prompt" }
const ids = ["019a0c5e-7f3a-7a00-9e2b-000000000001", "019a0c5e-7f3a-7a00-9e2b-000000000002"]

/** A gateway whose other tasks are completed; downloads, speech and transcripts get these responses. */
const scripted = (answers: ReadonlyArray<Answer>, failedIds: ReadonlyArray<string> = []) => {
  // Without jitter no retry has a delay
  vi.spyOn(Math, "random").mockReturnValue(0)
  const sent: Array<{
    readonly url: URL
    readonly headers: Headers
    readonly body: RequestInit["body"]
  }> = []
  let used = 0
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const url = new URL(String(input))
    sent.push({ url, headers: new Headers(init.headers), body: init.body })
    const [, , , , , action, id] = url.pathname.split("/")
    if (id !== undefined) {
      const isFailed = failedIds.includes(id)
      const status = isFailed ? "failed" : "completed"
      const error = isFailed ? refusal : undefined
      const task_info = { id, status, created_at: "x", updated_at: "x", error }
      const images = action === "generation" ? [`http://media.test/${id}`] : []
      return Response.json({ task_info, images })
    }
    if (url.pathname.startsWith("/v1/images")) {
      const location = `/vendors/alibaba/v1/text-to-image-max/generation/${ids[0]}`
      return Response.json(
        {},
        { status: 202, headers: { location, "x-acme-task-id": ids.join(", ") } }
      )
    }
    return answers[used++]!(init)
  }
  const gateway = createGenerationGateway({
    baseURL: "http://gateway.test",
    apiKey: "sk-test",
    serviceName: "Acme",
    fetch
  })
  const images = () =>
    gateway.imageModel("text-to-image-max").doGenerate({
      prompt: "A lighthouse",
      n: 2,
      size: undefined,
      aspectRatio: undefined,
      seed: undefined,
      files: undefined,
      mask: undefined,
      providerOptions: { generationGateway: { maxCost: "15.00" } }
    })
  return { gateway, images, sent }
}

const failureOf = (work: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(work).then(
    () => assert.fail("It should fail"),
    (error) => error
  )

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

describe("a provider of the AI SDK", () => {
  it("retries lost downloads of paid results, without the key", async () => {
    const { images, sent } = scripted([lost, cut, status(503), bytes, bytes])
    const { images: got } = await images()
    assert.deepStrictEqual(got, [new Uint8Array([1, 2, 3]), new Uint8Array([1, 2, 3])])
    const downloads = sent.filter(({ url }) => url.host === "media.test")
    assert.lengthOf(downloads, 5)
    for (const { headers } of downloads) assert.isNull(headers.get("authorization"))
  })

  it("fails with the client's errors if a download is refused or keeps failing", async () => {
    const refused = scripted([status(404), bytes])
    assert.instanceOf(await failureOf(refused.images()), NotFoundError)
    const away = scripted(Array.from({ length: 10 }, () => lost))
    assert.instanceOf(await failureOf(away.images()), ConnectionError)
  })

  it("returns every image, and sends the maximum cost in a header with the service's name", async () => {
    const { images, sent } = scripted([bytes, bytes])
    assert.lengthOf((await images()).images, 2)
    assert.strictEqual(sent[0]!.headers.get("x-acme-max-cost"), "15.00")
  })

  it("returns the images of the tasks that completed, with a warning for each that failed", async () => {
    const { images } = scripted([bytes], [ids[1]!])
    const { images: got, warnings } = await images()
    assert.deepStrictEqual(got, [new Uint8Array([1, 2, 3])])
    assert.deepStrictEqual(warnings, [
      {
        type: "other",
        message: `Task ${ids[1]} failed: Content Rejected: The vendor refused the prompt (code 3002)`
      }
    ])
    await failureOf(scripted([], ids).images())
  })

  it("encodes lists and objects in a transcription's options as OpenAI's clients do", async () => {
    const { gateway, sent } = scripted([() => Response.json({ text: "Hello" })])
    await gateway.transcriptionModel("gpt-4o-transcribe").doGenerate({
      audio: new Uint8Array([7]),
      mediaType: "audio/wav",
      providerOptions: {
        generationGateway: {
          temperature: 0.2,
          include: ["logprobs"],
          chunking_strategy: { type: "server_vad", threshold: 0.5 }
        }
      }
    })
    const form = sent[0]!.body
    assert.instanceOf(form, FormData)
    assert.deepStrictEqual([...form].slice(0, -1), [
      ["model", "gpt-4o-transcribe"],
      ["temperature", "0.2"],
      ["include[]", "logprobs"],
      ["chunking_strategy[type]", "server_vad"],
      ["chunking_strategy[threshold]", "0.5"]
    ])
  })

  it("waits for speech and transcripts longer than any timeout of the client", async () => {
    vi.useFakeTimers()
    const late =
      (response: () => Response): Answer =>
      ({ signal }) =>
        new Promise((resolve, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason))
          setTimeout(() => resolve(response()), 9 * 60_000)
        })
    const text = () => new Response("Hello", { headers: { "content-type": "text/plain" } })
    const { gateway } = scripted([late(() => new Response(new Uint8Array([7]))), late(text)])
    const speech = gateway.speechModel("tts-1").doGenerate({ text: "Hello" })
    await vi.advanceTimersByTimeAsync(9 * 60_000)
    assert.deepStrictEqual((await speech).audio, new Uint8Array([7]))
    const transcript = gateway.transcriptionModel("whisper-1").doGenerate({
      audio: new Uint8Array([7]),
      mediaType: "audio/wav",
      providerOptions: { generationGateway: { response_format: "text" } }
    })
    await vi.advanceTimersByTimeAsync(9 * 60_000)
    assert.strictEqual((await transcript).text, "Hello")
  })

  it("fails if speech breaks off, and does not retry it", async () => {
    const { gateway, sent } = scripted([cut, bytes])
    const failure = await failureOf(gateway.speechModel("tts-1").doGenerate({ text: "Hello" }))
    assert.instanceOf(failure, ConnectionError)
    assert.lengthOf(sent, 1)
  })
})
