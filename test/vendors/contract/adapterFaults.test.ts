import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { gemini } from "../../../src/testing/vendors/GeminiProtocol.ts"
import { openai } from "../../../src/testing/vendors/OpenAiProtocol.ts"
import { replicate } from "../../../src/testing/vendors/ReplicateProtocol.ts"
import type { SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import type { VendorErrorClass } from "../../../src/vendors/VendorError.ts"
import { accountAt, request } from "../../support/upstreams/accounts.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import type { Protocol, Reply } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#error-classes: what each response of a vendor means. */

/** `[name, response, meaning, requested wait in milliseconds]` */
type Row = readonly [string, Reply, VendorErrorClass, number?]
/** The meaning of a job's response: an error class, `Running`, or the number of results. */
type JobRow = readonly [string, object, VendorErrorClass | "Running" | number]

const body = (json: object, status = 200): Reply => ({ status, json })
const dash = (status: number, code: string, message = "said so"): Reply =>
  body({ code, message, request_id: "r" }, status)
const dashTask = (output: object, usage: object = {}) => ({ request_id: "r", output, usage })
const google = (code: number, status: string, message = "said so", details: object[] = []) =>
  body({ error: { code, message, status, details } }, code)
const finished = (finishReason: string) => body({ candidates: [{ finishReason }] })
const blocked = (blockReason: string) => body({ promptFeedback: { blockReason } })
const open = (
  status: number,
  type: string,
  code: string | null,
  headers: Record<string, string> = {},
  message = "said so"
): Reply => ({ status, headers, json: { error: { message, type, param: null, code } } })
const falDetail = (status: number, type: string) =>
  body({ detail: [{ loc: ["body"], msg: "said so", type }] }, status)
const detail = (status: number, text: string, headers: Record<string, string> = {}): Reply => ({
  status,
  headers,
  json: { detail: text }
})

const all = (
  codes: ReadonlyArray<string>,
  status: number,
  kind: VendorErrorClass
): ReadonlyArray<Row> => codes.map((code) => [`${status} ${code}`, dash(status, code), kind])

const dashScopeSubmits: ReadonlyArray<Row> = [
  ...all(
    [
      "InvalidParameter",
      "BadRequest.TooLarge",
      "InvalidImageResolution",
      "InvalidImageFormat",
      "InvalidImage.ImageSize",
      "InvalidFile.Size",
      "InvalidURL"
    ],
    400,
    "FATAL_CLIENT"
  ),
  ...all(
    ["DataInspectionFailed", "IPInfringementSuspect", "CustomRoleBlocked", "FaqRuleBlocked"],
    400,
    "CONTENT"
  ),
  ...all(
    [
      "InvalidParameter.DataInspection",
      "InvalidURL.Timeout",
      "InvalidURL.ConnectionRefused",
      "BadRequest.InputDownloadFailed"
    ],
    400,
    "MEDIA"
  ),
  ...all(["Arrearage"], 400, "OPERATOR"),
  ...all(["InvalidApiKey"], 401, "OPERATOR"),
  ...all(
    [
      "AccessDenied",
      "AccessDenied.Unpurchased",
      "Model.AccessDenied",
      "Workspace.AccessDenied",
      "AllocationQuota.FreeTierOnly"
    ],
    403,
    "OPERATOR"
  ),
  ...all(["ModelNotFound", "model_not_found"], 404, "GONE"),
  ["400 of an unknown model", dash(400, "InvalidParameter", "Model not exist."), "GONE"],
  [
    "400 that quotes a client's words about a model",
    dash(400, "InvalidParameter", "prompt is invalid: model not exist"),
    "FATAL_CLIENT"
  ],
  ["410", dash(410, "Gone", "said so"), "GONE"],
  ...all(["PrepaidBillOverdue", "PostpaidBillOverdue", "CommodityNotPurchased"], 429, "OPERATOR"),
  ...all(
    [
      "Throttling",
      "Throttling.RateQuota",
      "Throttling.BurstRate",
      "LimitRequests",
      "Throttling.AllocationQuota"
    ],
    429,
    "RATE_LIMITED"
  ),
  [
    "429 Throttling.AllocationQuota of the free quota",
    dash(429, "Throttling.AllocationQuota", "Free allocated quota exceeded."),
    "OPERATOR"
  ],
  ...all(
    [
      "InternalError",
      "InternalError.Algo",
      "InternalError.Upload",
      "InternalError.Timeout",
      "SystemError",
      "ModelServiceFailed",
      "RewriteFailed",
      "RequestTimeOut"
    ],
    500,
    "RETRYABLE"
  ),
  ...all(["ModelServingError", "ModelUnavailable"], 503, "RETRYABLE"),
  ["500 of an unknown code", dash(500, "Whatever"), "RETRYABLE"],
  ["400 of an unknown code", dash(400, "Whatever"), "FATAL_CLIENT"]
]

const dashScopeJobs: ReadonlyArray<JobRow> = [
  ...["PENDING", "RUNNING", "SUSPENDED"].map((status): JobRow => [
    status,
    dashTask({ task_status: status }),
    "Running"
  ]),
  [
    "SUCCEEDED with pictures",
    dashTask({ task_status: "SUCCEEDED", results: [{ url: "https://a.test/1" }] }),
    1
  ],
  [
    "SUCCEEDED with some of the pictures",
    dashTask({
      task_status: "SUCCEEDED",
      results: [
        { url: "https://a.test/1" },
        { code: "DataInspectionFailed", message: "no" },
        { url: "https://a.test/2" }
      ]
    }),
    2
  ],
  [
    "SUCCEEDED with a video",
    dashTask({ task_status: "SUCCEEDED", video_url: "https://a.test/v.mp4" }),
    1
  ],
  [
    "SUCCEEDED with only refusals: the first one's code",
    dashTask({ task_status: "SUCCEEDED", results: [{ code: "DataInspectionFailed" }] }),
    "CONTENT"
  ],
  ["SUCCEEDED with nothing", dashTask({ task_status: "SUCCEEDED", results: [] }), "FAILED"],
  ["CANCELED", dashTask({ task_status: "CANCELED" }), "FAILED"],
  [
    "UNKNOWN, for a task that existed a moment ago",
    dashTask({ task_status: "UNKNOWN" }),
    "Running"
  ],
  ...(
    [
      ["InvalidParameter", "FATAL_CLIENT"],
      ["DataInspectionFailed", "CONTENT"],
      ["InvalidURL.Timeout", "MEDIA"],
      ["Arrearage", "OPERATOR"],
      ["InternalError.Algo", "FAILED"],
      ["InternalError.Timeout", "TIMEOUT"],
      ["Whatever", "FAILED"]
    ] as const
  ).map(([code, kind]): JobRow => [
    `FAILED ${code}`,
    dashTask({ task_status: "FAILED", code, message: "said so" }),
    kind
  ])
]

const geminiSubmits: ReadonlyArray<Row> = [
  ...["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"].map((reason): Row => [
    `blockReason ${reason}`,
    blocked(reason),
    "CONTENT"
  ]),
  ...[
    "SAFETY",
    "IMAGE_SAFETY",
    "PROHIBITED_CONTENT",
    "IMAGE_PROHIBITED_CONTENT",
    "BLOCKLIST",
    "SPII",
    "RECITATION",
    "IMAGE_RECITATION"
  ].map((reason): Row => [`finishReason ${reason}`, finished(reason), "CONTENT"]),
  ...["NO_IMAGE", "IMAGE_OTHER", "OTHER", "MAX_TOKENS", "STOP"].map((reason): Row => [
    `finishReason ${reason} without a picture`,
    finished(reason),
    "FAILED"
  ]),
  [
    "429 with RetryInfo",
    google(429, "RESOURCE_EXHAUSTED", "said so", [
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "46s" }
    ]),
    "RATE_LIMITED",
    46_000
  ],
  [
    "429 with the wait in its message",
    google(429, "RESOURCE_EXHAUSTED", "Quota exceeded. Please retry in 12.5s."),
    "RATE_LIMITED",
    12_500
  ],
  ["500", google(500, "INTERNAL"), "RETRYABLE"],
  ["503", google(503, "UNAVAILABLE"), "RETRYABLE"],
  ["504", google(504, "DEADLINE_EXCEEDED"), "RETRYABLE"],
  ["400 INVALID_ARGUMENT", google(400, "INVALID_ARGUMENT"), "FATAL_CLIENT"],
  ["400 FAILED_PRECONDITION", google(400, "FAILED_PRECONDITION"), "FATAL_CLIENT"],
  [
    "400 FAILED_PRECONDITION about billing",
    google(400, "FAILED_PRECONDITION", "Please enable billing on your project"),
    "OPERATOR"
  ],
  [
    "400 about the key",
    google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "OPERATOR"
  ],
  [
    "400 that quotes a client's words about a key",
    google(400, "INVALID_ARGUMENT", 'Invalid value "API key not found" of a field'),
    "FATAL_CLIENT"
  ],
  ["403", google(403, "PERMISSION_DENIED"), "OPERATOR"],
  ["404", google(404, "NOT_FOUND"), "GONE"],
  [
    "400 of a removed model",
    google(400, "INVALID_ARGUMENT", "This model models/gemini-x is no longer available."),
    "GONE"
  ],
  ["410", google(410, "FAILED_PRECONDITION"), "GONE"]
]

const openAiSubmits: ReadonlyArray<Row> = [
  [
    "429 with Retry-After in seconds",
    open(429, "requests", "rate_limit_exceeded", { "retry-after": "20" }),
    "RATE_LIMITED",
    20_000
  ],
  [
    "429 with retry-after-ms, which has precedence",
    open(429, "requests", "rate_limit_exceeded", { "retry-after-ms": "1500", "retry-after": "2" }),
    "RATE_LIMITED",
    1500
  ],
  ["429 without", open(429, "tokens", "rate_limit_exceeded"), "RATE_LIMITED"],
  ["429 insufficient_quota", open(429, "insufficient_quota", "insufficient_quota"), "OPERATOR"],
  ["401", open(401, "invalid_request_error", "invalid_api_key"), "OPERATOR"],
  [
    "403 of an unsupported country",
    open(403, "request_forbidden", "unsupported_country_region_territory"),
    "OPERATOR"
  ],
  ["404 of a model", open(404, "invalid_request_error", "model_not_found"), "GONE"],
  ["404 of a route", open(404, "invalid_request_error", null, {}, "Invalid URL"), "GONE"],
  [
    "400 of a model, only in its text",
    open(
      400,
      "invalid_request_error",
      null,
      {},
      "The model `dall-e-3` has been deprecated, learn more here: https://a.test"
    ),
    "GONE"
  ],
  ["410", open(410, "invalid_request_error", null), "GONE"],
  [
    "400 moderation_blocked",
    open(400, "image_generation_user_error", "moderation_blocked"),
    "CONTENT"
  ],
  [
    "400 content_policy_violation",
    open(400, "invalid_request_error", "content_policy_violation"),
    "CONTENT"
  ],
  [
    "400 of the safety system, only in its text",
    open(400, "invalid_request_error", null, {}, "Your request was rejected by our safety system."),
    "CONTENT"
  ],
  ["400 of a parameter", open(400, "invalid_request_error", "invalid_value"), "FATAL_CLIENT"],
  ["500", open(500, "server_error", "server_error"), "RETRYABLE"],
  ["503", open(503, "service_unavailable_error", "slow_down"), "RETRYABLE"]
]

const openAiJobs: ReadonlyArray<JobRow> = [
  ...["queued", "in_progress"].map((status): JobRow => [status, { id: "v", status }, "Running"]),
  ["completed", { id: "v", status: "completed", error: null }, 1],
  [
    "failed",
    { id: "v", status: "failed", error: { code: "server_error", message: "m" } },
    "FAILED"
  ],
  [
    "failed for its content",
    { id: "v", status: "failed", error: { code: "moderation_blocked", message: "m" } },
    "CONTENT"
  ]
]

const falSubmits: ReadonlyArray<Row> = [
  ["422 of a field", falDetail(422, "missing"), "FATAL_CLIENT"],
  ["422 content_policy_violation", falDetail(422, "content_policy_violation"), "CONTENT"],
  ["422 file_download_error", falDetail(422, "file_download_error"), "MEDIA"],
  [
    "422 that quotes a client's words about a bill",
    body(
      { detail: [{ msg: "unreadable: https://a.test/billing.png", type: "image_too_small" }] },
      422
    ),
    "FATAL_CLIENT"
  ],
  ["422 image_load_error", falDetail(422, "image_load_error"), "MEDIA"],
  ["429", detail(429, "Too many requests", { "retry-after": "3" }), "RATE_LIMITED", 3000],
  ["401", detail(401, "Unauthorized"), "OPERATOR"],
  [
    "403 of an empty account",
    detail(403, "User is locked. Reason: Exhausted balance."),
    "OPERATOR"
  ],
  ["404 of the app", detail(404, "Application not found"), "GONE"],
  ["410", detail(410, "Endpoint is gone"), "GONE"],
  ...[400, 410, 422, 500].map((status): Row => [
    `${status} of a deprecated endpoint`,
    body({ detail: { error: "EndpointDeprecated", message: "no longer supported" } }, status),
    "GONE"
  ]),
  ["500 in its own words", detail(500, "Internal server error"), "RETRYABLE"],
  ["502 in its own words", detail(502, "Bad gateway"), "RETRYABLE"],
  ["503 in its own words", detail(503, "Unavailable"), "RETRYABLE"],
  [
    "504 in its own words",
    detail(504, "Timed out", { "x-fal-error-type": "request_timeout" }),
    "RETRYABLE"
  ]
]

const falJobs: ReadonlyArray<JobRow> = [
  ...["IN_QUEUE", "IN_PROGRESS"].map((status): JobRow => [status, { status }, "Running"]),
  ["COMPLETED with an error", { status: "COMPLETED", error: "It broke" }, "FAILED"],
  [
    "COMPLETED with an error that quotes the client",
    { status: "COMPLETED", error: "cannot load https://a.test/billing.png" },
    "FAILED"
  ],
  [
    "COMPLETED with a time-out",
    { status: "COMPLETED", error: "late", error_type: "generation_timeout" },
    "TIMEOUT"
  ],
  [
    "COMPLETED with a refusal",
    { status: "COMPLETED", error: "no", error_type: "content_policy_violation" },
    "CONTENT"
  ]
]

const replicateSubmits: ReadonlyArray<Row> = [
  ["401", detail(401, "Invalid token."), "OPERATOR"],
  ["402", detail(402, "Insufficient credit."), "OPERATOR"],
  ["404 of the model", detail(404, "The requested resource could not be found."), "GONE"],
  ["410", detail(410, "This model is gone"), "GONE"],
  [
    "422 of the version",
    detail(422, "The specified version does not exist (or perhaps you don't have permission)"),
    "GONE"
  ],
  ["422", detail(422, "- input: prompt is required"), "FATAL_CLIENT"],
  ["422 flagged", detail(422, "The input was flagged as sensitive. (E005)"), "CONTENT"],
  ["422 of a medium", detail(422, "Failed to download the input image"), "MEDIA"],
  [
    "422 that quotes a client's words about a bill",
    detail(422, "- input.image: https://a.test/billing.png is no picture"),
    "FATAL_CLIENT"
  ],
  ["429", detail(429, "Request was throttled.", { "retry-after": "6" }), "RATE_LIMITED", 6000],
  ["500 in its own words", detail(500, "Internal error"), "RETRYABLE"],
  ["503 in its own words", detail(503, "Please try again"), "RETRYABLE"]
]

const prediction = (status: string, more: object = {}) => ({ id: "p", status, ...more })
const replicateJobs: ReadonlyArray<JobRow> = [
  ...["starting", "processing"].map((status): JobRow => [status, prediction(status), "Running"]),
  ["succeeded with a list", prediction("succeeded", { output: ["https://a.test/1.png"] }), 1],
  ["succeeded with one URL", prediction("succeeded", { output: "https://a.test/1.png" }), 1],
  ["succeeded with nothing", prediction("succeeded", { output: null }), "FAILED"],
  ["failed", prediction("failed", { error: "CUDA out of memory" }), "FAILED"],
  ["failed for its content", prediction("failed", { error: "NSFW content detected" }), "CONTENT"],
  // The message quotes a URL chosen by the client, and an operator fault would refuse everyone's creates
  [
    "failed with text that quotes the client",
    prediction("failed", { error: "404 Not Found for url: https://a.test/billing.png" }),
    "FAILED"
  ],
  ["canceled", prediction("canceled"), "FAILED"]
]

interface Table {
  readonly adapter: AdapterName
  readonly protocol: Protocol
  readonly base: string
  readonly request: SubmitRequest
  readonly submits: ReadonlyArray<Row>
  readonly jobs: ReadonlyArray<JobRow>
  /** The vendor's response for an unknown job. */
  readonly unknown?: Reply
}

const picture = (upstreamModel: string) =>
  request("text-to-image-preview", upstreamModel, { prompt: "p", n: 1, size: "1280*1280" })

const tables: ReadonlyArray<Table> = [
  {
    adapter: "dashscope-async",
    protocol: dashscope,
    base: "/api/v1",
    request: picture("wan2.5-t2i-preview"),
    submits: dashScopeSubmits,
    jobs: dashScopeJobs
  },
  {
    adapter: "dashscope-sync",
    protocol: dashscope,
    base: "/api/v1",
    request: request("text-to-image-max", "qwen-image-max", { prompt: "p", size: "1664*928" }),
    submits: dashScopeSubmits,
    jobs: []
  },
  {
    adapter: "gemini-image",
    protocol: gemini,
    base: "",
    request: request("image-edit-pro", "gemini-3-pro-image", { prompt: "p" }),
    submits: geminiSubmits,
    jobs: []
  },
  {
    adapter: "openai-image",
    protocol: openai,
    base: "/v1",
    request: picture("gpt-image-1.5"),
    submits: openAiSubmits,
    jobs: []
  },
  {
    adapter: "openai-video",
    protocol: openai,
    base: "/v1",
    request: request("text-to-video-spark", "sora-2", { prompt: "p", size: "1280*720" }),
    submits: openAiSubmits,
    jobs: openAiJobs,
    unknown: open(404, "invalid_request_error", null)
  },
  {
    adapter: "fal-queue",
    protocol: fal,
    base: "",
    request: picture("fal-ai/flux/dev"),
    submits: falSubmits,
    jobs: falJobs,
    unknown: detail(404, "Request not found")
  },
  {
    adapter: "replicate",
    protocol: replicate,
    base: "/v1",
    request: picture("black-forest-labs/flux-schnell"),
    submits: replicateSubmits,
    jobs: replicateJobs,
    unknown: detail(404, "The requested resource could not be found.")
  }
]

for (const { adapter, base, jobs, protocol, request, submits, unknown } of tables) {
  describe(`the responses of ${adapter}`, () => {
    let upstream: Upstream
    beforeAll(async () => {
      upstream = await Upstream.start(protocol)
    })
    beforeEach(() => upstream.reset())
    afterAll(() => upstream.close())

    const connect = Effect.suspend(() => accountAt(adapter, `${upstream.url}${base}`, upstream.key))

    for (const [what, reply, kind, wait] of submits) {
      it.effect(`to a submit: ${what} is ${kind}`, () =>
        Effect.gen(function* () {
          upstream.submitFaults = [reply]
          const error = yield* Effect.flip((yield* connect).submit(request))
          assert.strictEqual(error.class, kind, error.message)
          assert.strictEqual(error.retryAfterMillis, wait)
        })
      )
    }

    for (const [what, json, expected] of jobs) {
      it.effect(`about a job: ${what} is ${expected}`, () =>
        Effect.gen(function* () {
          const account = yield* connect
          const submitted = yield* account.submit(request)
          assert(submitted._tag === "Accepted")
          upstream.askFaults = [body(json)]
          const outcome = yield* account.poll(submitted.handle).pipe(
            Effect.map((it) => (it._tag === "Done" ? it.result.items.length : it._tag)),
            Effect.catch((error) => {
              // The job has failed, not the poll: it is not polled again
              assert.isUndefined(error.httpStatus)
              return Effect.succeed(error.class)
            })
          )
          assert.strictEqual(outcome, expected)
        })
      )
    }

    if (unknown !== undefined) {
      it.effect("about a job that the vendor no longer knows are LOST", () =>
        Effect.gen(function* () {
          const account = yield* connect
          const submitted = yield* account.submit(request)
          assert(submitted._tag === "Accepted")
          upstream.askFaults = [unknown]
          const error = yield* Effect.flip(account.poll(submitted.handle))
          assert.strictEqual(error.class, "LOST", error.message)
        })
      )
    }
  })
}
