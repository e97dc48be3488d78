import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { GatewayClient } from "../../client/effect.ts"
import { pathOf } from "../../client/Task.ts"
import { readiness } from "../../contract/ServiceApi.ts"
import { TaskResult } from "../../domain/task/Task.ts"
import { faultOfClient, foreign, makeCall } from "../Management.ts"
import type { Answer, Management } from "../Management.ts"
import { CommandFault } from "../terminal/Fault.ts"
import type { Model } from "./Models.ts"

export type Wallet = Answer<"getWallet">
export type Entry = Answer<"listWalletEntries">["data"][number]

/** The part of the HTTP API that the demo uses. */
export class Client extends Context.Service<
  Client,
  {
    readonly ready: Effect.Effect<boolean>
    /** Creates a user with credits and returns a key. Requires the operator's token. */
    readonly makeUser: (
      operatorToken: string,
      name: string,
      credits: string
    ) => Effect.Effect<string, CommandFault>
    readonly registerEndpoint: (
      key: string,
      url: string
    ) => Effect.Effect<Answer<"createWebhookEndpoint">, CommandFault>
    readonly removeEndpoint: (key: string, id: string) => Effect.Effect<void, CommandFault>
    readonly wallet: (key: string) => Effect.Effect<Wallet, CommandFault>
    /** Newest first. */
    readonly entries: (key: string) => Effect.Effect<ReadonlyArray<Entry>, CommandFault>
    readonly create: (
      key: string,
      model: Model
    ) => Effect.Effect<{ readonly id: string; readonly cost: string }, CommandFault>
    readonly get: (key: string, model: Model, id: string) => Effect.Effect<TaskResult, CommandFault>
    readonly download: (url: string) => Effect.Effect<Uint8Array, CommandFault>
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
  /** Makes calls with this key or token, without retries: a failure is a result of the demo. */
  const useWith =
    (secret: string): Management["Service"]["use"] =>
    (_, work) =>
      Effect.flatMap(GatewayClient, work).pipe(
        Effect.provide(
          GatewayClient.layer({
            baseUrl,
            serviceName,
            apiKey: Redacted.make(secret),
            maxRetries: 0
          })
        ),
        Effect.mapError((error) => faultOfClient(baseUrl, "the credential", error))
      )
  const callWith = (secret: string) => makeCall(baseUrl, useWith(secret))
  return Client.of({
    ready: http.get(`${baseUrl}${readiness.path}`).pipe(
      Effect.map((response) => response.status === 200),
      Effect.orElseSucceed(() => false)
    ),
    makeUser: Effect.fn("Demo.makeUser")(function* (token, name, credits) {
      const call = callWith(token)
      const payload = { email: `${name}@localhost`, name }
      const { id } = yield* call("createUser", { as: "operator", payload })
      const user = { as: "operator", params: { id } } as const
      yield* call("topUp", { ...user, payload: { amount: credits, note: "Demo" } })
      return (yield* call("createUserApiKey", { ...user, payload: newKey })).key
    }),
    registerEndpoint: (key, url) =>
      callWith(key)("createWebhookEndpoint", {
        as: "user",
        payload: { url, events: taskEvents, description: "Demo" }
      }),
    removeEndpoint: (key, id) =>
      Effect.asVoid(callWith(key)("deleteWebhookEndpoint", { as: "user", params: { id } })),
    wallet: (key) => callWith(key)("getWallet", { as: "user" }),
    entries: (key) =>
      Effect.map(
        callWith(key)("listWalletEntries", { as: "user", query: { limit: "100" } }),
        ({ data }) => data
      ),
    create: (key, { action, body, name, vendor }) =>
      useWith(key)("user", ({ tasks }) => tasks.create(`${vendor}/${name}/${action}`, body)).pipe(
        Effect.map(({ cost = "", id }) => ({ id, cost }))
      ),
    get: Effect.fn("Demo.get")(function* (key, { action, name, vendor }, id) {
      const path = pathOf({ vendor, model: name, action }, id)
      const answer = yield* useWith(key)("user", (client) =>
        client.request(`GET /${path.slice(1)}`)
      )
      return yield* Effect.mapError(decodeResult(answer), () =>
        foreign(baseUrl, `task ${id} has another form`)
      )
    }),
    download: Effect.fn("Demo.download")(
      function* (url) {
        const response = yield* http.get(url)
        if (response.status !== 200) {
          return yield* new CommandFault({ message: `${url} responded with ${response.status}` })
        }
        return new Uint8Array(yield* response.arrayBuffer)
      },
      Effect.catchTag("HttpClientError", ({ message }) => new CommandFault({ message }))
    )
  })
}

const decodeResult = Schema.decodeUnknownEffect(TaskResult)

const newKey = { name: "Demo", scopes: ["inference", "manage"] } as const

const taskEvents = ["task.created", "task.succeeded", "task.failed"] as const
