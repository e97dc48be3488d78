import type { Schemas } from "../../src/console/api/schema.ts"
import { contentOf, settings } from "./contentData.ts"
import { operatorDataAt, operatorScreens } from "./operatorData.ts"

/** Fixed responses of a gateway to the console: one user's data, in the types of the API. */

export const now = "2026-11-22T10:00:00.000Z"

const userId = "019a0c5e-0000-7000-8000-000000000001"
const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
const catalog = "9f86d081884c7d65"
const at = (time: string) => `2026-11-22T${time}.000Z`
const page = <T>(data: ReadonlyArray<T>) => ({ data, next_cursor: null })

export const service: Schemas["Service"] = {
  name: "Service",
  sandbox: false,
  oidc: true,
  passkeys: true,
  top_up_url: null
}

export const sessionOf = (role: "user" | "operator"): Schemas["Session"] => ({
  id: "ses_1",
  role,
  user: role === "user" ? { id: userId, email: "ada@example.com", name: "Ada" } : null,
  method: "link",
  current: true,
  address: "192.0.2.7",
  created_at: at("08:00:00"),
  last_seen_at: at("09:59:00"),
  expires_at: at("21:59:00")
})

const user: Schemas["User"] = {
  id: userId,
  email: "ada@example.com",
  name: "Ada",
  created_at: "2026-10-01T08:00:00.000Z",
  disabled: false,
  trigger_threshold: "100.00",
  rate_limit_per_minute: null,
  concurrent_tasks: null
}

export const wallet: Schemas["Wallet"] = {
  available_balance: "4287.50",
  settled_balance: "4310.00",
  held_balance: "22.50",
  trigger_threshold: "500.00",
  currency: "credits",
  state: "NORMAL"
}

const taskId = (n: number) => `019a0c5e-7f3a-7a00-9e2b-00000000000${n}`

const receipt = (held: string, captured: string, released: string) => ({
  held,
  captured,
  released,
  currency: "credits" as const
})

const task = (n: number, fields: Partial<Schemas["TaskListItem"]>): Schemas["TaskListItem"] => ({
  id: taskId(n),
  vendor: "alibaba",
  model: "text-to-image-max",
  action: "generation",
  status: "completed",
  error: null,
  sandbox: false,
  receipt: receipt("0.00", "7.50", "0.00"),
  catalog,
  key_name: "Shop",
  trace_id: trace,
  created_at: at("09:41:02"),
  started_at: at("09:41:03"),
  ended_at: at("09:41:06"),
  ...fields
})

const artifact = (n: number) =>
  `https://gateway.test/artifacts/art_${String(n).padStart(32, "0")}?expires=1&signature=1`

const preview = (n: number, count = 1) => ({
  kind: "images" as const,
  url: artifact(n),
  expires_at: "2026-11-23T09:41:06.000Z",
  count
})

const tasks: ReadonlyArray<Schemas["TaskListItem"]> = [
  task(5, {
    model: "image-to-video-spark",
    prompt: "The boats leave the harbor, slow pan to the left",
    status: "processing",
    receipt: receipt("22.50", "0.00", "0.00"),
    created_at: at("09:58:40"),
    started_at: at("09:58:41"),
    ended_at: null
  }),
  task(4, {
    prompt: "A lighthouse at dawn",
    preview: preview(1),
    created_at: at("09:41:02")
  }),
  task(3, {
    model: "image-edit",
    prompt: "Replace the sky with heavy clouds and let the sea look rough",
    key_name: "Back office",
    status: "failed",
    error: { code: 3001, title: "Content Error", detail: "The picture was refused" },
    receipt: receipt("0.00", "0.00", "3.00"),
    created_at: at("09:20:11"),
    started_at: at("09:20:12"),
    ended_at: at("09:20:19")
  }),
  task(2, {
    prompt: "A poster of a jazz concert, bold shapes, three colors",
    preview: preview(2, 2),
    created_at: at("08:55:30"),
    started_at: at("08:55:31"),
    ended_at: at("08:55:34")
  }),
  task(1, {
    vendor: "google",
    model: "image-edit-pro",
    prompt: "A red scarf for the fisherman",
    preview: preview(1),
    action: "edit",
    receipt: receipt("0.00", "13.40", "0.00"),
    created_at: at("08:12:00"),
    started_at: at("08:12:01"),
    ended_at: at("08:12:12")
  })
]

const attempt = (
  n: number,
  fields: Partial<Schemas["VendorAttempt"]>
): Schemas["VendorAttempt"] => ({
  n,
  vendor: "dashscope",
  account_id: "dashscope-1",
  state: "submitted",
  failure_class: null,
  started_at: at(`09:41:0${n + 2}`),
  answered_at: at(`09:41:0${n + 2}`),
  ...fields
})

const entry = (
  seq: number,
  kind: Schemas["WalletEntry"]["kind"],
  fields: Partial<Schemas["WalletEntry"]>
): Schemas["WalletEntry"] => ({
  seq,
  kind,
  amount: "7.50",
  settled_after: "4310.00",
  held_after: "22.50",
  task_id: taskId(4),
  note: null,
  trace_id: trace,
  created_at: at("09:41:06"),
  ...fields
})

const entries: ReadonlyArray<Schemas["WalletEntry"]> = [
  entry(8, "hold", { amount: "22.50", task_id: taskId(5), created_at: at("09:58:40") }),
  entry(7, "capture", { held_after: "0.00" }),
  entry(6, "hold", {
    settled_after: "4317.50",
    held_after: "7.50",
    created_at: at("09:41:02")
  }),
  entry(5, "release", {
    amount: "3.00",
    settled_after: "4317.50",
    held_after: "0.00",
    task_id: taskId(3),
    created_at: at("09:20:19")
  }),
  entry(1, "top_up", {
    amount: "5000.00",
    settled_after: "5000.00",
    held_after: "0.00",
    task_id: null,
    note: "Invoice 2026-114",
    created_at: "2026-11-01T09:00:00.000Z"
  })
]

const endpointId = "whe_019a0c5e7f3a7a009e2b000000000001"
const deliveryId = (n: number) => `whd_019a0c5e7f3a7a009e2b00000000000${n}`
const eventId = (n: number) => `evt_019a0c5e7f3a7a009e2b00000000000${n}`

/** The values in the fields of the debugger's picture. */
export const received = {
  secret: "whsec_of-the-documentation",
  headers: [
    `X-Service-Webhook-Id: ${deliveryId(4)}`,
    "X-Service-Webhook-Timestamp: 1795341600",
    "X-Service-Webhook-Signature: v1=6f1ed002ab5595859014ebf0951522d9a1d3a2e8f3b1c4d5e6f708192a3b4c5d"
  ].join("\n"),
  body: `{ "type": "task.succeeded" }`
}

const eventBody = JSON.stringify({
  id: eventId(2),
  type: "task.succeeded",
  created_at: at("09:41:06"),
  data: {
    vendor: "alibaba",
    model_name: "text-to-image-max",
    payload: { task_info: { id: taskId(4), status: "completed" }, images: [artifact(1)] }
  }
})

export const timeline: Schemas["TaskTimeline"] = {
  ...task(4, {}),
  body: { prompt: "A lighthouse at dawn", size: "1664*928", prompt_extend: true },
  inputs: [],
  result_kind: "images",
  result: [artifact(1)],
  moves: [
    { status: "pending", at: at("09:41:02"), trace_id: trace },
    { status: "processing", at: at("09:41:03"), trace_id: trace },
    { status: "completed", at: at("09:41:06"), trace_id: trace }
  ],
  attempts: [attempt(1, {})],
  entries: entries.slice(1, 3).toReversed(),
  deliveries: [
    {
      id: deliveryId(2),
      endpoint_id: endpointId,
      webhook_url: null,
      event_id: eventId(2),
      type: "task.succeeded",
      status: "pending",
      trace_id: trace,
      created_at: at("09:41:06"),
      updated_at: at("09:41:07"),
      attempts: [
        {
          seq: 1,
          due_at: at("09:41:06"),
          started_at: at("09:41:06"),
          ended_at: at("09:41:07"),
          status: 500,
          failure: "http_status"
        }
      ]
    }
  ]
}

/** The same in the form of the task's GET. */
export const taskResult = {
  task_info: { id: taskId(4), status: "completed" },
  images: [artifact(1)]
}

/** Refused once, then failed by the vendor. */
export const failedTask: Schemas["TaskTimeline"] = {
  ...timeline,
  ...task(3, {
    status: "failed",
    error: { code: 3005, title: "Upstream Provider Error", detail: "The job broke" },
    receipt: receipt("0.00", "0.00", "7.50"),
    ended_at: at("09:41:07")
  }),
  result: null,
  attempts: [attempt(1, { state: "refused", failure_class: "RATE_LIMITED" }), attempt(2, {})]
}

const call = (n: number, fields: Partial<Schemas["Call"]>): Schemas["Call"] => ({
  id: `019a0c5e-7f3a-7a00-9e2b-10000000000${n}`,
  vendor: "openai",
  model: "gpt-5-mini",
  route: "POST /v1/chat/completions",
  outcome: "settled",
  charged_late: false,
  http_status: 200,
  held: "1.25",
  cost: "0.0831",
  usage: { inputTokens: 1204, cachedInputTokens: 1024, outputTokens: 380, counted: false },
  account_id: "openai-1",
  time_to_first_token_ms: 412,
  sandbox: false,
  catalog,
  trace_id: trace,
  created_at: at("09:50:00"),
  ended_at: at("09:50:04"),
  ...fields
})

const calls: ReadonlyArray<Schemas["Call"]> = [
  call(3, {}),
  call(2, {
    vendor: "anthropic",
    model: "claude-sonnet-4-5",
    route: "POST /v1/messages",
    account_id: "anthropic-1",
    time_to_first_token_ms: null,
    cost: "1.812",
    usage: { inputTokens: 5120, outputTokens: 190, counted: false },
    created_at: at("09:31:10"),
    ended_at: at("09:31:14")
  }),
  call(1, {
    outcome: "released",
    http_status: 429,
    cost: "0.00",
    usage: null,
    time_to_first_token_ms: null,
    created_at: at("09:30:00"),
    ended_at: at("09:30:01")
  })
]

const keyOf = (n: number, fields: Partial<Schemas["ApiKey"]>): Schemas["ApiKey"] => ({
  id: `key_019a0c5e7f3a7a009e2b00000000000${n}`,
  preview: `sk-...Q${n}xZ`,
  name: "Shop",
  scopes: ["inference"],
  created_at: "2026-10-02T08:00:00.000Z",
  expires_at: null,
  last_used_at: at("09:58:40"),
  spend_limit: "500.00",
  reset: "monthly",
  spent: "312.40",
  held: "22.50",
  remaining: "165.10",
  resets_at: "2026-12-01T00:00:00.000Z",
  allowed_models: ["text-to-image-max", "image-edit", "image-to-video-spark"],
  rate_limit_per_minute: 120,
  concurrent_tasks: 10,
  old_key_expires_at: null,
  ...fields
})

const keys: ReadonlyArray<Schemas["ApiKey"]> = [
  keyOf(2, {}),
  keyOf(1, {
    name: "Back office",
    scopes: ["inference", "manage"],
    spend_limit: null,
    reset: null,
    spent: null,
    held: null,
    remaining: null,
    resets_at: null,
    allowed_models: null,
    rate_limit_per_minute: null,
    concurrent_tasks: null,
    last_used_at: "2026-11-20T16:00:00.000Z",
    old_key_expires_at: "2026-11-23T09:00:00.000Z"
  })
]

const unitsUsed: Schemas["UsageUnits"] = {
  input_tokens: 48_200,
  input_cached_tokens: 20_480,
  output_tokens: 9100,
  images: 9,
  videos: 1,
  audios: 0,
  seconds: 5
}

const usageOf = (fields: Partial<Schemas["Usage"]>): Schemas["Usage"] => ({
  day: null,
  hour: null,
  user: null,
  key: null,
  vendor: null,
  model: null,
  sandbox: null,
  tasks: 10,
  calls: 2,
  units: unitsUsed,
  amount: "96.20",
  errors: 1,
  p50_ms: 4352,
  p95_ms: 11_264,
  ...fields
})

const daily = [
  "61.50",
  "12.00",
  "0.00",
  "98.40",
  "77.25",
  "40.00",
  "31.90",
  "120.00",
  "0.00",
  "8.10"
]

const modelsOfDay = ["text-to-image-max", "image-edit-pro", "gpt-5-mini"]

const usageByDay = daily.map((amount, n) =>
  usageOf({ day: `2026-11-${String(n + 13).padStart(2, "0")}`, amount })
)

/** Parts of each day for each model; the second has errors. */
const usageByDayAndModel = usageByDay.flatMap(({ amount, day }, n) =>
  modelsOfDay.map((model, place) =>
    usageOf({
      day,
      model,
      amount: (Number(amount) / (place + 2)).toFixed(2),
      errors: place === 1 && n % 3 === 0 ? 2 : 0,
      p50_ms: 2000 * (3 - place) + 300 * (n % 4),
      p95_ms: 4200 * (3 - place) + 500 * (n % 4)
    })
  )
)

const usageByModel = [
  usageOf({ vendor: "alibaba", model: "text-to-image-max", sandbox: false, amount: "217.50" }),
  usageOf({ vendor: "google", model: "image-edit-pro", sandbox: false, amount: "160.80" }),
  usageOf({
    vendor: "openai",
    model: "gpt-5-mini",
    sandbox: false,
    units: { ...unitsUsed, images: 0 },
    amount: "70.85"
  })
]

const usageIn = (groups: string | null) => {
  if (groups === null || groups === "day") return usageByDay
  return groups.startsWith("day,") ? usageByDayAndModel : usageByModel
}

const endpoint: Schemas["WebhookEndpoint"] = {
  id: endpointId,
  url: "https://shop.example.com/hooks/pictures",
  events: ["task.succeeded", "task.failed"],
  description: "Puts pictures into the catalogue",
  enabled: true,
  filter: null,
  format: "gateway",
  secret_preview: "whsec_...9fQ=",
  old_secret_expires_at: "2026-11-23T07:30:00.000Z",
  created_at: "2026-10-02T08:00:00.000Z",
  updated_at: at("07:30:00"),
  health: {
    status: "failing",
    failed_attempts: 3,
    failing_since: at("09:42:01"),
    last_attempt: { started_at: at("09:42:22"), status: 500, failure: "http_status" }
  }
}

/** Few at night, some failed while the receiver was down, the latest wait. */
const activity: Schemas["WebhookEndpointActivity"] = {
  hours: [4, 2, 1, 0, 0, 1, 3, 8, 14, 21, 17, 12, 19, 24, 22, 16, 11, 9, 6, 5, 7, 12, 15, 9].map(
    (count, n) => ({
      hour: new Date(Date.parse(now) - (23 - n) * 3_600_000).toISOString(),
      succeeded: n === 23 ? count - 3 : count,
      failed: { 13: 6, 14: 2 }[n] ?? 0,
      waiting: n === 23 ? 3 : 0,
      has_more: false
    })
  )
}

const delivery = (
  n: number,
  fields: Partial<Schemas["WebhookDelivery"]>
): Schemas["WebhookDelivery"] => ({
  id: deliveryId(n),
  endpoint_id: endpointId,
  webhook_url: null,
  event_id: eventId(n),
  type: "task.succeeded",
  task_id: taskId(n),
  status: "succeeded",
  attempt_count: 1,
  next_attempt_at: null,
  created_at: at("09:41:06"),
  updated_at: at("09:41:07"),
  ...fields
})

const deliveries: ReadonlyArray<Schemas["WebhookDelivery"]> = [
  delivery(4, { status: "pending", next_attempt_at: at("10:00:07"), attempt_count: 3 }),
  delivery(3, { type: "task.failed", created_at: at("09:20:19") }),
  delivery(2, { created_at: at("08:55:34") })
]

const attemptAt = (seq: number, start: string, end: string): Schemas["WebhookAttempt"] => ({
  seq,
  due_at: at(start),
  started_at: at(start),
  ended_at: at(end),
  lateness_ms: 4,
  remote_address: "203.0.113.20",
  status: 500,
  failure: "http_status",
  detail: "HTTP 500",
  answer: "no space left on device"
})

const deliveryShown: Schemas["WebhookDeliveryWithAttempts"] = {
  ...delivery(4, { status: "pending", next_attempt_at: at("10:00:07"), attempt_count: 2 }),
  body: eventBody,
  attempts: [attemptAt(1, "09:41:06", "09:41:07"), attemptAt(2, "09:41:22", "09:41:23")]
}

const row = {
  valid_from: null,
  valid_until: null,
  deprecation: null,
  sunset: null,
  replacement: null,
  source: "https://example.com/prices, 2026-11-01",
  sandbox: false
}

const models: ReadonlyArray<Schemas["Model"] | Schemas["TokenModel"]> = [
  {
    ...row,
    type: "media",
    vendor: "alibaba",
    model: "text-to-image-max",
    path: "/vendors/alibaba/v1/text-to-image-max/generation",
    result: "images",
    price: { per: "image", amount: "7.50" },
    media: {},
    body_schema: {
      type: "object",
      required: ["prompt"],
      properties: {
        prompt: { type: "string", minLength: 1, maxLength: 800, description: "What to show" },
        size: {
          type: "string",
          enum: ["1664*928", "1472*1104", "1328*1328"],
          default: "1664*928",
          description: "`width*height`"
        },
        seed: { type: "integer", minimum: 0, maximum: 2_147_483_647 }
      }
    }
  },
  {
    ...row,
    type: "media",
    vendor: "alibaba",
    model: "image-to-video-spark",
    path: "/vendors/alibaba/v1/image-to-video-spark/generation",
    result: "videos",
    price: { per: "second", amount: "4.50", tiers: { "1080P": "10.50" } },
    media: {},
    body_schema: {
      type: "object",
      required: ["prompt"],
      properties: { prompt: { type: "string" } }
    }
  },
  {
    ...row,
    type: "token",
    vendor: "openai",
    model: "gpt-5-mini",
    path: "/vendors/openai/v1/chat/completions",
    sunset: "2027-03-31T00:00:00.000Z",
    replacement: "gpt-5.4-mini",
    price: {
      per: "million_tokens",
      input: "25.00",
      output: "200.00",
      cached_input: "2.50",
      cache_write: "25.00",
      cache_write_long: "25.00",
      reasoning: "200.00",
      audio_input: "25.00",
      image_output: "200.00",
      long: null,
      batch: "0.50",
      tools: { web_search: { per: "use", amount: "1" } }
    },
    input_tokens_max: 400_000,
    output_tokens_max: 128_000,
    body_schema: { type: "object", required: ["model"], properties: { model: { type: "string" } } }
  }
]

const running: Schemas["TaskTimeline"] = { ...timeline, status: "processing", result: null }

/** The data of a GET, by its path below `/manage/v1` and its query; `undefined` if there is none. */
export const dataAt = (path: string, query: URLSearchParams): unknown => {
  const status = query.get("status")
  const fixed: Readonly<Record<string, unknown>> = {
    "/service": service,
    [`/users/${userId}`]: user,
    "/wallet": wallet,
    "/wallet/entries": page(entries),
    "/tasks": page(tasks.filter((it) => status === null || it.status === status)),
    [`/tasks/${taskId(4)}`]: timeline,
    ...Object.fromEntries(
      [
        [1, "A paper boat on a calm lake"],
        [2, "A fishing village in the fog"]
      ].map(([n, prompt]) => [
        `/tasks/${taskId(Number(n))}`,
        { ...timeline, id: taskId(Number(n)), body: { prompt } }
      ])
    ),
    [`/tasks/${taskId(5)}`]: running,
    "/calls": page(calls),
    [`/calls/${calls[0]?.id}`]: calls[0],
    [`/calls/${calls[0]?.id}/content`]: contentOf(calls[0]?.id ?? ""),
    "/settings": settings,
    "/api-keys": page(keys),
    "/usage": page(usageIn(query.get("group_by"))),
    "/models": page(models),
    "/webhook-endpoints": page([endpoint]),
    [`/webhook-endpoints/${endpointId}`]: endpoint,
    [`/webhook-endpoints/${endpointId}/activity`]: activity,
    "/webhook-deliveries": page(deliveries.filter((it) => status === null || it.status === status)),
    [`/webhook-deliveries/${deliveryId(4)}`]: deliveryShown
  }
  return fixed[path] ?? operatorDataAt(path)
}

export interface Screen {
  readonly name: string
  /** The route of the page that it shows. */
  readonly route: string
  readonly path: string
  readonly role: "user" | "operator" | "nobody"
  /** Height of its picture in docs/console.md; absent if it has no picture there. */
  readonly height?: number
}

/** Every page, with the data above. */
export const screens: ReadonlyArray<Screen> = [
  { name: "sign-in", route: "/sign-in", path: "/sign-in", role: "nobody" },
  { name: "home", route: "/", path: "", role: "user", height: 900 },
  {
    name: "playground",
    route: "/playground",
    path: "/playground?model=alibaba%2Ftext-to-image-max",
    role: "user",
    height: 800
  },
  {
    name: "chat",
    route: "/playground",
    path: "/playground?model=openai%2Fgpt-5-mini",
    role: "user"
  },
  { name: "tasks", route: "/tasks", path: "/tasks", role: "user", height: 480 },
  {
    name: "task",
    route: "/tasks/:id",
    path: `/tasks/${taskId(4)}`,
    role: "user",
    height: 800
  },
  { name: "gallery", route: "/gallery", path: "/gallery", role: "user" },
  { name: "calls", route: "/calls", path: "/calls", role: "user" },
  { name: "call", route: "/calls/:id", path: `/calls/${calls[0]?.id}`, role: "user" },
  { name: "usage", route: "/usage", path: "/usage", role: "user", height: 800 },
  { name: "keys", route: "/keys", path: "/keys", role: "user" },
  { name: "account", route: "/sessions", path: "/sessions", role: "user" },
  { name: "wallet", route: "/wallet", path: "/wallet", role: "user" },
  { name: "webhooks", route: "/webhooks", path: "/webhooks", role: "user" },
  {
    name: "deliveries",
    route: "/webhooks/deliveries",
    path: "/webhooks/deliveries",
    role: "user"
  },
  {
    name: "delivery",
    route: "/webhooks/deliveries/:id",
    path: `/webhooks/deliveries/${deliveryId(4)}`,
    role: "user",
    height: 720
  },
  {
    name: "signature",
    route: "/webhooks/signature",
    path: "/webhooks/signature",
    role: "user",
    height: 800
  },
  { name: "models", route: "/models", path: "/models", role: "user" },
  {
    name: "model",
    route: "/models/:vendor/:model",
    path: "/models/alibaba/text-to-image-max",
    role: "user"
  },
  { name: "open", route: "/open/:id", path: "/open/nothing", role: "user" },
  ...operatorScreens
]
