import { Effect, Schema } from "effect"

/** How the program calls a gateway: the global `fetch` in production, the test's own in tests. */
export interface GatewayClient {
  readonly key: string
  readonly fetch: (path: string, init?: RequestInit) => Effect.Effect<Response>
}

export class NoPoster extends Schema.TaggedError<NoPoster>()("NoPoster", {
  code: Schema.Int,
  detail: Schema.String
}) {}

const Task = Schema.Struct({
  task_info: Schema.Struct({
    id: Schema.String,
    status: Schema.optionalKey(Schema.String),
    error: Schema.optionalKey(Schema.Struct({ code: Schema.Int, detail: Schema.String }))
  }),
  images: Schema.optionalKey(Schema.Array(Schema.String))
})
const decodeTask = Schema.decodeUnknownEffect(Task)

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Orders a poster and waits for it; returns the URL of the picture. */
export const orderPoster = Effect.fn("orderPoster")(function* (
  gateway: GatewayClient,
  prompt: string
) {
  const call = Effect.fnUntraced(function* (url: string, init: RequestInit = {}) {
    const headers = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" }
    const response = yield* gateway.fetch(url, { ...init, headers })
    return yield* Effect.flatMap(
      Effect.promise(() => response.json()),
      decodeTask
    )
  })
  const created = yield* call(path, { method: "POST", body: JSON.stringify({ prompt }) })
  const done = yield* call(`${path}/${created.task_info.id}`).pipe(
    Effect.delay("2 seconds"),
    Effect.repeat({
      until: ({ task_info: { status } }) => status !== "pending" && status !== "processing"
    })
  )
  const { error } = done.task_info
  if (error !== undefined) return yield* new NoPoster(error)
  return done.images?.[0] ?? ""
})
