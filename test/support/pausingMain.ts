import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { ArtifactIndexStore } from "../../src/artifacts/ArtifactIndexStore.ts"
import * as FirstStart from "../../src/cli/FirstStart.ts"
import * as Logging from "../../src/cli/Logging.ts"
import * as Shutdown from "../../src/cli/Shutdown.ts"
import { AppConfig } from "../../src/config/Config.ts"
import * as Gateway from "../../src/Gateway.ts"
import { TaskStore } from "../../src/tasks/TaskStore.ts"
import { VendorClient } from "../../src/vendors/VendorClient.ts"
import type { VendorAccount } from "../../src/vendors/VendorClient.ts"

const log = process.env["PAUSE_LOG"] ?? "/dev/null"

/** Tasks that had already paused when an earlier process was killed. They continue now. */
const before = existsSync(log) ? readFileSync(log, "utf8") : ""
const points = new Map<string, string>()

/**
 * Like `src/main.ts`, but a task whose prompt contains `[[pause:<point>]]` stops forever when it first reaches that
 * point, and is recorded in the file `PAUSE_LOG`, so that a test can kill the process at that point.
 */
const pauseAt = (point: string, taskId: string) =>
  Effect.suspend(() => {
    if (points.get(taskId) !== point || before.includes(taskId)) return Effect.void
    appendFileSync(log, `${taskId}\n`)
    return Effect.never
  })

const pausing = (account: VendorAccount): VendorAccount => ({
  ...account,
  submit: (request) =>
    Effect.suspend(() => {
      const point = /\[\[pause:([a-z-]+)\]\]/u.exec(JSON.stringify(request.body))?.[1]
      if (point !== undefined) points.set(request.taskId, point)
      return Effect.andThen(pauseAt("before-submit", request.taskId), account.submit(request))
    })
})

const vendors = Layer.effect(
  VendorClient,
  Effect.map(VendorClient, (live) => ({
    ...live,
    choose: (entry) => Effect.map(live.choose(entry), pausing),
    owner: (accountId) => Effect.map(live.owner(accountId), pausing)
  }))
).pipe(Layer.provide(Gateway.adapters))

const tasks = Layer.effect(
  TaskStore,
  Effect.map(TaskStore, (live) => ({
    ...live,
    endStep: (end) =>
      end.attempt === undefined
        ? live.endStep(end)
        : pauseAt("answered", end.taskId).pipe(
            Effect.andThen(live.endStep(end)),
            Effect.tap(pauseAt("recorded", end.taskId))
          ),
    finish: (finish) =>
      pauseAt("copied", finish.taskId).pipe(
        Effect.andThen(live.finish(finish)),
        Effect.tap(pauseAt("finished", finish.taskId))
      )
  }))
).pipe(Layer.provide(Gateway.stores))

const artifacts = Layer.effect(
  ArtifactIndexStore,
  Effect.map(ArtifactIndexStore, (live) => ({
    ...live,
    add: (row) =>
      Effect.andThen(
        row.role === "output" ? pauseAt("copying", row.taskId) : Effect.void,
        live.add(row)
      )
  }))
).pipe(Layer.provide(Gateway.stores))

const main = Shutdown.layer.pipe(
  Layer.provide(FirstStart.layer),
  Layer.provide(Gateway.http),
  Layer.provide(Gateway.core),
  Layer.provide(Layer.mergeAll(Gateway.stores, tasks, artifacts)),
  Layer.provide(Layer.mergeAll(Gateway.adapters, vendors)),
  Layer.provide(Gateway.database),
  Layer.provide(Logging.layer),
  Layer.provide(AppConfig.layer),
  Layer.provide(Gateway.platform)
)

NodeRuntime.runMain(Layer.launch(main), {
  disableErrorReporting: true,
  teardown: Logging.teardown
})
