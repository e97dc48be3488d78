import { Context, Effect, FileSystem, Layer } from "effect"
import { HttpServer } from "effect/http"
import { AppConfig } from "../../src/config/Config.ts"
import type { UserId } from "../../src/domain/Ids.ts"
import type { AttemptOutcome } from "../../src/domain/Webhook.ts"
import * as Gateway from "../../src/Gateway.ts"
import * as Routes from "../../src/http/Routes.ts"
import { Listener, listenerBounds } from "../../src/http/server/listener/Listener.ts"
import type { ListenerBounds } from "../../src/http/server/listener/Listener.ts"
import { WebhookSender } from "../../src/webhooks/WebhookSender.ts"
import type { WebhookRequest } from "../../src/webhooks/WebhookSender.ts"
import { makeCaller } from "./callers.ts"
import { adminToken, readResult } from "./gateway.ts"
import { freePort } from "./spawnService.ts"
import { startedDatabase } from "./stores.ts"
import { pause, until } from "./until.ts"

/** A whole gateway on a port of 127.0.0.1 with a user who has credits and a key. */
export class Running extends Context.Service<
  Running,
  {
    readonly url: string
    readonly port: number
    readonly key: string
    readonly userId: UserId
    readonly dataDir: string
  }
>()("test/Running") {}

const runningAt = (host: string) =>
  Layer.effect(
    Running,
    Effect.gen(function* () {
      const { dataDir, port } = yield* AppConfig
      yield* HttpServer.HttpServer
      const { key, userId } = yield* makeCaller(1_000_000, "user@localhost")
      return { url: `http://${host}:${port}`, port, key, userId, dataDir }
    })
  )

/** Runs on the embedded store with the real clock. `env`: docs/reference/configuration.md#variables */
export const runningGateway = (
  env: Record<string, string> = {},
  bounds: ListenerBounds = listenerBounds,
  /** Responds to webhook attempts instead of their receivers. */
  receiver?: (request: WebhookRequest) => Effect.Effect<AttemptOutcome>,
  /** `localhost` for passkeys, which browsers create only for a host name. */
  host: "127.0.0.1" | "localhost" = "127.0.0.1"
) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const dataDir = yield* files.makeTempDirectoryScoped()
      const port = yield* Effect.promise(freePort)
      const config = AppConfig.layerOf({
        DATA_DIR: dataDir,
        ADMIN_TOKEN: adminToken,
        PORT: String(port),
        BASE_URL: `http://${host}:${port}`,
        SIMULATOR_DELAY: "1 millis",
        LOG_LEVEL: "Error",
        EGRESS_ALLOW: "127.0.0.0/8",
        MANAGE_RATE_LIMIT_PER_MINUTE: "0",
        ...env
      })
      return runningAt(host).pipe(
        Layer.provideMerge(Routes.serve),
        Layer.provideMerge(Listener.listen({ host: "127.0.0.1", port }, bounds)),
        Layer.provideMerge(Gateway.core),
        Layer.provideMerge(Gateway.stores),
        // If two layers provide a service, the later one wins
        Layer.provideMerge(
          receiver === undefined
            ? Gateway.adapters
            : Layer.mergeAll(Gateway.adapters, WebhookSender.layerMock(receiver))
        ),
        Layer.provideMerge(startedDatabase),
        Layer.provideMerge(config)
      )
    })
  ).pipe(Layer.provideMerge(Gateway.platform))

/** Sends a request with the running gateway's key. The path may be a complete URL. */
export const call = (path: string, init: RequestInit = {}) =>
  Effect.flatMap(Running, ({ key, url }) =>
    Effect.promise(() =>
      fetch(path.startsWith("http") ? path : `${url}${path}`, {
        redirect: "manual",
        ...init,
        headers: { authorization: `Bearer ${key}`, ...init.headers }
      })
    )
  )

/** The status and the JSON of a response to the running gateway's key. */
export const read = (path: string, init: RequestInit = {}) =>
  Effect.flatMap(call(path, init), (answer) => Effect.promise(() => readResult(answer)))

/** Asks again and again until the answer satisfies the condition. */
export const polled = <A>(ask: () => Promise<A>, isOver: (answer: A) => boolean) =>
  Effect.promise(async () => {
    let answer = await ask()
    await until(async () => isOver(answer) || ((answer = await ask()), false))
    return answer
  })

/** The key of a second user, with credits. */
export const strangersKey = Effect.map(
  makeCaller(1000, "stranger@example.com", ["inference"]),
  ({ key }) => key
)

/** `/metrics` as shown to the operator. */
export const metricsText = Effect.flatMap(
  call("/metrics", { headers: { authorization: `Bearer ${adminToken}` } }),
  (got) => Effect.promise(() => got.text())
)

export const json = (body: unknown): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: typeof body === "string" ? body : JSON.stringify(body)
})

export interface Task {
  readonly task_info: {
    readonly id: string
    readonly status: string
    readonly error?: { readonly code: number; readonly title: string; readonly detail: string }
  }
  readonly images?: ReadonlyArray<string>
  readonly videos?: ReadonlyArray<string>
}

/** Creates a task and polls until it has ended. */
export const finishedTask = Effect.fnUntraced(function* (path: string, body: unknown) {
  const answer = yield* call(path, json(body))
  const created = (yield* Effect.promise(() => answer.json())) as Task
  if (answer.status !== 202) throw new Error(`${answer.status} ${JSON.stringify(created)}`)
  return yield* endedTask(path, created.task_info.id)
})

/** Polls until the task has ended. */
export const endedTask = (path: string, id: string) =>
  Effect.flatMap(call(`${path}/${id}`), (got) =>
    Effect.promise(() => got.json() as Promise<Task>)
  ).pipe(
    Effect.tap(Effect.promise(() => pause(20))),
    Effect.repeat({
      until: ({ task_info }) => task_info.status === "completed" || task_info.status === "failed",
      times: 1000
    })
  )
