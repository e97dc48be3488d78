import { NodeHttpServer, NodeRuntime, NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { AppConfig } from "../src/config/Config.ts"
import { layerPostgres } from "../src/db/Database.ts"
import * as Gateway from "../src/Gateway.ts"
import { WorkNotifier } from "../src/process/signals/WorkNotifier.ts"
import { TaskInbox } from "../src/tasks/running/TaskInbox.ts"

/**
 * The servers that `tasks.ts` measures, each in a separate process: `gateway` is everything without the actors, so that
 * creates are measured without the work that they cause; `actors` includes the actors; `bare` is one Effect route with
 * one indexed SELECT on the same driver.
 */
const gateway = Gateway.http.pipe(
  Layer.provide(Gateway.services),
  Layer.provide([WorkNotifier.layerNoop, TaskInbox.layer, Gateway.process]),
  Layer.provide(Gateway.stores),
  Layer.provide(Gateway.adapters),
  Layer.provide(Gateway.database)
)

const actors = Gateway.http.pipe(
  Layer.provide(Gateway.core),
  Layer.provide(Gateway.stores),
  Layer.provide(Gateway.adapters),
  Layer.provide(Gateway.database)
)

const bareRoute = HttpRouter.use((router) =>
  Effect.flatMap(PgClient.PgClient, (sql) =>
    Effect.andThen(
      router.add("GET", "/healthz", Effect.succeed(HttpServerResponse.text("ok"))),
      router.add(
        "GET",
        "/tasks/:id",
        Effect.gen(function* () {
          const { id } = yield* HttpRouter.params
          const rows =
            yield* sql`SELECT id, status, created_at, updated_at, error FROM tasks WHERE id = ${id}`
          return HttpServerResponse.jsonUnsafe({ task_info: rows[0] })
        })
      )
    )
  )
)

const bare = Layer.unwrap(
  Effect.map(AppConfig, ({ port }) =>
    HttpRouter.serve(bareRoute, { disableLogger: true }).pipe(
      Layer.provide(layerPostgres({ url: Redacted.make(process.env["DATABASE_URL"] ?? "") })),
      Layer.provide(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port }))
    )
  )
)

const which: Record<string, typeof gateway> = { gateway, actors, bare: bare as typeof gateway }
const chosen = which[process.argv[2] ?? "gateway"] ?? gateway

NodeRuntime.runMain(
  Layer.launch(chosen.pipe(Layer.provide(AppConfig.layer), Layer.provide(NodeServices.layer)))
)
