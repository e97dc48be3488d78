import { Context, Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import type { HttpClientError } from "effect/http"
import { TaskResult } from "../../domain/Task.ts"
import type { Model } from "./Models.ts"

/** The service responded with an unexpected status. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  message: Schema.String
}) {}

const CreatedTask = Schema.Struct({ task_info: Schema.Struct({ id: Schema.String }) })
const CreatedUser = Schema.Struct({ id: Schema.String })
const ApiKey = Schema.Struct({ key: Schema.String })
const Endpoint = Schema.Struct({ id: Schema.String, secret: Schema.String })

const Wallet = Schema.Struct({
  available_balance: Schema.String,
  settled_balance: Schema.String,
  held_balance: Schema.String
})
export type Wallet = typeof Wallet.Type

const Entry = Schema.Struct({
  seq: Schema.Int,
  kind: Schema.String,
  amount: Schema.String,
  settled_after: Schema.String,
  held_after: Schema.String,
  task_id: Schema.NullOr(Schema.String)
})
export type Entry = typeof Entry.Type
const Entries = Schema.Struct({ data: Schema.Array(Entry) })

export type Failure = Refused | HttpClientError.HttpClientError | Schema.SchemaError

/** The part of the HTTP interface that the demo uses. */
export class Client extends Context.Service<
  Client,
  {
    readonly ready: Effect.Effect<boolean>
    /** Makes a user with credits and returns a key; needs the operator's token. */
    readonly makeUser: (
      operatorToken: string,
      name: string,
      credits: string
    ) => Effect.Effect<string, Failure>
    readonly registerEndpoint: (
      key: string,
      url: string
    ) => Effect.Effect<typeof Endpoint.Type, Failure>
    readonly removeEndpoint: (key: string, id: string) => Effect.Effect<void, Failure>
    readonly wallet: (key: string) => Effect.Effect<Wallet, Failure>
    /** Newest first. */
    readonly entries: (key: string) => Effect.Effect<ReadonlyArray<Entry>, Failure>
    readonly create: (
      key: string,
      model: Model
    ) => Effect.Effect<{ readonly id: string; readonly cost: string }, Failure>
    readonly get: (key: string, model: Model, id: string) => Effect.Effect<TaskResult, Failure>
    readonly download: (url: string) => Effect.Effect<Uint8Array, Failure>
  }
>()("gateway/cli/demo/Client") {
  static readonly layer = (baseUrl: string, serviceName: string) =>
    Layer.effect(
      Client,
      Effect.map(HttpClient.HttpClient, (http) => make(http, baseUrl, serviceName))
    ).pipe(Layer.provide(FetchHttpClient.layer))
}

const make = (
  http: HttpClient.HttpClient,
  baseUrl: string,
  serviceName: string
): Client["Service"] => {
  const client = http.pipe(HttpClient.mapRequest(HttpClientRequest.prependUrl(baseUrl)))
  const send = (token: string, status: number, request: HttpClientRequest.HttpClientRequest) =>
    client
      .execute(HttpClientRequest.bearerToken(request, token))
      .pipe(Effect.flatMap(expect(status)))
  const post = <S extends Schema.Constraint>(token: string, path: string, body: object, as: S) =>
    send(token, 201, withJson(path, body)).pipe(
      Effect.flatMap(HttpClientResponse.schemaBodyJson(as))
    )
  const read = <S extends Schema.Constraint>(token: string, path: string, schema: S) =>
    send(token, 200, HttpClientRequest.get(path)).pipe(
      Effect.flatMap(HttpClientResponse.schemaBodyJson(schema))
    )
  return Client.of({
    ready: client.get("/readyz").pipe(
      Effect.map((response) => response.status === 200),
      Effect.orElseSucceed(() => false)
    ),
    makeUser: Effect.fn("Demo.makeUser")(function* (token, name, credits) {
      const user = yield* post(
        token,
        "/manage/v1/users",
        { email: `${name}@localhost`, name },
        CreatedUser
      )
      const path = `/manage/v1/users/${user.id}`
      yield* post(token, `${path}/top-ups`, { amount: credits, note: "Demo" }, Schema.Unknown)
      return (yield* post(token, `${path}/api-keys`, newKey, ApiKey)).key
    }),
    registerEndpoint: (key, url) =>
      post(
        key,
        "/manage/v1/webhook-endpoints",
        { url, events: taskEvents, description: "Demo" },
        Endpoint
      ),
    removeEndpoint: (key, id) =>
      Effect.asVoid(send(key, 204, HttpClientRequest.delete(`/manage/v1/webhook-endpoints/${id}`))),
    wallet: (key) => read(key, "/manage/v1/wallet", Wallet),
    entries: (key) =>
      Effect.map(read(key, "/manage/v1/wallet/entries?limit=100", Entries), (page) => page.data),
    create: Effect.fn("Demo.create")(function* (key, model) {
      const request = withJson(model.path, model.body)
      const response = yield* send(key, 202, request)
      const { task_info: task } = yield* HttpClientResponse.schemaBodyJson(CreatedTask)(response)
      const cost = response.headers[`x-${serviceName.toLowerCase()}-cost`] ?? ""
      return { id: task.id, cost }
    }),
    get: (key, model, id) => read(key, `${model.path}/${id}`, TaskResult),
    download: (url) =>
      http.get(url).pipe(
        Effect.flatMap(expect(200)),
        Effect.flatMap((response) => response.arrayBuffer),
        Effect.map((buffer) => new Uint8Array(buffer))
      )
  })
}

const newKey = { name: "Demo", scopes: ["inference", "manage"] }

const withJson = (path: string, body: object) =>
  HttpClientRequest.post(path).pipe(HttpClientRequest.bodyJsonUnsafe(body))

const taskEvents = ["task.created", "task.succeeded", "task.failed"]

/** Fails with the body of a response that has another status. */
const expect = (status: number) =>
  Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse) {
    if (response.status === status) return response
    const text = yield* response.text
    const called = `${response.request.method} ${response.request.url}`
    return yield* new Refused({
      message: `${called} responded with ${response.status}: ${text.slice(0, 500)}`
    })
  })
