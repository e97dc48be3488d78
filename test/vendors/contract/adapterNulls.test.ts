import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import type { Handle, SubmitRequest, VendorAccount } from "../../../src/vendors/VendorClient.ts"
import type { VendorError } from "../../../src/vendors/VendorError.ts"
import type { VendorHttp } from "../../../src/vendors/VendorHttp.ts"
import { accountAt, jobsLike, request } from "../../support/upstreams/accounts.ts"

/** Some vendors write an absent optional field as `null`: docs/reference/vendors.md#adapters. */

const base = "https://vendor.test"
const picture = (upstreamModel: string) =>
  request("text-to-image-preview", upstreamModel, { prompt: "p", n: 1, size: "1280*1280" })

interface Family {
  readonly order: SubmitRequest
  readonly handle?: Handle
}

const submittedAtMillis = 0
const families: { readonly [adapter in AdapterName]: Family } = {
  "dashscope-async": {
    order: picture("wan2.5-t2i-preview"),
    handle: { taskId: "t", submittedAtMillis }
  },
  "dashscope-sync": {
    order: request("text-to-image-max", "qwen-image-max", { prompt: "p", size: "1664*928" })
  },
  "gemini-image": {
    order: request("image-edit-pro", "gemini-3-pro-image", { prompt: "p" })
  },
  "openai-image": { order: picture("gpt-image-1.5") },
  "openai-video": {
    order: request("text-to-video-spark", "sora-2", { prompt: "p", size: "1280*720" }),
    handle: { id: "v", submittedAtMillis }
  },
  "fal-queue": {
    order: picture("fal-ai/flux/dev"),
    handle: {
      requestId: "r",
      statusUrl: `${base}/status`,
      responseUrl: `${base}/response`,
      cancelUrl: `${base}/cancel`,
      submittedAtMillis
    }
  },
  replicate: {
    order: picture("black-forest-labs/flux-schnell"),
    handle: { id: "p", getUrl: `${base}/p`, cancelUrl: `${base}/p/cancel`, submittedAtMillis }
  }
}

type Act = "submit" | "poll" | "cancel" | "reconcile"

const acts: {
  readonly [act in Act]: (
    account: VendorAccount,
    family: Required<Family>
  ) => Effect.Effect<unknown, VendorError>
} = {
  submit: (account, { order }) => account.submit(order),
  poll: (account, { handle }) => account.poll(handle),
  cancel: (account, { handle }) => account.cancel(handle),
  reconcile: (account, { order }) => jobsLike(account, order, 0)
}

/** `[adapter, request, status, response, expected text in the outcome]` */
type Row = readonly [AdapterName, Act, number, object, string]

const url = "https://a.test/1.png"
const unknownCode = { code: null, message: null }
const rows: ReadonlyArray<Row> = [
  ...(["dashscope-async", "dashscope-sync"] as const).map((adapter): Row => [
    adapter,
    "submit",
    400,
    { code: "Arrearage", message: null, request_id: null },
    "OPERATOR"
  ]),
  [
    "dashscope-async",
    "poll",
    200,
    { request_id: null, output: { task_status: "RUNNING", video_url: null, results: null } },
    "Running"
  ],
  [
    "dashscope-async",
    "poll",
    200,
    {
      request_id: null,
      output: {
        task_status: "SUCCEEDED",
        video_url: null,
        results: [{ url, ...unknownCode }],
        ...unknownCode
      }
    },
    url
  ],
  [
    "dashscope-async",
    "poll",
    200,
    {
      request_id: null,
      output: {
        task_status: "SUCCEEDED",
        video_url: "https://a.test/v.mp4",
        results: null,
        ...unknownCode
      }
    },
    "v.mp4"
  ],
  [
    "dashscope-async",
    "poll",
    200,
    {
      request_id: null,
      output: {
        task_status: "SUCCEEDED",
        results: [{ url: null, code: "DataInspectionFailed", message: null }]
      }
    },
    "CONTENT"
  ],
  [
    "dashscope-async",
    "poll",
    200,
    { request_id: null, output: { task_status: "FAILED", ...unknownCode } },
    "FAILED"
  ],
  [
    "dashscope-async",
    "reconcile",
    200,
    { data: [{ task_id: "t", model_name: null, gmt_create: 0 }], total_page: null },
    '"jobId":"t"'
  ],
  ["dashscope-async", "reconcile", 200, { data: null, total_page: null }, "[]"],
  [
    "dashscope-sync",
    "submit",
    200,
    {
      request_id: null,
      output: { choices: [{ message: { content: [{ image: null }, { image: url }] } }] }
    },
    url
  ],
  [
    "gemini-image",
    "submit",
    200,
    {
      responseId: null,
      promptFeedback: null,
      candidates: [
        {
          content: {
            parts: [
              { inlineData: null, text: "t", thought: null },
              { inlineData: { mimeType: "image/png", data: "AAAA" }, text: null, thought: null }
            ]
          },
          finishReason: null,
          finishMessage: null
        }
      ]
    },
    "Bytes"
  ],
  [
    "gemini-image",
    "submit",
    200,
    {
      responseId: null,
      promptFeedback: { blockReason: "SAFETY", blockReasonMessage: null },
      candidates: null
    },
    "CONTENT"
  ],
  [
    "gemini-image",
    "submit",
    200,
    {
      promptFeedback: { blockReason: null, blockReasonMessage: null },
      candidates: [{ content: null, finishReason: "NO_IMAGE", finishMessage: null }]
    },
    "FAILED"
  ],
  [
    "gemini-image",
    "submit",
    200,
    { candidates: [{ content: { parts: null }, finishReason: "SAFETY" }] },
    "CONTENT"
  ],
  [
    "gemini-image",
    "submit",
    429,
    { error: { message: null, status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: null }] } },
    "RESOURCE_EXHAUSTED"
  ],
  [
    "gemini-image",
    "submit",
    400,
    { error: { message: null, status: "OUT_OF_RANGE", details: null } },
    "OUT_OF_RANGE"
  ],
  ["gemini-image", "submit", 503, { error: { message: "said so", status: null } }, "RETRYABLE"],
  [
    "openai-image",
    "submit",
    200,
    {
      data: [
        { b64_json: null, url },
        { b64_json: "AAAA", url: null }
      ],
      output_format: null
    },
    url
  ],
  ["openai-image", "submit", 200, { data: null, output_format: null }, "FAILED"],
  ...(["openai-image", "openai-video"] as const).map((adapter): Row => [
    adapter,
    "submit",
    400,
    { error: { message: null, type: null, code: "moderation_blocked" } },
    "CONTENT"
  ]),
  [
    "openai-image",
    "submit",
    400,
    { error: { message: null, type: "moderation_blocked", code: null } },
    "CONTENT"
  ],
  ...(["submit", "poll"] as const).map((act): Row => [
    "openai-video",
    act,
    200,
    { id: "v", status: "queued", model: null, prompt: null, created_at: null, error: null },
    act === "submit" ? "Accepted" : "Running"
  ]),
  [
    "openai-video",
    "poll",
    200,
    { id: "v", status: "failed", error: { code: null, message: null } },
    "FAILED"
  ],
  [
    "openai-video",
    "reconcile",
    200,
    {
      data: [
        { id: "v", status: "queued", model: null, prompt: "p", created_at: null, error: null }
      ],
      has_more: null
    },
    '"jobId":"v"'
  ],
  [
    "fal-queue",
    "submit",
    200,
    { request_id: "r", status_url: null, response_url: null, cancel_url: null },
    "Accepted"
  ],
  ["fal-queue", "submit", 422, { detail: [{ msg: null, type: "file_too_large" }] }, "MEDIA"],
  ["fal-queue", "submit", 422, { detail: [{ msg: "said so", type: null }] }, "said so"],
  ["fal-queue", "poll", 202, { status: "IN_QUEUE", error: null, error_type: null }, "Running"],
  [
    "fal-queue",
    "poll",
    200,
    { status: "COMPLETED", error: "it broke", error_type: null },
    "FAILED"
  ],
  // The same response is used for the status and for the result
  [
    "fal-queue",
    "poll",
    200,
    { status: "COMPLETED", error: null, error_type: null, images: [{ url, content_type: null }] },
    url
  ],
  ...(["submit", "poll"] as const).map((act): Row => [
    "replicate",
    act,
    201,
    { id: "p", status: "starting", output: null, error: null, urls: null },
    act === "submit" ? "Accepted" : "Running"
  ]),
  [
    "replicate",
    "submit",
    201,
    { id: "p", status: "starting", urls: { get: null, cancel: null } },
    "Accepted"
  ],
  [
    "replicate",
    "poll",
    200,
    { id: "p", status: "succeeded", output: [url], error: null, urls: null },
    url
  ],
  ["replicate", "poll", 200, { id: "p", status: "failed", error: null, urls: null }, "FAILED"],
  ["replicate", "cancel", 200, { id: "p", status: "canceled", urls: null }, "Canceled"],
  [
    "replicate",
    "reconcile",
    200,
    {
      results: [
        {
          id: "p",
          created_at: new Date(0).toISOString(),
          model: null,
          version: null,
          input: null
        },
        {
          id: "q",
          created_at: new Date(0).toISOString(),
          input: { prompt: null }
        }
      ],
      next: null
    },
    '"jobId":"q"'
  ]
]

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** The same response without its nulls. */
const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, it]) => (it === null ? [] : [[key, withoutNulls(it)]]))
  )
}

/** The result of an account whose vendor always returns this response, as JSON. */
const outcomeOf = Effect.fnUntraced(function* ([adapter, act, status]: Row, json: unknown) {
  const body = new TextEncoder().encode(JSON.stringify(json))
  const http: VendorHttp = () => Effect.succeed({ status, headers: {}, body })
  const { handle = {}, order } = families[adapter]
  const account = yield* accountAt(adapter, base, "key", { http })
  return yield* acts[act](account, { handle, order }).pipe(
    Effect.catch((error) => Effect.succeed({ ...error, message: error.message })),
    Effect.map((outcome) => JSON.stringify(outcome))
  )
})

describe("an optional field of a vendor's response that is null counts as absent", () => {
  for (const row of rows) {
    const [adapter, act, status, json, expected] = row
    it.effect(`${adapter}, ${act}: ${status} ${JSON.stringify(json).slice(0, 80)}`, () =>
      Effect.gen(function* () {
        const outcome = yield* outcomeOf(row, json)
        assert.include(outcome, expected)
        assert.strictEqual(outcome, yield* outcomeOf(row, withoutNulls(json)))
      })
    )
  }
})
