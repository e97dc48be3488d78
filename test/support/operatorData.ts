import type { Schemas } from "../../src/console/api/schema.ts"

/** Fixed responses of a gateway to the operator, in the types of the API. */

const at = (time: string) => `2026-11-22T${time}.000Z`
const page = <T>(data: ReadonlyArray<T>) => ({ data, next_cursor: null })
const idOf = (n: number) => `019a0c5e-0000-7000-8000-00000000000${n}`
const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

const user = (
  n: number,
  email: string,
  fields: Partial<Schemas["ListedUser"]>
): Schemas["ListedUser"] => ({
  id: idOf(n),
  email,
  name: null,
  created_at: `2026-10-0${n}T08:00:00.000Z`,
  disabled: false,
  trigger_threshold: "100.00",
  rate_limit_per_minute: null,
  concurrent_tasks: null,
  available_balance: "4287.50",
  settled_balance: "4310.00",
  spent_this_month: "690.00",
  ...fields
})

const users = [
  user(3, "studio@example.com", {
    name: "Studio",
    rate_limit_per_minute: 600,
    concurrent_tasks: 50,
    available_balance: "18250.25",
    settled_balance: "18301.25",
    spent_this_month: "6120.75"
  }),
  user(2, "old@example.com", {
    disabled: true,
    available_balance: "-1.20",
    settled_balance: "-1.20",
    spent_this_month: "0.00"
  }),
  user(1, "ada@example.com", { name: "Ada" })
]

const session = (n: number, fields: Partial<Schemas["Session"]>): Schemas["Session"] => ({
  id: `ses_${n}`,
  user: null,
  role: "operator",
  method: "oidc",
  current: false,
  address: `192.0.2.${n}`,
  created_at: at("08:00:00"),
  last_seen_at: at("09:59:00"),
  expires_at: at("21:59:00"),
  ...fields
})

const entry = (n: number, type: string, fields: Partial<Schemas["AuditEntry"]>) => ({
  id: `aud_${n}`,
  type,
  actor: { type: "session" as const, id: "ses_1", user_id: null, ip_address: "192.0.2.1" },
  user_id: idOf(1),
  resource_id: idOf(1),
  changes: {},
  trace_id: `4bf92f3577b34da6a3ce929d0e0e473${n}`,
  created_at: at(`09:5${n}:00`),
  ...fields
})

const audit: ReadonlyArray<Schemas["AuditEntry"]> = [
  entry(4, "topUp", { changes: { amount: "1000.00", note: "[hidden]" } }),
  entry(3, "updateUser", { changes: { concurrent_tasks: 20 } }),
  entry(2, "listApiKeys", { resource_id: null }),
  entry(1, "createApiKey", {
    actor: { type: "session", id: "ses_7", user_id: idOf(1), ip_address: "198.51.100.4" },
    resource_id: "key_019a0c5e",
    changes: { name: "[hidden]", scopes: ["inference"] }
  })
]

const account = (id: string, fields: Partial<Schemas["VendorAccount"]>) => ({
  id,
  provider: id.split(":")[0] ?? "",
  base_url: "https://dashscope-intl.aliyuncs.com/api/v1",
  weight: 1,
  configured: true,
  status: "active" as const,
  draining_since: null,
  health: "healthy" as const,
  circuit: "closed" as const,
  paused_seconds: 0,
  models: [],
  slots: { limit: 20, held: 12, waiting: 0 },
  rate: [{ name: "submits", model: null, limit: 300, used: 84, resets_at: null }],
  spend_today: "1284.50",
  last_fault: null,
  failed_check: null,
  ...fields
})

const accounts: ReadonlyArray<Schemas["VendorAccount"]> = [
  account("dashscope:main", {}),
  account("dashscope:second", {
    status: "draining",
    draining_since: at("09:30:00"),
    slots: { limit: 20, held: 3, waiting: 0 },
    spend_today: "310.00"
  }),
  account("openai:main", {
    base_url: "https://api.openai.com/v1",
    health: "unavailable",
    circuit: "open",
    slots: { limit: null, held: 0, waiting: 2 },
    rate: [],
    spend_today: "92.25",
    last_fault: {
      at: at("09:41:12"),
      model: "gpt-image-2",
      http_status: 401,
      remedy: "The vendor refuses the key: set another one"
    }
  })
]

const queues: Schemas["Queues"] = {
  tasks: { unfinished: 41, waiting_for_slot: 2, unowned: 29, due: 1, lateness_ms: 120 },
  deliveries: { unfinished: 6, due: 0, in_progress: 2, lateness_ms: 0 },
  wallets: {
    drift: 0,
    drifting_user_ids: [],
    budget_drift: 0,
    audited_at: at("09:59:50"),
    budgets_audited_at: at("09:57:00")
  },
  store: { restored_at: null, trusted_until: null, tasks_in_doubt: 0 }
}

const row = (type: "media" | "token", id: string, price: Schemas["CatalogRow"]["price"]) => ({
  type,
  id,
  price,
  valid_from: null,
  valid_until: null,
  deprecation: null,
  sunset: null,
  replacement: null,
  source: null
})

const catalog: Schemas["Catalog"] = {
  hash,
  adopted_at: at("06:00:00"),
  data: [
    row("media", "alibaba/v1/text-to-image-max/generation", { per: "image", amount: "7.50" }),
    row("media", "alibaba/v1/text-to-video-spark/generation", { per: "second", amount: "10.00" })
  ]
}

/** The changes of the catalog file. */
export const catalogReload: Schemas["CatalogReload"] = {
  hash: hash.replaceAll("9", "3"),
  previous_hash: hash,
  adopted: false,
  difference: {
    added: [{ type: "media", id: "fal/v1/flux-dev/generation" }],
    removed: [],
    changed: [
      {
        type: "media",
        id: "alibaba/v1/text-to-image-max/generation",
        changes: [{ pointer: "#/price/amount", before: "7.50", after: "9.00" }]
      }
    ]
  }
}

const owner = (n: number, email: string): Schemas["Owner"] => ({ id: idOf(n), email })

const task = (n: number, fields: Partial<Schemas["OperatorTask"]>): Schemas["OperatorTask"] => ({
  id: `019a0c5e-7f3a-7a00-9e2b-00000000000${n}`,
  user: owner(1, "ada@example.com"),
  vendor: "alibaba",
  model: "text-to-image-max",
  action: "generation",
  status: "completed",
  error: null,
  sandbox: false,
  receipt: { held: "0.00", captured: "7.50", released: "0.00", currency: "credits" },
  catalog: hash,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
  created_at: at(`09:4${n}:02`),
  started_at: at(`09:4${n}:03`),
  ended_at: at(`09:4${n}:06`),
  ...fields
})

const tasks = [
  task(3, { user: owner(3, "studio@example.com"), model: "image-to-video-spark" }),
  task(2, {
    status: "failed",
    error: { code: 3001, title: "Content Error" },
    receipt: { held: "0.00", captured: "0.00", released: "7.50", currency: "credits" }
  }),
  task(1, {})
]

const call: Schemas["OperatorCall"] = {
  id: "019a0c5e-7f3a-7a00-9e2b-100000000001",
  user: owner(3, "studio@example.com"),
  vendor: "openai",
  model: "gpt-5-mini",
  route: "POST /v1/chat/completions",
  outcome: "settled",
  charged_late: false,
  http_status: 200,
  held: "1.25",
  cost: "0.0831",
  usage: { inputTokens: 1204, outputTokens: 380, counted: false },
  account_id: "openai-1",
  time_to_first_token_ms: 412,
  sandbox: false,
  catalog: hash,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4737",
  created_at: at("09:50:00"),
  ended_at: at("09:50:04")
}

export const operatorDataAt = (path: string): unknown =>
  ({
    "/queues": queues,
    "/accounts": page(accounts),
    "/catalog": catalog,
    "/users": page(users),
    "/operator/tasks": page(tasks),
    "/operator/calls": page([call]),
    [`/users/${idOf(1)}/wallet`]: {
      available_balance: "4287.50",
      settled_balance: "4310.00",
      held_balance: "22.50",
      trigger_threshold: "500.00",
      currency: "credits",
      state: "NORMAL"
    } satisfies Schemas["Wallet"],
    "/sessions": page([
      session(1, { current: true }),
      session(7, { method: "link", last_seen_at: at("08:20:00") })
    ]),
    "/passkeys": page([
      {
        id: "pky_1",
        name: "MacBook",
        created_at: "2026-10-02T08:00:00.000Z",
        last_used_at: at("07:58:00")
      },
      { id: "pky_2", name: "YubiKey", created_at: "2026-10-02T08:05:00.000Z", last_used_at: null }
    ] satisfies ReadonlyArray<Schemas["Passkey"]>),
    "/audit-log": page(audit)
  })[path]

/** A bill of a week, with a model that is sold below its price. */
export const billReport: Schemas["Reconciliation"] = {
  vendor: "replicate",
  from: "2026-11-15",
  to: "2026-11-21",
  lines: 412,
  billed: "1842.60",
  matched: 408,
  margin: {
    billed: "1842.60",
    charged: "2310.50",
    margin: "467.90",
    models: [
      { model: "image-edit-pro", billed: "1105.20", charged: "1474.00", margin: "368.80" },
      { model: "text-to-image-max", billed: "612.90", charged: "727.50", margin: "114.60" },
      { model: "image-to-video-spark", billed: "124.50", charged: "109.00", margin: "-15.50" }
    ],
    days: [
      { day: "2026-11-15", billed: "240.10", charged: "318.00", margin: "77.90" },
      { day: "2026-11-16", billed: "198.40", charged: "260.50", margin: "62.10" },
      { day: "2026-11-17", billed: "302.00", charged: "402.00", margin: "100.00" },
      { day: "2026-11-18", billed: "355.60", charged: "466.00", margin: "110.40" },
      { day: "2026-11-19", billed: "336.50", charged: "314.00", margin: "-22.50" },
      { day: "2026-11-20", billed: "212.00", charged: "285.00", margin: "73.00" },
      { day: "2026-11-21", billed: "198.00", charged: "265.00", margin: "67.00" }
    ]
  },
  bought_not_charged: { count: 0, billed: "0.00", data: [] },
  charged_not_bought: { count: 0, charged: "0.00", data: [] },
  differences: [
    {
      day: "2026-11-19",
      model: "image-to-video-spark",
      billed: "124.50",
      charged: "109.00",
      difference: "-15.50"
    }
  ]
}

/** The operator's pages, in addition to those of a user. */
export const operatorScreens = [
  { name: "overview", route: "/", path: "", role: "operator", height: 800 },
  { name: "users", route: "/users", path: "/users", role: "operator" },
  { name: "user", route: "/users/:id", path: `/users/${idOf(1)}`, role: "operator" },
  { name: "all-tasks", route: "/tasks", path: "/tasks", role: "operator" },
  { name: "all-calls", route: "/calls", path: "/calls", role: "operator" },
  { name: "sessions", route: "/sessions", path: "/sessions", role: "operator" },
  { name: "accounts", route: "/accounts", path: "/accounts", role: "operator" },
  { name: "catalog", route: "/catalog", path: "/catalog", role: "operator" },
  { name: "bills", route: "/bills", path: "/bills", role: "operator" },
  { name: "audit-log", route: "/audit-log", path: "/audit-log", role: "operator" }
] as const
